// SPDX-License-Identifier: MIT
#include "bayesaim/spectral/free_convolution.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include <boost/math/quadrature/gauss.hpp>
#include <boost/math/tools/minima.hpp>
#include <boost/math/tools/toms748_solve.hpp>

#include "bayesaim/core/checks.hpp"

namespace bayesaim::spectral {
namespace {

constexpr double pi = std::numbers::pi;
constexpr double epsilon = std::numeric_limits<double>::epsilon();

/// Root of an increasing or decreasing function whose values at the ends are known and differ in sign.
template <class Function>
double bracketed_root(Function f, double low, double high, double f_low, double f_high) {
    if (f_low == 0) return low;
    if (f_high == 0) return high;
    std::uintmax_t iterations = 100;
    const auto close = [](double a, double b) {
        return std::abs(b - a) <= 2 * epsilon * std::max(std::abs(a), std::abs(b));
    };
    const auto [a, b] = boost::math::tools::toms748_solve(f, low, high, f_low, f_high, close, iterations);
    return 0.5 * (a + b);
}

}  // namespace

FreeConvolution::FreeConvolution(const SpectralLaw& law, double noise_variance)
    : law_(&law), noise_(noise_variance) {
    check_positive("noise variance", noise_variance);
    check_between("noise variance", noise_variance, 1e-30, 1e30);
    if (law.aspect() != 1) throw_invalid("aspect of the law of a free convolution", "1", law.aspect());
    if (law.variance() != 0)  // its square must be a number
        check_between("variance of the law", law.variance(), 1e-60, 1e60);
    if (take_known_bulks()) return;
    find_bulks();
    // Double precision does not resolve the bulk of an atom of next to no weight: its ends are the neighbours of the atom.
    // It gets no nodes, and stays as the place of a pole.
    const auto resolved = [](const Bulk& bulk) {
        const auto [low, high] = bulk.u;
        return high - low > 2 * epsilon * std::max(std::abs(low), std::abs(high));
    };
    const auto jumps = [&](const Bulk& bulk) {
        constexpr double small = 0.03;  // a jump shows if D^{1/2} is below this part of a bulk
        return law.jumps_at_ends() && std::sqrt(noise_) < small * (bulk.u.high - bulk.u.low);
    };
    bool converged = std::none_of(bulks_.begin(), bulks_.end(), jumps);
    double tolerance = 0;
    for (Bulk& bulk : bulks_) {
        if (!converged) break;
        bulk.first = bulk.last = nodes_.size();
        if (!resolved(bulk)) continue;
        converged = bulk.singularities.empty() ? add_trapezoid_rule(bulk) : add_graded_rule(bulk);
        bulk.last = nodes_.size();
        tolerance = std::max(tolerance, quadrature_tolerance(bulk.u));
    }
    // The mass is known to be 1. It exposes a rule that only looks converged.
    if (!converged || std::abs(mass() - 1) > 10 * tolerance) {
        nodes_.clear();
        for (Bulk& bulk : bulks_) {
            bulk.first = nodes_.size();
            if (resolved(bulk)) add_adaptive_rule(bulk);
            bulk.last = nodes_.size();
        }
    }
    constexpr double lost = 1e-3;
    if (!(std::abs(mass() - 1) < lost))
        throw_invalid("noise variance", "one at which this spectrum can be resolved", noise_variance);
}

/// Returns false if the law knows none, or if their mass is not 1.
bool FreeConvolution::take_known_bulks() {
    for (CurveBulk& known : law_->known_bulks(noise_)) {
        bulks_.push_back({known.u, {}, known.lambda, nodes_.size(), nodes_.size() + known.nodes.size()});
        nodes_.insert(nodes_.end(), known.nodes.begin(), known.nodes.end());
    }
    const double sum = mass();
    if (std::abs(sum - 1) <= 1e-12) {
        for (Node& node : nodes_) node.weight /= sum;
        return true;
    }
    bulks_.clear();
    nodes_.clear();
    return false;
}

// ------------------------------------------------------------------------------------------- the curve v(u)

/// (int dmu/(u-x)^2)^{-1/2} outside the support: 0 at the ends of the support, and of the order of the
/// distance to it. The bulks are the intervals where it is below D^{1/2}.
double FreeConvolution::clearance(double u) const {
    const double attraction = -law_->stieltjes(u).derivative.real();
    return attraction > 0 && std::isfinite(attraction) ? 1 / std::sqrt(attraction)
                                                       : 0;  // 0 on top of an atom
}

/// In a gap of the support int dmu/(u-x)^2 is convex: the gap stays open if the minimum is below 1/D.
void FreeConvolution::find_bulks() {
    constexpr double narrow = 0.2;  // a closed gap matters if its clearance exceeds this times D^{1/2}
    const std::vector<Interval> support = law_->centred_support();
    const double reach = std::sqrt(noise_);
    const auto beyond = [](double end, double step) {  // at least by one rounding
        return end + step != end ? end + step : std::nextafter(end, std::copysign(HUGE_VAL, step));
    };
    std::vector<double> pinches;
    bulks_.emplace_back().u.low = edge(support.front().low, beyond(support.front().low, -reach));
    for (std::size_t i = 0; i + 1 < support.size(); ++i) {
        const double low = support[i].high, high = support[i + 1].low;
        const auto [middle, negative] =
            boost::math::tools::brent_find_minima([&](double u) { return -clearance(u); }, low, high, 26);
        if (-negative <= reach) {
            if (-negative > narrow * reach) pinches.push_back(middle);
            continue;
        }
        bulks_.back().u.high = edge(low, middle);
        bulks_.emplace_back().u.low = edge(high, middle);
    }
    bulks_.back().u.high = edge(support.back().high, beyond(support.back().high, reach));
    for (std::size_t i = 0; i < bulks_.size(); ++i) {
        Bulk& bulk = bulks_[i];
        const auto psi = [&](double u) { return u + noise_ * law_->stieltjes(u).value.real(); };
        bulk.lambda = {psi(bulk.u.low), psi(bulk.u.high)};
        find_singularities(bulk, i > 0 ? bulk.u.low - bulks_[i - 1].u.high : 0,
                           i + 1 < bulks_.size() ? bulks_[i + 1].u.low - bulk.u.high : 0, pinches);
    }
}

/// The point between an end of the support and a point beyond it where the clearance reaches D^{1/2}.
double FreeConvolution::edge(double support_end, double beyond) const {
    const auto excess = [&](double u) { return clearance(u) - std::sqrt(noise_); };
    const double first = std::nextafter(support_end, beyond);
    if (first == beyond || excess(first) >= 0) return first;  // double precision cannot resolve it
    const double at_beyond = excess(beyond);
    if (at_beyond <= 0) return beyond;  // only by round-off
    return beyond > first ? bracketed_root(excess, first, beyond, excess(first), at_beyond)
                          : bracketed_root(excess, beyond, first, at_beyond, excess(first));
}

/// One step towards v(u) inside a bulk. Returns false once a further step cannot improve it. With y = v^2,
///   F(y) = 1 / int dmu/((u-x)^2 + y) - D
/// is a harmonic mean minus a constant, so increasing and concave: from any start Newton lands at or left of
/// the root and then climbs to it. The root is in (0, D], because the integral is at most 1/y.
bool FreeConvolution::improve_height(Height& height) const {
    const double y = height.y, v = std::sqrt(y);
    const auto [g, g_slope] = law_->stieltjes({height.u, v});
    const double b = -g.imag();  // v times the integral
    const double f = v / b - noise_;
    const double roundoff = epsilon * (noise_ + std::abs(g.real()) * v / (b * b));
    if (std::abs(f) <= 2 * roundoff) return false;
    (f < 0 ? height.low : height.high) = y;
    double next = y - f * 2 * b * b / (g_slope.real() + b / v);
    if (!(next > height.low && next < height.high)) {
        next = height.low > 0 ? std::sqrt(height.low * height.high) : 1e-3 * height.high;
    }
    height.y = next;
    // Newton squares the relative change, so a change of 1e-8 is followed by round-off.
    return std::abs(next - y) > 1e-8 * next && next > 1e-40 * noise_;
}

/// Fills nodes whose u, weight and guess of v (0 for no guess) are given. Steps are taken for all nodes in
/// turn: the nodes do not depend on each other, so the processor overlaps their steps.
void FreeConvolution::complete(std::span<Node> nodes) const {
    std::vector<Height> active;
    active.reserve(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const double y = nodes[i].v * nodes[i].v;
        active.push_back({nodes[i].u, y > 0 && y < noise_ ? y : noise_, 0, noise_, i});
    }
    for (int iteration = 0; iteration < 200 && !active.empty(); ++iteration) {
        std::erase_if(active, [&](Height& height) {
            if (improve_height(height)) return false;
            nodes[height.node].v = std::sqrt(height.y);
            return true;
        });
    }
    for (const Height& height : active) nodes[height.node].v = std::sqrt(height.y);  // bracketed to round-off
    for (Node& node : nodes) {
        const Complex w(node.u, node.v);
        const auto [g, g_slope] = law_->stieltjes(w);
        // Along the curve Im(w + D G) = 0, hence psi' = |K|^2 / Re K with K = 1 + D G'(w), Re K >= 0.
        const Complex k = 1.0 + noise_ * g_slope;
        node.slope = std::norm(k) / std::max(k.real(), epsilon);
        node.lambda = node.u + noise_ * g.real();
        condition_on(w, g, node.denoised, node.variance);
    }
}

/// The same for nodes in ascending order without guesses: a few nodes come first, and the heights of the
/// others are guessed from them.
void FreeConvolution::complete_in_passes(std::vector<Node>& nodes) const {
    constexpr std::size_t stride = 5;
    std::vector<Node> few;
    for (std::size_t i = 0; i < nodes.size(); i += stride) few.push_back(nodes[i]);
    complete(few);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const std::size_t k = std::min(i / stride, few.size() - 1), next = std::min(k + 1, few.size() - 1);
        const double gap = few[next].u - few[k].u, part = gap > 0 ? (nodes[i].u - few[k].u) / gap : 0;
        nodes[i].v = few[k].v + part * (few[next].v - few[k].v);
    }
    complete(nodes);
}

