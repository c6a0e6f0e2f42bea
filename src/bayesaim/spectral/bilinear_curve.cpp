// SPDX-License-Identifier: MIT
#include "bayesaim/spectral/bilinear_curve.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <span>

namespace bayesaim::spectral {
namespace {

constexpr double pi = std::numbers::pi;
constexpr int fewest = 16, most = 4096;  // nodes: doubled in between

/// 1 + cos(theta) = 2 sin^2 at the nodes' angles; 1 - cos in reverse order. Stored: sines took half of the time.
const double* heights(int nodes) {
    static const std::vector<double> table = [] {
        std::vector<double> all;
        for (int n = fewest; n <= most; n *= 2) {
            for (int j = 0; j < n; ++j) all.push_back(2 * std::pow(std::sin((j + 0.5) * pi / (2 * n)), 2));
        }
        return all;
    }();
    return table.data() + (nodes - fewest);  // fewest + 2 fewest + ... + nodes/2 come before
}

}  // namespace

BilinearCurve::BilinearCurve(double width, double noise_variance) : width_(width), noise_(noise_variance) {
    const double D = noise_, rho = width_;
    const double half = 0.5 * (1 - rho - D * rho), norm = std::sqrt(half * half + D * rho);
    zero_ = half > 0 ? (half + norm) / D : rho / (norm - half);
    other_ = rho / (D * zero_);
    const double c2 = -(1 - rho + 2 * D * rho), c1 = 2 * rho + rho * rho + D * rho * rho, c0 = -rho * rho;
    double s1 = 0;  // c rises from s = 0 to its first root: Newton from the left
    for (int i = 0; i < 100; ++i) {
        const double step = (c0 + s1 * (c1 + s1 * (c2 + s1 * D))) / (c1 + s1 * (2 * c2 + s1 * 3 * D));
        s1 -= step;
        if (std::abs(step) <= 1e-16 * s1) break;
    }
    // At an edge y = 0 and x^2 = s, which gives the distance to s0 with all its digits: |g| hardly changes along a
    // semicircle.
    const auto to_zero = [&](double s) {
        // 1 - D s, at an edge also rho s (rho + s)/(rho - s)^2, which does not cancel for large D
        double room = 1 - D * s;
        if (room < 0.1) room = rho * s * (rho + s) / ((rho - s) * (rho - s));
        return 4 * rho * s * room / (D * (rho + s) * (s + other_));
    };
    room_ = rho * zero_ / (rho + zero_);  // 1 - D s0, from q(s0) = 0
    // c = (s - s1) (D s^2 + e s + f)
    const double e = linear_ = c2 + D * s1, f = constant_ = -c0 / s1, gap = e * e - 4 * D * f;
    if (gap > 0 && e < 0) {
        const double s3 = 0.5 * (std::sqrt(gap) - e) / D, s2 = f / (D * s3);
        count_ = 2;
        parts_[0] = {.low = s1, .length = s2 - s1, .first = s3};
        parts_[1] = {.low = s3, .length = to_zero(s3), .first = s1, .last = s2, .central = true};
    } else {
        parts_[0] = {.low = s1,
                     .length = to_zero(s1),
                     .first = -0.5 * e / D,
                     .last = -0.25 * gap / (D * D),
                     .central = true};
    }
    for (Part& part : std::span(parts_, static_cast<std::size_t>(count_))) {
        const double low = std::sqrt(part.low), high = std::sqrt(part.low + part.length);
        part.mean = low * high;
        part.k = part.length / ((low + high) * (low + high));
        part.rest = 2 * low / (low + high);
    }
}

/// Rational map of [-1, 1] to the part, s = G (1 + k cos)/(1 - k cos), G^2 = low * high, which sends -1/k to 0 and 1/k to
/// infinity; above = 1 + cos, below = 1 - cos.
BilinearCurve::Node BilinearCurve::node(const Part& part, double above, double below, double step) const {
    const double D = noise_, rho = width_, g = part.mean, k = part.k, rest = part.rest;
    const double n = rest + k * below;  // 1 - k cos
    const double rise = 2 * g * k / (1 + k) * above / n, fall = 2 * g * k / rest * below / n,
                 s = part.low + rise;
    const double before_zero = part.central ? fall : zero_ - s;
    const double room = part.central ? room_ + D * fall : 1 - D * s, sum = rho + s, square = rho + D * s * s;
    const double q = D * before_zero * (s + other_);
    double c = rise;  // c = (s - s1)(s - s2)(s - s3) D
    if (!part.central) {
        c *= D * fall * (part.first - s);
    } else if (count_ == 2) {
        c *= D * (s - part.first) * (s - part.last);
    } else {
        c *= linear_ > 0 ? constant_ + s * (linear_ + s * D) : D * (std::pow(s - part.first, 2) + part.last);
    }
    Node result{};
    result.room = room;
    const double x_scale = std::sqrt(sum / (4 * rho * room)), lambda_scale = 2 * square / (s * sum),
                 root_q = std::sqrt(q);
    result.x = x_scale * root_q;
    result.y = std::sqrt(c / (4 * rho * room));
    result.lambda = lambda_scale * result.x;
    // dx/ds = x (q'/(2q) + (log x_scale)'),   dlambda/ds = lambda (x'/x + (log lambda_scale)'); x and lambda fall.
    const double q_slope = D * (before_zero - (s + other_));
    const double x_rate = q * (0.5 / sum + 0.5 * D / room) + 0.5 * q_slope;
    const double lambda_rate = x_rate + q * (2 * D * s / square - 1 / s - 1 / sum);
    // ds = 2 g k/n^2 sin(theta) dtheta
    const double length = step * 2 * g * k / (n * n) * std::sqrt(above * below);
    result.x_weight = -length * x_scale * x_rate / root_q;
    result.lambda_weight = -length * lambda_scale * x_scale * lambda_rate / root_q;
    return result;
}

template <class Function>
void BilinearCurve::for_each(int nodes, Function function) const {
    const double* height = heights(nodes);
    for (int i = 0; i < count_; ++i) {
        for (int j = 0; j < nodes; ++j)
            function(i, node(parts_[i], height[j], height[nodes - 1 - j], pi / nodes));
    }
}

BilinearCurve::Sums BilinearCurve::sums() const {
    constexpr double tolerance = 2e-13;
    for (int nodes = fewest; nodes <= most; nodes *= 2) {
        Sums sums{.nodes = nodes};
        double square = 0;
        for_each(nodes, [&](int, const Node& at) {
            const double weight = at.y * at.lambda_weight;
            sums.mass += weight;
            square += weight * at.lambda * at.lambda;
            sums.room += weight * at.room;
            sums.cubes += at.y * at.y * at.y * (at.lambda_weight - noise_ * at.x_weight);
        });
        if (std::abs(2 / pi * sums.mass - 1) <= tolerance &&
            std::abs(2 / pi * square / (1 + noise_) - 1) <= tolerance)
            return sums;
    }
    return {};
}

std::optional<ErrorPoint> BilinearCurve::error() const {
    const Sums at = sums();
    if (at.nodes == 0) return std::nullopt;
    // d mmse/dD = 1 - (8 pi^2 D/3) int mu_D^3 du, both signs of lambda
    return ErrorPoint{noise_ * at.room / at.mass, 1 - 16 * noise_ / (3 * pi) * at.cubes};
}

std::vector<CurveBulk> BilinearCurve::bulks() const {
    const int nodes = sums().nodes;
    if (nodes == 0) return {};
    std::array<std::vector<CurveNode>, 2> half;  // lambda > 0; s rises, so lambda falls
    for_each(nodes, [&](int part, const Node& at) {
        const double u_weight = at.lambda_weight - noise_ * at.x_weight;
        half[static_cast<std::size_t>(part)].push_back({.u = at.lambda - noise_ * at.x,
                                                        .v = noise_ * at.y,
                                                        .lambda = at.lambda,
                                                        .slope = at.lambda_weight / u_weight,
                                                        .weight = u_weight,
                                                        .denoised = at.lambda - 2 * noise_ * at.x,
                                                        .variance = noise_ * at.room});
    });
    const auto edge = [&](double s) {  // y = 0: g = x = sqrt(s)
        const double x = std::sqrt(s), lambda = 2 * x * (width_ + noise_ * s * s) / (s * (width_ + s));
        return std::pair(lambda - noise_ * x, lambda);
    };
    const auto mirrored = [](CurveNode node) {
        node.u = -node.u;
        node.lambda = -node.lambda;
        node.denoised = -node.denoised;
        return node;
    };
    // Ascending: each part mirrored, then as it is in reverse; the central part joins both halves.
    std::vector<CurveBulk> result;
    const auto add = [&](int part, bool negative, bool positive) {
        const Part& at = parts_[part];
        const auto& list = half[static_cast<std::size_t>(part)];
        const auto [u_far, far] = edge(at.low);
        const auto [u_near, near] = at.central ? std::pair(-u_far, -far) : edge(at.low + at.length);
        CurveBulk& bulk = result.emplace_back();
        bulk.u = positive ? Interval{u_near, u_far} : Interval{-u_far, -u_near};
        bulk.lambda = positive ? Interval{near, far} : Interval{-far, -near};
        if (negative) std::ranges::transform(list, std::back_inserter(bulk.nodes), mirrored);
        if (positive) bulk.nodes.insert(bulk.nodes.end(), list.rbegin(), list.rend());
    };
    if (count_ == 2) add(0, true, false);
    add(count_ - 1, true, true);
    if (count_ == 2) add(0, false, true);
    return result;
}

}  // namespace bayesaim::spectral
