// SPDX-License-Identifier: MIT
#include "bayesaim/channels/expectations/output_disagreement.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <boost/math/quadrature/gauss.hpp>

#include "bayesaim/channels/expectations/softmax_quadrature.hpp"
#include "bayesaim/core/checks.hpp"
#include "bayesaim/numerics/gaussian.hpp"

namespace bayesaim::channels {
namespace {

using Eigen::ArrayXd;
using Eigen::ArrayXXd;
using Eigen::Index;
constexpr double pi = std::numbers::pi;

void check_pair_law(int tokens, const PairLaw& law) {
    check_at_least("tokens", tokens, 2);
    check_non_negative("first_variance", law.first_variance);
    check_non_negative("second_variance", law.second_variance);
    check_finite("covariance", law.covariance);
    check_non_negative("difference_variance", law.difference_variance);
    const double total = law.first_variance + law.second_variance;
    if (std::abs(total - 2 * law.covariance - law.difference_variance) > 1e-9 * total)
        throw_invalid("difference_variance", "first_variance + second_variance - 2 covariance",
                      law.difference_variance);
    if (law.covariance * law.covariance > law.first_variance * law.second_variance * (1 + 1e-9))
        throw_invalid("covariance", "at most the geometric mean of the variances", law.covariance);
}

/// Deviations, and the gap 1 - r of the correlation r, without the loss of digits in 1 - c/sqrt(a b):
///   1 - r = (a + b - 2c - (sqrt(a) - sqrt(b))^2) / (2 sqrt(a b)).
LogitPair logit_pair(double beta, const PairLaw& law) {
    const double first = std::sqrt(law.first_variance), second = std::sqrt(law.second_variance);
    const double excess =
        first + second > 0 ? (law.first_variance - law.second_variance) / (first + second) : 0;
    const double product = first * second;
    const double gap = product > 0 ? (law.difference_variance - excess * excess) / (2 * product) : 1;
    return {beta * first, beta * second, beta * excess, std::clamp(gap, 0.0, 2.0), law.diagonal};
}

// ---- softmax of three or more tokens ----------------------------------------------------------------------

/// Moments of m = (h + h')/2 and d = h - h' in units where beta = 1.
struct MeanAndDifference {
    double mean_variance, difference_variance, covariance, diagonal;

    MeanAndDifference(double beta, const PairLaw& law)
        : mean_variance(0.5 * (law.first_variance + law.second_variance) - 0.25 * law.difference_variance),
          difference_variance(beta * beta * law.difference_variance),
          covariance(0.5 * beta * beta * (law.first_variance - law.second_variance)),
          diagonal(law.diagonal) {
        mean_variance = beta * beta * std::max(mean_variance, 0.0);
    }

    /// The law of (m, sqrt(factor) d).
    MeanAndDifference stretched(double factor) const {
        MeanAndDifference result = *this;
        result.difference_variance *= factor;
        result.covariance *= std::sqrt(factor);
        return result;
    }

