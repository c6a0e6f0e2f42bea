// SPDX-License-Identifier: MIT
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <limits>
#include <vector>

#include <Eigen/Core>

/// Integrals over a plane of functions that are concentrated on a small, unknown part of it. A coarse grid
/// keeps the cells whose bound on the integrand is within e^-cut of the maximum; their bounding box is the
/// next region. Then the trapezoidal rule, which converges geometrically, is refined until the rule on every
/// other node agrees.
namespace bayesaim::channels {

struct ZoomOptions {
    int coarse_cells = 23;    ///< a side, of each grid that locates the integrand
    int nodes = 33;           ///< a side, of the first rule
    int most_nodes = 257;     ///< of the last; refinement doubles the number of steps
    double cut = 20;          ///< omitted cells are below e^-cut of the maximum
    double tolerance = 1e-4;  ///< of the error
};

struct ZoomBox {
    double low[2], high[2];
    double area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};

/// Numbers per chunk, for vector registers. The count is fixed, so that results do not depend on the
/// addresses of arrays.
inline constexpr int lanes = 8;
using Chunk = Eigen::Array<double, lanes, 1>;

constexpr int chunks(int count) { return (count + lanes - 1) / lanes; }

/// The integrand at eight nodes in the form factor * exp(exponent - |e|^2/(2 v)): e varies fast, the other
/// terms slowly. The moments are moments of (p, r) and e.
struct ZoomTerms {
    Chunk factor, exponent, e1, e2, p, r;
};

/// Integrals of 1, (p, r), e, |(p, r)|^2, (p, r).e, |e|^2, in units of exp(scale): by the rule, and by every
/// other node of both axes.
struct ZoomSums {
    std::array<double, 8> full{}, coarse{};
    double scale = -std::numeric_limits<double>::infinity();
    double error = 0;  ///< estimated, of the means in deviations

    static double covariance(const std::array<double, 8>& s, int a, int b, int product) {
        const auto at = [&](int i) { return s[static_cast<std::size_t>(i)] / s[0]; };
        return at(product) - at(a) * at(b) - at(a + 1) * at(b + 1);
    }

    /// Difference between the rule and the coarse rule, in deviations.
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

    /// The sum over two regions.
    ZoomSums operator+(const ZoomSums& other) const {
        if (!(other.full[0] > 0)) return *this;
        if (!(full[0] > 0)) return other;
        ZoomSums sum;
        sum.scale = std::max(scale, other.scale);
        const double weight = std::exp(scale - sum.scale), other_weight = std::exp(other.scale - sum.scale);
        for (std::size_t s = 0; s < 8; ++s) sum.full[s] = weight * full[s] + other_weight * other.full[s];
        sum.error = (weight * full[0] * error + other_weight * other.full[0] * other.error) / sum.full[0];
        return sum;
    }
};

/// An integrand: start() is a box that contains its mass, place() takes the nodes of a grid, terms(i, c)
/// evaluates chunk c of row i. Nodes of the second axis come in chunks; padding in the last has weight 0.
template <class T>
concept ZoomIntegrand = requires(T f, const std::vector<double>& x, std::size_t i) {
    { f.start() } -> std::same_as<ZoomBox>;
    { f.half_precision } -> std::convertible_to<double>;  // 1/(2 v)
    f.place(x, x, x);
    { f.terms(i, i) } -> std::same_as<ZoomTerms>;
    { f.log_density(0.0, 0.0) } -> std::same_as<double>;
};

template <ZoomIntegrand Integrand>
class ZoomedRule {
  public:
    ZoomedRule(Integrand& integrand, const ZoomOptions& options) : f_(integrand), options_(options) {}

    ZoomSums integrate() {
        ZoomBox box = f_.start();
        if (!(box.area() > 0)) return {};
        double best = -std::numeric_limits<double>::infinity();
        constexpr int most_levels = 10;
        for (int level = 0; level < most_levels && zoom(box, best); ++level) {
        }
        ZoomSums sums;
        for (int nodes = options_.nodes; nodes <= options_.most_nodes; nodes = 2 * nodes - 1) {
            sums = trapezoid(box, best, nodes);
            if (sums.error <= options_.tolerance) break;
        }
        return sums;
    }

  private:
    /// Places the nodes of a box. With `even_first` the second axis has the even nodes first, then the odd
    /// nodes in separate chunks.
    void place(const ZoomBox& box, int count, bool even_first) {
        const auto node = [&](int axis, int i) {
            return box.low[axis] + (box.high[axis] - box.low[axis]) * std::min(i, count - 1) / (count - 1);
        };
        first_.resize(static_cast<std::size_t>(count));
        for (int i = 0; i < count; ++i) first_[static_cast<std::size_t>(i)] = node(0, i);
        evens_ = static_cast<std::size_t>(chunks(count / 2 + 1));
        count_ = even_first ? evens_ + static_cast<std::size_t>(chunks(count / 2))
                            : static_cast<std::size_t>(chunks(count));
        const int even_places = static_cast<int>(evens_) * lanes;
        second_.resize(count_ * lanes);
        used_.resize(second_.size());
        for (int j = 0; j < static_cast<int>(second_.size()); ++j) {
            const int i = !even_first ? j : j < even_places ? 2 * j : 2 * (j - even_places) + 1;
            second_[static_cast<std::size_t>(j)] = node(1, i);
            used_[static_cast<std::size_t>(j)] = i < count ? 1 : 0;
        }
        f_.place(first_, second_, used_);
    }

