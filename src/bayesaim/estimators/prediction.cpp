// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/prediction.hpp"

#include "bayesaim/core/checks.hpp"
#include "bayesaim/data/attention.hpp"
#include "bayesaim/data/dataset.hpp"

namespace bayesaim::estimators {

Prediction predict(const data::TokenSource& tokens, std::span<const linalg::Matrix> estimates,
                   const linalg::Overlap& error, const channels::Channel& channel, ThreadPool& pool) {
    return predict(tokens, tokens, estimates, error, channel, pool);
}

Prediction predict(const data::TokenSource& tokens, const data::TokenSource& keys,
                   std::span<const linalg::Matrix> estimates, const linalg::Overlap& error,
                   const channels::Channel& channel, ThreadPool& pool) {
    check_size("number of estimates", static_cast<long long>(estimates.size()), channel.layers());
    check_size("dimension of the estimate", estimates[0].rows(), tokens.dim());
    const channels::Geometry geometry = channel.geometry();
    data::check_tokens(geometry, tokens, keys);
    check_size("layers of the estimation error", error.rows(), channel.components());
    check_size("columns of the estimate", estimates[0].cols(), keys.dim());
    check_non_negative("estimation error", error.diagonal().minCoeff());
    const channels::Rows omega = data::attention_indices(geometry, tokens, keys, estimates, pool);
    const Eigen::Index outputs = geometry.outputs();
    Prediction result{channels::Rows(omega.rows(), outputs), channels::Rows(omega.rows(), outputs)};
    const std::size_t block_size =
        channel.layers() > 1 ? 64 : 4096;  // predictions of several layers are averages, which take long
    parallel_for(pool, static_cast<std::size_t>(omega.rows()), block_size, [&](Range range) {
        const auto begin = static_cast<Eigen::Index>(range.begin),
                   size = static_cast<Eigen::Index>(range.size());
        const auto block = omega.middleRows(begin, size);
        channel.predict(block, geometry.variance_factor() * error,
                        result.bayes_optimal.middleRows(begin, size));
        channel.predict(block, 0 * error, result.plug_in.middleRows(begin, size));
    });
    return result;
}

Prediction predict(const data::TokenSource& tokens, const linalg::Matrix& estimate, double error,
                   const channels::Channel& channel, ThreadPool& pool) {
    return predict(tokens, {&estimate, 1}, linalg::scalar_overlap(error), channel, pool);
}

double mean_squared_distance(const channels::Rows& prediction, const channels::Rows& targets) {
    check_size("rows of the targets", targets.rows(), prediction.rows());
    check_size("columns of the targets", targets.cols(), prediction.cols());
    return (prediction - targets).squaredNorm() / static_cast<double>(targets.rows());
}

}  // namespace bayesaim::estimators