/// Mean and variance of x under the weight D dmu(x)/|w - x|^2, in one of two equivalent forms:
///   u - D Re G   and   D (1 - D |G|^2):        round-off epsilon D in the variance;
///   -(D/v) Im M  and  -(D/v) Im(w M) - mean^2:  round-off epsilon (D/v) |w M|, better where D is large.
void FreeConvolution::condition_on(Complex w, Complex g, double& mean, double& variance) const {
    if (noise_ > law_->variance()) {
        const Complex m = law_->moment_transform(w).value;
        if (std::norm(w * m) < w.imag() * w.imag()) {
            const double scale = -noise_ / w.imag();
            mean = scale * m.imag();
            variance = scale * (w * m).imag() - mean * mean;
            return;
        }
    }
    mean = w.real() - noise_ * g.real();
    variance = noise_ * (1 - noise_ * std::norm(g));
}

template <class Function>
double FreeConvolution::average(Function f) const {
    double sum = 0;
    for (const Node& node : nodes_) sum += node.probability() * f(node);
    return sum / (pi * noise_);
}

// ------------------------------------------------------------------------------------------------- integrals

double FreeConvolution::mmse() const {
    return average([](const Node& node) { return node.variance; });
}

double FreeConvolution::mmse_derivative() const {
    constexpr std::size_t many = 5000;  // for a sum over pairs
    if (noise_ > 100 * law_->variance() && nodes_.size() < many) return derivative_by_double_sum();
    double sum = 0;
    for (const Node& node : nodes_) sum += node.weight * node.v * node.v * node.v;
    return 1 - 8 / (3 * pi * noise_ * noise_) * sum;
}

