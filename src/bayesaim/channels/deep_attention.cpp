// SPDX-License-Identifier: MIT
#include "bayesaim/channels/deep_attention.hpp"

#include <algorithm>
#include <cmath>

#include <Eigen/Dense>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/numerics/quasi_monte_carlo.hpp"

namespace bayesaim::channels {
namespace {

const DeepAttentionOptions& checked(const DeepAttentionOptions& options) {
    check_between("deep-softmax channel: layers", options.layers, 1, linalg::max_layers);
    check_between("deep-softmax channel: tokens", options.tokens, 2, max_deep_tokens);
    check_non_negative("deep-softmax channel: residual", options.residual);
    check_between("deep-softmax channel: beta", options.beta, 1e-6, 1e6);
    return options;
}

/// R with R R' = the matrix, also for singular ones.
Overlap square_root(const Overlap& matrix) {
    const Eigen::SelfAdjointEigenSolver<Overlap> solver(matrix);
    return solver.eigenvectors() * solver.eigenvalues().cwiseMax(0).cwiseSqrt().asDiagonal();
}

/// Adds R z to each row of `to`: z has blocks of `size` coordinates, one block per layer.
void add_correlated(const Overlap& root, const Eigen::ArrayXXd& z, Eigen::Index first, Eigen::Index size,
                    Rows& to) {
    for (Eigen::Index l = 0; l < root.rows(); ++l) {
        for (Eigen::Index j = 0; j < root.cols(); ++j) {
            to.middleCols(l * size, size) += root(l, j) * z.middleCols(first + j * size, size).matrix();
        }
    }
}

/// Coordinates that count, to the pairs.
Rows to_pairs(const Rows& coordinates, const Eigen::MatrixXd& directions, int layers) {
    const Eigen::Index size = directions.rows(), pairs = directions.cols();
    Rows result(coordinates.rows(), layers * pairs);
    for (int l = 0; l < layers; ++l) {
        result.middleCols(l * pairs, pairs) = coordinates.middleCols(l * size, size) * directions;
    }
    return result;
}

constexpr std::size_t points_per_block = 64;

/// Calls add(points, sums) for blocks of points of every shift; returns for each shift the mean, in order.
std::vector<Eigen::VectorXd> shift_means(
    int dimension, int values, const Integration& integration,
    const std::function<void(const Eigen::ArrayXXd&, Eigen::VectorXd&)>& add) {
    check_at_least("shifts", integration.shifts, 2);
    check_at_least("points", integration.points, 1);
    const auto points = static_cast<std::size_t>(integration.points);
    const numerics::ShiftedSobol net(dimension, integration.shifts, points, integration.seed);
    const std::size_t blocks = block_count(points, points_per_block);
    const auto shifts = static_cast<std::size_t>(integration.shifts);
    std::vector<Eigen::VectorXd> partial(blocks * shifts, Eigen::VectorXd::Zero(values));
    ThreadPool one(1);
    (integration.pool ? *integration.pool : one).for_each(blocks * shifts, [&](std::size_t i) {
        const Range range = block_range(points, points_per_block, i % blocks);
        Eigen::ArrayXXd z(static_cast<Eigen::Index>(range.size()), dimension);
        net.fill_normal(static_cast<int>(i / blocks), range.begin, z);
        add(z, partial[i]);
    });
    std::vector<Eigen::VectorXd> means(shifts, Eigen::VectorXd::Zero(values));
    for (std::size_t i = 0; i < partial.size(); ++i) {
        means[i / blocks] += partial[i] / static_cast<double>(points);
    }
    return means;
}

numerics::Estimate combined(const std::vector<Eigen::VectorXd>& means, Eigen::Index value) {
    std::vector<double> estimates;
    for (const Eigen::VectorXd& mean : means) estimates.push_back(mean[value]);
    return numerics::combine(estimates);
}

void check_parameters(const OrderParameters& parameters, int layers) {
    check_size("layers of the order parameters", parameters.error.rows(), layers);
    check_size("layers of the overlap", parameters.overlap.rows(), layers);
    for (int l = 0; l < layers; ++l) check_positive("estimation error", parameters.error(l, l));
}

}  // namespace

DeepAttention::DeepAttention(const DeepAttentionOptions& options)
    : options_(checked(options)),
      one_layer_(options.tokens, options.beta),
      directions_(informed_directions(options.tokens)) {
    if (layers() > 2 || (layers() == 2 && tokens() > 2)) {
        sampled_posterior_ = std::make_shared<LayerPosterior>(layers(), tokens(), options_.beta,
                                                              options_.residual, options_.points);
    }
}

std::vector<std::pair<std::string, double>> DeepAttention::parameters() const {
    return {
        {"layers", layers()}, {"tokens", tokens()}, {"beta", options_.beta}, {"residual", options_.residual}};
}

void DeepAttention::draw(const ConstRowsRef& index, std::uint64_t, std::uint64_t, RowsRef outputs) const {
    check_size("columns of the indices", index.cols(), layers() * pairs());
    for (Eigen::Index i = 0; i < index.rows(); ++i) {
        const double* htilde = index.data() + i * index.outerStride();
        const TokenMatrix mixing =
            mixing_matrix(htilde, layers() - 1, tokens(), options_.beta, options_.residual);
        const TokenMatrix h = index_matrix(htilde + (layers() - 1) * pairs(), tokens());
        const TokenMatrix y = row_log_softmax(mixing * h * mixing.transpose(), options_.beta);
        for (int a = 0; a < tokens(); ++a) {
            for (int b = 0; b < tokens(); ++b) outputs(i, a * tokens() + b) = y(a, b);
        }
    }
}

std::vector<LayerMoments> DeepAttention::posterior(const ConstRowsRef& outputs, const ConstRowsRef& omega,
                                                   const Overlap& variance) const {
    check_at_least("layers of the posterior", layers(), 2);
    check_size("columns of omega", omega.cols(), layers() * pairs());
    check_size("layers of the variance", variance.rows(), layers());
    const Eigen::Index size = directions_.rows();
    std::vector<LayerMoments> result(static_cast<std::size_t>(omega.rows()));
    TwoLayerPosterior two_layers(options_.beta, options_.residual, options_.quadrature);
    for (Eigen::Index i = 0; i < omega.rows(); ++i) {
        LayerMoments& moments = result[static_cast<std::size_t>(i)];
        const double* log_y = outputs.data() + i * outputs.outerStride();
        Eigen::VectorXd coordinates(layers() * size);
        for (int l = 0; l < layers(); ++l) {
            coordinates.segment(l * size, size) =
                directions_ * omega.row(i).segment(l * pairs(), pairs()).transpose();
        }
        if (sampled_posterior_) {
            moments = (*sampled_posterior_)(logits_of_output(log_y, tokens(), options_.beta), coordinates,
                                            variance);
            continue;
        }
        const Eigen::Vector2d m((log_y[1] - log_y[0]) / options_.beta, (log_y[2] - log_y[3]) / options_.beta);
        const Eigen::Vector2d centre[2] = {coordinates.head<2>(), coordinates.tail<2>()};
        const TwoLayerMoments found = two_layers(m, centre, variance);
        moments.mean.resize(4);
        moments.mean << found.mean[0], found.mean[1];
        moments.covariance.resize(2, 2);
        moments.covariance << found.covariance[0], found.covariance[1], found.covariance[1],
            found.covariance[2];
        moments.log_z = found.log_z;
        moments.error = found.error;
    }
    return result;
}

/// g^l = E' [V^-1 (<E htilde> - E omega)]_l
void DeepAttention::write_scores(const std::vector<LayerMoments>& moments, const ConstRowsRef& omega,
                                 const Overlap& precision, RowsRef g) const {
    const Eigen::Index size = directions_.rows();
    Eigen::MatrixXd shift(size, layers());
    for (std::size_t i = 0; i < moments.size(); ++i) {
        const auto row = static_cast<Eigen::Index>(i);
        for (int l = 0; l < layers(); ++l) {
            shift.col(l) = moments[i].mean.segment(l * size, size) -
                           directions_ * omega.row(row).segment(l * pairs(), pairs()).transpose();
        }
        const Eigen::MatrixXd scores = directions_.transpose() * shift * precision;
        for (int l = 0; l < layers(); ++l) {
            g.row(row).segment(l * pairs(), pairs()) = scores.col(l).transpose();
        }
    }
}

void DeepAttention::score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                          RowsRef g, Eigen::Ref<Eigen::VectorXd> log_z) const {
    if (layers() == 1) return one_layer_.score(outputs, omega, variance, g, log_z);
    const std::vector<LayerMoments> moments = posterior(outputs, omega, variance);
    write_scores(moments, omega, variance.inverse(), g);
    for (Eigen::Index i = 0; i < log_z.size(); ++i) log_z[i] = moments[static_cast<std::size_t>(i)].log_z;
}

