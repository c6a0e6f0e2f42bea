// SPDX-License-Identifier: MIT
#include "bayesaim/channels/two_layer_posterior.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

namespace bayesaim::channels {
namespace {

constexpr double farthest = 7.5;  // |z|: e^-28 of the prior is left out
constexpr double half_root = 1 / std::numbers::sqrt2;
constexpr double most_inverse = 1e50;  // of 1/|delta|: the integrand has long vanished there
constexpr int lanes = 8;

void store(std::vector<double>& values, std::size_t place, const Eigen::Array<double, lanes, 1>& chunk) {
    Eigen::Map<Eigen::Array<double, lanes, 1>> to(&values[place]);
    to = chunk;
}

int chunks(int count) { return (count + lanes - 1) / lanes; }

/// Products of four of these do not overflow.
double bounded_exp(double x) { return std::exp(std::clamp(x, -170.0, 170.0)); }

double softplus(double t) { return std::max(t, 0.0) + std::log1p(std::exp(-std::abs(t))); }

}  // namespace

struct TwoLayerPosterior::Problem {
    Eigen::Vector2d m, omega, offset;  // omega of layer 1; layer 2 has mean offset + k h^1 given layer 1
    double k, variance, deviation, conditional_variance;
};

/// Integrals of 1, h - omega, e, |h - omega|^2, (h - omega).e, |e|^2, in units of exp(scale): by the rule,
/// and by every other node of both axes.
struct TwoLayerPosterior::Sums {
    std::array<double, 8> full{}, coarse{};
    double scale = -std::numeric_limits<double>::infinity();
    double error = 0;

