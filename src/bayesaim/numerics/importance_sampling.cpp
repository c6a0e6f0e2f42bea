// SPDX-License-Identifier: MIT
#include "bayesaim/numerics/importance_sampling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/linalg/decompositions.hpp"
#include "bayesaim/numerics/quasi_monte_carlo.hpp"

namespace bayesaim::numerics {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int least_pilot = 512;  // of the reference and of each round: at least so many points
constexpr int most_rounds = 12;
constexpr double enough = 0.4;  // effective fraction of the points that ends the rounds
constexpr int most_maxima = 3;
constexpr double reference_share = 0.15;
constexpr double wide_share = 0.25, wider = 1.8;  // copies of the Gaussians for the tails
constexpr double nothing = -1e300;                // stands for log 0

struct Gaussian {
    Gaussian(VectorXd at, const MatrixXd& covariance, double part) : mean(std::move(at)), share(part) {
        if (auto lower = linalg::cholesky(covariance)) root = std::move(*lower);
        if (valid()) log_determinant = root.diagonal().array().log().sum();
    }

    void widen(double factor) {
        root *= factor;
        log_determinant += static_cast<double>(mean.size()) * std::log(factor);
    }
    /// Whether the covariance was positive definite and all numbers are finite.
    bool valid() const { return root.size() > 0 && root.allFinite() && mean.allFinite(); }
    MatrixXd covariance() const { return linalg::gram(1, root); }
    /// Squared distance in deviations.
    double distance(const VectorXd& x) const {
        VectorXd z = x - mean;
        for (Index i = 0; i < z.size(); ++i) {
            for (Index j = 0; j < i; ++j) z[i] -= root(i, j) * z[j];
            z[i] /= root(i, i);
        }
        return z.squaredNorm();
    }
    Eigen::ArrayXd log_density(const MatrixXd& points) const {
        MatrixXd z = points.colwise() - mean;
        linalg::solve_lower(root, linalg::Transpose::no, z);
        const double at_mean =
            -log_determinant - 0.5 * static_cast<double>(mean.size()) * std::log(2 * std::numbers::pi);
        return at_mean - 0.5 * z.colwise().squaredNorm().transpose().array();
    }

    VectorXd mean;
    MatrixXd root;  // lower triangle, covariance = root root'
    double log_determinant = 0, share = 0;
};

using Mixture = std::vector<Gaussian>;

/// Scales the shares of the Gaussians to the sum 1 - reference_share.
void normalize(Mixture& mixture) {
    double sum = 0;
    for (const Gaussian& part : mixture) sum += part.share;
    for (Gaussian& part : mixture) part.share *= (1 - reference_share) / sum;
}

/// log f and its derivatives at a point, in coordinates of the spread of the reference.
class Surface {
  public:
    Surface(const ImportanceTarget& target, const VectorXd& spread) : target_(target), spread_(spread) {}

    double value(const VectorXd& x) const {
        const double log_f = target_.at(x.cwiseProduct(spread_)).target;
        return std::isfinite(log_f) ? log_f : nothing;
    }

    /// Central differences.
    void differentiate(const VectorXd& x, double at_x, VectorXd& gradient, MatrixXd& curvature) const {
        constexpr double step = 1e-3;
        const Index dim = x.size();
        VectorXd up(dim), down(dim), moved = x;
        for (Index i = 0; i < dim; ++i) {
            moved[i] = x[i] + step;
            up[i] = value(moved) - at_x;
            moved[i] = x[i] - step;
            down[i] = value(moved) - at_x;
            moved[i] = x[i];
        }
        gradient = (up - down) / (2 * step);
        curvature = MatrixXd((-(up + down) / (step * step)).asDiagonal());
        for (Index i = 0; i < dim; ++i) {
            for (Index j = 0; j < i; ++j) {
                moved = x;
                moved[i] += step;
                moved[j] += step;
                double mixed = value(moved) - at_x;
                moved[i] -= 2 * step;
                moved[j] -= 2 * step;
                mixed += value(moved) - at_x;
                curvature(i, j) = curvature(j, i) =
                    -(mixed - up[i] - up[j] - down[i] - down[j]) / (2 * step * step);
            }
        }
    }

