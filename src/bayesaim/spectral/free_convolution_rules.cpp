// SPDX-License-Identifier: MIT
// The quadrature rules of FreeConvolution: equal steps where v(u) is smooth, graded panels next to
// singularities, adaptive panels where both fail.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include <boost/math/quadrature/gauss.hpp>
#include <boost/math/quadrature/gauss_kronrod.hpp>

#include "bayesaim/spectral/free_convolution.hpp"

namespace bayesaim::spectral {
namespace {

constexpr double pi = std::numbers::pi;
constexpr double epsilon = std::numeric_limits<double>::epsilon();

/// Calls f(abscissa, weight) for each node, ascending, of a Gauss rule with an even number of nodes on [-1,
/// 1]. Boost stores the positive half.
template <class Rule, class Function>
void for_each_abscissa(Function f) {
    for (std::size_t i = Rule::abscissa().size(); i-- > 0;) f(-Rule::abscissa()[i], Rule::weights()[i]);
    for (std::size_t i = 0; i < Rule::abscissa().size(); ++i) f(Rule::abscissa()[i], Rule::weights()[i]);
}

/// Maps theta in [0, pi] to u in the bulk; square-root edges in u become smooth and even in theta.
double cosine_map(const Interval& u, double theta) {
    // Measured from the nearer end, so that a point next to an edge keeps its distance to it.
    const double half = 0.5 * theta, width = u.high - u.low;
    const double s = std::sin(half), c = std::cos(half);
    return theta < 0.5 * pi ? u.low + width * s * s : u.high - width * c * c;
}

/// Error of the trapezoidal rule with n intervals on [0, pi]: the cosine coefficient of order 2n,
/// extrapolated from the envelopes of the coefficients around n/2 and n as geometric decay. (Single
/// coefficients oscillate through zero.)
class CosineTail {
  public:
    void add(std::size_t k, double theta, double value) {
        const double c1 = std::cos(theta), s1 = std::sin(theta);
        double c = 1, s = 0;  // cosine and sine of m theta
        for (std::size_t m = 0; m < orders; ++m) {
            full_[m] += (k % 2 == 0 ? value : -value) * c;  // cos((n - m) theta_k)
            const double quarter[] = {c, -s, -c, s};        // cos((n/2 + m) theta_k)
            half_[m] += value * quarter[k % 4];
            const double next = c * c1 - s * s1;
            s = s * c1 + c * s1;
            c = next;
        }
    }
    double error() const {
        double full = 0, half = std::numeric_limits<double>::min();
        for (std::size_t m = 0; m < orders; ++m) {
            full = std::max(full, std::abs(full_[m]));
            half = std::max(half, std::abs(half_[m]));
        }
        const double decay = std::min(1.0, full / half);
        return full * decay * decay;
    }

