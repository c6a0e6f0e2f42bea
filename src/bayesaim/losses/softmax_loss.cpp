// SPDX-License-Identifier: MIT
#include "bayesaim/losses/softmax_loss.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "bayesaim/channels/softmax.hpp"
#include "bayesaim/core/checks.hpp"
#include "bayesaim/losses/softmax_step.hpp"
#include "bayesaim/losses/two_token_means.hpp"
#include "bayesaim/numerics/quasi_monte_carlo.hpp"

namespace bayesaim::losses {
namespace {

/// Draws are cheap, so each point of `Integration` gets several.
constexpr std::size_t draws_per_point = 16;

ProximalMeans sampled_means(SoftmaxLoss::Kind kind, int tokens, double beta, const Alignment& at,
                            double variance, const Integration& integration) {
    check_at_least("shifts of the integration", integration.shifts, 2);
    check_at_least("points of the integration", integration.points, 1);
    const Roots roots(at);
    const channels::Softmax teacher(tokens, beta);
    const Eigen::Index pairs = teacher.pairs();
    const numerics::ShiftedSobol sobol(static_cast<int>(2 * pairs), integration.shifts,
                                       static_cast<std::size_t>(integration.points) * draws_per_point,
                                       integration.seed);
    const auto estimates = sobol.averages(
        4, 512,
        [&](const Eigen::ArrayXXd& x, std::size_t, Eigen::VectorXd& sums) {
            TokensStep one(kind, tokens, beta);
            const channels::Rows targets =
                (roots.shared * x.leftCols(pairs) + roots.rest * x.rightCols(pairs)).matrix();
            channels::Rows outputs(targets.rows(), tokens * tokens);
            teacher.draw(targets, 0, 0, outputs);
            for (Eigen::Index i = 0; i < targets.rows(); ++i) {
                const Eigen::VectorXd omega = roots.omega * x.row(i).head(pairs).matrix().transpose();
                one.solve(outputs.row(i).data(), targets.row(i).transpose(), omega, variance);
                const StepSums step = one.sums(true);
                sums[0] += step.curvature;
                sums[1] += step.signal;
                sums[2] += step.power;
                sums[3] += step.loss;
            }
        },
        integration.pool);
    ProximalMeans means{estimates[0].value, estimates[1].value, estimates[2].value, estimates[3].value, 0};
    for (const auto& estimate : estimates)
        means.relative_error =
            std::max(means.relative_error, std::abs(estimate.standard_error / estimate.value));
    return means;
}

}  // namespace

SoftmaxLoss::SoftmaxLoss(Kind kind, int tokens, double beta) : kind_(kind), tokens_(tokens), beta_(beta) {
    check_at_least("tokens of a loss", tokens, 2);
    channels::check_softmax_beta(beta);
}

std::string SoftmaxLoss::name() const { return kind_ == Kind::cross_entropy ? "cross-entropy" : "square"; }

/// Calls each(sums) for every sample, and writes g.
template <class Each>
void SoftmaxLoss::steps(const ConstRowsRef& outputs, const ConstRowsRef& omega, double variance, RowsRef g,
                        Each each) const {
    if (tokens_ == 2) {
        TwoTokenStep one(kind_, beta_);
        const double root = std::numbers::sqrt2;
        for (Eigen::Index i = 0; i < omega.rows(); ++i) {
            const double* y = outputs.data() + i * outputs.outerStride();
            const double target[2] = {(y[0] - y[1]) / beta_, (y[3] - y[2]) / beta_};
            const double u[2] = {omega(i, 0) - omega(i, 1) / root, omega(i, 2) - omega(i, 1) / root};
            one.solve(target, u, variance);
            g(i, 0) = -one.slope()[0];
            g(i, 1) = (one.slope()[0] + one.slope()[1]) / root;
            g(i, 2) = -one.slope()[1];
            each(i, one.sums());
        }
        return;
    }
    TokensStep one(kind_, tokens_, beta_);
    for (Eigen::Index i = 0; i < omega.rows(); ++i) {
        const double* y = outputs.data() + i * outputs.outerStride();
        one.solve(y, one.target_of(y), omega.row(i).transpose(), variance);
        g.row(i) = one.g().transpose();
        each(i, one.sums(false));
    }
}

void SoftmaxLoss::score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                        RowsRef g, Eigen::Ref<Eigen::VectorXd> log_z) const {
    const double v = variance(0, 0);
    steps(outputs, omega, v, g, [&](Eigen::Index i, const StepSums& sums) {
        if (log_z.size() > 0) log_z[i] = -sums.loss - 0.5 * v * sums.power;
    });
}

Overlap SoftmaxLoss::score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega,
                                      const Overlap& variance, RowsRef g) const {
    double sum = 0;
    steps(outputs, omega, variance(0, 0), g,
          [&](Eigen::Index, const StepSums& sums) { sum += sums.curvature; });
    return linalg::scalar_overlap(sum);
}

ProximalMeans SoftmaxLoss::means(const Alignment& at, double variance, const Integration& integration) const {
    check_positive("variance of a proximal step", variance);
    if (tokens_ == 2) return two_token_means(kind_, beta_, at, variance, integration);
    if (kind_ == Kind::square)
        throw_unavailable("theory of the square loss of softmax outputs", "for more than two tokens");
    return sampled_means(kind_, tokens_, beta_, at, variance, integration);
}

double SoftmaxLoss::generalization(const Alignment& at, const Integration& integration) const {
    return softmax_generalization(tokens_, beta_, at, integration);
}

}  // namespace bayesaim::losses
