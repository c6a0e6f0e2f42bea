// SPDX-License-Identifier: MIT
#include "bayesaim/channels/expectations/winning_probability.hpp"

#include <array>
#include <cmath>

#include "bayesaim/channels/expectations/noisy_gumbel.hpp"
#include "bayesaim/numerics/gaussian.hpp"

namespace bayesaim::channels {
namespace {

using Eigen::ArrayXd;
using Eigen::Index;

constexpr int stride = 4;  // table steps in one step of the integral
constexpr int taps = 10;   // nodes of the interpolation

/// Step of the integrals, in units of the scale on which the law varies.
double resolution(int tokens) { return 0.25 * std::min(1.0, std::sqrt(6.0 / tokens)); }

/// Lagrange polynomials of the nodes -4 .. 5 at 0 <= x <= 1.
std::array<double, taps> lagrange(double x) {
    std::array<double, taps> weights{};
    for (int i = 0; i < taps; ++i) {
        double product = 1;
        for (int j = 0; j < taps; ++j) {
            if (j != i) product *= (x - (j - taps / 2 + 1)) / (i - j);
        }
        weights[static_cast<std::size_t>(i)] = product;
    }
    return weights;
}

/// Distribution and density at offset, offset + stride * step, ...
void interpolate(const TabulatedLaw& law, double offset, Index nodes, double* cdf, double* density) {
    const double position = (offset - law.start) / law.step, whole = std::floor(position);
    const std::array<double, taps> weight = lagrange(position - whole);
    const double size = static_cast<double>(law.cdf.size());
    for (Index k = 0; k < nodes; ++k) {
        const double first = whole + static_cast<double>(stride * k) - (taps / 2 - 1);
        cdf[k] = first < 0 ? 0 : 1;
        density[k] = 0;
        if (first < 0 || first + taps > size) continue;
        const auto at = static_cast<Index>(first);
        double below = 0, here = 0;
        for (int i = 0; i < taps; ++i) {
            below += weight[static_cast<std::size_t>(i)] * law.cdf[at + i];
            here += weight[static_cast<std::size_t>(i)] * law.density[at + i];
        }
        cdf[k] = below;
        density[k] = here;
    }
}

TabulatedLaw tabulate_normal(double deviation, double step) {
    constexpr double reach = 8.7;  // Phi(-8.7) = 2e-18
    const Lattice lattice(-reach * deviation, reach * deviation, step);
    const ArrayXd z = lattice.points() / deviation;
    return {step, lattice.at(0), z.unaryExpr(&numerics::normal_cdf),
            z.unaryExpr(&numerics::normal_density) / deviation};
}

TabulatedLaw tabulate_gumbel_and_normal(double deviation, double step) {
    const Lattice lattice(-left_reach(deviation), right_reach(deviation), step);
    NoisyGumbel law(lattice.points(), deviation);
    return {step, lattice.at(0), std::move(law.cdf), std::move(law.density)};
}

}  // namespace

WinningProbability::WinningProbability(int tokens, TabulatedLaw diagonal, TabulatedLaw other)
    : tokens_(tokens), diagonal_(std::move(diagonal)), other_(std::move(other)) {
    const auto nodes = std::max(diagonal_.cdf.size(), other_.cdf.size()) / stride + 2;
    cdf_.resize(nodes, tokens);
    density_.resize(nodes, tokens);
}

WinningProbability WinningProbability::normal(int tokens, double deviation, double diagonal) {
    const double other = deviation / std::sqrt(diagonal),
                 step = resolution(tokens) * std::min(deviation, other) / stride;
    return {tokens, tabulate_normal(deviation, step), tabulate_normal(other, step)};
}

WinningProbability WinningProbability::gumbel_and_normal(int tokens, double deviation, double diagonal) {
    const double other = deviation / std::sqrt(diagonal);
    const double step = resolution(tokens) * std::hypot(1, std::min(deviation, other)) / stride;
    return {tokens, tabulate_gumbel_and_normal(deviation, step), tabulate_gumbel_and_normal(other, step)};
}

void WinningProbability::evaluate(const double* mean, int diagonal, double* probability) {
    // The largest entry is above the lower end of every law and below the upper end of at least one.
    const auto law = [&](int b) -> const TabulatedLaw& { return b == diagonal ? diagonal_ : other_; };
    double low = mean[0] + law(0).start, high = low;
    for (int b = 0; b < tokens_; ++b) {
        const double start = mean[b] + law(b).start;
        low = std::max(low, start);
        high = std::max(high, start + law(b).step * static_cast<double>(law(b).cdf.size()));
    }
    const double step = other_.step * stride;
    const auto nodes = static_cast<Index>(std::ceil((high - low) / step)) + 1;
    if (cdf_.rows() < nodes) {
        cdf_.resize(nodes, tokens_);
        density_.resize(nodes, tokens_);
    }
    for (int b = 0; b < tokens_; ++b)
        interpolate(law(b), low - mean[b], nodes, cdf_.col(b).data(), density_.col(b).data());
    // Products over all other entries: the product before b times the product after b.
    before_ = ArrayXd::Constant(nodes, step);
    for (int b = 0; b < tokens_; ++b) {
        after_ = before_ * density_.col(b).head(nodes);
        for (int j = b + 1; j < tokens_; ++j) after_ *= cdf_.col(j).head(nodes);
        probability[b] = after_.sum();
        before_ *= cdf_.col(b).head(nodes);
    }
}

void predict_winners(WinningProbability law, int tokens, double scale, const ConstRowsRef& omega,
                     RowsRef prediction) {
    const Eigen::VectorXd tau = pair_scales(tokens);
    Eigen::VectorXd mean(tokens);
    for (Index i = 0; i < omega.rows(); ++i) {
        for (int a = 0; a < tokens; ++a) {
            for (int b = 0; b < tokens; ++b) {
                const int p = pair_index(a, b, tokens);
                mean[b] = scale * omega(i, p) / tau[p];
            }
            law.evaluate(mean.data(), a, prediction.data() + i * prediction.outerStride() + a * tokens);
        }
    }
}

}  // namespace bayesaim::channels