  private:
    const ImportanceTarget& target_;
    VectorXd spread_;
};

/// A Gaussian at the maximum of f that damped Newton steps reach. Its share is the log of its mass under f.
Gaussian climb(const Surface& surface, VectorXd x, const VectorXd& spread) {
    constexpr double longest = 3, settled = 1e-2, flattest = 0.02;
    double value = surface.value(x), damping = 1e-3;
    VectorXd gradient;
    MatrixXd curvature;
    surface.differentiate(x, value, gradient, curvature);
    linalg::SmallEigen eigen(x.size());
    eigen.compute(curvature);
    for (int iteration = 0; iteration < 40 && damping < 1e6; ++iteration) {
        const VectorXd bend = eigen.values().cwiseAbs().cwiseMax(1e-3) * (1 + damping);
        const VectorXd slope = eigen.vectors().transpose().lazyProduct(gradient);
        const VectorXd along = slope.array() / (bend.array() + damping);
        VectorXd step = eigen.vectors().lazyProduct(along);
        step *= std::min(1.0, longest / step.cwiseAbs().maxCoeff());
        const double next = surface.value(x + step);
        if (!(next > value)) {
            damping = std::max(8 * damping, 1e-2);
            continue;
        }
        x += step;
        const double gain = next - value;
        value = next;
        damping = std::max(damping / 5, 1e-8);
        surface.differentiate(x, value, gradient, curvature);
        eigen.compute(curvature);
        if (gain < settled) break;
    }
    const VectorXd deviations = eigen.values().cwiseMax(flattest).cwiseInverse().cwiseSqrt();
    const MatrixXd axes = spread.asDiagonal() * eigen.vectors() * deviations.asDiagonal();
    Gaussian result(x.cwiseProduct(spread), linalg::gram(1.5, axes), 0);
    result.share = value + result.log_determinant;
    return result;
}

/// Gaussians at the maxima that the best points lead to.
Mixture at_maxima(const ImportanceTarget& target, const MatrixXd& points, const VectorXd& log_f) {
    const auto dim = static_cast<double>(points.rows());
    const VectorXd centre = points.rowwise().mean();
    const VectorXd spread =
        ((points.colwise() - centre).rowwise().squaredNorm().array() / static_cast<double>(points.cols()))
            .sqrt();
    const Surface surface(target, spread);
    Mixture mixture;
    const auto known = [&](const VectorXd& x, double within) {
        return std::any_of(mixture.begin(), mixture.end(),
                           [&](const Gaussian& part) { return part.distance(x) < within; });
    };
    const auto try_from = [&](const VectorXd& start) {
        Gaussian found = climb(surface, start.cwiseQuotient(spread), spread);
        if (found.valid() && !known(found.mean, 0.5)) mixture.push_back(std::move(found));
    };
    const MatrixXd starts = target.starts();
    for (Index n = 0; n < starts.cols(); ++n) {
        if (!known(starts.col(n), 0.5)) try_from(starts.col(n));
    }
    std::vector<Index> order(static_cast<std::size_t>(points.cols()));
    std::iota(order.begin(), order.end(), Index(0));
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return log_f[a] > log_f[b]; });
    int tried = 0;
    for (const Index n : order) {
        if (log_f[n] <= nothing || tried == most_maxima) break;
        if (known(points.col(n), dim + 6)) continue;
        ++tried;
        try_from(points.col(n));
    }
    double largest = nothing;
    for (const Gaussian& part : mixture) largest = std::max(largest, part.share);
    for (Gaussian& part : mixture) part.share = std::max(std::exp(part.share - largest), 0.02);
    normalize(mixture);
    return mixture;
}

/// Points of the mixture, their weights, and the part of each density in the density of the mixture.
struct Draw {
    MatrixXd points;
    VectorXd log_target, log_weight;
    Eigen::ArrayXXd log_parts;  // one column for each Gaussian, the last for the reference
};

Draw draw(const ImportanceTarget& target, const Mixture& mixture, const MatrixXd& normals) {
    const Index count = normals.cols(), parts = static_cast<Index>(mixture.size());
    const double reference = mixture.empty() ? 1 : reference_share;
    Draw result;
    result.points.resize(normals.rows(), count);
    result.log_target.resize(count);
    result.log_parts.resize(count, parts + 1);
    for (Index n = 0; n < count; ++n) {
        // Multiples of the golden ratio give each density its share of any run of points.
        const double turn = static_cast<double>(n) * (std::numbers::phi - 1);
        double left = turn - std::floor(turn) - reference;
        if (left < 0) {
            result.points.col(n) = target.draw_reference(normals.col(n));
        } else {
            std::size_t k = 0;
            while (k + 1 < mixture.size() && left >= mixture[k].share) left -= mixture[k++].share;
            result.points.col(n) = mixture[k].mean + mixture[k].root.lazyProduct(normals.col(n));
        }
        const auto at = target.at(result.points.col(n));
        result.log_target[n] = std::isfinite(at.target) ? at.target : nothing;
        result.log_parts(n, parts) =
            std::isfinite(at.reference) ? at.reference + std::log(reference) : nothing;
    }
    for (Index k = 0; k < parts; ++k) {
        const Gaussian& part = mixture[static_cast<std::size_t>(k)];
        result.log_parts.col(k) = part.log_density(result.points) + std::log(part.share);
    }
    const Eigen::ArrayXd largest = result.log_parts.rowwise().maxCoeff();
    const Eigen::ArrayXd log_sum =
        largest + (result.log_parts.colwise() - largest).exp().rowwise().sum().log();
    result.log_weight =
        (result.log_target.array() > nothing).select(result.log_target.array() - log_sum, nothing);
    result.log_parts.colwise() -= log_sum;
    return result;
}

VectorXd relative_weights(const VectorXd& log_weight, double power = 1) {
    const VectorXd weight = (power * (log_weight.array() - log_weight.maxCoeff())).exp();
    return weight / weight.sum();
}

