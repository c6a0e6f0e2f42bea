// SPDX-License-Identifier: MIT
#include "bayesaim/channels/posteriors/layer_posterior.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <Eigen/Dense>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/numerics/quasi_monte_carlo.hpp"

namespace bayesaim::channels {
namespace {

constexpr double widening = 1.3;  // of the Gaussian at the mode
constexpr int prior_every = 5;    // every fifth point is one of the prior
constexpr double largest_residual = 1e12;

}  // namespace

LayerMoments layer_moments(const TwoLayerMoments& moments) {
    LayerMoments result;
    result.mean.resize(4);
    result.mean << moments.mean[0], moments.mean[1];
    result.covariance.resize(2, 2);
    result.covariance << moments.covariance[0], moments.covariance[1], moments.covariance[1],
        moments.covariance[2];
    result.log_z = moments.log_z;
    result.error = moments.error;
    return result;
}

struct LayerPosterior::Problem {
    const TokenMatrix& logits;
    const Eigen::VectorXd& omega;
    linalg::Overlap root;  // of V_<: h - omega = root z
    Eigen::VectorXd k;
    double deviation;  // of the last layer, given the others
};

/// h - omega of all layers at z, the last as it follows from y.
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
    points_.resize(points, dimension());
    numerics::ShiftedSobol(dimension(), 2, static_cast<std::size_t>(points), seed).fill_normal(0, 0, points_);
}

LayerPosterior::Residual LayerPosterior::residual(const Problem& problem, const Eigen::VectorXd& z) const {
    const Eigen::Index size = directions_.rows(), pairs = directions_.cols();
    Residual result;
    result.shift.resize(z.size());
    Eigen::VectorXd mean = problem.omega.tail(size);
    TokenMatrix mixing = TokenMatrix::Identity(tokens_, tokens_);
    Eigen::VectorXd htilde(pairs);
    for (Eigen::Index l = 0; l < layers_ - 1; ++l) {
        auto shift = result.shift.segment(l * size, size);
        shift.setZero();
        for (Eigen::Index j = 0; j <= l; ++j) shift += problem.root(l, j) * z.segment(j * size, size);
        mean += problem.k[l] * shift;
        htilde.noalias() = directions_.transpose() * (problem.omega.segment(l * size, size) + shift);
        mixing = next_mixing(mixing, index_matrix(htilde.data(), tokens_), beta_, residual_);
    }
    const Eigen::PartialPivLU<TokenMatrix> factor(mixing);
    result.log_determinant =
        std::log(std::max(std::abs(factor.determinant()), 1e-100)) - (layers_ - 1) * std::log(residual_ + 1);
    const TokenMatrix half = factor.solve(problem.logits);
    scaled_indices(factor.solve(TokenMatrix(half.transpose())), htilde.data());
    result.last = (directions_ * htilde - mean) / problem.deviation;
    if (!result.last.allFinite()) result.last.setConstant(largest_residual);
    result.last = result.last.cwiseMin(largest_residual).cwiseMax(-largest_residual);
    return result;
}

