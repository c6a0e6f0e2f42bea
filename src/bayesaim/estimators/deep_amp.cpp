// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/deep_amp.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include <Eigen/Dense>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/data/attention.hpp"
#include "bayesaim/data/deep_attention.hpp"

namespace bayesaim::estimators {
namespace {

using channels::Rows;
using linalg::Matrix;

/// Sums over samples go into this many partial matrices, each over a fixed share of the blocks, added in
/// order.
constexpr std::size_t shares = 8;
/// Scores cost more than products: smaller blocks, so that small problems have work for several threads.
constexpr std::size_t samples_per_score = 64;

Overlap zero(Eigen::Index layers) { return Overlap::Zero(layers, layers); }

bool positive_definite(const Overlap& matrix) {
    return matrix.allFinite() && Eigen::LLT<Overlap>(matrix).info() == Eigen::Success;
}

/// g <- (1 - damping) g_out(y, omega, V) + damping g; returns the sum of -dg_out/domega.
Overlap update_scores(const data::Dataset& data, const channels::Channel& channel, const Rows& omega,
                      const Overlap& variance, double damping, Rows& g, ThreadPool& pool) {
    return parallel_sum<Overlap>(pool, static_cast<std::size_t>(omega.rows()), samples_per_score,
                                 zero(variance.rows()), [&](Range range) {
                                     const auto begin = static_cast<Eigen::Index>(range.begin),
                                                size = static_cast<Eigen::Index>(range.size());
                                     Rows score(size, omega.cols());
                                     const Overlap slope = channel.score_with_slope(
                                         data.outputs.middleRows(begin, size), omega.middleRows(begin, size),
                                         variance, score);
                                     auto kept = g.middleRows(begin, size);
                                     kept = damping * kept + (1 - damping) * score;
                                     return slope;
                                 });
}

/// sum_ab g_ab Z_ab of every layer.
std::vector<Matrix> pull_back(const data::TokenSource& source, const Rows& g, Eigen::Index pairs,
                              ThreadPool& pool) {
    const Eigen::Index d = source.dim(), tokens = source.tokens();
    const auto layers = static_cast<std::size_t>(g.cols() / pairs);
    const auto samples = static_cast<std::size_t>(source.samples());
    const std::size_t block_size = data::samples_per_block(source), blocks = block_count(samples, block_size),
                      share_count = std::min(shares, blocks);
    std::vector<std::vector<Matrix>> partial(share_count, std::vector<Matrix>(layers, Matrix::Zero(d, d)));
    pool.for_each(share_count, [&](std::size_t share) {
        Matrix scratch, mixed;
        for (std::size_t b = share * blocks / share_count; b < (share + 1) * blocks / share_count; ++b) {
            const Range range = block_range(samples, block_size, b);
            const auto begin = static_cast<Eigen::Index>(range.begin),
                       size = static_cast<Eigen::Index>(range.size());
            const auto block = source.block(range, scratch);
            for (std::size_t l = 0; l < layers; ++l) {
                const Rows layer = g.block(begin, static_cast<Eigen::Index>(l) * pairs, size, pairs);
                data::accumulate_transpose(block, tokens, layer, mixed, partial[share][l]);
            }
        }
    });
    for (std::size_t l = 0; l < layers; ++l) {
        Matrix& sum = partial[0][l];
        for (std::size_t share = 1; share < share_count; ++share) sum += partial[share][l];
        double trace = 0;
        for (int a = 0; a < tokens; ++a) {
            const int diagonal = channels::pair_index(a, a, static_cast<int>(tokens));
            trace += g.col(static_cast<Eigen::Index>(l) * pairs + diagonal).sum();
        }
        sum.triangularView<Eigen::StrictlyUpper>() = sum.transpose();
        sum.diagonal().array() -= trace;
        sum /= std::sqrt(static_cast<double>(d));
    }
    return std::move(partial[0]);
}

/// Sum over samples and pairs of g^l g^k.
Overlap power_of(const Rows& g, Eigen::Index layers) {
    const Eigen::Index pairs = g.cols() / layers;
    Overlap power(layers, layers);
    for (Eigen::Index l = 0; l < layers; ++l) {
        for (Eigen::Index k = 0; k <= l; ++k) {
            power(l, k) = power(k, l) =
                g.middleCols(l * pairs, pairs).cwiseProduct(g.middleCols(k * pairs, pairs)).sum();
        }
    }
    return power;
}

/// to^l += sum_k matrix_lk from^k, in blocks of K columns.
void add_mixed(const Overlap& matrix, const Rows& from, Rows& to) {
    const Eigen::Index layers = matrix.rows(), pairs = from.cols() / layers;
    for (Eigen::Index l = 0; l < layers; ++l) {
        for (Eigen::Index k = 0; k < layers; ++k) {
            to.middleCols(l * pairs, pairs) += matrix(l, k) * from.middleCols(k * pairs, pairs);
        }
    }
}

Overlap overlaps(const std::vector<Matrix>& a, const std::vector<Matrix>& b) {
    const auto layers = static_cast<Eigen::Index>(a.size());
    Overlap result(layers, layers);
    for (Eigen::Index l = 0; l < layers; ++l) {
        for (Eigen::Index k = 0; k < layers; ++k) {
            const Matrix &x = a[static_cast<std::size_t>(l)], &y = b[static_cast<std::size_t>(k)];
            result(l, k) = x.cwiseProduct(y).sum() / static_cast<double>(x.rows());
        }
    }
    return result;
}

}  // namespace

DeepAmpResult run_deep_amp(const data::Dataset& data, denoisers::Laws priors,
                           const channels::Channel& channel, const DeepAmpOptions& options,
                           ThreadPool& pool) {
    check_size("number of priors", static_cast<long long>(priors.size()), channel.layers());
    check_size("tokens of the channel", channel.tokens(), data.tokens->tokens());
    check_size("rows of the outputs", data.outputs.rows(), data.tokens->samples());
    check_at_least("iterations", options.max_iterations, 1);
    check_positive("tolerance", options.tolerance);
    check_non_negative("damping", options.damping);
    if (options.damping >= 1) throw_invalid("damping", "below 1", options.damping);

    const Eigen::Index dim = data.tokens->dim(), layers = channel.layers(), pairs = channel.pairs();
    const double d = static_cast<double>(dim);
    std::vector<Matrix> estimates;
    Overlap error = zero(layers), second_moment = zero(layers);
    Eigen::VectorXd means(layers);
    for (Eigen::Index l = 0; l < layers; ++l) {
        const spectral::SpectralLaw& prior = *priors[static_cast<std::size_t>(l)];
        estimates.emplace_back(prior.mean() * Matrix::Identity(dim, dim));
        means[l] = prior.mean();
        error(l, l) = prior.variance();
    }
    second_moment = error + Overlap(means * means.transpose());
    const double prior_error = error.trace(), vanishing = 1e-9 * prior_error,
                 largest = 1e3 * second_moment.trace(), least_response = 1e-2 / error.diagonal().maxCoeff();

    DeepAmpResult result;
    std::vector<Matrix> best = estimates;
    Overlap best_error = error, onsager = zero(layers), response = zero(layers);
    double best_inconsistency = std::numeric_limits<double>::infinity();
    Rows g = Rows::Zero(data.tokens->samples(), layers * pairs);
    const auto finish = [&](Termination status) {
        const bool lost = status == Termination::diverged;
        result.status = status;
        result.estimates = lost ? std::move(best) : std::move(estimates);
        result.predicted_error = lost ? best_error : error;
        return std::move(result);
    };
    for (int iteration = 1; iteration <= options.max_iterations; ++iteration) {
        const auto start = std::chrono::steady_clock::now();
        Rows omega = data::all_layer_indices(*data.tokens, estimates, pool);
        add_mixed(-onsager, g, omega);
        const double damping = iteration == 1 ? 0 : options.damping;
        const Overlap slope = update_scores(data, channel, omega, 2 * error, damping, g, pool);
        response = damping * response + (1 - damping) * 4 / (d * d) * 0.5 * (slope + slope.transpose());
        const Overlap power = 4 / (d * d) * power_of(g, layers);
        if (!power.allFinite() || !response.allFinite()) return finish(Termination::diverged);
        // Nothing left to explain: the estimates reproduce the outputs exactly.
        if (power.trace() * prior_error < 1e-20) return finish(Termination::exact_recovery);
        // Of a layer that is hardly seen the mean slope of so many samples may have any sign.
        const Overlap inverse = linalg::with_eigenvalues_above(response, least_response).inverse();
        Overlap noise = inverse * power * inverse.transpose();
        noise = (0.5 * (noise + noise.transpose())).eval();
        constexpr double hopeless = 1e20;  // scores of posteriors that were not resolved
        if (!positive_definite(noise) || noise.trace() > hopeless) return finish(Termination::diverged);

        const std::vector<Matrix> pulled = pull_back(*data.tokens, g, pairs, pool);
        std::vector<Matrix> noisy = estimates;
        for (Eigen::Index l = 0; l < layers; ++l) {
            for (Eigen::Index k = 0; k < layers; ++k) {
                noisy[static_cast<std::size_t>(l)] +=
                    2 / d * inverse(l, k) * pulled[static_cast<std::size_t>(k)];
            }
        }
        auto denoised = denoisers::denoise_jointly(priors, noisy, noise, pool, options.denoiser);

        DeepAmpIteration now;
        now.iteration = iteration;
        for (std::size_t l = 0; l < estimates.size(); ++l) {
            now.change += (denoised.estimates[l] - estimates[l]).squaredNorm() / d;
        }
        estimates = std::move(denoised.estimates);
        error = denoised.posterior_covariance;
        onsager = 2 * error * noise.inverse() * inverse;
        now.self_overlap = overlaps(estimates, estimates);
        now.predicted_error = error;
        now.noise_covariance = noise;
        if (options.measure) now.true_error = options.measure(estimates);
        now.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        result.record.push_back(now);

        // For a posterior mean the self-overlap is Q - C (Nishimori): how far that is violated tells a lost
        // run.
        const double inconsistency = std::abs((now.self_overlap - (second_moment - error)).trace());
        if (inconsistency < best_inconsistency && positive_definite(error)) {
            best_inconsistency = inconsistency;
            best = estimates;
            best_error = error;
        }
        if (!(now.self_overlap.trace() < largest) || !positive_definite(error)) {
            return finish(Termination::diverged);
        }
        if (options.progress && !options.progress(now)) return finish(Termination::stopped);
        const bool consistent = inconsistency < 0.5 * prior_error;
        if (error.trace() < vanishing) {
            return finish(consistent ? Termination::exact_recovery : Termination::diverged);
        }
        if (now.change <= options.tolerance * error.trace()) {
            return finish(consistent ? Termination::converged : Termination::diverged);
        }
    }
    return finish(Termination::iteration_limit);
}

}  // namespace bayesaim::estimators
