// SPDX-License-Identifier: MIT
#include "bayesaim/channels/expectations/softmax_quadrature.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include <Eigen/Core>

#include "bayesaim/channels/expectations/noisy_gumbel.hpp"

namespace bayesaim::channels {
namespace {

using Eigen::ArrayXd;
using Eigen::ArrayXXd;
using Eigen::Index;
using Eigen::VectorXd;

constexpr double pi = std::numbers::pi;

// ---- two tokens: Fourier transforms -----------------------------------------------------------------------

constexpr double log_precision = 42;  // integrands are dropped below exp(-42)
constexpr double log_aliasing = 38;   // error of the trapezoidal rule in s, exp(-38)

/// x becomes e^x - 1 = c + (1 + c) (e^(x - y) - 1): y is x moved into (-1/16, 1/16), c = e^y - 1 by its
/// series. There is no branch, so that Eigen computes several entries at once. y is scratch space.
void exp_minus_one(ArrayXd& x, ArrayXd& y) {
    y = x.max(-1.0 / 16).min(1.0 / 16);
    x = (x - y).exp() - 1;
    y *= 1 +
         y * (1.0 / 2 +
              y * (1.0 / 6 +
                   y * (1.0 / 24 +
                        y * (1.0 / 120 +
                             y * (1.0 / 720 + y * (1.0 / 5040 + y * (1.0 / 40320 + y * (1.0 / 362880))))))));
    x = y + (1 + y) * x;
}

/// `sinh` is sinh(x) with an absolute error of some roundoffs. The series replaces it below |x| = 1/16, in
/// parts up to 1/8, so that the error becomes a relative one. y is scratch space.
void restore_small_sinh(const ArrayXd& x, ArrayXd& sinh, ArrayXd& y) {
    y = x.square();
    y = x * (1 + y * (1.0 / 6 + y * (1.0 / 120 + y * (1.0 / 5040 + y * (1.0 / 362880)))));
    sinh = (2 - 16 * x.abs()).max(0).min(1) * y + (16 * x.abs() - 1).max(0).min(1) * sinh;
}

/// exp of step * first, step * (first + 1), ..., step * last
ArrayXd exponentials(double step, double first, double last) {
    return (step * ArrayXd::LinSpaced(static_cast<Index>(last - first) + 1, first, last)).exp();
}

/// E (f(p z) - f(w z))^2 for one normal variable z, excess = p - w; with of_sum, E (f(p z) + f(w z))^2.
double same_variable_moment(double p, double w, double excess, bool of_sum) {
    if (excess == 0 && !of_sum) return 0;
    const double large = std::max(p, w), small = std::min(p, w);
    const double scale = 1 / (1 + large), step = 0.13;
    const ArrayXd e = exponentials(step, 0.5, 0.5 + std::floor(std::asinh(9 / scale) / step));
    const ArrayXd z = 0.5 * scale * (e - e.inverse());  // scale sinh(t)
    const ArrayXd weight = 0.5 * scale * (e + e.inverse()) * (-0.5 * z.square()).exp();
    const ArrayXd e_large = (-large * z).exp(), e_small = (-small * z).exp();
    ArrayXd value = -(of_sum ? large + small : std::abs(excess)) * z, scratch(z.size());
    exp_minus_one(value, scratch);
    value /= (1 + e_large) * (1 + e_small);
    if (!of_sum) value *= e_small;
    return 2 * step / std::sqrt(2 * pi) * (value.square() * weight).sum();
}

/// 2 E f(p z) f(w z) - 2 E f(p z) f(w z') for z, z' of correlation 1 - gap in [0, 1],
/// the double integral over k and l in the header, whose integrand is
///   (e^(kappa k l) - 1) / (sinh(pi k) sinh(pi l)) exp(-(p k + w l)^2/2)
/// up to a factor. The variables are s along (p, w) and t across it. In t the integrand falls off like 1/t^2
/// between the widths of (e^(kappa k l) - 1)/(kappa k l) and of X, hence the sinh. For p = w it is even in t.
///
/// In s the trapezoidal rule of step h has the error e^(-2 pi y/h) times the integrand at a distance y from
/// the real line: the Gaussian has grown to e^(n^2 y^2/2) there, n^2 = p^2 + w^2, and y must stay below the
/// pole of X. The largest step for an error e^-L takes y = sqrt(2 L)/n or the pole, whichever is nearer.
/// The integrand falls off like exp(-(1 - gap/2) n^2 s^2/2), or like X if X is narrower.
double decorrelation(double p, double w, double gap) {
    const double kappa = gap * p * w;
    if (kappa == 0) return 0;
    const double n = std::hypot(p, w), p_n = p / n, w_n = w / n, larger = std::max(p_n, w_n);
    const double reach = log_precision / pi * larger;  // X(k) X(l) vanishes beyond
    const double s_reach = std::min(reach, std::sqrt(2 * log_precision / (1 - 0.5 * gap)) / n);
    const double y = std::min(1 / larger, std::sqrt(2 * log_aliasing) / n);
    const double s_step = 2 * pi * y / (log_aliasing + 0.5 * n * y * n * y), t_step = 0.14;
    const double t_scale = 1 / std::sqrt(1 + kappa * p_n * w_n);
    const double t_count = std::floor(std::asinh(reach / t_scale) / t_step);

    const bool even = p == w;
    const ArrayXd e = exponentials(t_step, even ? 0 : -t_count, t_count);
    const ArrayXd t = 0.5 * t_scale * (e - e.inverse());
    ArrayXd weight = 0.5 * (e + e.inverse());
    if (even) weight.tail(t.size() - 1) *= 2;
    const ArrayXd k_up = (pi * w_n * t).exp(), k_down = k_up.inverse();
    const ArrayXd l_down = (pi * p_n * t).exp(), l_up = l_down.inverse();

    ArrayXd pi_k(t.size()), pi_l(t.size()), sinh_k(t.size()), sinh_l(t.size()), scratch(t.size());
    const double nonzero = 1e-200;  // keeps 0/0 away
    double sum = 0;
    for (double s = 0.5 * s_step; s < s_reach; s += s_step) {
        const double k_s = std::exp(pi * p_n * s), l_s = std::exp(pi * w_n * s);
        pi_k = pi * (p_n * s + w_n * t) + nonzero;
        pi_l = pi * (w_n * s - p_n * t) + nonzero;
        sinh_k = 0.5 * k_s * k_up - 0.5 / k_s * k_down;
        sinh_l = 0.5 * l_s * l_up - 0.5 / l_s * l_down;
        restore_small_sinh(pi_k, sinh_k, scratch);
        restore_small_sinh(pi_l, sinh_l, scratch);
        pi_k *= kappa / (pi * pi) * pi_l;
        exp_minus_one(pi_k, scratch);
        sum += std::exp(-0.5 * n * s * n * s) * (pi_k * weight / (sinh_k * sinh_l)).sum();
    }
    return sum * s_step * t_step * t_scale;  // twice the half s > 0
}

// ---- any number of tokens: Gumbel variables ---------------------------------------------------------------

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
        const double widest = std::sqrt(rows.diagonal);  // deviation of the diagonal entry
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
    const double scale = std::sqrt(1 + rows.diagonal);
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
    const PairDistribution other = grid.distribution(1),
                           diagonal = grid.distribution(std::sqrt(rows.diagonal));
    const ArrayXXd winner = diagonal.density * other.cdf + (tokens - 1) * other.density * diagonal.cdf;
    return grid.cell() * (winner * other.cdf.pow(tokens - 2)).sum();
}

}  // namespace bayesaim::channels