    static double covariance(const std::array<double, 8>& s, int a, int b, int product) {
        const auto at = [&](int i) { return s[static_cast<std::size_t>(i)] / s[0]; };
        return at(product) - at(a) * at(b) - at(a + 1) * at(b + 1);
    }
    /// What the coarse rule says otherwise, in posterior deviations.
    double disagreement() const {
        if (!(coarse[0] > 0)) return 1;
        double worst = std::abs(std::log(coarse[0] / full[0]));
        for (const int first : {1, 3}) {
            const double spread = covariance(full, first, first, first == 1 ? 5 : 7);
            if (!(spread > 0)) return 1;
            for (const int i : {first, first + 1}) {
                const auto at = static_cast<std::size_t>(i);
                const double difference = full[at] / full[0] - coarse[at] / coarse[0];
                worst = std::max(worst, std::abs(difference) / std::sqrt(spread));
            }
        }
        return std::isfinite(worst) ? worst : 1;
    }
};

TwoLayerPosterior::TwoLayerPosterior(double beta, double residual, const Options& options)
    : beta_(beta), residual_(residual), options_(options) {}

/// delta = 0 where E = e^(beta r) solves K E^2 + 2 (K-1) cosh(beta p/sqrt(2)) E = 2 - K, K = c + 1.
double TwoLayerPosterior::curve(double p) const {
    const double total = residual_ + 1, product = total * (2 - total);
    const double x = std::min(std::abs(beta_ * p * half_root), 300.0);
    const double root = std::asinh((total - 1) * std::cosh(x) / std::sqrt(product));
    return (std::log(2 - total) - 0.5 * std::log(product) - root) / beta_;
}

/// Nodes of a box; along the second axis all, or first the even ones and then, in chunks of their own, the
/// odd ones. What is left of a chunk has weight 0.
void TwoLayerPosterior::place(const Problem& problem, Side side, const Box& box, int first_count,
                              int second_count, bool even_first) {
    first_.resize(static_cast<std::size_t>(first_count));
    for (int i = 0; i < first_count; ++i) {
        const double z = box.low[0] + (box.high[0] - box.low[0]) * i / (first_count - 1);
        const double p = problem.omega[0] + problem.deviation * z, r0 = side == Side::both ? 0 : curve(p);
        first_[static_cast<std::size_t>(i)] = {
            p, r0, {bounded_exp(beta_ * (r0 + half_root * p)), bounded_exp(beta_ * (r0 - half_root * p))}};
    }
    const int evens = second_count / 2 + 1,
              total = even_first ? chunks(evens) + chunks(second_count / 2) : chunks(second_count);
    for (auto* array : {&r_, &scale_, &jacobian_}) array->resize(static_cast<std::size_t>(total));
    for (int j = 0; j < total * lanes; ++j) {
        int node = j;
        if (even_first) node = j < chunks(evens) * lanes ? 2 * j : 2 * (j - chunks(evens) * lanes) + 1;
        const bool used = node < second_count;
        const double x =
            box.low[1] + (box.high[1] - box.low[1]) * std::min(node, second_count - 1) / (second_count - 1);
        const double r = side == Side::both
                             ? problem.omega[1] + problem.deviation * x
                             : (side == Side::above ? 1 : -1) * problem.deviation * softplus(x);
        const auto chunk = static_cast<std::size_t>(j / lanes);
        const int lane = j % lanes;
        r_[chunk][lane] = r;
        scale_[chunk][lane] = bounded_exp(beta_ * r);
        jacobian_[chunk][lane] = !used ? 0 : side == Side::both ? 1 : 1 / (1 + std::exp(-x));
    }
}

/// The integrand at eight nodes.
struct TwoLayerPosterior::Terms {
    Chunk inverse;       // 1/|delta|
    Chunk e1, e2;        // residual of layer 2
    Chunk r;             // r - omega_r of layer 1
    double half_square;  // z_p^2/2
};

inline TwoLayerPosterior::Terms TwoLayerPosterior::terms(const Problem& problem, const Node& node,
                                                         std::size_t chunk) const {
    const double total = residual_ + 1, m1 = problem.m[0], m2 = problem.m[1];
    Terms result;
    const Chunk f1 = node.scale[0] * scale_[chunk], f2 = node.scale[1] * scale_[chunk];
    const Chunk g1 = 1 + f1, g2 = 1 + f2, product = g1 * g2, share = product.inverse();
    const Chunk a = g2 * share, b = g1 * share;
    // delta = (c - 1) + (1 - a) + (1 - b), no digits lost where a, b -> 1
    const Chunk inverse = product / ((residual_ - 1) * product + f1 * g2 + f2 * g1);
    result.inverse = inverse.abs().min(most_inverse);
    const Chunk square = result.inverse.square();
    const double z = (node.p - problem.omega[0]) / problem.deviation;
    result.half_square = 0.5 * z * z;
    result.e1 = (half_root / total) * square * ((m2 - m1) * total - 2 * m2 * a + 2 * m1 * b) -
                (problem.offset[0] + problem.k * node.p);
    result.e2 = -0.5 * (m1 + m2) * square - (problem.offset[1] + problem.k * node.r0) - problem.k * r_[chunk];
    result.r = r_[chunk] + (node.r0 - problem.omega[1]);
    return result;
}

double TwoLayerPosterior::log_density(const Problem& problem, Side side, double first, double second) const {
    const double p = problem.omega[0] + problem.deviation * first, r0 = side == Side::both ? 0 : curve(p);
    const double r = side == Side::both
                         ? problem.omega[1] + problem.deviation * second
                         : r0 + (side == Side::above ? 1 : -1) * problem.deviation * softplus(second);
    const double total = residual_ + 1, f1 = bounded_exp(beta_ * (r + half_root * p)),
                 f2 = bounded_exp(beta_ * (r - half_root * p)), a = 1 / (1 + f1), b = 1 / (1 + f2);
    const double delta = (residual_ - 1) + f1 * a + f2 * b;
    const double inverse_delta = std::min(1 / std::abs(delta), most_inverse),
                 inverse = inverse_delta * inverse_delta / total;
    const double e1 =
        half_root * inverse * (problem.m[1] * (total - 2 * a) - problem.m[0] * (total - 2 * b)) -
        problem.offset[0] - problem.k * p;
    const double e2 = -0.5 * total * inverse * problem.m.sum() - problem.offset[1] - problem.k * r;
    const double z = (r - problem.omega[1]) / problem.deviation;
    return -0.5 * (first * first + z * z) - 0.5 * (e1 * e1 + e2 * e2) / problem.conditional_variance +
           3 * std::log(inverse_delta) - (side == Side::both ? 0 : softplus(-second));
}

/// A better point than the best node: steps along the axes, halved where they do not help.
double TwoLayerPosterior::climb(const Problem& problem, Side side, const Box& box, double first,
                                double second) const {
    double step[2] = {(box.high[0] - box.low[0]) / options_.coarse_cells / 2,
                      (box.high[1] - box.low[1]) / options_.coarse_cells / 2};
    double best = log_density(problem, side, first, second);
    for (int halvings = 0, tries = 0; halvings < 6 && tries < 16; ++tries) {
        bool moved = false;
        for (const int axis : {0, 1}) {
            for (const double sign : {-1.0, 1.0}) {
                const double x = first + (axis == 0 ? sign * step[0] : 0),
                             y = second + (axis == 1 ? sign * step[1] : 0);
                const double value = log_density(problem, side, x, y);
                if (!(value > best)) continue;
                best = value;
                first = x;
                second = y;
                moved = true;
                break;
            }
        }
        if (moved) continue;
        ++halvings;
        step[0] /= 2;
        step[1] /= 2;
    }
    return best;
}

/// The coarse grid: base, e1, e2 at its nodes, and the largest of them.
void TwoLayerPosterior::evaluate_cells(const Problem& problem, double& highest, int& first, int& second) {
    const double half_precision = 0.5 / problem.conditional_variance;
    const std::size_t count = r_.size();
    for (auto* array : {&base_, &e1_, &e2_}) array->resize(first_.size() * count * lanes + lanes);
    highest = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < first_.size(); ++i) {
        for (std::size_t c = 0; c < count; ++c) {
            const Terms at = terms(problem, first_[i], c);
            const std::size_t place = (i * count + c) * lanes;
            const Chunk base = (at.inverse.cube() * jacobian_[c]).max(1e-300).log() - at.half_square -
                               (0.5 / problem.variance) * at.r.square();
            store(base_, place, base);
            store(e1_, place, at.e1);
            store(e2_, place, at.e2);
            const Chunk value = base - half_precision * (at.e1.square() + at.e2.square());
            int lane = 0;
            const double largest = value.maxCoeff(&lane);
            if (!(largest > highest)) continue;
            highest = largest;
            first = static_cast<int>(i);
            second = static_cast<int>(c) * lanes + lane;
        }
    }
}

