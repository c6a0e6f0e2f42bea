// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/data_pass.hpp"

#include <algorithm>
#include <cmath>

#include "bayesaim/core/tree_sum.hpp"
#include "bayesaim/data/attention.hpp"
#include "bayesaim/linalg/matrix_sum.hpp"

namespace bayesaim::estimators {
namespace {

using channels::Rows;
using linalg::Matrix;
using linalg::Overlap;

/// Scores of several layers take far longer than products: smaller sums and blocks keep more threads busy.
constexpr std::size_t parts_for_several = 4, block_of_several = 64;

/// The columns of one layer.
template <class Matrix>
auto layer_of(Matrix& rows, std::size_t layer, Eigen::Index pairs) {
    return rows.middleCols(static_cast<Eigen::Index>(layer) * pairs, pairs);
}

void add_power(const Eigen::Ref<const Rows>& g, Eigen::Index pairs, Overlap& power) {
    for (Eigen::Index l = 0; l < power.rows(); ++l) {
        for (Eigen::Index k = 0; k <= l; ++k) {
            power(l, k) += g.middleCols(l * pairs, pairs).cwiseProduct(g.middleCols(k * pairs, pairs)).sum();
            power(k, l) = power(l, k);
        }
    }
}

template <class Scalar>
Pass pass_of_precision(const data::Dataset& data, const channels::Score& score, const PassInput& input,
                       Messages& messages, ThreadPool& pool) {
    const data::TokenSource& source = *data.tokens;
    const Eigen::Index d = source.dim(), key_dim = data.keys().dim(), tokens = source.tokens(),
                       pairs = score.pairs();
    const std::size_t layers = input.estimates.size();
    const bool first = messages.g.size() == 0;
    if (first) {
        messages.g.resize(source.samples(), score.components() * pairs);
        messages.omega.resize(source.samples(), score.components() * pairs);
        messages.variance = input.variance;
    }
    const double kept = first ? 0 : input.damping;
    messages.variance = kept * messages.variance + (1 - kept) * input.variance;
    const channels::Geometry geometry = score.geometry();
    const bool bilinear = geometry.variance_factor() == 1;
    std::vector<data::AttentionMap<Scalar>> maps;
    std::vector<data::BilinearMap<Scalar>> bilinear_maps;
    if (bilinear) {
        for (const Matrix& estimate : input.estimates) bilinear_maps.emplace_back(estimate, geometry);
    } else {
        maps = data::attention_maps<Scalar>(geometry, input.estimates);
    }
    // Both parts of S are pulled as one matrix.
    const std::size_t pulled_count = geometry.parts() == 2 ? 1 : layers;

    const std::size_t block_size = layers == 1 ? data::samples_per_block(source)
                                               : std::min(block_of_several, data::samples_per_block(source));
    TreeSum<ScoreSums> tree(&pool, data.shares(), messages.spare, layers == 1 ? 1 : parts_for_several);
    ScoreSums sums = tree([&](Range samples, ScoreSums& sum) {
        sum.pulled.resize(pulled_count);
        for (Matrix& pulled : sum.pulled) pulled.setZero(d, key_dim);
        sum.trace.assign(pulled_count, 0);
        sum.power = sum.slope = linalg::zero_overlap(score.components());
        sum.terms.setZero(input.layout != nullptr ? input.layout->size() : 0);
        Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic> scratch, key_scratch, work;
        Rows index;
        Eigen::VectorXd log_z(0);
        sum.log_z = 0;
        for (std::size_t b = 0; b < block_count(samples.size(), block_size); ++b) {
            const Range range = block_within(samples, block_size, b);
            const auto begin = static_cast<Eigen::Index>(range.begin),
                       size = static_cast<Eigen::Index>(range.size());
            const auto block_of = [&](const data::TokenSource& tokens_of, auto& memory) {
                if constexpr (std::is_same_v<Scalar, double>)
                    return tokens_of.block(range, memory);
                else
                    return tokens_of.float_block(range, memory);
            };
            const auto block = block_of(source, scratch);
            const auto keys = data.key_tokens ? block_of(*data.key_tokens, key_scratch) : block;
            auto omega = messages.omega.middleRows(begin, size);
            auto g = messages.g.middleRows(begin, size);
            index.resize(size, score.components() * pairs);
            for (std::size_t l = 0; l < layers; ++l) {
                if (bilinear) {
                    bilinear_maps[l].indices(block, keys, work, layer_of(index, l, pairs));
                } else {
                    maps[l].indices(block, tokens, work, layer_of(index, l, pairs));
                }
            }
            if (input.layout != nullptr) input.layout->add<Scalar>(*input.terms, block, keys, index);
            for (std::size_t l = 0; l < layers && !first; ++l) {
                for (std::size_t k = 0; k < layers; ++k) {
                    layer_of(index, l, pairs) -=
                        input.onsager(static_cast<Eigen::Index>(l), static_cast<Eigen::Index>(k)) *
                        layer_of(g, k, pairs);
                }
            }
            if (kept > 0) {
                omega = kept * omega + (1 - kept) * index;
            } else {
                omega = index;
            }
            const auto outputs = data.outputs.middleRows(begin, size);
            if (input.slope) {
                sum.slope += score.score_with_slope(outputs, omega, messages.variance, g);
            } else {
                if (input.log_z) log_z.resize(size);
                score.score(outputs, omega, messages.variance, g, log_z);
                sum.log_z += log_z.sum();
            }
            add_power(g, pairs, sum.power);
            if (input.layout != nullptr) input.layout->add_transpose<Scalar>(block, keys, g, sum.terms);
            for (std::size_t l = 0; l < pulled_count; ++l) {
                const auto scores = layer_of(g, l, pairs);
                if (!bilinear) {
                    for (int a = 0; a < tokens; ++a)
                        sum.trace[l] +=
                            scores.col(channels::pair_index(a, a, static_cast<int>(tokens))).sum();
                }
                if (geometry.symmetric()) {
                    data::accumulate_transpose<Scalar>(block, tokens, scores, work, sum.pulled[l]);
                } else {
                    data::accumulate_bilinear<Scalar>(geometry, block, keys, g, work, sum.pulled[l]);
                }
            }
        }
    });
    Pass total{std::move(sums.pulled), sums.power, sums.slope, std::move(sums.terms), sums.log_z};
    // sum g Z = (sum X G X' - sum Tr(G) I) / sqrt(d); without a trace if no token attends to itself
    for (std::size_t l = 0; l < pulled_count; ++l) {
        Matrix& pulled = total.pulled[l];
        if (geometry.symmetric()) pulled.triangularView<Eigen::StrictlyUpper>() = pulled.transpose();
        if (!bilinear) pulled.diagonal().array() -= sums.trace[l];
        pulled /= std::sqrt(std::sqrt(static_cast<double>(d) * static_cast<double>(key_dim)));
    }
    if (geometry.parts() == 2) {
        total.pulled = data::components_of(geometry, total.pulled);
        total.power = linalg::diagonal_part(total.power);
        total.slope = linalg::diagonal_part(total.slope);
    }
    total.slope = linalg::symmetric_part(total.slope);
    return total;
}

}  // namespace

void ScoreSums::add(const ScoreSums& other) {
    for (std::size_t l = 0; l < pulled.size(); ++l) {
        pulled[l] += other.pulled[l];
        trace[l] += other.trace[l];
    }
    power += other.power;
    slope += other.slope;
    terms += other.terms;
    log_z += other.log_z;
}

void ScoreSums::for_parts(const std::function<void(std::span<std::byte>)>& use) {
    for (Matrix& matrix : pulled) use(linalg::bytes_of_matrix(matrix));
    use(bytes_of(trace.data(), trace.size()));
    for (Overlap* overlap : {&power, &slope}) use(linalg::bytes_of_matrix(*overlap));
    use(linalg::bytes_of_matrix(terms));
    use(bytes_of(log_z));
}

void gather(Messages& messages, const Shares& shares, Communicator& ranks) {
    for (Rows* rows : {&messages.omega, &messages.g}) {
        for (std::size_t i = 0; i < shares.count(); ++i) {
            const Range share = shares.share(i);
            const int from = shares.owner(i, ranks);
            const auto columns = static_cast<std::size_t>(rows->cols());
            const auto bytes = bytes_of(rows->data() + share.begin * columns, share.size() * columns);
            if (from != 0 && ranks.rank() == from) ranks.send(bytes, 0);
            if (from != 0 && ranks.first()) ranks.receive(bytes, from);
        }
    }
}

Pass pass_over_data(const data::Dataset& data, const channels::Score& score, const PassInput& input,
                    Messages& messages, ThreadPool& pool) {
    const bool wide = data.tokens->precision() == data::Precision::double_precision;
    return (wide ? pass_of_precision<double> : pass_of_precision<float>)(data, score, input, messages, pool);
}

}  // namespace bayesaim::estimators