/// Mean and covariance of points under weights r, as a Gaussian.
Gaussian fitted(const MatrixXd& points, const VectorXd& r, double widening, double keep,
                const MatrixXd& covariance) {
    const double mass = r.sum();
    VectorXd mean = linalg::product(points, r) / mass;
    const MatrixXd own = linalg::gram(1 / mass, (points.colwise() - mean) * r.cwiseSqrt().asDiagonal());
    return Gaussian(std::move(mean), (1 - keep) * widening * own + keep * covariance, mass);
}

/// One step of expectation-maximisation. Weights that single points dominate are flattened first.
Mixture adapted(const Mixture& mixture, const Draw& sample) {
    const auto dim = static_cast<double>(sample.points.rows());
    VectorXd weight = relative_weights(sample.log_weight);
    for (double power = 0.7; 1 / weight.squaredNorm() < 6 * dim && power > 0.05; power *= 0.7) {
        weight = relative_weights(sample.log_weight, power);
    }
    const double effective = 1 / weight.squaredNorm();
    const auto part_of = [&](Index k) -> VectorXd { return weight.array() * sample.log_parts.col(k).exp(); };
    Mixture result;
    const auto add = [&](Gaussian&& part) {
        if (part.valid()) result.push_back(std::move(part));
    };
    for (std::size_t k = 0; k < mixture.size(); ++k) {
        const VectorXd r = part_of(static_cast<Index>(k));
        const double own = r.sum() * effective;  // effective points of this Gaussian
        if (own < 1.5 * dim) continue;
        add(fitted(sample.points, r, 1.1, 2 * dim / (own + 2 * dim), mixture[k].covariance()));
    }
    // Points that only the reference finds get a new Gaussian.
    const VectorXd r = part_of(static_cast<Index>(mixture.size()));
    if (r.sum() > 0.1 && r.sum() * effective > 2 * dim) {
        const MatrixXd none = MatrixXd::Zero(sample.points.rows(), sample.points.rows());
        add(fitted(sample.points, r, 1.3, 0, none));
    }
    // If one point has a large weight, the mixture is too thin there: add a Gaussian fitted to the points
    // near it (incremental mixtures: Raftery and Bao 2010).
    Index heaviest = 0;
    if (sample.log_weight.maxCoeff(&heaviest) > 0.5 * nothing &&
        relative_weights(sample.log_weight)[heaviest] > 0.02) {
        const VectorXd at = sample.points.col(heaviest);
        const MatrixXd centred = sample.points.colwise() - at;
        const VectorXd spread =
            (centred.rowwise().squaredNorm() / static_cast<double>(centred.cols())).cwiseSqrt();
        const VectorXd distance =
            (spread.cwiseInverse().asDiagonal() * centred).colwise().squaredNorm().transpose();
        VectorXd ordered = distance;
        const Index next = std::min(static_cast<Index>(6 * dim), ordered.size() - 1);
        std::nth_element(ordered.data(), ordered.data() + next, ordered.data() + ordered.size());
        const VectorXd near = (distance.array() <= ordered[next]).cast<double>();
        add(Gaussian(at, linalg::gram(1 / near.sum(), centred * near.asDiagonal()), 0.2));
    }
    if (result.empty()) return mixture;
    normalize(result);
    const std::size_t parts = result.size();
    for (std::size_t k = 0; k < parts; ++k) {
        Gaussian wide = result[k];
        wide.widen(wider);
        wide.share *= wide_share;
        result[k].share *= 1 - wide_share;
        result.push_back(std::move(wide));
    }
    return result;
}

}  // namespace

AdaptiveImportance::AdaptiveImportance(int dimension, int points, std::uint64_t seed)
    : pilot_(normal_points(dimension, std::max(least_pilot, points / 2), seed + 1)) {
    check_at_least("points", points, 16);
    points_ = normal_points(dimension, points, seed);
}

WeightedPoints AdaptiveImportance::operator()(const ImportanceTarget& target) const {
    check_size("dimensions of the target", target.dimension(), static_cast<int>(pilot_.rows()));
    Mixture mixture;
    Draw sample = draw(target, mixture, pilot_);
    mixture = at_maxima(target, sample.points, sample.log_target);
    for (int round = 0; round < most_rounds; ++round) {
        sample = draw(target, mixture, pilot_);
        mixture = adapted(mixture, sample);
        if (1 / relative_weights(sample.log_weight).squaredNorm() >
            enough * static_cast<double>(pilot_.cols()))
            break;
    }
    sample = draw(target, mixture, points_);
    WeightedPoints result;
    const double largest = sample.log_weight.maxCoeff();
    result.points = std::move(sample.points);
    if (largest < 0.5 * nothing) {
        result.weights = VectorXd::Zero(points_.cols());
        result.log_integral = -std::numeric_limits<double>::infinity();
        return result;
    }
    // exp alone does not suffice: vectorised it need not be 0 at -1e300.
    result.weights =
        (sample.log_weight.array() > nothing).select((sample.log_weight.array() - largest).exp(), 0.0);
    const double sum = result.weights.sum();
    result.weights /= sum;
    result.log_integral = largest + std::log(sum / static_cast<double>(points_.cols()));
    result.effective = 1 / result.weights.squaredNorm();
    return result;
}

}  // namespace bayesaim::numerics