  private:
    static constexpr std::size_t orders = 4;
    std::array<double, orders> full_{}, half_{};
};

double cosine_map_slope(const Interval& u, double theta) { return 0.5 * (u.high - u.low) * std::sin(theta); }

}  // namespace

/// The places, in theta, where v(u) is smooth only on a small scale: an end that faces another bulk across a
/// gap (the edge of that bulk is a square-root singularity at this distance), and a pinch u0, near which v^2
/// = v0^2 + 3 (u - u0)^2, because int dmu/((u-x)^2 + v^2) expands as const + 3 m (u-u0)^2 - m v^2 with m =
/// int dmu/(u0-x)^4.
void FreeConvolution::find_singularities(Bulk& bulk, double gap_below, double gap_above,
                                         const std::vector<double>& pinches) const {
    constexpr double far = 0.7;  // beyond this distance in theta the trapezoidal rule converges well
    const double width = bulk.u.high - bulk.u.low;
    const auto add = [&](double theta, double distance) {
        if (distance < far) bulk.singularities.push_back({theta, std::max(distance, 1e-12)});
    };
    if (gap_below > 0) add(0, 2 * std::sqrt(gap_below / width));  // u - u.low = width sin^2(theta/2)
    for (const double u : pinches) {
        if (!(u > bulk.u.low && u < bulk.u.high)) continue;
        Node node{.u = u};
        complete({&node, 1});
        const double theta = 2 * std::asin(std::sqrt((u - bulk.u.low) / width));
        add(theta, 0.6 * node.v / (std::sqrt(3.0) * cosine_map_slope(bulk.u, theta)));
    }
    if (gap_above > 0) add(pi, 2 * std::sqrt(gap_above / width));
}

/// Error that the rule of a bulk aims at, in units of the probes below: that of the law (1e-13), or the
/// round-off of u if that is larger, for a narrow bulk far from the mean.
double FreeConvolution::quadrature_tolerance(const Interval& u) const {
    return std::max(law_->quadrature_accuracy(),
                    20 * epsilon * std::max(std::abs(u.low), std::abs(u.high)) / (u.high - u.low));
}

/// The two integrands that must converge: the mass, and mmse relative to min(D, Var S).
std::array<double, 2> FreeConvolution::convergence_probes(const Node& node) const {
    const double mass = node.probability() / (pi * noise_);
    const double largest = std::min(noise_, law_->variance());
    return {mass, largest > 0 ? mass * node.variance / largest : 0};
}

/// Trapezoidal rule in theta, doubled until it has converged: geometrically, because the integrands are
/// smooth and even at the ends. Returns false if 256 intervals are not enough, as for bulks about to merge
/// and for hard edges.
bool FreeConvolution::add_trapezoid_rule(const Bulk& bulk) {
    const Interval& u = bulk.u;
    const double tolerance = quadrature_tolerance(u);
    constexpr std::size_t smallest = 16, largest = 256;
    std::vector<Node> nodes(smallest - 1);
    for (std::size_t k = 1; k < smallest; ++k) {
        nodes[k - 1].u = cosine_map(u, pi * static_cast<double>(k) / smallest);
    }
    complete(nodes);
    for (std::size_t n = smallest;; n *= 2) {
        const double step = pi / static_cast<double>(n);
        std::array<CosineTail, 2> tail;
        for (std::size_t k = 1; k < n; ++k) {
            const double theta = step * static_cast<double>(k);
            nodes[k - 1].weight = step * cosine_map_slope(u, theta);
            const auto probe = convergence_probes(nodes[k - 1]);
            for (std::size_t i = 0; i < 2; ++i) tail[i].add(k, theta, probe[i]);
        }
        if (std::max(tail[0].error(), tail[1].error()) <= tolerance) break;
        if (n == largest) return false;
        nodes = twice_as_many(u, nodes);
    }
    nodes_.insert(nodes_.end(), nodes.begin(), nodes.end());
    return true;
}

/// The nodes, and new ones halfway between them in theta; v is guessed by cubic interpolation of v /
/// sin(theta), which is smooth and even at both ends.
std::vector<FreeConvolution::Node> FreeConvolution::twice_as_many(const Interval& u,
                                                                  const std::vector<Node>& nodes) const {
    const std::size_t n = nodes.size() + 1;
    const double step = pi / static_cast<double>(n);
    std::vector<double> shape(n + 3);  // entry k + 1 belongs to node k; mirrored at the ends
    for (std::size_t k = 1; k < n; ++k)
        shape[k + 1] = nodes[k - 1].v / std::sin(step * static_cast<double>(k));
    shape[1] = shape[2];
    shape[0] = shape[3];
    shape[n + 1] = shape[n];
    shape[n + 2] = shape[n - 1];
    std::vector<Node> between(n);
    for (std::size_t k = 0; k < n; ++k) {
        const double theta = step * (static_cast<double>(k) + 0.5);
        between[k].u = cosine_map(u, theta);
        between[k].v = (9 * (shape[k + 1] + shape[k + 2]) - shape[k] - shape[k + 3]) / 16 * std::sin(theta);
    }
    complete(between);
    std::vector<Node> all(2 * n - 1);
    for (std::size_t k = 0; k < n; ++k) all[2 * k] = between[k];
    for (std::size_t k = 1; k < n; ++k) all[2 * k - 1] = nodes[k - 1];
    return all;
}

/// Gauss-Kronrod panels in s, theta = theta0 + distance sinh(s) around each singularity. They resolve all
/// scales equally well, because in s no singularity is nearer than i pi/2. Returns false, and adds no nodes,
/// if they have not converged.
bool FreeConvolution::add_graded_rule(const Bulk& bulk) {
    constexpr double longest_panel = 2.4;
    using Kronrod = boost::math::quadrature::gauss_kronrod<double, 31>;  // abscissas 0, +-x1, +-x2, ...
    using Gauss = boost::math::quadrature::gauss<double, 15>;            // every other abscissa of Kronrod
    constexpr int size = 31, middle_index = size / 2;
    std::vector<Node> nodes;
    std::vector<double> gauss_part;  // Gauss weight over Kronrod weight, 0 where Gauss has no node
    double low = 0;
    for (std::size_t k = 0; k < bulk.singularities.size(); ++k) {
        const auto [centre, distance] = bulk.singularities[k];
        const double high =
            k + 1 < bulk.singularities.size() ? 0.5 * (centre + bulk.singularities[k + 1].theta) : pi;
        const double s_low = std::asinh((low - centre) / distance),
                     s_high = std::asinh((high - centre) / distance);
        const int panels = std::max(1, static_cast<int>(std::ceil((s_high - s_low) / longest_panel)));
        const double half = 0.5 * (s_high - s_low) / panels;
        for (int i = 0; i < panels; ++i) {
            for (int j = 0; j < size; ++j) {
                const auto entry = static_cast<std::size_t>(std::abs(j - middle_index));
                const double abscissa =
                    j < middle_index ? -Kronrod::abscissa()[entry] : Kronrod::abscissa()[entry];
                const double s = s_low + (2 * i + 1 + abscissa) * half, weight = Kronrod::weights()[entry];
                const double theta = std::clamp(centre + distance * std::sinh(s), 0.0, pi);
                nodes.push_back(
                    {.u = cosine_map(bulk.u, theta),
                     .weight = half * weight * distance * std::cosh(s) * cosine_map_slope(bulk.u, theta)});
                gauss_part.push_back(entry % 2 == 0 ? Gauss::weights()[entry / 2] / weight : 0);
            }
        }
        low = high;
    }
    complete_in_passes(nodes);
    std::array<double, 2> difference{};
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const auto probe = convergence_probes(nodes[i]);
        for (std::size_t k = 0; k < 2; ++k) difference[k] += (1 - gauss_part[i]) * probe[k];
    }
    // Geometric convergence: Gauss is exact to degree 29, Kronrod to 46.
    const double error = std::pow(std::max(std::abs(difference[0]), std::abs(difference[1])), 1.5);
    if (error > quadrature_tolerance(bulk.u)) return false;
    nodes_.insert(nodes_.end(), nodes.begin(), nodes.end());
    return true;
}