/// int int [(f(a) - f(b)) / (a - b)]^2 dmu_D(a) dmu_D(b), f the shrinkage: the mean squared posterior
/// covariance. A sum of squares keeps the digits that the form 1 - ... loses when D is large.
double FreeConvolution::derivative_by_double_sum() const {
    double sum = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        const Node& a = nodes_[i];
        const Complex w(a.u, a.v);
        const auto [m, m_slope] = law_->moment_transform(w);
        const Complex k = 1.0 + noise_ * law_->stieltjes(w).derivative;
        const double v_slope = -k.imag() / std::max(k.real(), epsilon);
        // d/du of -(D/v) Im M, divided by psi'
        const double diagonal =
            noise_ / a.v * (v_slope / a.v * m.imag() - (m_slope * Complex(1, v_slope)).imag()) / a.slope;
        sum += a.probability() * a.probability() * diagonal * diagonal;
        for (std::size_t j = 0; j < i; ++j) {
            const Node& b = nodes_[j];
            const double gap = a.lambda - b.lambda,  // 0 in bulks of a few digits
                ratio = gap != 0 ? (a.denoised - b.denoised) / gap : diagonal;
            sum += 2 * a.probability() * b.probability() * ratio * ratio;
        }
    }
    return sum / (pi * pi * noise_ * noise_);
}

double FreeConvolution::integral_of_density_cubed() const {
    return average([&](const Node& node) { return std::pow(node.v / (pi * noise_), 2); });
}

