// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/first_look.hpp"

#include <algorithm>
#include <cmath>

#include "bayesaim/core/tree_sum.hpp"
#include "bayesaim/estimators/data_pass.hpp"
#include "bayesaim/estimators/prepared_tokens.hpp"
#include "bayesaim/linalg/decompositions.hpp"

namespace bayesaim::estimators {
namespace {

using linalg::Matrix;
using linalg::Overlap;
using linalg::Vector;

constexpr double cheap_terms = 0.02;  // parameters per observation

/// The terms that outputs of this channel can show.
data::TermChoice visible_terms(const channels::Channel& channel) {
    const channels::Geometry geometry = channel.geometry();
    const bool diagonal = geometry.symmetric() || geometry.parts() == 2, linear = channel.name() == "linear";
    // A softmax does not see what is the same for all keys.
    return {linear && !geometry.symmetric(), true, diagonal, linear};
}

double mean_over_samples(const data::Dataset& data, ThreadPool& pool,
                         const std::function<double(std::size_t)>& value) {
    const double sum = sum_over_samples(pool, data.shares(), [&](Range range) {
        double part = 0;
        for (std::size_t i = range.begin; i < range.end; ++i) part += value(i);
        return part;
    });
    return sum / static_cast<double>(data.tokens->samples());
}

std::vector<Matrix> no_estimates(const channels::Channel& channel, const data::Dataset& data) {
    return std::vector<Matrix>(static_cast<std::size_t>(channel.components()),
                               Matrix::Zero(data.tokens->dim(), data.keys().dim()));
}

}  // namespace

First first_look(const data::Dataset& data, const channels::Channel& channel, bool with_terms, bool whitened,
                 ThreadPool& pool) {
    const channels::Geometry geometry = channel.geometry();
    const double v = geometry.variance_factor(), samples = static_cast<double>(data.tokens->samples());
    First first;
    first.combinations = observations_per_sample(channel);
    const std::vector<Matrix> nothing = no_estimates(channel, data);
    const bool gaussian = shows_scale(channel);
    const Eigen::Index parts = channel.components();
    const Overlap variance =
        Overlap::Identity(parts, parts) * (gaussian ? 1 : v / static_cast<double>(parts));
    data::TermChoice choice = with_terms ? visible_terms(channel) : data::TermChoice{};
    double power = 0;
    for (int round = 0; round < 2; ++round) {
        std::optional<data::TermLayout> layout;
        if (choice.any()) layout.emplace(geometry, choice, data.tokens->dim(), data.keys().dim());
        Messages messages;
        data::LinearTerms terms;
        Matrix gram;
        Vector parameters = Vector::Zero(layout ? layout->size() : 0);
        // One step is exact for linear and softmax outputs.
        for (int step = 0; step < (gaussian ? 2 : 8); ++step) {
            messages.g.resize(0, 0);
            const Pass pass = pass_over_data(
                data, channel, {nothing, variance, variance, 0, false, layout ? &*layout : nullptr, &terms},
                messages, pool);
            power = pass.power.trace();
            if (!layout) break;
            if (gram.size() == 0) {
                gram = layout->gram(*data.tokens, data.keys(),
                                    mean_slope(channel, data, messages.omega, variance, pool), pool);
                gram.diagonal().array() += 1e-10 * gram.diagonal().maxCoeff();
            }
            if (step + 1 == (gaussian ? 2 : 8)) break;
            parameters += linalg::solve_positive(gram, pass.terms);
            terms = layout->terms(parameters);
        }
        const double taken = layout ? static_cast<double>(layout->size()) / samples : 0;
        if (gaussian)
            first.second_moment =
                power * static_cast<double>(parts) / (samples * (first.combinations - taken) * v);
        const auto size_of = [&](std::size_t i) {
            return messages.g.row(static_cast<Eigen::Index>(i)).squaredNorm();
        };
        const double mean = mean_over_samples(data, pool, size_of),
                     variance_of_sizes = mean_over_samples(data, pool, [&](std::size_t i) {
                         return (size_of(i) - mean) * (size_of(i) - mean);
                     });
        first.relative_error = std::sqrt(variance_of_sizes / samples) / mean;
        if (!layout) break;
        first.terms = choice;
        first.values = terms;
        if (round == 1) break;
        // The parameters have the covariance gram^-1 times the variance of the residuals.
        const double noise = gaussian ? v * first.second_moment / static_cast<double>(parts) : 1;
        const Matrix inverse = linalg::solve_positive(gram, Matrix::Identity(gram.rows(), gram.cols()));
        Eigen::Index next = 0;
        // Terms that stand out, or all where they cost next to nothing: without noise even small ones matter in the end.
        // At few observations one number, the diagonal of tied attention, costs 1% of the error.
        const bool cheap =
            static_cast<double>(data.keys().dim()) < cheap_terms * samples * first.combinations;
        const auto stands_out = [&](Eigen::Index size) {
            const Matrix covariance = noise * inverse.block(next, next, size, size);
            const Vector part = parameters.segment(next, size);
            next += size;
            const double chi = part.dot(Vector(linalg::solve_positive(covariance, part))),
                         freedom = static_cast<double>(size);
            return cheap || chi > freedom + significant * std::max(std::sqrt(2 * freedom), significant);
        };
        data::TermChoice kept;
        if (choice.query && !geometry.symmetric()) kept.query = stands_out(data.tokens->dim());
        if (choice.key) kept.key = stands_out(data.keys().dim());
        // The diagonal of tied attention tells the trace of S; otherwise there is none to tell.
        if (choice.diagonal) kept.diagonal = stands_out(1) || whitened || !geometry.symmetric();
        if (choice.constant) kept.constant = stands_out(1);
        if (kept.query == choice.query && kept.key == choice.key && kept.diagonal == choice.diagonal &&
            kept.constant == choice.constant)
            break;
        choice = kept;
        first.terms = {};
        first.values = {};
    }
    return first;
}

double first_trace(const data::Dataset& data, const TraceChannel& channel_of, double label_noise,
                   ThreadPool& pool) {
    const std::vector<Matrix> nothing = no_estimates(*channel_of(label_noise, 0), data);
    const Overlap one = linalg::scalar_overlap(1);
    Messages without, with;
    for (auto& [messages, trace] : {std::pair(&without, 0.0), std::pair(&with, 1.0)})
        pass_over_data(data, *channel_of(label_noise, trace), {nothing, one, one, 0, false}, *messages, pool);
    const auto sums = sum_over_samples(pool, data.shares(), 2, [&](Range range, std::span<double> sum) {
        const channels::Rows before = data::rows_of(without.g, range),
                             change = data::rows_of(with.g, range) - before;
        sum[0] = change.squaredNorm();
        sum[1] = change.cwiseProduct(before).sum();
    });
    return sums[0] > 0 ? -sums[1] / sums[0] : 0;
}

double first_label_noise(const data::Dataset& data, const channels::Channel& channel, double second_moment,
                         ThreadPool& pool) {
    const channels::Geometry geometry = channel.geometry();
    if (!geometry.symmetric() || geometry.queries < 2) return 0.2 * second_moment;
    const int tokens = geometry.queries;
    const auto sums = sum_over_samples(pool, data.shares(), 2, [&](Range range, std::span<double> sum) {
        for (int a = 0; a < tokens; ++a) {
            for (int b = a; b < tokens; ++b) {
                const double square = data::rows_of(data.outputs, range).col(a * tokens + b).squaredNorm();
                sum[a == b ? 0 : 1] += (a == b ? 1 : 2) * square;
            }
        }
    });
    const double diagonal = sums[0], beside = sums[1];
    const double samples = static_cast<double>(data.outputs.rows()), pairs = tokens * (tokens - 1) / 2.0;
    return std::max(beside / (samples * pairs) - diagonal / (samples * tokens), 0.05 * second_moment);
}

}  // namespace bayesaim::estimators