/// Shrinks the box to the cells that may matter; whether it became much smaller.
bool TwoLayerPosterior::zoom(const Problem& problem, Side side, Box& box, double& best) {
    const int cells = options_.coarse_cells;
    place(problem, side, box, cells + 1, cells + 1, false);
    int first = 0, second = 0;
    double highest = 0;
    evaluate_cells(problem, highest, first, second);
    const double width[2] = {(box.high[0] - box.low[0]) / cells, (box.high[1] - box.low[1]) / cells};
    best =
        std::max({best, highest,
                  climb(problem, side, box, box.low[0] + first * width[0], box.low[1] + second * width[1])});

    // In a cell e lies within a disc around the mean of its corners: the integrand can be as large as where
    // the disc is nearest to 0. Discs are enlarged by a quarter for the curvature.
    const double half_precision = 0.5 / problem.conditional_variance;
    const std::size_t count = r_.size(), stride = count * lanes;
    std::vector<Chunk> along(count, Chunk::Constant(-std::numeric_limits<double>::infinity()));
    int low[2] = {cells, cells}, high[2] = {-1, -1};
    for (int i = 0; i < cells; ++i) {
        double largest = -std::numeric_limits<double>::infinity();
        for (std::size_t c = 0; c < count; ++c) {
            const std::size_t at = static_cast<std::size_t>(i) * stride + c * lanes;
            const auto corner = [&](const std::vector<double>& values, std::size_t offset) {
                return Eigen::Map<const Chunk>(&values[at + offset]);
            };
            const std::size_t offsets[] = {0, 1, stride, stride + 1};
            Chunk x0 = Chunk::Zero(), y0 = x0, square = x0, base = corner(base_, 0);
            for (const std::size_t offset : offsets) {
                x0 += 0.25 * corner(e1_, offset);
                y0 += 0.25 * corner(e2_, offset);
                base = base.max(corner(base_, offset));
            }
            for (const std::size_t offset : offsets) {
                square =
                    square.max((corner(e1_, offset) - x0).square() + (corner(e2_, offset) - y0).square());
            }
            const Chunk nearest = ((x0.square() + y0.square()).sqrt() - 1.25 * square.sqrt()).max(0.0);
            Chunk bound = base - half_precision * nearest.square();
            for (int lane = std::max(0, cells - static_cast<int>(c) * lanes); lane < lanes; ++lane) {
                bound[lane] = -std::numeric_limits<double>::infinity();  // beyond the last cell
            }
            along[c] = along[c].max(bound);
            largest = std::max(largest, bound.maxCoeff());
        }
        if (!(largest > best - options_.cut)) continue;
        low[0] = std::min(low[0], i);
        high[0] = i;
    }
    for (int j = 0; j < cells; ++j) {
        if (!(along[static_cast<std::size_t>(j / lanes)][j % lanes] > best - options_.cut)) continue;
        low[1] = std::min(low[1], j);
        high[1] = j;
    }
    if (high[0] < 0 || high[1] < 0) return false;
    const double before = box.area();
    for (const int axis : {0, 1}) {
        const double start = box.low[axis];
        box.low[axis] = start + low[axis] * width[axis];
        box.high[axis] = start + (high[axis] + 1) * width[axis];
    }
    return box.area() < 0.5 * before;
}