LayerMoments LayerPosterior::operator()(const TokenMatrix& logits, const Eigen::VectorXd& omega,
                                        const linalg::Overlap& variance) const {
    const Eigen::Index size = directions_.rows(), hidden = layers_ - 1, dim = hidden * size;
    check_size("coordinates of omega", omega.size(), layers_ * size);
    check_size("layers of the variance", variance.rows(), layers_);
    const linalg::Overlap first = variance.topLeftCorner(hidden, hidden);
    const Eigen::LLT<linalg::Overlap> factor(first);
    const Eigen::VectorXd k = factor.solve(variance.topRightCorner(hidden, 1));
    const double conditional = variance(hidden, hidden) - variance.topRightCorner(hidden, 1).col(0).dot(k);
    const Problem problem{logits, omega, factor.matrixL(), k, std::sqrt(conditional)};

    // The mode of |z|^2 + |last|^2, Levenberg and Marquardt's way, the Jacobian J of `last` by differences.
    Eigen::VectorXd mode = Eigen::VectorXd::Zero(dim);
    Residual at = residual(problem, mode);
    Eigen::MatrixXd jacobian(size, dim);
    const auto differentiate = [&] {
        constexpr double step = 1e-5;
        for (Eigen::Index i = 0; i < dim; ++i) {
            Eigen::VectorXd moved = mode;
            moved[i] += step;
            jacobian.col(i) = (residual(problem, moved).last - at.last) / step;
        }
    };
    double value = at.last.squaredNorm(), damping = 1e-2;
    differentiate();
    for (int iteration = 0; iteration < 40; ++iteration) {
        Eigen::MatrixXd normal = jacobian.transpose() * jacobian;
        normal.diagonal().array() += 1;
        const Eigen::VectorXd gradient = mode + jacobian.transpose() * at.last;
        normal.diagonal() *= 1 + damping;
        const Eigen::VectorXd change = -normal.llt().solve(gradient);
        const Eigen::VectorXd next = mode + change;
        const Residual there = residual(problem, next);
        const double next_value = next.squaredNorm() + there.last.squaredNorm();
        if (next_value < value) {
            const bool settled = value - next_value < 1e-4;
            mode = next;
            at = there;
            value = next_value;
            damping = std::max(damping / 5, 1e-8);
            differentiate();
            if (settled) break;
        } else {
            damping *= 8;
            if (damping > 1e8) break;
        }
    }
    Eigen::MatrixXd precision = jacobian.transpose() * jacobian;
    precision.diagonal().array() += 1;
    const Eigen::LLT<Eigen::MatrixXd> laplace(precision);
    const Eigen::MatrixXd upper = laplace.matrixU();
    const double log_density_at_mode =
        upper.diagonal().array().log().sum() - static_cast<double>(dim) * std::log(widening);

    const Eigen::Index count = points_.rows();
    const double prior_share =
        static_cast<double>((count + prior_every - 1) / prior_every) / static_cast<double>(count);
    Eigen::MatrixXd values(count, layers_ * size);  // h - omega of every layer
    Eigen::VectorXd log_weight(count);
    for (Eigen::Index n = 0; n < count; ++n) {
        Eigen::VectorXd z = points_.row(n).transpose();
        if (n % prior_every != 0) z = mode + widening * upper.triangularView<Eigen::Upper>().solve(z);
        const Residual point = residual(problem, z);
        // Both densities and the target without the factor (2 pi)^(-dim/2).
        const double prior = -0.5 * z.squaredNorm();
        const double gaussian =
            log_density_at_mode - 0.5 * (upper * (z - mode)).squaredNorm() / (widening * widening);
        const double larger = std::max(prior, gaussian);
        const double mixture = larger + std::log(prior_share * std::exp(prior - larger) +
                                                 (1 - prior_share) * std::exp(gaussian - larger));
        log_weight[n] =
            prior - 0.5 * point.last.squaredNorm() - (tokens_ + 1) * point.log_determinant - mixture;
        values.row(n).head(dim) = point.shift.transpose();
        auto last = values.row(n).tail(size);
        last = problem.deviation * point.last.transpose();
        for (Eigen::Index l = 0; l < hidden; ++l)
            last += k[l] * point.shift.segment(l * size, size).transpose();
    }
    const double largest = log_weight.maxCoeff();
    const Eigen::VectorXd weight = (log_weight.array() - largest).exp();
    const double total = weight.sum();
    LayerMoments result;
    const Eigen::RowVectorXd mean = weight.transpose() * values / total;
    values.rowwise() -= mean;
    result.mean = omega + mean.transpose();
    result.covariance.resize(layers_, layers_);
    for (int l = 0; l < layers_; ++l) {
        for (int m = 0; m <= l; ++m) {
            const double sum =
                (values.middleCols(l * size, size).cwiseProduct(values.middleCols(m * size, size)))
                    .rowwise()
                    .sum()
                    .dot(weight) /
                total;
            result.covariance(l, m) = result.covariance(m, l) = sum;
        }
    }
    result.log_z = largest + std::log(total / static_cast<double>(count)) -
                   0.5 * static_cast<double>(size) * std::log(2 * std::numbers::pi * conditional);
    result.effective_samples = total * total / weight.squaredNorm();
    result.error = 1 / std::sqrt(result.effective_samples);
    return result;
}

}  // namespace bayesaim::channels
