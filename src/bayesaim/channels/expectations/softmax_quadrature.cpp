// SPDX-License-Identifier: MIT
#include "bayesaim/channels/expectations/softmax_quadrature.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include <Eigen/Core>

#include "bayesaim/channels/expectations/noisy_gumbel.hpp"
#include "bayesaim/numerics/gaussian.hpp"

namespace bayesaim::channels {
namespace {

using Eigen::ArrayXd;
using Eigen::ArrayXXd;
using Eigen::Index;
using Eigen::VectorXd;

constexpr double pi = std::numbers::pi;

// ---- two tokens: Fourier transforms -----------------------------------------------------------------------

constexpr double log_precision = 42;  // integrands are dropped below exp(-42)

/// (e^x - 1) / x
double expm1_ratio(double x) { return x == 0 ? 1 : std::expm1(x) / x; }

/// Fourier transform of the derivative of the logistic function.
double logistic_transform(double k) { return k == 0 ? 1 : pi * k / std::sinh(pi * k); }

/// E (f(p z) - f(w z))^2 for one normal variable z, excess = p - w; with of_sum, E (f(p z) + f(w z))^2.
double same_variable_moment(double p, double w, double excess, bool of_sum) {
    const double large = std::max(p, w), small = std::min(p, w);
    const double scale = 1 / (1 + large), step = 0.12;
    double sum = 0;
    for (double t = 0.5 * step; scale * std::sinh(t) < 9; t += step) {
        const double z = scale * std::sinh(t);
        const double e_large = std::exp(-large * z), e_small = std::exp(-small * z);
        const double both = (1 + e_large) * (1 + e_small);
        const double value =
            -(of_sum ? std::expm1(-(large + small) * z) : e_small * std::expm1(-std::abs(excess) * z)) / both;
        sum += value * value * numerics::normal_density(z) * scale * std::cosh(t);
    }
    return 2 * step * sum;
}

/// 2 E f(p z) f(w z) - 2 E f(p z) f(w z') for z, z' of correlation 1 - gap in [0, 1],
/// the double integral over k and l in the header. The variables are s along (p, w) and t across it. In s the
/// integrand is a Gaussian of width 1/n, n^2 = p^2 + w^2, or X if X is narrower. In t it falls off like 1/t^2
/// between the widths of (e^(kappa k l) - 1)/(kappa k l) and of X, hence the sinh.
double decorrelation(double p, double w, double gap) {
    const double kappa = gap * p * w;
    if (kappa == 0) return 0;
    const double n = std::hypot(p, w), p_n = p / n, w_n = w / n;
    const double reach = log_precision / pi * std::max(p_n, w_n);  // X(k) X(l) vanishes beyond
    const double s_reach = std::min(reach, 2 * std::sqrt(log_precision) / n);
    const double s_step = std::min(0.16, 0.65 / n), t_step = 0.1;
    const double t_scale = 1 / std::sqrt(1 + kappa * p_n * w_n);
    const int t_count = static_cast<int>(std::asinh(reach / t_scale) / t_step);

    double sum = 0;
    for (double s = 0.5 * s_step; s < s_reach; s += s_step) {
        double row = 0;
        for (int i = -t_count; i <= t_count; ++i) {
            const double t = t_scale * std::sinh(i * t_step);
            const double k = p_n * s + w_n * t, l = w_n * s - p_n * t;
            row += logistic_transform(k) * logistic_transform(l) * expm1_ratio(kappa * k * l) *
                   std::cosh(i * t_step);
        }
        sum += row * std::exp(-0.5 * n * s * n * s);
    }
    return kappa / (pi * pi) * sum * s_step * t_step * t_scale;  // twice the half s > 0
}

// ---- any number of tokens: Gumbel variables ---------------------------------------------------------------

constexpr double widest = std::numbers::sqrt2;  // deviation of the diagonal entry

/// F and f of one kind of entries, xi down and x across.
struct PairDistribution {
    ArrayXXd cdf, density;
};

/// The lattices of x, xi and y. R y and xi are multiples of one step, and so are the arguments of B.
class Grid {
  public:
    Grid(int tokens, const LogitPair& rows)
        : ratio_(rows.second_deviation / rows.first_deviation),
          common_(rows.first_deviation * std::sqrt(1 - rows.gap)),
          first_remainder_(rows.first_deviation * std::sqrt(rows.gap)),
          second_remainder_(rows.second_deviation * std::sqrt(rows.gap)) {
        const double resolution = 0.25 * std::min(1.0, std::sqrt(6.0 / tokens));
        const double first = widest * first_remainder_, second = widest * second_remainder_;
        const double y_step = std::min(resolution * std::hypot(1, first_remainder_), 0.7 * common_);
        stride_ = static_cast<Index>(
            std::max(1.0, resolution * std::hypot(1, second_remainder_) / (ratio_ * y_step)));

        const double xi_step = static_cast<double>(stride_) * ratio_ * y_step;
        xi_ = Lattice(-left_reach(second) - ratio_ * right_reach(first),
                      right_reach(second) + ratio_ * left_reach(first), xi_step);
        x_ = Lattice(-left_reach(widest * rows.first_deviation), right_reach(widest * rows.first_deviation),
                     resolution * std::hypot(1, rows.first_deviation));
        const double end = (right_reach(second) - xi_.at(0)) / ratio_;  // B = 1 from there on
        y_ = Lattice(-left_reach(first), std::min(end, x_.at(x_.size) + kernel_reach * widest * common_),
                     y_step);
        argument_ = {ratio_ * y_step, y_.first + stride_ * xi_.first, y_.size + stride_ * xi_.size};
    }