    /// Improves on the best node by steps along the axes, which are halved when none helps.
    double climb(double first, double second, double first_step, double second_step) const {
        double best = f_.log_density(first, second);
        for (int halvings = 0, tries = 0; halvings < 6 && tries < 16; ++tries) {
            bool moved = false;
            const double moves[4][2] = {
                {-first_step, 0}, {first_step, 0}, {0, -second_step}, {0, second_step}};
            for (const auto& move : moves) {
                const double value = f_.log_density(first + move[0], second + move[1]);
                if (!(value > best)) continue;
                best = value;
                first += move[0];
                second += move[1];
                moved = true;
            }
            if (moved) continue;
            ++halvings;
            first_step /= 2;
            second_step /= 2;
        }
        return best;
    }

    /// Evaluates the coarse grid: log of the integrand without e, and e; finds the largest node.
    void evaluate_grid(double& highest, std::size_t& first, std::size_t& second) {
        const auto store = [](std::vector<double>& values, std::size_t place, const Chunk& chunk) {
            Eigen::Map<Chunk> to(&values[place]);
            to = chunk;
        };
        for (auto* array : {&base_, &e1_, &e2_}) array->resize(first_.size() * second_.size() + lanes);
        highest = -std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < first_.size(); ++i) {
            for (std::size_t c = 0; c < count_; ++c) {
                const ZoomTerms at = f_.terms(i, c);
                const std::size_t place = i * second_.size() + c * lanes;
                const Chunk base = at.factor.max(1e-300).log() + at.exponent;
                store(base_, place, base);
                store(e1_, place, at.e1);
                store(e2_, place, at.e2);
                const Chunk value = base - f_.half_precision * (at.e1.square() + at.e2.square());
                int lane = 0;
                const double largest = value.maxCoeff(&lane);
                if (!(largest > highest)) continue;
                highest = largest;
                first = i;
                second = c * lanes + static_cast<std::size_t>(lane);
            }
        }
    }

    /// Shrinks the box to the cells that may matter. Returns whether it became much smaller.
    bool zoom(ZoomBox& box, double& best) {
        constexpr double none = -std::numeric_limits<double>::infinity();
        const int cells = options_.coarse_cells;
        place(box, cells + 1, false);
        std::size_t first = 0, second = 0;
        double highest = 0;
        evaluate_grid(highest, first, second);
        const double width[2] = {(box.high[0] - box.low[0]) / cells, (box.high[1] - box.low[1]) / cells};
        best = std::max({best, highest, climb(first_[first], second_[second], width[0] / 2, width[1] / 2)});

        // In a cell e lies within a disc around the mean of its corners: the bound is the value at the point
        // of the disc nearest to 0. Discs are enlarged by a quarter for the curvature.
        const std::size_t stride = second_.size();
        std::vector<Chunk> along(count_, Chunk::Constant(none));
        int low[2] = {cells, cells}, high[2] = {-1, -1};
        for (int i = 0; i < cells; ++i) {
            double largest = none;
            for (std::size_t c = 0; c < count_; ++c) {
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
                Chunk bound = base - f_.half_precision * nearest.square();
                for (int lane = std::max(0, cells - static_cast<int>(c) * lanes); lane < lanes; ++lane) {
                    bound[lane] = none;  // beyond the last cell
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

    ZoomSums trapezoid(const ZoomBox& box, double best, int nodes) {
        place(box, nodes, true);
        std::array<Chunk, 8> coarse, rest;
        coarse.fill(Chunk::Zero());
        rest.fill(Chunk::Zero());
        const auto add = [&](std::size_t i, std::size_t begin, std::size_t end, std::array<Chunk, 8>& to) {
            for (std::size_t c = begin; c < end; ++c) {
                const ZoomTerms at = f_.terms(i, c);
                const Chunk squares = at.e1.square() + at.e2.square();
                const Chunk exponent = at.exponent - f_.half_precision * squares - best;
                const Chunk w = exponent.max(-700.0).min(600.0).exp() * at.factor;
                to[0] += w;
                to[1] += w * at.p;
                to[2] += w * at.r;
                to[3] += w * at.e1;
                to[4] += w * at.e2;
                to[5] += w * (at.p.square() + at.r.square());
                to[6] += w * (at.p * at.e1 + at.r * at.e2);
                to[7] += w * squares;
            }
        };
        for (std::size_t i = 0; i < first_.size(); ++i) {
            add(i, 0, evens_, i % 2 == 0 ? coarse : rest);
            add(i, evens_, count_, rest);
        }
        ZoomSums sums;
        sums.scale = best;
        const double cell = box.area() / ((nodes - 1.0) * (nodes - 1.0));
        for (std::size_t s = 0; s < 8; ++s) {
            sums.full[s] = (coarse[s].sum() + rest[s].sum()) * cell;
            sums.coarse[s] = 4 * coarse[s].sum() * cell;
        }
        // Geometric convergence: halving the step squares the error, at least.
        const double difference = sums.disagreement();
        sums.error = difference < 1 ? difference * difference : difference;
        return sums;
    }

    Integrand& f_;
    ZoomOptions options_;
    std::size_t evens_ = 0, count_ = 0;  // chunks of even nodes, and of all
    std::vector<double> first_, second_, used_, base_, e1_, e2_;
};

}  // namespace bayesaim::channels