/// Where round-off hides the convergence of panels they would be halved for ever: after so many halvings the mass tells
/// whether they are good enough.
void FreeConvolution::add_adaptive_rule(const Bulk& bulk) {
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    constexpr int most_halvings = 100, least_halvings = 20;  // the same steps, sooner at their end
#else
    constexpr int most_halvings = 1000, least_halvings = 200;
#endif
    int halvings = std::max(most_halvings / static_cast<int>(bulks_.size()), least_halvings);
    std::vector<double> stops{0};
    for (const Singularity& singularity : bulk.singularities) {
        if (singularity.theta > 0 && singularity.theta < pi) stops.push_back(singularity.theta);
    }
    // A peak of the law becomes one of the width D^{1/2} at most. Panels that grow with the distance see it.
    const auto stop_at = [&](double u) {
        const double part = (u - bulk.u.low) / (bulk.u.high - bulk.u.low);
        if (part > 0 && part < 1) stops.push_back(2 * std::asin(std::sqrt(part)));
    };
    for (const double u : law_->centred_peaks()) {
        if (!(u > bulk.u.low && u < bulk.u.high)) continue;
        stop_at(u);
        for (double reach = std::sqrt(noise_); reach < bulk.u.high - bulk.u.low; reach *= 8) {
            stop_at(u - reach);
            stop_at(u + reach);
        }
    }
    stops.push_back(pi);
    std::sort(stops.begin(), stops.end());
    const int panels = law_->centred_peaks().empty() ? 4 : 1;
    for (std::size_t k = 0; k + 1 < stops.size(); ++k) {
        if (stops[k + 1] == stops[k]) continue;
        const double step = (stops[k + 1] - stops[k]) / panels;
        for (int i = 0; i < panels; ++i) {
            const double low = stops[k] + i * step, high = i + 1 < panels ? low + step : stops[k + 1];
            halvings = add_panels(bulk.u, low, high, panel(bulk.u, low, high, {}), 0, halvings, nodes_);
        }
    }
}

