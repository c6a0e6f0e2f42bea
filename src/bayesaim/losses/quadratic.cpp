// SPDX-License-Identifier: MIT
#include "bayesaim/losses/quadratic.hpp"

#include <cmath>

#include "bayesaim/channels/expectations/output_disagreement.hpp"
#include "bayesaim/core/checks.hpp"

namespace bayesaim::losses {

Quadratic::Quadratic(Kind kind, int tokens, double beta, double label_noise)
    : kind_(kind), tokens_(tokens), beta_(beta), label_noise_(label_noise) {
    check_at_least("tokens of a loss", tokens, kind == Kind::square ? 1 : 2);
    check_positive("beta", beta);
    check_non_negative("label noise", label_noise);
    const double t = tokens;
    parts_[0] = {t * (t - 1) / 2, 1};
    parts_[1] = {t - 1, kind == Kind::row_logit ? 0.5 : 1};
    parts_[2] = {1, kind == Kind::square ? 1.0 : 0.0};
}

std::string Quadratic::name() const {
    switch (kind_) {
        case Kind::square:
            return "square";
        case Kind::logit:
            return "logit";
        default:
            return "row-logit";
    }
}

void Quadratic::score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                      RowsRef g, Eigen::Ref<Eigen::VectorXd> log_z) const {
    const int last = tokens_ - 1;
    const double v = variance(0, 0), root = std::sqrt(2.0);
    double factor[3];
    for (int j = 0; j < 3; ++j) factor[j] = parts_[j].weight / (1 + parts_[j].weight * v);
    Eigen::MatrixXd e(tokens_, tokens_);
    Eigen::VectorXd row(tokens_);
    for (Eigen::Index i = 0; i < omega.rows(); ++i) {
        const double* y = outputs.data() + i * outputs.outerStride();
        const auto target = [&](int a, int b) {
            if (kind_ == Kind::square) return 0.5 * (y[a * tokens_ + b] + y[b * tokens_ + a]);
            // The logits of all pairs up to a common shift; see channels::Softmax::score.
            const auto phi = [&](int c, int d) { return y[c * tokens_ + d] - y[c * tokens_ + last]; };
            return 0.5 * (phi(a, b) + phi(last, a) + phi(b, a) + phi(last, b)) / beta_;
        };
        for (int a = 0, p = 0; a < tokens_; ++a) {
            for (int b = a; b < tokens_; ++b, ++p)
                e(a, b) = e(b, a) = target(a, b) - (a == b ? omega(i, p) : omega(i, p) / root);
        }
        const double mean = e.mean();
        row = e.rowwise().mean().array() - mean;
        double squares[3] = {0, 2 * tokens_ * row.squaredNorm(), tokens_ * tokens_ * mean * mean};
        for (int a = 0, p = 0; a < tokens_; ++a) {
            for (int b = a; b < tokens_; ++b, ++p) {
                const double rows = row[a] + row[b], rest = e(a, b) - rows - mean;
                squares[0] += (a == b ? 1 : 2) * rest * rest;
                const double sum = factor[0] * rest + factor[1] * rows + factor[2] * mean;
                g(i, p) = a == b ? sum : root * sum;
            }
        }
        if (log_z.size() > 0)
            log_z[i] = -0.5 * (factor[0] * squares[0] + factor[1] * squares[1] + factor[2] * squares[2]);
    }
}

/// sum -dg/domega of one sample
double Quadratic::slope(double variance) const {
    double sum = 0;
    for (const auto& [dimension, weight] : parts_) sum += dimension * weight / (1 + weight * variance);
    return sum;
}

Overlap Quadratic::score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega,
                                    const Overlap& variance, RowsRef g) const {
    Eigen::VectorXd no_log_z(0);
    score(outputs, omega, variance, g, no_log_z);
    return linalg::scalar_overlap(static_cast<double>(omega.rows()) * slope(variance(0, 0)));
}

ProximalMeans Quadratic::means(const Alignment& at, double variance, const Integration&) const {
    // Residuals have the variance 2 E in each dimension; label noise, which only the square loss meets, adds
    // T^2 label_noise over all of them.
    const double noise = kind_ == Kind::square ? tokens_ * tokens_ * label_noise_ : 0;
    ProximalMeans result;
    result.curvature = result.signal = slope(variance);
    for (const auto& [dimension, weight] : parts_) {
        const double factor = weight / (1 + weight * variance), squares = 2 * dimension * at.error();
        result.power += factor * factor * squares;
        if (weight > 0) result.loss += 0.5 * factor * factor / weight * squares;
    }
    result.power += noise / std::pow(1 + variance, 2);
    result.loss += 0.5 * noise / std::pow(1 + variance, 2);
    return result;
}

std::optional<SquareForm> Quadratic::square_form() const {
    const double pairs = 0.5 * tokens_ * (tokens_ + 1);
    switch (kind_) {
        case Kind::square:
            return SquareForm{pairs, tokens_ * tokens_ * label_noise_ / (2 * pairs)};
        case Kind::logit:
            return SquareForm{pairs - 1, 0};
        default:
            return std::nullopt;
    }
}

double Quadratic::generalization(const Alignment& at, const Integration& integration) const {
    if (kind_ == Kind::square) return tokens_ * (tokens_ + 1) * at.error();
    return softmax_generalization(tokens_, beta_, at, integration);
}

double softmax_generalization(int tokens, double beta, const Alignment& at, const Integration& integration) {
    const channels::PairLaw law{at.self_overlap, at.total, at.overlap, at.error()};
    return tokens * channels::softmax_disagreement(tokens, beta, law, integration).value;
}

}  // namespace bayesaim::losses