Overlap DeepAttention::score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega,
                                        const Overlap& variance, RowsRef g) const {
    const Overlap precision = variance.inverse();
    const double directions = static_cast<double>(omega.rows() * directions_.rows());
    if (layers() == 1) {
        Eigen::VectorXd no_log_z(0);
        one_layer_.score(outputs, omega, variance, g, no_log_z);
        return directions * precision;
    }
    const std::vector<LayerMoments> moments = posterior(outputs, omega, variance);
    write_scores(moments, omega, precision, g);
    Overlap covariance = Overlap::Zero(layers(), layers());
    for (const LayerMoments& sample : moments) covariance += sample.covariance;
    return directions * precision - precision * covariance * precision;
}

void DeepAttention::predict(const ConstRowsRef& omega, const Overlap& variance, RowsRef prediction) const {
    if (layers() == 1) return one_layer_.predict(omega, variance, prediction);
    if (variance.isZero(0)) {
        draw(omega, 0, 0, prediction);
        prediction = prediction.array().exp();
        return;
    }
    const Eigen::Index size = directions_.rows();
    constexpr Eigen::Index points = 512;
    Eigen::ArrayXXd z(points, layers() * size);
    numerics::ShiftedSobol(static_cast<int>(z.cols()), 2, points, 0).fill_normal(0, 0, z);
    Rows deviation = Rows::Zero(points, z.cols());
    add_correlated(square_root(variance), z, 0, size, deviation);
    const Rows shift = to_pairs(deviation, directions_, layers());
    Rows outputs(points, tokens() * tokens());
    for (Eigen::Index i = 0; i < omega.rows(); ++i) {
        draw(shift.rowwise() + omega.row(i), 0, 0, outputs);
        prediction.row(i) = outputs.array().exp().colwise().mean();
    }
}

