// SPDX-License-Identifier: MIT
#include "bayesaim/spectral/marchenko_pastur_curve.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <mutex>
#include <numbers>

#include <Eigen/Core>

namespace bayesaim::spectral {
namespace {

constexpr double pi = std::numbers::pi;
using Lanes = Eigen::Array4d;

/// 1 + cos(theta) and 1 - cos(theta), each with all its digits, at the midpoints of (0, pi), theta descending.
struct CosineRule {
    std::vector<Lanes, Eigen::aligned_allocator<Lanes>> above, below;
};

/// The rules have 4 * 2^(j/4) * {1, 1.25, 1.5, 1.75} nodes, rounded up to a multiple of 4.
constexpr int most_nodes = 16384;

int rounded_nodes(double wanted) {
    if (!(wanted <= most_nodes)) return 0;
    const int quarter = std::max(4, static_cast<int>(std::bit_floor(static_cast<unsigned>(wanted)) / 4));
    return (static_cast<int>(wanted) / quarter + 1) * quarter;
}

/// The rule of a number of nodes that rounded_nodes returned; made when it is first asked for.
const CosineRule& cosine_rule(int nodes) {
    static std::array<CosineRule, 64> rules;
    static std::array<std::once_flag, 64> made;
    const int power = std::bit_width(static_cast<unsigned>(nodes)) - 1;
    const auto slot = static_cast<std::size_t>(4 * power + ((nodes << 2) >> power) - 4);
    std::call_once(made[slot], [&] {
        CosineRule& rule = rules[slot];
        rule.above.resize(static_cast<std::size_t>(nodes / 4));
        rule.below.resize(rule.above.size());
        for (int i = 0; i < nodes; ++i) {
            const double half_angle = (i + 0.5) * pi / (2 * nodes);
            rule.above[static_cast<std::size_t>(i / 4)][i % 4] = 2 * std::pow(std::sin(half_angle), 2);
            rule.below[static_cast<std::size_t>(i / 4)][i % 4] = 2 * std::pow(std::cos(half_angle), 2);
        }
    });
    return rules[slot];
}

/// z + s c z/sqrt(1+z^2) = target by Newton. The left side is concave for s = 1 and convex for s = -1, so after
/// one step the iteration is monotone.
double edge(double z, double s, double c, double target) {
    for (int i = 0; i < 60; ++i) {
        const double inverse = 1 / std::sqrt(1 + z * z), y = s * c * z * inverse;
        const double step = (z + y - target) / (1 + s * c * inverse * inverse * inverse);
        z -= step;
        if (std::abs(step) <= 1e-9 * z) break;  // Newton squares it
    }
    return z;
}

/// y = z/sqrt(1+z^2).
double sine(double z) { return z / std::sqrt(1 + z * z); }

/// eta of the ellipse cosh(eta + i theta) through a real point at `distance` beyond an end of [-1, 1].
double ellipse_beyond(double distance) { return std::log1p(distance + std::sqrt(distance * (distance + 2))); }

/// The same for the point x + i y.
double ellipse_around(double x, double y) {
    const double norm = x * x + y * y, product = std::hypot((x - y) * (x + y) - 1, 2 * x * y);
    const double twice = norm < 1 ? 4 * y * y / (product + 1 - norm) : product + norm - 1;  // 2 sinh(eta)^2
    return std::asinh(std::sqrt(0.5 * twice));
}

/// What the integrals need at four nodes. The weight is that of int sqrt((m - low)(high - m)) f(m) dm.
struct NodeLanes {
    Lanes m, inverse_m, inverse_one;  // m, 1/m, 1/(1+m)
    Lanes rise;                       // m - low
    Lanes square, weight;             // (m - low)(high - m)
    Lanes other;                      // product over the other two edges
};

NodeLanes nodes_of(const MarchenkoPasturCurve::Bulk& bulk, const Lanes& above, const Lanes& below,
                   double step) {
    NodeLanes at;
    if (bulk.rational) {
        const Lanes p = bulk.rest + bulk.k * above, n = bulk.rest + bulk.k * below, gp = bulk.g * p,
                    sum = n + gp;
        const Lanes inverse = 1 / (gp * n * sum);
        const Lanes inverse_n = inverse * gp * sum;
        at.m = gp * inverse_n;
        at.rise = (2 * bulk.g * bulk.k / (1 + bulk.k)) * above * inverse_n;
        at.inverse_m = inverse * n * n * sum;
        at.inverse_one = inverse * gp * n * n;
        const double scale = 2 * bulk.g * bulk.k;
        const double flat = 1 / (bulk.rest * (1 + bulk.k));  // 1/(1 - k^2)
        at.square = (scale * scale * flat) * above * below * inverse_n * inverse_n;
        at.weight =
            (step * scale * scale * std::sqrt(flat)) * above * below * inverse_n * inverse_n * inverse_n;
    } else {
        at.rise = bulk.half * above;
        at.m = bulk.low + at.rise;
        const Lanes one = 1 + at.m, inverse = 1 / (at.m * one);
        at.inverse_m = one * inverse;
        at.inverse_one = at.m * inverse;
        at.square = (bulk.half * bulk.half) * above * below;
        at.weight = step * at.square;
    }
    if (bulk.real) {
        at.other = (at.m - bulk.first) * (at.m - bulk.second);
    } else {
        const Lanes distance = at.m + (bulk.shift - bulk.first);
        at.other = distance * distance + bulk.second;
    }
    return at;
}

}  // namespace

MarchenkoPasturCurve::MarchenkoPasturCurve(double inverse_root_width, double excess, double noise_variance)
    : c_(inverse_root_width), excess_(excess), noise_(noise_variance) {
    const double root = std::sqrt(noise_), c = c_;
    const double z1 = edge(std::max(root / (1 + c), root - c), 1, c, root);
    const double zero = excess > 0 ? std::sqrt(excess) : 0;  // where z - c z/sqrt(1+z^2) = 0
    const double guess = std::min(root + c, zero + root + std::cbrt(2 * root));
    const double z4 = edge(c < 1 ? std::min(guess, root / (1 - c)) : guess, -1, c, root);
    const double m1 = z1 * z1, m4 = z4 * z4;
    const double cube_root = std::cbrt(c), turn = std::sqrt(std::max(0.0, cube_root * cube_root - 1));
    if (turn > 0 && root < turn * turn * turn) {  // the gap is open
        count_ = 2;
        // Both edges from the parabola at the turning point or from their side of it.
        const double bend = 3 * turn / (cube_root * cube_root),
                     reach = std::sqrt(2 * (turn * turn * turn - root) / bend);
        const double z2 = edge(std::max(root / (c - 1), turn - reach), -1, c, -root),
                     z3 = edge(std::min(zero, turn + reach), -1, c, -root);
        const double m2 = z2 * z2, m3 = z3 * z3, y1 = sine(z1), y2 = sine(z2);
        // c (y2 - y1) = z1 + z2, which keeps the digits of the difference.
        parts_[0] = {.z_low = z1,
                     .z_high = z2,
                     .low = m1,
                     .half = 0.5 * (z1 + z2) / c * (y1 + y2) * (1 + m1) * (1 + m2),
                     .real = true,
                     .first = m3,
                     .second = m4};
        double length = z4 - z3;
        if (length < 0.1 * z4)
            length = 2 * root / (1 - c * (z3 + z4) / ((1 + m3) * (1 + m4) * (sine(z3) + sine(z4))));
        parts_[1] = {.z_low = z3,
                     .z_high = z4,
                     .low = m3,
                     .half = 0.5 * length * (z3 + z4),
                     .real = true,
                     .first = m1,
                     .second = m2};
    } else {
        const double length = c * (sine(z1) + sine(z4));  // z4 - z1
        parts_[0] = {.z_low = z1, .z_high = z4, .low = m1, .half = 0.5 * length * (z1 + z4)};
        // The other two edges from symmetric functions of all four, in m if all are small, else in 1 + m.
        double sum = 0, product = 0;
        if (m4 < 1) {
            product = noise_ * noise_ / (m1 * m4);
            sum = 2 * (noise_ + excess) - m1 - m4;
        } else {
            const double square = c * c, one = 1 / (1 + m1), four = 1 / (1 + m4);
            product = square * square * one * four;
            sum = square * one * four * (2 * (square + 1 - noise_) - square * (one + four));
            parts_[0].shift = 1;
        }
        parts_[0].first = 0.5 * sum;
        parts_[0].second = std::max(0.0, product - 0.25 * sum * sum);
    }
    for (int i = 0; i < count_; ++i) plan(parts_[i]);
}

/// Chooses the map and the number of nodes. Equidistant angles have the error exp(-2 nodes eta), eta being the
/// least of the ellipses through the singularities; a double pole adds a factor of the number of nodes.
void MarchenkoPasturCurve::plan(Bulk& bulk) const {
    constexpr double digits = 19.5;
    const double low = bulk.low, half = bulk.half, high = low + 2 * half;
    // Affine map: x = (m - low)/half - 1.
    double affine = ellipse_beyond(low / half);  // m = 0; -1 is further away
    double pair_x = 0, pair_y = 0;
    if (bulk.real) {
        for (const double root : {bulk.first, bulk.second})
            affine = std::min(affine, ellipse_beyond((root > high ? root - high : low - root) / half));
    } else {
        pair_x = bulk.first - bulk.shift;
        pair_y = std::sqrt(bulk.second);
        affine = std::min(affine, ellipse_around((pair_x - low) / half - 1, pair_y / half));
    }
    // Rational map: k x = (m - g)/(m + g).
    bulk.g = bulk.z_low * bulk.z_high;
    bulk.k = 2 * half / ((bulk.z_low + bulk.z_high) * (bulk.z_low + bulk.z_high));
    bulk.rest = 2 * bulk.z_low / (bulk.z_low + bulk.z_high);
    double rational = ellipse_beyond(bulk.rest / bulk.k);  // m = 0 and infinity
    if (bulk.real) {
        for (const double root : {bulk.first, bulk.second}) {
            // The distance of (m - g)/(m + g) from its value at the nearer end.
            const double end = root > high ? high : low;
            const double distance = 2 * bulk.g * std::abs(root - end) / ((root + bulk.g) * (end + bulk.g));
            rational = std::min(rational, ellipse_beyond(distance / bulk.k));
        }
    } else {
        const double sum = pair_x + bulk.g, norm = sum * sum + pair_y * pair_y;
        rational = std::min(
            rational, ellipse_around((pair_x * pair_x + pair_y * pair_y - bulk.g * bulk.g) / (norm * bulk.k),
                                     2 * bulk.g * pair_y / (norm * bulk.k)));
    }
    bulk.rational = rational > 1.25 * affine;
    bulk.nodes = rounded_nodes(digits / (bulk.rational ? rational : affine) + 3);
}

std::optional<ErrorPoint> MarchenkoPasturCurve::error() const {
    double mass = 0, inverse = 0, cubes = 0;
    for (int i = 0; i < count_; ++i) {
        const Bulk& bulk = parts_[i];
        if (bulk.nodes == 0) return std::nullopt;
        const CosineRule& rule = cosine_rule(bulk.nodes);
        const double step = pi / bulk.nodes, inverse_c = 1 / c_, square = c_ * c_;
        Lanes mass_sum = Lanes::Zero(), inverse_sum = Lanes::Zero(), cube_sum = Lanes::Zero();
        for (std::size_t j = 0; j < rule.above.size(); ++j) {
            const NodeLanes at = nodes_of(bulk, rule.above[j], rule.below[j], step);
            const Lanes& one = at.inverse_one;
            const Lanes height = at.weight * at.other.sqrt() * one;       // 2c v dm
            const Lanes rate = 1 + noise_ * at.inverse_m * at.inverse_m;  // -2c a'(m)
            const Lanes density = height * (rate - square * one * one);   // times -c lambda'
            mass_sum += density;
            inverse_sum += density * one;
            const Lanes a = noise_ * (1 + at.inverse_m) - 2 - at.m - excess_;  // 2c a
            // (2c v)^2 times -2c u'
            cube_sum += height * at.square * at.other * (one * one) * (rate * (1 + one) + a * one * one);
        }
        mass += mass_sum.sum() * inverse_c * inverse_c;
        inverse += inverse_sum.sum() * inverse_c * inverse_c;
        cubes += cube_sum.sum() * inverse_c * inverse_c * inverse_c * inverse_c;
    }
    const double unit = 1 / (2 * pi * noise_);
    if (!(std::abs(mass * unit - 1) <= 1e-12)) return std::nullopt;
    return ErrorPoint{noise_ * inverse / mass, 1 - 8 * unit / (3 * noise_) * cubes / 8};
}

std::vector<CurveBulk> MarchenkoPasturCurve::bulks() const {
    std::vector<CurveBulk> result;
    for (int i = count_; i-- > 0;) {  // lambda falls as m grows
        const Bulk& bulk = parts_[i];
        if (bulk.nodes == 0) return {};
        const CosineRule& rule = cosine_rule(bulk.nodes);
        CurveBulk& curve = result.emplace_back();
        curve.nodes.reserve(static_cast<std::size_t>(bulk.nodes));
        const auto point = [&](double shift, double one) {  // shift = a + c, one = 1/(1+m)
            return CurveNode{.u = shift * (1 + one) - c_ * one,
                             .lambda = 2 * shift - c_ * one,
                             .denoised = (2 * shift - c_) * one,
                             .variance = noise_ * one};
        };
        // Next to an atom a is nearly -c. There m - excess is small, and
        //   2c (a + c) = D (1 + 1/m) - (m - excess);
        // elsewhere a = +-sqrt(1+m) at the ends and (root - m)(m + D/root)/(2cm) between, root being its zero.
        const bool atom = i == 1;
        const auto at_atom = [&](double m, double above) {
            return (noise_ * (1 + 1 / m) - above) / (2 * c_);
        };
        // With 1 + m = c^2 + above the edges are z (1 - c/sqrt(1+m)) = -+sqrt(D).
        const auto above_excess = [&](double part) { return c_ * c_ * std::expm1(-2 * std::log1p(part)); };
        const double low_above = atom ? above_excess(std::sqrt(noise_) / bulk.z_low) : 0,
                     high_above = atom ? above_excess(-std::sqrt(noise_) / bulk.z_high) : 0;
        const double low = bulk.low, high = bulk.z_high * bulk.z_high;
        const double half_sum = 0.5 * (noise_ - 2 - excess_), norm = std::hypot(half_sum, std::sqrt(noise_));
        const double root = half_sum > 0 ? half_sum + norm : noise_ / (norm - half_sum);
        const double gap = 2 * c_ * low * std::sqrt(1 + low) / (low + noise_ / root);  // root - low

        for (std::size_t j = rule.above.size(); j-- > 0;) {
            const NodeLanes at = nodes_of(bulk, rule.above[j], rule.below[j], pi / bulk.nodes);
            for (int lane = 4; lane-- > 0;) {
                const double m = at.m[lane], one = at.inverse_one[lane], rise = at.rise[lane];
                const double shift = atom ? at_atom(m, low_above + rise)
                                          : c_ + (gap - rise) * (m + noise_ / root) / (2 * c_ * m);
                CurveNode node = point(shift, one);
                const double rate = (1 + noise_ * at.inverse_m[lane] * at.inverse_m[lane]) / (2 * c_);
                const double u_rate = rate * (1 + one) + (shift - c_) * one * one,
                             width = std::sqrt(at.square[lane]);
                node.v = width * std::sqrt(at.other[lane]) * one / (2 * c_);
                node.slope = (2 * rate - c_ * one * one) / u_rate;
                node.weight = u_rate * at.weight[lane] / width;
                curve.nodes.push_back(node);
            }
        }
        const CurveNode first =
            point(atom ? at_atom(high, high_above) : c_ - std::sqrt(1 + high), 1 / (1 + high));
        const CurveNode last = point(atom ? at_atom(low, low_above) : c_ + std::sqrt(1 + low), 1 / (1 + low));
        curve.u = {first.u, last.u};
        curve.lambda = {first.lambda, last.lambda};
    }
    return result;
}

}  // namespace bayesaim::spectral