    double cell() const { return x_.step * xi_.step; }

    /// `deviation` is the deviation of the entries in units of p and w.
    PairDistribution distribution(double deviation) const {
        const double c = deviation * common_;
        const NoisyGumbel first(y_.points(), deviation * first_remainder_);
        const NoisyGumbel second(argument_.points(), deviation * second_remainder_);
        const NoisyGumbel marginal(x_.points(), deviation * std::hypot(common_, first_remainder_));
        const ArrayXd above = 1 - second.cdf, y = y_.points();

        PairDistribution result{ArrayXXd(xi_.size, x_.size), ArrayXXd(xi_.size, x_.size)};
        for (Index i = 0; i < x_.size; ++i) {
            const double x = x_.at(i);
            const Index begin = y_.clamp((x - kernel_reach * c) / y_.step);
            const Index count = y_.clamp((x + kernel_reach * c) / y_.step) - begin;
            const ArrayXd z = (x - y.segment(begin, count)) / c;
            const ArrayXd kernel = y_.step / (c * std::sqrt(2 * pi)) * (-0.5 * z.square()).exp();
            const VectorXd below = kernel * first.cdf.segment(begin, count);
            const VectorXd at = kernel * first.density.segment(begin, count);
            for (Index l = 0; l < xi_.size; ++l) {
                const Index start = begin + stride_ * l;
                // F = P(X <= x) - P(X <= x, X' > x')
                result.cdf(l, i) = marginal.cdf[i] - below.dot(above.segment(start, count).matrix());
                result.density(l, i) = at.dot(second.density.segment(start, count).matrix());
            }
        }
        return result;
    }

  private:
    static constexpr double kernel_reach = 8.5;

    double ratio_, common_, first_remainder_, second_remainder_;  // R, c, and the normal parts of A and B
    Index stride_;                                                // steps of R y in one of xi
    Lattice x_, y_, xi_, argument_;                               // the last one: xi + R y
};

}  // namespace

double two_token_softmax_disagreement(const LogitPair& rows) {
    const double scale = std::sqrt(3.0);
    const double p = scale * rows.first_deviation, w = scale * rows.second_deviation;
    const bool opposite = rows.gap > 1;
    const double same = same_variable_moment(p, w, scale * rows.excess, opposite);
    const double other = decorrelation(p, w, opposite ? 2 - rows.gap : rows.gap);
    return 2 * (opposite ? same - other : same + other);
}

bool strongly_coupled(const LogitPair& rows) {
    return rows.gap < 1 &&
           std::min(rows.first_deviation, rows.second_deviation) * std::sqrt(1 - rows.gap) > 0.01;
}

double softmax_agreement(int tokens, const LogitPair& rows) {
    LogitPair ordered = rows;
    if (ordered.first_deviation < ordered.second_deviation)
        std::swap(ordered.first_deviation, ordered.second_deviation);
    const Grid grid(tokens, ordered);
    const PairDistribution other = grid.distribution(1), diagonal = grid.distribution(widest);
    const ArrayXXd winner = diagonal.density * other.cdf + (tokens - 1) * other.density * diagonal.cdf;
    return grid.cell() * (winner * other.cdf.pow(tokens - 2)).sum();
}

}  // namespace bayesaim::channels