double FreeConvolution::potential(Complex w, Complex g) const {
    return law_->log_potential(w) + 0.5 * noise_ * (g * g).real();
}

double FreeConvolution::log_energy() const {
    return average([&](const Node& node) {
        return potential({node.u, node.v}, Complex(node.lambda - node.u, -node.v) / noise_);
    });
}

double FreeConvolution::mass() const {
    return average([](const Node&) { return 1.0; });
}

double FreeConvolution::mean() const {
    return law_->mean() + average([](const Node& node) { return node.lambda; });
}

double FreeConvolution::second_moment() const {
    return average([&](const Node& node) { return std::pow(node.lambda + law_->mean(), 2); });
}

// --------------------------------------------------------------------------------------- one point at a time

std::vector<Interval> FreeConvolution::edges() const {
    std::vector<Interval> result;
    for (const Bulk& bulk : bulks_) {
        if (bulk.first == bulk.last) continue;
        result.push_back({bulk.lambda.low + law_->mean(), bulk.lambda.high + law_->mean()});
    }
    return result;
}

double FreeConvolution::centred(double lambda) const {
    constexpr double farthest = 1e70;  // laws take its fourth power
    check_between("eigenvalue", lambda, law_->mean() - farthest, law_->mean() + farthest);
    return lambda - law_->mean();
}

/// The w with w + D G(w) = x: on the curve v(u) inside the bulks, on the real axis outside.
Complex FreeConvolution::curve_point(double x) const {
    // At an edge u changes as the root of lambda: roundings of lambda would change u by 1e-8.
    const double roundoff = 8 * epsilon * (std::abs(x + law_->mean()) + std::abs(law_->mean()));
    const auto at_edge = [&](double edge) { return std::abs(x - edge) <= roundoff; };
    const auto near = std::find_if(bulks_.begin(), bulks_.end(), [&](const Bulk& b) {
        return at_edge(b.lambda.low) || at_edge(b.lambda.high);
    });
    if (near != bulks_.end()) return at_edge(near->lambda.low) ? near->u.low : near->u.high;
    const auto bulk =
        std::find_if(bulks_.begin(), bulks_.end(), [&](const Bulk& b) { return x < b.lambda.high; });
    if (bulk != bulks_.end() && x > bulk->lambda.low)
        return bulk->first == bulk->last ? bulk->u.low : solve_inside(*bulk, x);
    const double low = bulk == bulks_.begin() ? x : std::prev(bulk)->u.high;
    const double high = bulk == bulks_.end() ? x : bulk->u.low;
    return solve_outside(low, high, x);
}

SpectrumPoint FreeConvolution::at(double lambda) const {
    const Complex w = curve_point(centred(lambda));
    const Complex g = law_->stieltjes(w).value;
    SpectrumPoint point;
    point.hilbert = g.real();
    if (w.imag() > 0) {
        double variance = 0;
        condition_on(w, g, point.denoised, variance);
        point.density = w.imag() / (pi * noise_);
    } else {
        point.denoised = w.real() - noise_ * point.hilbert;
    }
    point.denoised += law_->mean();
    return point;
}

double FreeConvolution::log_potential(double lambda) const {
    const Complex w = curve_point(centred(lambda));
    return potential(w, law_->stieltjes(w).value.real() - Complex(0, w.imag() / noise_));
}

double FreeConvolution::cumulative(double lambda) const {
    const double x = centred(lambda);
    const Complex w = curve_point(x);
    if (w.imag() <= 0) {  // outside the bulks
        return std::clamp(average([&](const Node& node) { return node.lambda <= x ? 1.0 : 0.0; }), 0.0, 1.0);
    }
    // Panels from y to 4 y: no singularity is nearer to one than its lower end. Beyond the last, Re G =
    // u/|w|^2.
    using Rule = boost::math::quadrature::gauss<double, 12>;
    const auto support = law_->centred_support();
    const double u = w.real();
    const double reach =
        std::max({std::abs(support.front().low), std::abs(support.back().high), std::abs(u)});
    double y = w.imag(), integral = 0;
    for (; y < 1e3 * reach; y *= 4) {
        integral += Rule::integrate([&](double t) { return law_->stieltjes({u, t}).value.real(); }, y, 4 * y);
    }
    integral += std::atan(u / y);
    const Complex g = law_->stieltjes(w).value;
    const double above = 0.5 - (integral - noise_ * g.real() * g.imag()) / pi;
    return std::clamp(1 - above, 0.0, 1.0);
}