ScorePower DeepAttention::score_power(const OrderParameters& parameters,
                                      const Integration& integration) const {
    check_parameters(parameters, layers());
    const Eigen::Index size = directions_.rows();
    const Overlap variance = 2 * parameters.error, precision = variance.inverse();
    if (layers() == 1) return {static_cast<double>(size) * precision, 0};
    const Overlap known = square_root(2 * parameters.overlap), rest = square_root(variance);
    const Eigen::Index entries = layers() * layers();
    const auto means =
        shift_means(static_cast<int>(2 * layers() * size), static_cast<int>(entries + 1), integration,
                    [&](const Eigen::ArrayXXd& z, Eigen::VectorXd& sums) {
                        Rows omega = Rows::Zero(z.rows(), layers() * size);
                        add_correlated(known, z, 0, size, omega);
                        Rows index = omega;
                        add_correlated(rest, z, layers() * size, size, index);
                        Rows outputs(z.rows(), tokens() * tokens());
                        draw(to_pairs(index, directions_, layers()), 0, 0, outputs);
                        for (const LayerMoments& sample :
                             posterior(outputs, to_pairs(omega, directions_, layers()), variance)) {
                            const Overlap slope = static_cast<double>(size) * precision -
                                                  precision * sample.covariance * precision;
                            sums.head(entries) += Eigen::MatrixXd(slope).reshaped();
                            // Independent errors of many samples average out; what is left is their bias.
                            sums[entries] += sampled_posterior_ ? sample.error * sample.error : sample.error;
                        }
                    });
    ScorePower result;
    result.value.resize(layers(), layers());
    for (Eigen::Index i = 0; i < entries; ++i) {
        const numerics::Estimate entry = combined(means, i);
        result.value(i % layers(), i / layers()) = entry.value;
        if (i % layers() == i / layers()) {
            result.relative_error =
                std::max(result.relative_error, entry.standard_error / std::abs(entry.value));
        }
    }
    result.relative_error = std::hypot(result.relative_error, combined(means, entries).value);
    return result;
}

std::optional<double> DeepAttention::information(const OrderParameters& parameters,
                                                 const Integration& integration) const {
    if (layers() > 1) return std::nullopt;
    return one_layer_.information(parameters, integration);
}

std::optional<int> DeepAttention::exact_observations() const {
    if (layers() > 1) return std::nullopt;
    return one_layer_.exact_observations();
}

GeneralizationError DeepAttention::generalization(const OrderParameters& parameters,
                                                  const Integration& integration) const {
    if (layers() == 1) return one_layer_.generalization(parameters, integration);
    check_parameters(parameters, layers());
    const Eigen::Index size = directions_.rows(), all = layers() * size;
    const Overlap known = square_root(2 * parameters.overlap), rest = square_root(2 * parameters.error);
    const auto means = shift_means(static_cast<int>(3 * all), 2, integration,
                                   [&](const Eigen::ArrayXXd& z, Eigen::VectorXd& sums) {
                                       Rows omega = Rows::Zero(z.rows(), all);
                                       add_correlated(known, z, 0, size, omega);
                                       Rows one = omega, other = omega;
                                       add_correlated(rest, z, all, size, one);
                                       add_correlated(rest, z, 2 * all, size, other);
                                       const auto outputs = [&](const Rows& coordinates) {
                                           Rows log_y(z.rows(), tokens() * tokens());
                                           draw(to_pairs(coordinates, directions_, layers()), 0, 0, log_y);
                                           return Rows(log_y.array().exp());
                                       };
                                       const Rows truth = outputs(one);
                                       sums[0] += 0.5 * (truth - outputs(other)).squaredNorm();
                                       sums[1] += (truth - outputs(omega)).squaredNorm();
                                   });
    const numerics::Estimate optimal = combined(means, 0), plug_in = combined(means, 1);
    return {optimal.value, plug_in.value,
            std::max(optimal.standard_error / optimal.value, plug_in.standard_error / plug_in.value)};
}

}  // namespace bayesaim::channels