/// Gauss-Legendre in theta. The heights are guessed by interpolation from nodes of a wider panel, if there
/// are any.
std::vector<FreeConvolution::Node> FreeConvolution::panel(const Interval& u, double theta_low,
                                                          double theta_high,
                                                          const std::vector<Node>& wider) const {
    using Rule = boost::math::quadrature::gauss<double, 12>;
    const double middle = 0.5 * (theta_low + theta_high), half = 0.5 * (theta_high - theta_low);
    std::vector<Node> nodes;
    nodes.reserve(2 * Rule::abscissa().size());
    std::size_t next = 1;
    for_each_abscissa<Rule>([&](double abscissa, double weight) {
        const double theta = middle + half * abscissa;
        Node node{.u = cosine_map(u, theta), .weight = half * weight * cosine_map_slope(u, theta)};
        while (next + 1 < wider.size() && wider[next].u < node.u) ++next;
        if (next < wider.size()) {
            const Node &a = wider[next - 1], &b = wider[next];
            const double part = b.u > a.u ? std::clamp((node.u - a.u) / (b.u - a.u), 0.0, 1.0) : 0;
            node.v = a.v + part * (b.v - a.v);
        }
        nodes.push_back(node);
    });
    complete(nodes);
    return nodes;
}

/// A panel is halved until the sum of its halves agrees with the whole. Returns how many of the halvings are left.
int FreeConvolution::add_panels(const Interval& u, double theta_low, double theta_high,
                                const std::vector<Node>& whole, int depth, int halvings,
                                std::vector<Node>& nodes) const {
    constexpr int deepest = 40;
    const double middle = 0.5 * (theta_low + theta_high), tolerance = quadrature_tolerance(u);
    const auto left = panel(u, theta_low, middle, whole), right = panel(u, middle, theta_high, whole);
    std::array<double, 2> difference{};
    const auto add = [&](const std::vector<Node>& half, double sign) {
        for (const Node& node : half) {
            const auto probe = convergence_probes(node);
            for (std::size_t i = 0; i < 2; ++i) difference[i] += sign * probe[i];
        }
    };
    add(left, 1);
    add(right, 1);
    add(whole, -1);
    const bool agree = std::max(std::abs(difference[0]), std::abs(difference[1])) <= tolerance;
    if (agree || depth == deepest || halvings == 0) {
        nodes.insert(nodes.end(), left.begin(), left.end());
        nodes.insert(nodes.end(), right.begin(), right.end());
        return halvings;
    }
    halvings = add_panels(u, theta_low, middle, left, depth + 1, halvings - 1, nodes);
    return add_panels(u, middle, theta_high, right, depth + 1, halvings, nodes);
}

}  // namespace bayesaim::spectral