/// The w on the curve with w + D G(w) = lambda, by Newton from the neighbouring nodes. If Newton does not
/// settle, by bracketing in u, in which lambda is monotone.
Complex FreeConvolution::solve_inside(const Bulk& bulk, double lambda) const {
    const auto begin = nodes_.begin() + static_cast<std::ptrdiff_t>(bulk.first);
    const auto end = nodes_.begin() + static_cast<std::ptrdiff_t>(bulk.last);
    const auto right =
        std::lower_bound(begin, end, lambda, [](const Node& n, double x) { return n.lambda < x; });
    Complex w;
    if (right == begin || right == end) {  // next to an edge v is a square root
        const Node& node = right == begin ? *right : *std::prev(right);
        const double edge_lambda = right == begin ? bulk.lambda.low : bulk.lambda.high;
        const double edge_u = right == begin ? bulk.u.low : bulk.u.high;
        const double r = (lambda - edge_lambda) / (node.lambda - edge_lambda);
        w = {edge_u + r * (node.u - edge_u), std::sqrt(std::max(r, 0.0)) * node.v};
    } else {
        const Node &b = *right, &a = *std::prev(right);
        const double r = (lambda - a.lambda) / (b.lambda - a.lambda);
        w = {a.u + r * (b.u - a.u), a.v + r * (b.v - a.v)};
    }
    for (int iteration = 0; iteration < 25 && w.imag() > 0; ++iteration) {
        const auto [g, g_slope] = law_->stieltjes(w);
        const Complex step = (w + noise_ * g - lambda) / (1.0 + noise_ * g_slope);
        w -= step;
        if (std::norm(step) <= 1e-28 * std::norm(Complex(std::min(std::abs(w.real()), w.imag()), w.imag()))) {
            if (w.imag() > 0) return w;
            break;
        }
    }
    Node node;
    const auto excess = [&](double u) {
        node = {.u = u};
        complete({&node, 1});
        return node.lambda - lambda;
    };
    excess(
        bracketed_root(excess, bulk.u.low, bulk.u.high, bulk.lambda.low - lambda, bulk.lambda.high - lambda));
    return {node.u, node.v};
}

/// The real u in [u_low, u_high], outside the bulks, with u + D G(u) = lambda, which increases in u.
double FreeConvolution::solve_outside(double u_low, double u_high, double lambda) const {
    const auto excess = [&](double u) { return u + noise_ * law_->stieltjes(u).value.real() - lambda; };
    const double at_low = excess(u_low), at_high = excess(u_high);
    if (at_low >= 0) return u_low;
    if (at_high <= 0) return u_high;
    return bracketed_root(excess, u_low, u_high, at_low, at_high);
}

ErrorPoint error_point(const SpectralLaw& law, double noise_variance) {
    check_positive("noise variance", noise_variance);
    check_between("noise variance", noise_variance, 1e-30, 1e30);
    if (const auto known = law.known_error(noise_variance)) return *known;
    // mmse = Var - Var^2/D + .., and the other terms have no digits here.
    constexpr double large = 1e18;
    if (const double ratio = law.variance() / noise_variance; ratio < 1 / large)
        return {law.variance(), ratio * ratio};
    const FreeConvolution spectrum(law, noise_variance);
    return {spectrum.mmse(), spectrum.mmse_derivative()};
}

double mmse(const SpectralLaw& law, double noise_variance) {
    // Below what the engine resolves the limit holds: mmse(D)/D -> 1 - sum of squared atom weights.
    constexpr double smallest = 1e-28;
    if (noise_variance > 0 && noise_variance < smallest)
        return (1 - law.atomic_concentration()) * noise_variance;
    return error_point(law, noise_variance).error;
}

double prior_free_entropy(const SpectralLaw& law, double inverse_noise_variance) {
    check_non_negative("inverse noise variance", inverse_noise_variance);
    if (inverse_noise_variance == 0) return 0;
    if (const auto known = law.known_free_entropy(inverse_noise_variance)) return *known;
    const double log_energy = FreeConvolution(law, 1 / inverse_noise_variance).log_energy();
    // The semicircle of variance D alone has Sigma = log(D)/2 - 1/4, which the constants cancel.
    return 0.25 * law.second_moment() * inverse_noise_variance -
           0.5 * (log_energy + 0.5 * std::log(inverse_noise_variance) + 0.25);
}

}  // namespace bayesaim::spectral
