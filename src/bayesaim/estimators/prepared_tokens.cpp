// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/prepared_tokens.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "bayesaim/channels/unequal_lengths.hpp"
#include "bayesaim/core/checks.hpp"
#include "bayesaim/linalg/matrix_sum.hpp"

namespace bayesaim::estimators {
namespace {

using linalg::Matrix;
using linalg::Vector;

constexpr double concentrated = 0.2;  // f4 in units of d

void check_spread(const char* name, const data::TokenStatistics& statistics) {
    const auto dim = static_cast<double>(statistics.mean.size());
    if (statistics.concentration > std::max(concentrated * dim, 12.0))
        throw_invalid(
            name,
            fmt::format("spread over their {:g} coordinates (d sum x^4/|x|^4 is 3 for normal tokens, at "
                        "most {:g} here; one-hot tokens show single entries of S, which is another "
                        "problem)",
                        dim, std::max(concentrated * dim, 12.0)),
            fmt::format("{:.1f}", statistics.concentration));
}

}  // namespace

void check_data(const data::Dataset& data, const channels::Channel& channel, Communicator& ranks) {
    data::check_outputs(channel, data, ranks);
    const Eigen::Index samples = data.tokens->samples(), dim = data.tokens->dim();
    if (10 * samples < dim)
        throw_invalid("samples", fmt::format("at least {}, a tenth of the dimension {}", (dim + 9) / 10, dim),
                      static_cast<double>(samples));
    Eigen::RowVectorXd first(data.outputs.cols());
    if (ranks.first()) first = data.outputs.row(0);
    ranks.broadcast(linalg::bytes_of_matrix(first));
    const Range own = data.shares().own_samples(ranks);
    bool different = false;
    for (std::size_t i = own.begin; i < own.end && !different; ++i)
        different = data.outputs.row(static_cast<Eigen::Index>(i)) != first;
    if (!any_rank(ranks, different) && samples > 1)
        throw_invalid("outputs", "different from sample to sample",
                      fmt::format("the same {} times", samples));
}

Prepared prepare(const data::Dataset& data, const channels::Channel& channel, const FitOptions& options,
                 ThreadPool& pool) {
    Prepared result;
    result.data = data;
    const bool separate = channel.geometry().separate_keys();
    TokenReport& report = result.report;
    report.queries = data::token_statistics(*data.tokens, pool);
    if (separate) report.keys = data::token_statistics(data.keys(), pool);
    // A prior is one of S for the tokens as they are.
    const bool as_given =
        options.tokens_as_given || options.families.front() == Family::given || channel.layers() > 1;
    if (as_given) return result;
    check_spread("tokens", report.queries);
    if (separate) check_spread("key tokens", report.keys);
    const auto treat = [&](const data::TokenStatistics& statistics, const data::TokenSource& source,
                           data::Whitening& whitening) -> std::shared_ptr<const data::TokenSource> {
        const bool white = std::abs(statistics.whiteness) < not_white;
        const bool central = std::abs(statistics.mean_score) < significant + 2;
        // The mean is part of the second moment that whiteness looks at.
        if (white && central) return nullptr;
        if (statistics.length_spread > spread_lengths && channels::UnequalLengths::handles(channel)) {
            // Lengths alone upset the test; directions are white or not.
            Vector lengths;
            const auto directions =
                data::token_statistics(*data::length_normalised(source, lengths, pool), pool);
            if (std::abs(directions.whiteness) < not_white &&
                std::abs(directions.mean_score) < significant + 2)
                return nullptr;
        }
        whitening = data::whitening_of(statistics);
        report.whitened = true;
        report.condition = std::max(report.condition, whitening.condition);
        return data::whitened(source, whitening, pool);
    };
    if (auto tokens = treat(report.queries, *data.tokens, result.queries)) result.data.tokens = tokens;
    if (separate) {
        if (auto keys = treat(report.keys, data.keys(), result.keys)) result.data.key_tokens = keys;
    } else {
        result.keys = result.queries;
    }
    if (report.whitened) {
        // The side that was white has the identity.
        for (auto& [whitening, dim] :
             {std::pair(&result.queries, data.tokens->dim()), std::pair(&result.keys, data.keys().dim())}) {
            if (whitening->mean.size() == 0) whitening->mean = Vector::Zero(dim);
        }
    }
    if (channels::UnequalLengths::handles(channel)) {
        const auto spread = [&](const data::TokenStatistics& before, const data::TokenSource& source) {
            return (report.whitened ? data::token_statistics(source, pool) : before).length_spread;
        };
        report.one_length = spread(report.queries, *result.data.tokens) > spread_lengths ||
                            (separate && spread(report.keys, result.data.keys()) > spread_lengths);
    }
    if (report.one_length) {
        // The lengths stand beside the outputs.
        const Eigen::Index outputs = data.outputs.cols();
        Vector of_queries, of_keys;
        result.data.tokens = data::length_normalised(*result.data.tokens, of_queries, pool);
        if (separate) result.data.key_tokens = data::length_normalised(result.data.keys(), of_keys, pool);
        const Eigen::Index queries = result.data.tokens->tokens(),
                           keys = separate ? result.data.keys().tokens() : 0;
        result.data.outputs = channels::Rows(data.outputs.rows(), outputs + queries + keys);
        const Range own = data.shares().own_samples(pool.ranks());
        data::rows_of(result.data.outputs, own).leftCols(outputs) = data::rows_of(data.outputs, own);
        for (auto i = static_cast<Eigen::Index>(own.begin); i < static_cast<Eigen::Index>(own.end); ++i) {
            result.data.outputs.row(i).segment(outputs, queries) =
                of_queries.segment(i * queries, queries).transpose();
            if (keys > 0) result.data.outputs.row(i).tail(keys) = of_keys.segment(i * keys, keys).transpose();
        }
    }
    return result;
}

void undo_whitening(const Prepared& prepared, const channels::Geometry& geometry, FitResult& result) {
    result.estimate = result.white_estimate;
    if (!result.tokens.whitened) return;
    const data::Whitening &queries = prepared.queries, &keys = prepared.keys;
    result.estimate = data::unwhitened_weights(result.white_estimate, queries, keys);
    const auto rows = static_cast<double>(result.estimate.rows()),
               columns = static_cast<double>(result.estimate.cols());
    const double scale = std::sqrt(std::sqrt(rows * columns));
    data::LinearTerms& terms = result.terms;
    const auto mapped = [](const data::Whitening& whitening, const Vector& vector) -> Vector {
        if (vector.size() == 0) return vector;
        return whitening.root.size() == 0 ? vector : Vector(whitening.inverse_root * vector);
    };
    const Vector of_query = mapped(queries, terms.query), of_key = mapped(keys, terms.key);
    const Vector mean_q =
                     queries.mean.size() > 0 ? queries.mean : Vector(Vector::Zero(result.estimate.rows())),
                 mean_k = keys.mean.size() > 0 ? keys.mean : Vector(Vector::Zero(result.estimate.cols()));
    Vector query = -result.estimate * mean_k, key = -result.estimate.transpose() * mean_q;
    double constant = terms.constant + mean_q.dot(result.estimate * mean_k) / scale;
    if (of_key.size() > 0) {
        key += of_key;
        constant -= of_key.dot(mean_k) / scale * (geometry.symmetric() ? 2 : 1);
    }
    if (of_query.size() > 0) {
        query += of_query;
        constant -= of_query.dot(mean_q) / scale;
    }
    terms.key = key;
    terms.query = geometry.symmetric() ? Vector() : query;
    terms.constant = constant;
    if (rows == columns && (geometry.symmetric() || geometry.parts() == 2))
        terms.diagonal += (result.estimate.trace() - result.white_estimate.trace()) / scale;
}

}  // namespace bayesaim::estimators
