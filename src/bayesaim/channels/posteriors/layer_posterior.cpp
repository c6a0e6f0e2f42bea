// SPDX-License-Identifier: MIT
#include "bayesaim/channels/posteriors/layer_posterior.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/numerics/quasi_monte_carlo.hpp"

namespace bayesaim::channels {
namespace {

constexpr double widening = 1.3;  // of the Gaussian at the mode
constexpr int prior_every = 5;    // every fifth point comes from the prior
constexpr double largest_residual = 1e12;

}  // namespace

struct LayerPosterior::Problem {
    const TokenMatrix& logits;
    const Eigen::VectorXd& omega;
    linalg::Overlap root;  // of V_<: h - omega = root z
    Eigen::VectorXd k;
    double deviation;  // of the last layer, given the others
};

/// Minimum of |z|^2 + |last|^2.
struct LayerPosterior::Mode {
    Eigen::VectorXd z;
    Eigen::MatrixXd precision_root;  // lower triangle of 1 + J'J, the Gauss-Newton precision
};

struct LayerPosterior::Sample {
    Eigen::MatrixXd shifts;  // h - omega of every layer, one point per row
    Eigen::VectorXd log_weight;
};

/// h - omega of all layers at z; y determines the last layer.
struct LayerPosterior::Residual {
    Eigen::VectorXd shift;       // h - omega of the first layers
    Eigen::VectorXd last;        // (E htilde(H_0) - mu) / deviation
    double log_determinant = 0;  // of B without the factor (c+1)^(L-1) of the direction 1
};

LayerPosterior::LayerPosterior(int layers, int tokens, double beta, double residual, int points,
                               std::uint64_t seed)
    : layers_(layers),
      tokens_(tokens),
      beta_(beta),
      residual_(residual),
      directions_(informed_directions(tokens)) {
    check_between("layers of the posterior", layers, 2, linalg::max_layers);
    check_at_least("points", points, 16);
    points_ = numerics::normal_points(dimension(), points, seed);
}

LayerPosterior::Residual LayerPosterior::residual(const Problem& problem, const Eigen::VectorXd& z) const {
    const Eigen::Index size = directions_.rows(), pairs = directions_.cols();
    Residual result;
    result.shift.resize(z.size());
    Eigen::VectorXd mean = problem.omega.tail(size);
    TokenMatrix mixing = TokenMatrix::Identity(tokens_, tokens_);
    Eigen::VectorXd htilde(pairs), index(size);
    for (Eigen::Index l = 0; l < layers_ - 1; ++l) {
        auto shift = result.shift.segment(l * size, size);
        shift.setZero();
        for (Eigen::Index j = 0; j <= l; ++j) shift += problem.root(l, j) * z.segment(j * size, size);
        mean += problem.k[l] * shift;
        index = problem.omega.segment(l * size, size) + shift;
        htilde = directions_.transpose().lazyProduct(index);
        mixing = next_mixing(mixing, index_matrix(htilde.data(), tokens_), beta_, residual_);
    }
    TokenMatrix last = problem.logits;
    const double determinant = linalg::divide_both_sides(mixing, last);
    result.log_determinant =
        std::log(std::max(std::abs(determinant), 1e-100)) - (layers_ - 1) * std::log(residual_ + 1);
    scaled_indices(last, htilde.data());
    result.last = (directions_.lazyProduct(htilde) - mean) / problem.deviation;
    if (!result.last.allFinite()) result.last.setConstant(largest_residual);
    result.last = result.last.cwiseMin(largest_residual).cwiseMax(-largest_residual);
    return result;
}

/// The Levenberg-Marquardt method; the Jacobian J of `last` is taken by differences.
LayerPosterior::Mode LayerPosterior::mode(const Problem& problem) const {
    Eigen::VectorXd z = Eigen::VectorXd::Zero(dimension());
    Residual at = residual(problem, z);
    Eigen::MatrixXd jacobian(directions_.rows(), dimension());
    const auto differentiate = [&] {
        constexpr double step = 1e-5;
        for (Eigen::Index i = 0; i < z.size(); ++i) {
            Eigen::VectorXd moved = z;
            moved[i] += step;
            jacobian.col(i) = (residual(problem, moved).last - at.last) / step;
        }
    };
    const auto precision = [&] {
        Eigen::MatrixXd result = linalg::transposed_product(jacobian, jacobian);
        result.diagonal().array() += 1;
        return result;
    };
    double value = at.last.squaredNorm(), damping = 1e-2;
    differentiate();
    for (int iteration = 0; iteration < 40 && damping <= 1e8; ++iteration) {
        Eigen::MatrixXd normal = precision();
        normal.diagonal() *= 1 + damping;
        const Eigen::VectorXd gradient = z + jacobian.transpose().lazyProduct(at.last);
        const Eigen::VectorXd next = z - linalg::solve_positive(normal, gradient);
        Residual there = residual(problem, next);
        const double next_value = next.squaredNorm() + there.last.squaredNorm();
        if (!(next_value < value)) {
            damping *= 8;
            continue;
        }
        const bool settled = value - next_value < 1e-4;
        z = next;
        at = std::move(there);
        value = next_value;
        damping = std::max(damping / 5, 1e-8);
        differentiate();
        if (settled) break;
    }
    const auto root = linalg::cholesky(precision());
    if (!root) return {z, Eigen::MatrixXd::Identity(dimension(), dimension())};
    return {z, *root};
}

LayerPosterior::Sample LayerPosterior::weighted(const Problem& problem, const Mode& mode) const {
    Eigen::MatrixXd points = points_;
    linalg::solve_lower(mode.precision_root, linalg::Transpose::yes, points);
    points = (widening * points).colwise() + mode.z;
    for (Eigen::Index n = 0; n < points.cols(); n += prior_every) points.col(n) = points_.col(n);
    const Eigen::Index count = points.cols(), dim = points.rows(), size = directions_.rows();
    const double prior_share =
        static_cast<double>((count + prior_every - 1) / prior_every) / static_cast<double>(count);
    // Both densities and the target omit the factor (2 pi)^(-dim/2).
    const double log_density_at_mode =
        mode.precision_root.diagonal().array().log().sum() - static_cast<double>(dim) * std::log(widening);
    const Eigen::MatrixXd deviations =
        linalg::transposed_product(mode.precision_root, points.colwise() - mode.z);
    Sample result{Eigen::MatrixXd(count, layers_ * size), Eigen::VectorXd(count)};
    for (Eigen::Index n = 0; n < count; ++n) {
        const Residual point = residual(problem, points.col(n));
        const double prior = -0.5 * points.col(n).squaredNorm();
        const double gaussian =
            log_density_at_mode - 0.5 * deviations.col(n).squaredNorm() / (widening * widening);
        const double larger = std::max(prior, gaussian);
        const double mixture = larger + std::log(prior_share * std::exp(prior - larger) +
                                                 (1 - prior_share) * std::exp(gaussian - larger));
        result.log_weight[n] =
            prior - 0.5 * point.last.squaredNorm() - (tokens_ + 1) * point.log_determinant - mixture;
        result.shifts.row(n).head(dim) = point.shift.transpose();
        auto last = result.shifts.row(n).tail(size);
        last = problem.deviation * point.last.transpose();
        for (Eigen::Index l = 0; l < layers_ - 1; ++l)
            last += problem.k[l] * point.shift.segment(l * size, size).transpose();
    }
    return result;
}

LayerMoments LayerPosterior::moments(const Problem& problem, Sample sample) const {
    const Eigen::Index size = directions_.rows();
    const double largest = sample.log_weight.maxCoeff();
    const Eigen::VectorXd weight = (sample.log_weight.array() - largest).exp();
    const double total = weight.sum();
    LayerMoments result;
    result.mean = problem.omega;
    for (Eigen::Index i = 0; i < sample.shifts.cols(); ++i) {
        const double mean = sample.shifts.col(i).dot(weight) / total;
        sample.shifts.col(i).array() -= mean;
        result.mean[i] += mean;
    }
    result.covariance.resize(layers_, layers_);
    for (int l = 0; l < layers_; ++l) {
        for (int m = 0; m <= l; ++m) {
            double sum = 0;
            for (Eigen::Index i = 0; i < size; ++i) {
                sum += (sample.shifts.col(l * size + i).array() * sample.shifts.col(m * size + i).array() *
                        weight.array())
                           .sum();
            }
            result.covariance(l, m) = result.covariance(m, l) = sum / total;
        }
    }
    const double conditional = problem.deviation * problem.deviation;
    result.log_z = largest + std::log(total / static_cast<double>(weight.size())) -
                   0.5 * static_cast<double>(size) * std::log(2 * std::numbers::pi * conditional);
    result.effective_samples = total * total / weight.squaredNorm();
    result.error = 1 / std::sqrt(result.effective_samples);
    return result;
}

LayerMoments LayerPosterior::operator()(const TokenMatrix& logits, const Eigen::VectorXd& omega,
                                        const linalg::Overlap& variance) const {
    const Eigen::Index hidden = layers_ - 1;
    check_size("coordinates of omega", omega.size(), layers_ * directions_.rows());
    check_size("layers of the variance", variance.rows(), layers_);
    const linalg::Overlap first = variance.topLeftCorner(hidden, hidden);
    const Eigen::VectorXd coupling = variance.topRightCorner(hidden, 1);
    const Eigen::VectorXd k = linalg::solve_positive(first, coupling);
    const double conditional = variance(hidden, hidden) - coupling.dot(k);
    const Problem problem{logits, omega, linalg::lower_root(first), k, std::sqrt(conditional)};
    return moments(problem, weighted(problem, mode(problem)));
}

}  // namespace bayesaim::channels