    LogitPair rows() const {
        const double average = mean_variance + 0.25 * difference_variance;
        return logit_pair(1, {std::max(average + covariance, 0.0), std::max(average - covariance, 0.0),
                              mean_variance - 0.25 * difference_variance, difference_variance, diagonal});
    }
};

/// E |g|^2 + E |g'|^2 - 2 E g g' for the outputs g and g': the error, some 1e-14, is absolute.
double difference_of_agreements(int tokens, const LogitPair& rows) {
    const double p = rows.first_deviation, w = rows.second_deviation;
    const double first = softmax_agreement(tokens, {p, p, 0, 0, rows.diagonal});
    const double second = p == w ? first : softmax_agreement(tokens, {w, w, 0, 0, rows.diagonal});
    return first + second - 2 * softmax_agreement(tokens, rows);
}

/// Variance of d up to which the disagreement is a polynomial in it and the rows have positive correlation.
double polynomial_range(const MeanAndDifference& law) { return std::min(0.04, law.mean_variance); }

/// Differences that are too small for a subtraction are extrapolated. The disagreement of m + t d/2 and
/// m - t d/2 is an even function of t; its quotient by t^2 is extrapolated from four larger t, as a cubic
/// polynomial in t^2.
double quadrature_disagreement(int tokens, const MeanAndDifference& law) {
    constexpr int nodes = 4;
    const double spacing = polynomial_range(law) / nodes;
    const double position = law.difference_variance / spacing;
    if (position >= 1) return difference_of_agreements(tokens, law.rows());
    double quotient = 0;
    for (int k = 1; k <= nodes; ++k) {
        double basis = 1;
        for (int j = 1; j <= nodes; ++j) basis *= j == k ? 1 : (position - j) / (k - j);
        quotient += basis * difference_of_agreements(tokens, law.stretched(k / position).rows()) / k;
    }
    return position * quotient;
}

/// Sum over points of |softmax(m + d/2) - softmax(m - d/2)|^2, m and d made from 2T normals in each row.
double sum_of_squared_differences(int tokens, const MeanAndDifference& law, const ArrayXXd& normals) {
    const auto softmax = [](const ArrayXXd& h) {
        const ArrayXXd y = (h.colwise() - h.rowwise().maxCoeff()).exp();
        const ArrayXd total = y.rowwise().sum();
        return ArrayXXd(y.colwise() / total);
    };
    const double slope = law.mean_variance > 0 ? law.covariance / law.mean_variance : 0;
    const double residual_variance = std::max(law.difference_variance - slope * law.covariance, 0.0);
    ArrayXXd m = std::sqrt(law.mean_variance) * normals.leftCols(tokens);
    m.col(0) *= std::sqrt(law.diagonal);
    ArrayXXd d = std::sqrt(residual_variance) * normals.rightCols(tokens);
    d.col(0) *= std::sqrt(law.diagonal);
    d += slope * m;

    const ArrayXXd y = softmax(m + 0.5 * d);
    if (law.difference_variance > 1e-3) return (y - softmax(m - 0.5 * d)).square().sum();
    // Without cancellation: with e = exp(-d) - 1 it is y_b (<e> - e_b) / (1 + <e>), <e> = sum_b y_b e_b.
    const ArrayXXd e = (-d).expm1();
    const ArrayXd mean = (y * e).rowwise().sum();
    return ((y * (e.colwise() - mean)).square().rowwise().sum() / (1 + mean).square()).sum();
}

// ---- hardmax ----------------------------------------------------------------------------------------------

/// Trapezoidal nodes on (-reach, reach).
ArrayXd line(double reach, double step) {
    const auto count = static_cast<Index>(reach / step);
    return step * ArrayXd::LinSpaced(2 * count + 1, -static_cast<double>(count), static_cast<double>(count));
}

ArrayXd cdf(const ArrayXd& x) { return x.unaryExpr(&numerics::normal_cdf); }
ArrayXd density(const ArrayXd& x) { return x.unaryExpr(&numerics::normal_density); }

/// P(X <= k, X' > r k + s xi) for standard normals of correlation r = 1 - gap, s = sqrt(1 - r^2), at all k
/// (rows) and xi (columns) at once: for r >= 0
///   s int_0^inf phi(k - s y) Phi(-xi - r y) dy,
/// which is of order s and free of cancellation; for r < 0 Phi(k) minus the same integral with -xi and |r|.
ArrayXXd crossing_probability(const ArrayXd& k, const ArrayXd& xi, double gap) {
    constexpr int order = 100;
    using Gauss = boost::math::quadrature::gauss<double, order>;
    const double r = std::abs(1 - gap), s = std::sqrt(gap * (2 - gap)), sign = gap > 1 ? -1 : 1;
    const double tail = 8.7;  // Phi(-8.7) = 2e-18
    const double length = std::min((tail + k.maxCoeff()) / s, (tail + xi.maxCoeff()) / r);
    Eigen::MatrixXd left(k.size(), order), right(order, xi.size());
    for (int i = 0; i < order; ++i) {
        const auto at = static_cast<std::size_t>(i / 2);
        const double y = 0.5 * length * (1 + (i % 2 == 0 ? 1 : -1) * Gauss::abscissa()[at]);
        left.col(i) = 0.5 * length * Gauss::weights()[at] * s * density(k - s * y);
        right.row(i) = cdf(-sign * xi - r * y).matrix().transpose();
    }
    ArrayXXd probability = (left * right).array();
    if (sign < 0) probability = (-probability).colwise() + cdf(k);
    return probability;
}

/// x^n - (x - c)^n = c sum_i x^i (x - c)^(n-1-i)
ArrayXXd power_difference(const ArrayXXd& x, const ArrayXXd& c, int n) {
    ArrayXXd sum = ArrayXXd::Zero(x.rows(), x.cols()), power = ArrayXXd::Ones(x.rows(), x.cols());
    for (int i = 0; i < n; ++i) {
        sum = sum * (x - c) + power;
        power *= x;
    }
    return c * sum;
}

/// Entry b, at sigma_b k in h and at sigma_b (r k + s xi) in h', wins row h but not row h':
///   sum_b E [ prod_j A_j - prod_j (A_j - C_j) ],    A_j = P(h_j <= h_b),   C_j = P(h_j <= h_b, h'_j > h'_b),
/// with the expectation over independent standard normals k and xi, and A_j and C_j of the other entries
/// given k and xi. It is written as a sum of positive terms.
double many_token_disagreement(int tokens, double gap, double diagonal) {
    const double step = 0.7 / std::sqrt(2.0 * tokens - 1), ratio = std::sqrt(diagonal);
    const ArrayXd nodes = line(8.7, step);
    const ArrayXd weights = step * density(nodes);
    const auto below = [&](double scale) { return ArrayXXd(cdf(scale * nodes).replicate(1, nodes.size())); };
    const auto crossing = [&](double scale) {
        return crossing_probability(scale * nodes, scale * nodes, gap);
    };

    // The diagonal entry wins h over T - 1 entries of a deviation smaller by the ratio.
    const ArrayXXd diagonal_wins = power_difference(below(ratio), crossing(ratio), tokens - 1);
    // Another entry wins over the diagonal entry and T - 2 entries of its own kind.
    const ArrayXXd wins = below(1), loses = crossing(1), diagonal_loses = crossing(1 / ratio);
    const ArrayXXd other = power_difference(wins, loses, tokens - 2) * (below(1 / ratio) - diagonal_loses) +
                           wins.pow(tokens - 2) * diagonal_loses;
    const ArrayXXd integrand = diagonal_wins + (tokens - 1) * other;
    return weights.matrix().dot(integrand.matrix() * weights.matrix());
}

}  // namespace

numerics::Estimate softmax_disagreement(int tokens, double beta, const PairLaw& law,
                                        const Integration& integration) {
    check_pair_law(tokens, law);
    check_positive("beta", beta);
    if (tokens == 2) return {two_token_softmax_disagreement(logit_pair(beta, law)), 0};
    if (law.difference_variance == 0) return {0, 0};
    const MeanAndDifference moments(beta, law);
    const double largest_stretch = std::max(polynomial_range(moments) / moments.difference_variance, 1.0);
    if (strongly_coupled(moments.stretched(largest_stretch).rows()))
        return {quadrature_disagreement(tokens, moments), 0};

    check_at_least("integration points", integration.points, 1);
    const numerics::ShiftedSobol sobol(2 * tokens, integration.shifts, std::size_t{128} * integration.points,
                                       integration.seed);
    return sobol.average(
        [&](const ArrayXXd& normals) { return sum_of_squared_differences(tokens, moments, normals); },
        integration.pool);
}

double hardmax_disagreement(int tokens, const PairLaw& law) {
    check_pair_law(tokens, law);
    const double gap = logit_pair(1, law).gap;
    if (tokens == 2) return 2 / pi * std::asin(std::sqrt(0.5 * gap));
    return many_token_disagreement(tokens, gap, law.diagonal);
}

}  // namespace bayesaim::channels
