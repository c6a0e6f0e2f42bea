// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/prediction.hpp"

#include "bayesaim/core/checks.hpp"
#include "bayesaim/data/attention.hpp"

namespace bayesaim::estimators {

Prediction predict(const data::TokenSource& tokens, const linalg::Matrix& estimate, double error,
                   const channels::Channel& channel, ThreadPool& pool) {
    check_size("dimension of the estimate", estimate.rows(), tokens.dim());
    check_size("tokens of the channel", channel.tokens(), tokens.tokens());
    check_non_negative("estimation error", error);
    const channels::Rows omega = data::all_attention_indices(tokens, estimate, pool);
    const Eigen::Index outputs = tokens.tokens() * tokens.tokens();
    Prediction result{channels::Rows(omega.rows(), outputs), channels::Rows(omega.rows(), outputs)};
    constexpr std::size_t block_size = 4096;
    parallel_for(pool, static_cast<std::size_t>(omega.rows()), block_size, [&](Range range) {
        const auto begin = static_cast<Eigen::Index>(range.begin),
                   size = static_cast<Eigen::Index>(range.size());
        const auto block = omega.middleRows(begin, size);
        channel.predict(block, linalg::scalar_overlap(2 * error),
                        result.bayes_optimal.middleRows(begin, size));
        channel.predict(block, linalg::scalar_overlap(0), result.plug_in.middleRows(begin, size));
    });
    return result;
}

double mean_squared_distance(const channels::Rows& prediction, const channels::Rows& targets) {
    check_size("rows of the targets", targets.rows(), prediction.rows());
    check_size("columns of the targets", targets.cols(), prediction.cols());
    return (prediction - targets).squaredNorm() / static_cast<double>(targets.rows());
}

}  // namespace bayesaim::estimators