TwoLayerPosterior::Box TwoLayerPosterior::starting_box(const Problem& problem, Side side) const {
    Box box{{-farthest, -farthest}, {farthest, farthest}};
    if (side == Side::both) return box;
    // How far the prior reaches beyond the curve.
    double reach = 0;
    for (int i = 0; i <= 30; ++i) {
        const double p = problem.omega[0] + problem.deviation * (i / 15.0 - 1) * farthest;
        const double distance = (problem.omega[1] - curve(p)) / problem.deviation;
        reach = std::max(reach, farthest + (side == Side::above ? distance : -distance));
    }
    box.low[1] = -18;
    box.high[1] = reach > 30 ? reach : reach > 1e-6 ? std::log(std::expm1(reach)) : box.low[1];
    return box;
}

TwoLayerPosterior::Sums TwoLayerPosterior::trapezoid(const Problem& problem, Side side, const Box& box,
                                                     double best, int nodes) {
    place(problem, side, box, nodes, nodes, true);
    const double half_precision = 0.5 / problem.conditional_variance, half_inverse = 0.5 / problem.variance;
    const std::size_t count = r_.size(), evens = static_cast<std::size_t>(chunks(nodes / 2 + 1));
    std::array<Chunk, 8> coarse, rest;
    coarse.fill(Chunk::Zero());
    rest.fill(Chunk::Zero());
    const auto add = [&](const Node& node, std::size_t begin, std::size_t end, std::array<Chunk, 8>& to) {
        const double p = node.p - problem.omega[0];
        for (std::size_t c = begin; c < end; ++c) {
            const Terms at = terms(problem, node, c);
            const Chunk squares = at.e1.square() + at.e2.square(), r2 = at.r.square();
            const Chunk exponent = -half_precision * squares - half_inverse * r2 - (at.half_square + best);
            const Chunk w = exponent.max(-700.0).min(600.0).exp() * at.inverse.cube() * jacobian_[c];
            to[0] += w;
            to[1] += p * w;
            to[2] += w * at.r;
            to[3] += w * at.e1;
            to[4] += w * at.e2;
            to[5] += w * (p * p + r2);
            to[6] += w * (p * at.e1 + at.r * at.e2);
            to[7] += w * squares;
        }
    };
    for (std::size_t i = 0; i < first_.size(); ++i) {
        add(first_[i], 0, evens, i % 2 == 0 ? coarse : rest);
        add(first_[i], evens, count, rest);
    }
    Sums sums;
    sums.scale = best;
    const double cell = box.area() / ((nodes - 1.0) * (nodes - 1.0));
    for (std::size_t s = 0; s < 8; ++s) {
        sums.full[s] = (coarse[s].sum() + rest[s].sum()) * cell;
        sums.coarse[s] = 4 * coarse[s].sum() * cell;
    }
    const double difference = sums.disagreement();
    // Geometric convergence: halving the step squares the error, at least.
    sums.error = difference < 1 ? difference * difference : difference;
    return sums;
}

