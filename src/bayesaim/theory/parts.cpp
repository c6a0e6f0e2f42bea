// SPDX-License-Identifier: MIT
#include "bayesaim/denoisers/parts.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "bayesaim/theory/methods.hpp"
#include "bayesaim/theory/thresholds.hpp"

namespace bayesaim::theory {
namespace {

struct Pair {
    double s, a;  // of S_sym and of S_anti
    bool finite() const { return std::isfinite(s) && std::isfinite(a); }
    double size() const { return std::max(std::abs(s), std::abs(a)); }
};

Overlap diagonal(const Pair& entries) {
    Overlap result = linalg::zero_overlap(2);
    result(0, 0) = entries.s;
    result(1, 1) = entries.a;
    return result;
}

/// 1 - J, J the derivative of the map.
struct Derivative {
    double ss, sa, as, aa;
    double determinant() const { return ss * aa - sa * as; }
    Pair solve(const Pair& right) const {
        const double d = determinant();
        return {(aa * right.s - sa * right.a) / d, (ss * right.a - as * right.s) / d};
    }
    /// Whether both eigenvalues of J are inside the unit circle: det(1 - J), det(1 + J) > 0 and det J < 1.
    bool stable() const {
        const double trace = 2 - ss - aa, det = (1 - ss) * (1 - aa) - sa * as;
        return determinant() > 0 && 1 + trace + det > 0 && det < 1;
    }
};

/// The map of state evolution in (log E_s, log E_a) at one point.
struct Image {
    Pair residual;  // of the map: log E after the iteration minus log E before
    Derivative one_minus_jacobian;
    Pair conjugate, sharpening;  // qhat; minus the change of log E with log qhat, both parts of qhat together
    Pair error, bias;            // after the iteration, see EstimationCurve::covariance_bias
    double power_error;          // relative, of qhat
};

class Map {
  public:
    Map(const EstimationCurve& prior, const channels::Channel& channel, double alpha,
        const channels::Integration& integration)
        : prior_(prior), channel_(channel), integration_(integration), total_(prior.total()) {
        const double v = channel.geometry().variance_factor();
        scale_ = v * v * alpha;
        // The smallest qhat, as in iterate(): one token tells nothing of S_anti.
        least_ = 1e-6 / prior.prior_error().diagonal().maxCoeff();
    }

    std::optional<Image> operator()(const Pair& x) const {
        // The channel by differences: its formulas are short, or (hardmax) there are none. Downwards, since no E is
        // above that of the prior.
        constexpr double shift = -1e-6;
        const auto [at, power_error] = log_conjugate(x);
        const Pair with_s = log_conjugate({x.s + shift, x.a}).first,
                   with_a = log_conjugate({x.s, x.a + shift}).first;
        const Pair conjugate{std::exp(at.s), std::exp(at.a)};
        if (!at.finite() || std::min(conjugate.s, conjugate.a) < 1e-10 * (conjugate.s + conjugate.a))
            return std::nullopt;
        const auto point = prior_.parts_at(1 / conjugate.s, 1 / conjugate.a);
        if (!point || !(point->error[0] > 0) || !(point->error[1] > 0)) return std::nullopt;
        const double ss = (with_s.s - at.s) / shift, as = (with_s.a - at.a) / shift,
                     sa = (with_a.s - at.s) / shift, aa = (with_a.a - at.a) / shift;
        const auto& slope = point->log_slope;  // by log noise = -log qhat
        return Image{{std::log(point->error[0]) - x.s, std::log(point->error[1]) - x.a},
                     {1 + slope[0][0] * ss + slope[0][1] * as, slope[0][0] * sa + slope[0][1] * aa,
                      slope[1][0] * ss + slope[1][1] * as, 1 + slope[1][0] * sa + slope[1][1] * aa},
                     conjugate,
                     {slope[0][0] + slope[0][1], slope[1][0] + slope[1][1]},
                     {point->error[0], point->error[1]},
                     {point->bias[0], point->bias[1]},
                     power_error};
    }

    OrderParameters parameters(const Pair& x) const {
        const Overlap error = diagonal({std::exp(x.s), std::exp(x.a)});
        Overlap overlap = total_ - error;
        overlap.diagonal() = overlap.diagonal().cwiseMax(0);
        return {overlap, error};
    }

  private:
    std::pair<Pair, double> log_conjugate(const Pair& x) const {
        const auto power = channel_.score_power(parameters(x), integration_);
        const auto log_of = [&](double value) { return std::log(std::max(scale_ * value, least_)); };
        return {{log_of(power.value(0, 0)), log_of(power.value(1, 1))}, power.relative_error};
    }

    const EstimationCurve& prior_;
    const channels::Channel& channel_;
    const channels::Integration& integration_;
    Overlap total_;
    double scale_ = 0, least_ = 0;
};

/// Relative change of E_s + E_a.
double sum_change(const Pair& error, const Pair& change) {
    return (error.s * change.s + error.a * change.a) / (error.s + error.a);
}

/// See error_amplification and biased_by of newton.cpp.
double relative_error(const Image& at) {
    const Pair sampled = at.one_minus_jacobian.solve(at.sharpening);
    const Pair biased =
        at.one_minus_jacobian.solve({std::log1p(at.bias.s / at.error.s), std::log1p(at.bias.a / at.error.a)});
    return std::hypot(at.power_error * sum_change(at.error, {std::abs(sampled.s), std::abs(sampled.a)}),
                      std::min(1.0, std::abs(sum_change(at.error, biased))));
}

}  // namespace

std::optional<FixedPoint> solve_parts(const EstimationCurve& prior, const channels::Channel& channel,
                                      double alpha, Start start, const StateEvolutionOptions& options) {
    constexpr int most = 40;
    constexpr double longest = 2;  // a step of log E
    if (channel.geometry().parts() != 2 || channel.sampled()) return std::nullopt;
    if (const auto threshold = strong_recovery(prior, channel); threshold && alpha > *threshold)
        return std::nullopt;
    const Overlap no_data = (start == Start::uninformed ? 1 : informed_error) * prior.prior_error();
    const Map map(prior, channel, alpha, options.integration);
    Pair x{std::log(no_data(0, 0)), std::log(no_data(1, 1))};
    double last_size = longest;
    for (int i = 1; i <= std::min(most, options.max_iterations); ++i) {
        const auto image = map(x);
        if (!image) return std::nullopt;
        Pair step = image->one_minus_jacobian.solve(image->residual);
        const bool newton = image->one_minus_jacobian.determinant() > 0 && step.size() <= longest;
        if (!newton) step = image->residual;
        if (!step.finite()) return std::nullopt;
        x = {x.s + step.s, x.a + step.a};
        // Next to recovery rounding is amplified: the step stays above the tolerance and does not shrink any more.
        const bool rounding = image->residual.size() <= options.tolerance && step.size() > 0.1 * last_size;
        if (newton && (step.size() <= options.tolerance || rounding)) {
            if (!image->one_minus_jacobian.stable()) return std::nullopt;
            FixedPoint result;
            result.parameters = map.parameters(x);
            result.conjugate = diagonal(image->conjugate);
            result.relative_error = relative_error(*image);
            result.iterations = i;
            return result;
        }
        last_size = step.size();
    }
    return std::nullopt;
}

}  // namespace bayesaim::theory
