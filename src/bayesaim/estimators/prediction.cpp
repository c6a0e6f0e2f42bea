// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/prediction.hpp"

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/random.hpp"
#include "bayesaim/core/tree_sum.hpp"
#include "bayesaim/data/attention.hpp"
#include "bayesaim/data/dataset.hpp"

namespace bayesaim::estimators {

namespace {

void add_terms(const data::LinearTerms& terms, const data::TokenSource& tokens, const data::TokenSource& keys,
               const channels::Geometry& geometry, ThreadPool& pool, channels::Rows& omega) {
    if (terms.zero()) return;
    const data::TermLayout layout(geometry, {terms.query.size() > 0, terms.key.size() > 0, true, true},
                                  tokens.dim(), keys.dim());
    for_own_blocks(pool, tokens.shares(), data::samples_per_block(tokens), [&](Range range) {
        linalg::Matrix scratch, key_scratch;
        const auto block = tokens.block(range, scratch);
        const bool same = &keys == &tokens;
        layout.add<double>(terms, block, same ? block : keys.block(range, key_scratch),
                           data::rows_of(omega, range));
    });
}

/// Predicts these rows.
Prediction predict_rows(const channels::ConstRowsRef& omega, Range rows, const linalg::Overlap& error,
                        const channels::Channel& channel, ThreadPool& pool) {
    const channels::Geometry geometry = channel.geometry();
    const Eigen::Index outputs = geometry.outputs();
    Prediction result{channels::Rows(omega.rows(), outputs), channels::Rows(omega.rows(), outputs)};
    const std::size_t block_size =
        channel.layers() > 1 ? 64 : 4096;  // predictions of several layers are averages, which take long
    pool.for_each(block_count(rows.size(), block_size), [&](std::size_t b) {
        const Range range = block_within(rows, block_size, b);
        const auto block = data::rows_of(omega, range);
        channel.predict(block, geometry.variance_factor() * error,
                        data::rows_of(result.bayes_optimal, range));
        channel.predict(block, 0 * error, data::rows_of(result.plug_in, range));
    });
    return result;
}

}  // namespace

channels::Rows predicted_indices(const data::Dataset& data, std::span<const linalg::Matrix> estimates,
                                 const data::LinearTerms& terms, const channels::Channel& channel,
                                 ThreadPool& pool) {
    channels::Rows omega =
        data::attention_indices(channel.geometry(), *data.tokens, data.keys(), estimates, pool);
    add_terms(terms, *data.tokens, data.keys(), channel.geometry(), pool, omega);
    return omega;
}

void draw_indices(const channels::ConstRowsRef& omega, const linalg::Overlap& root, std::uint64_t draw,
                  bool opposite, Eigen::Index first_sample, channels::Rows& index) {
    Eigen::ArrayXXd normal(omega.rows(), omega.cols());
    std::vector<double> row(static_cast<std::size_t>(omega.cols()));
    for (Eigen::Index i = 0; i < omega.rows(); ++i) {
        RandomStream(draw, Purpose::prediction, static_cast<std::uint64_t>(first_sample + i))
            .fill_normal(row);
        normal.row(i) =
            (opposite ? -1 : 1) * Eigen::Map<const Eigen::ArrayXd>(row.data(), omega.cols()).transpose();
    }
    index = omega;
    channels::add_correlated(root, normal, index);
}

channels::Rows prediction_deviation(const channels::ConstRowsRef& omega, const linalg::Overlap& error,
                                    const channels::Channel& channel, ThreadPool& pool) {
    constexpr int draws = 128;
    const channels::Geometry geometry = channel.geometry();
    const linalg::Overlap root = linalg::lower_root(geometry.variance_factor() * error);
    channels::Rows result(omega.rows(), geometry.outputs());
    parallel_for(pool, static_cast<std::size_t>(omega.rows()), 64, [&](Range range) {
        const auto begin = static_cast<Eigen::Index>(range.begin),
                   count = static_cast<Eigen::Index>(range.size());
        channels::Rows index(count, omega.cols()), outputs(count, geometry.outputs()),
            sum = channels::Rows::Zero(count, geometry.outputs()), squares = sum;
        for (int k = 0; k < draws; ++k) {
            // Pairs of draws with opposite deviations: their means are exact to first order.
            draw_indices(omega.middleRows(begin, count), root, static_cast<std::uint64_t>(k / 2), k % 2 == 1,
                         begin, index);
            channel.predict(index, 0 * error, outputs);
            sum += outputs;
            squares += outputs.cwiseAbs2();
        }
        result.middleRows(begin, count) =
            ((squares - sum.cwiseAbs2() / draws) / draws).cwiseMax(0).cwiseSqrt();
    });
    return result;
}

Prediction predict(const data::TokenSource& tokens, std::span<const linalg::Matrix> estimates,
                   const linalg::Overlap& error, const channels::Channel& channel, ThreadPool& pool) {
    return predict(tokens, tokens, estimates, error, channel, pool);
}

Prediction predict(const data::TokenSource& tokens, const data::TokenSource& keys,
                   std::span<const linalg::Matrix> estimates, const linalg::Overlap& error,
                   const channels::Channel& channel, ThreadPool& pool, const data::LinearTerms& terms) {
    check_size("number of estimates", static_cast<long long>(estimates.size()), channel.layers());
    check_size("dimension of the estimate", estimates[0].rows(), tokens.dim());
    const channels::Geometry geometry = channel.geometry();
    data::check_tokens(geometry, tokens, keys);
    check_size("layers of the estimation error", error.rows(), channel.components());
    check_size("columns of the estimate", estimates[0].cols(), keys.dim());
    check_non_negative("estimation error", error.diagonal().minCoeff());
    channels::Rows omega = data::attention_indices(geometry, tokens, keys, estimates, pool);
    add_terms(terms, tokens, keys, geometry, pool, omega);
    return predict_rows(omega, tokens.shares().own_samples(pool.ranks()), error, channel, pool);
}

Prediction predict(const channels::ConstRowsRef& omega, const linalg::Overlap& error,
                   const channels::Channel& channel, ThreadPool& pool) {
    return predict_rows(omega, {0, static_cast<std::size_t>(omega.rows())}, error, channel, pool);
}

Prediction predict(const data::TokenSource& tokens, const linalg::Matrix& estimate, double error,
                   const channels::Channel& channel, ThreadPool& pool) {
    return predict(tokens, {&estimate, 1}, linalg::scalar_overlap(error), channel, pool);
}

double mean_squared_distance(const channels::Rows& prediction, const channels::Rows& targets,
                             const Shares& shares, ThreadPool& pool) {
    check_size("rows of the targets", targets.rows(), prediction.rows());
    check_size("columns of the targets", targets.cols(), prediction.cols());
    const double sum = sum_over_samples(pool, shares, [&](Range range) {
        return (data::rows_of(prediction, range) - data::rows_of(targets, range)).squaredNorm();
    });
    return sum / static_cast<double>(targets.rows());
}

double mean_squared_distance(const channels::Rows& prediction, const channels::Rows& targets) {
    ThreadPool alone;
    return mean_squared_distance(prediction, targets, Shares(static_cast<std::size_t>(targets.rows())),
                                 alone);
}

}  // namespace bayesaim::estimators