TwoLayerPosterior::Sums TwoLayerPosterior::integrate(const Problem& problem, Side side) {
    Box box = starting_box(problem, side);
    if (!(box.area() > 0)) return {};
    double best = -std::numeric_limits<double>::infinity();
    constexpr int most_levels = 10;
    for (int level = 0; level < most_levels; ++level) {
        if (!zoom(problem, side, box, best)) break;
    }
    Sums sums;
    for (int nodes = options_.nodes; nodes <= options_.most_nodes; nodes = 2 * nodes - 1) {
        sums = trapezoid(problem, side, box, best, nodes);
        if (sums.error <= options_.tolerance) break;
    }
    return sums;
}

TwoLayerMoments TwoLayerPosterior::operator()(const Eigen::Vector2d& m, const Eigen::Vector2d omega[2],
                                              const linalg::Overlap& variance) {
    Problem problem;
    problem.m = m;
    problem.omega = omega[0];
    problem.k = variance(0, 1) / variance(0, 0);
    problem.offset = omega[1] - problem.k * omega[0];
    problem.variance = variance(0, 0);
    problem.deviation = std::sqrt(problem.variance);
    problem.conditional_variance = variance(1, 1) - problem.k * variance(0, 1);

    Sums sums;
    if (residual_ >= 1) {
        sums = integrate(problem, Side::both);
    } else {
        sums = integrate(problem, Side::above);
        const Sums other = integrate(problem, Side::below);
        const double scale = std::max(sums.scale, other.scale);
        const double weight = std::exp(sums.scale - scale), other_weight = std::exp(other.scale - scale);
        const double share = weight * sums.full[0], other_share = other_weight * other.full[0];
        for (std::size_t s = 0; s < 8; ++s) {
            sums.full[s] = (share > 0 ? weight * sums.full[s] : 0) +
                           (other_share > 0 ? other_weight * other.full[s] : 0);
        }
        sums.error = (share * sums.error + other_share * other.error) / (share + other_share);
        sums.scale = scale;
    }
    TwoLayerMoments result;
    const auto& s = sums.full;
    const double k = problem.k;
    const Eigen::Vector2d shift(s[1] / s[0], s[2] / s[0]), residual(s[3] / s[0], s[4] / s[0]);
    result.mean[0] = omega[0] + shift;
    result.mean[1] = omega[1] + residual + k * shift;
    const double own = Sums::covariance(s, 1, 1, 5), mixed = Sums::covariance(s, 1, 3, 6),
                 rest = Sums::covariance(s, 3, 3, 7);
    result.covariance[0] = own;
    result.covariance[1] = mixed + k * own;
    result.covariance[2] = rest + 2 * k * mixed + k * k * own;
    result.log_z = sums.scale + std::log(s[0]) -
                   std::log(4 * std::numbers::pi * std::numbers::pi * problem.conditional_variance);
    result.error = sums.error;
    return result;
}

}  // namespace bayesaim::channels
