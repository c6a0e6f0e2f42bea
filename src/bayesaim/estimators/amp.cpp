// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/amp.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/data/attention.hpp"
#include "bayesaim/denoisers/rotation_invariant.hpp"

namespace bayesaim::estimators {
namespace {

using channels::Rows;
using linalg::Matrix;

/// Sums over samples go into this many partial matrices, each over a fixed share of the blocks, added in
/// order.
constexpr std::size_t shares = 8;

/// The state that lives from one iteration to the next.
struct Messages {
    Rows omega, g;  // n x K; empty before the first iteration
    double variance = 0;
};

/// What one pass over the data gives.
struct Pass {
    Matrix pulled;           // sum_ab g_ab Z_ab over all samples
    double score_power = 0;  // sum g^2
};

/// Forward through Shat, score, and back: one pass over the tokens, with products in the precision of Scalar.
template <class Scalar>
Pass pass_over_data(const data::Dataset& data, const channels::Channel& channel, const Matrix& estimate,
                    double new_variance, double damping, Messages& messages, ThreadPool& pool) {
    const data::TokenSource& source = *data.tokens;
    const Eigen::Index d = source.dim(), tokens = source.tokens(), pairs = channel.pairs();
    const bool first = messages.g.size() == 0;
    if (first) {
        messages.g.resize(source.samples(), pairs);
        messages.omega.resize(source.samples(), pairs);
    }
    const double kept = first ? 0 : damping;
    messages.variance = kept * messages.variance + (1 - kept) * new_variance;
    const linalg::Overlap variance = linalg::scalar_overlap(messages.variance);
    const data::AttentionMap<Scalar> map(estimate);

    const auto samples = static_cast<std::size_t>(source.samples());
    const std::size_t block_size = data::samples_per_block(source), blocks = block_count(samples, block_size);
    const std::size_t share_count = std::min(shares, blocks);
    std::vector<Matrix> pulled(share_count);
    std::vector<double> power(share_count, 0), trace(share_count, 0);
    pool.for_each(share_count, [&](std::size_t share) {
        pulled[share] = Matrix::Zero(d, d);
        Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic> scratch, work;
        Rows index;
        Eigen::VectorXd no_log_z(0);
        for (std::size_t b = share * blocks / share_count; b < (share + 1) * blocks / share_count; ++b) {
            const Range range = block_range(samples, block_size, b);
            const auto begin = static_cast<Eigen::Index>(range.begin),
                       size = static_cast<Eigen::Index>(range.size());
            const auto block = data::block_of(source, range, scratch);
            auto omega = messages.omega.middleRows(begin, size);
            auto g = messages.g.middleRows(begin, size);
            index.resize(size, pairs);
            map.indices(block, tokens, work, index);
            if (first) {
                omega = index;
            } else {
                omega = kept * omega + (1 - kept) * (index - new_variance * g);
            }
            channel.score(data.outputs.middleRows(begin, size), omega, variance, g, no_log_z);
            power[share] += g.squaredNorm();
            for (int a = 0; a < tokens; ++a) {
                trace[share] += g.col(channels::pair_index(a, a, static_cast<int>(tokens))).sum();
            }
            data::accumulate_transpose(block, tokens, g, work, pulled[share]);
        }
    });
    Pass result{std::move(pulled[0]), power[0]};
    for (std::size_t share = 1; share < share_count; ++share) {
        result.pulled += pulled[share];
        result.score_power += power[share];
        trace[0] += trace[share];
    }
    result.pulled.triangularView<Eigen::StrictlyUpper>() = result.pulled.transpose();
    result.pulled.diagonal().array() -= trace[0];
    result.pulled /= std::sqrt(static_cast<double>(d));
    return result;
}

}  // namespace

AmpResult run_amp(const data::Dataset& data, const spectral::SpectralLaw& prior,
                  const channels::Channel& channel, const AmpOptions& options, ThreadPool& pool) {
    check_size("layers of the channel", channel.layers(), 1);
    check_size("tokens of the channel", channel.tokens(), data.tokens->tokens());
    check_size("rows of the outputs", data.outputs.rows(), data.tokens->samples());
    check_at_least("iterations", options.max_iterations, 1);
    check_positive("tolerance", options.tolerance);
    check_non_negative("damping", options.damping);
    if (options.damping >= 1) throw_invalid("damping", "below 1", options.damping);

    const Eigen::Index dim = data.tokens->dim();
    const double d = static_cast<double>(dim), prior_error = prior.variance();
    Matrix estimate = options.initial_estimate.value_or(Matrix(prior.mean() * Matrix::Identity(dim, dim)));
    check_size("dimension of the initial estimate", estimate.rows(), dim);
    double error = options.initial_error.value_or(prior_error), damping = options.damping;
    const double vanishing = 1e-9 * prior_error, largest = 1e3 * (prior.second_moment() + prior_error);

    const auto pass_of_precision = data.tokens->precision() == data::Precision::double_precision
                                       ? pass_over_data<double>
                                       : pass_over_data<float>;
    AmpResult result;
    Messages messages;
    Matrix best = estimate;
    double best_error = error, best_inconsistency = std::numeric_limits<double>::infinity();
    double last_change = std::numeric_limits<double>::infinity();
    const auto finish = [&](Termination status) {
        const bool lost = status == Termination::diverged;
        result.status = status;
        result.estimate = lost ? std::move(best) : std::move(estimate);
        result.predicted_error = lost ? best_error : error;
        return std::move(result);
    };
    for (int iteration = 1; iteration <= options.max_iterations; ++iteration) {
        const auto start = std::chrono::steady_clock::now();
        if (!(error > 0)) return finish(Termination::exact_recovery);
        const Pass pass = pass_of_precision(data, channel, estimate, 2 * error, damping, messages, pool);
        const double conjugate = 4 / (d * d) * pass.score_power;
        if (!std::isfinite(conjugate)) return finish(Termination::diverged);
        // What the outputs say of the error where they fix m combinations: residuals V g have variance 2 E.
        const double residual_error = messages.variance * messages.variance * pass.score_power /
                                      (2.0 * channel.exact_observations().value_or(channel.pairs()) *
                                       static_cast<double>(data.tokens->samples()));
        // Nothing left to explain: the estimate reproduces the outputs exactly.
        if (conjugate * prior_error < 1e-20) return finish(Termination::exact_recovery);
        const Matrix noisy = estimate + 2 / (d * conjugate) * pass.pulled;
        if (!noisy.allFinite()) return finish(Termination::diverged);
        auto denoised =
            denoisers::denoise(prior, noisy, 1 / conjugate, pool, {options.linear_outside_support});

        AmpIteration now;
        now.iteration = iteration;
        now.change = (denoised.estimate - estimate).squaredNorm() / d;
        estimate = std::move(denoised.estimate);
        error = denoised.posterior_variance;
        now.self_overlap = estimate.squaredNorm() / d;
        now.predicted_error = error;
        now.conjugate = conjugate;
        if (options.measure) now.true_error = options.measure(estimate);
        now.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        result.record.push_back(now);

        // For a posterior mean E||Shat||^2/d = Q - C (Nishimori): how far that is violated tells a lost run.
        const double inconsistency = std::abs(now.self_overlap - (prior.second_moment() - error));
        const bool consistent = inconsistency < 0.5 * prior_error;
        if (inconsistency < best_inconsistency) {
            best_inconsistency = inconsistency;
            best = estimate;
            best_error = error;
        }
        if (!(now.self_overlap < largest)) return finish(Termination::diverged);
        if (options.progress && !options.progress(now)) return finish(Termination::stopped);
        if (error < vanishing) {
            // Recovered only if the outputs are explained too: undamped runs can lose their variance alone.
            const bool explained = residual_error < 1e-6 * prior_error;
            return finish(consistent && explained ? Termination::exact_recovery : Termination::diverged);
        }
        if (now.change <= options.tolerance * error) {
            return finish(consistent ? Termination::converged : Termination::diverged);
        }
        if (options.adaptive_damping) {
            damping = now.change > last_change ? std::min(0.9, 0.5 + 0.5 * damping)
                                               : std::max(options.damping, 0.95 * damping);
        }
        last_change = now.change;
    }
    return finish(Termination::iteration_limit);
}

}  // namespace bayesaim::estimators
