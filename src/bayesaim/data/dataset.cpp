// SPDX-License-Identifier: MIT
#include "bayesaim/data/dataset.hpp"

#include <cmath>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/data/attention.hpp"

namespace bayesaim::data {

using linalg::Matrix;

Synthetic make_synthetic(std::span<const priors::Prior* const> priors, const channels::Channel& channel,
                         const SyntheticOptions& options, ThreadPool& pool) {
    if (priors.size() != static_cast<std::size_t>(channel.layers()))
        throw InvalidArgument(fmt::format("channel {} has {} layer(s), got {} prior(s)", channel.name(),
                                          channel.layers(), priors.size()));
    check_positive("alpha", options.alpha);
    check_at_least("dimension", options.dim, 1);
    const double aspect = priors.front()->law().aspect();
    if (aspect * static_cast<double>(options.dim) < 0.5)
        throw_invalid("aspect", fmt::format("one that leaves a key dimension at dimension {}", options.dim),
                      aspect);
    const Eigen::Index key_dim = priors.front()->law().columns(options.dim);
    const auto samples = std::max<Eigen::Index>(
        1, static_cast<Eigen::Index>(std::llround(options.alpha * static_cast<double>(options.dim) *
                                                  static_cast<double>(key_dim))));
    Synthetic result;
    for (std::size_t l = 0; l < priors.size(); ++l) {
        result.weights.push_back(priors[l]->sample(options.dim, options.seed, l, pool));
    }
    result.data.tokens =
        gaussian_tokens(samples, channel.tokens(), options.dim, options.seed, options.storage,
                        options.precision, pool, options.test ? Purpose::test_tokens : Purpose::tokens);
    const channels::Geometry geometry = channel.geometry();
    if (geometry.separate_keys())
        result.data.key_tokens =
            gaussian_tokens(samples, geometry.keys, key_dim, options.seed, options.storage, options.precision,
                            pool, options.test ? Purpose::test_key_tokens : Purpose::key_tokens);
    result.data.outputs.resize(samples, channel.outputs());
    constexpr std::uint64_t first_test_sample = std::uint64_t{1} << 63;  // separate label noise
    const Range own = result.data.shares().own_samples(pool.ranks());
    const channels::Rows index =
        attention_indices(geometry, *result.data.tokens, result.data.keys(), result.weights, pool);
    channel.draw(rows_of(index, own), options.seed, (options.test ? first_test_sample : 0) + own.begin,
                 rows_of(result.data.outputs, own));
    return result;
}

Synthetic make_synthetic(const priors::Prior& prior, const channels::Channel& channel,
                         const SyntheticOptions& options, ThreadPool& pool) {
    const priors::Prior* one[] = {&prior};
    return make_synthetic(one, channel, options, pool);
}

TestSet make_test_set(std::span<const Matrix> weights, const channels::Channel& channel, Eigen::Index samples,
                      std::uint64_t seed, ThreadPool& pool) {
    check_size("number of weights", static_cast<long long>(weights.size()), channel.layers());
    TestSet result;
    result.tokens =
        gaussian_tokens(samples, channel.tokens(), weights[0].rows(), seed, TokenStorage::regenerate,
                        Precision::double_precision, pool, Purpose::test_tokens);
    const channels::Geometry geometry = channel.geometry();
    if (geometry.separate_keys())
        result.key_tokens =
            gaussian_tokens(samples, geometry.keys, weights[0].cols(), seed, TokenStorage::regenerate,
                            Precision::double_precision, pool, Purpose::test_key_tokens);
    result.targets.resize(samples, channel.outputs());
    const Range own = result.tokens->shares().own_samples(pool.ranks());
    const channels::Rows index = attention_indices(geometry, *result.tokens, result.keys(), weights, pool);
    channel.predict(rows_of(index, own), linalg::zero_overlap(channel.components()),
                    rows_of(result.targets, own));
    return result;
}

void check_tokens(const channels::Geometry& geometry, const TokenSource& tokens, const TokenSource& keys) {
    check_size("tokens of the data", tokens.tokens(), geometry.queries);
    if (geometry.separate_keys() && &keys == &tokens)
        throw InvalidArgument("cross-attention needs key tokens, a second set of tokens");
    if (!geometry.separate_keys() && &keys != &tokens)
        throw InvalidArgument(
            fmt::format("{} attention has no key tokens of its own", to_string(geometry.attention)));
    check_size("key tokens of the data", keys.tokens(), geometry.keys);
    check_size("samples of the key tokens", keys.samples(), tokens.samples());
    if (!geometry.separate_keys()) check_size("dimension of the key tokens", keys.dim(), tokens.dim());
}

void check_outputs(const channels::Channel& channel, const Dataset& data, const Communicator& ranks) {
    check_tokens(channel.geometry(), *data.tokens, data.keys());
    check_size("rows of the outputs", data.outputs.rows(), data.tokens->samples());
    const Range own = data.shares().own_samples(ranks);
    try {
        channel.check_outputs(rows_of(data.outputs, own));
    } catch (const InvalidArgument& error) {
        if (own.begin == 0) throw;
        throw InvalidArgument(fmt::format("{} (samples counted from {} on)", error.what(), own.begin));
    }
}

namespace {

/// d, or sqrt(d1 d2) of a rectangular matrix. sqrt(d^2) is d to the last bit.
double dimension(const Matrix& matrix) {
    return std::sqrt(static_cast<double>(matrix.rows()) * static_cast<double>(matrix.cols()));
}

}  // namespace

linalg::Overlap self_overlaps(std::span<const Matrix> weights) {
    const auto layers = static_cast<Eigen::Index>(weights.size());
    linalg::Overlap result(layers, layers);
    for (Eigen::Index l = 0; l < layers; ++l) {
        for (Eigen::Index k = 0; k <= l; ++k) {
            const Matrix &a = weights[static_cast<std::size_t>(l)], &b = weights[static_cast<std::size_t>(k)];
            result(l, k) = result(k, l) = a.cwiseProduct(b).sum() / dimension(a);
        }
    }
    return result;
}

linalg::Overlap estimation_errors(const channels::Geometry& geometry, std::span<const Matrix> estimates,
                                  std::span<const Matrix> weights) {
    check_size("number of estimates", static_cast<long long>(estimates.size()),
               static_cast<long long>(weights.size()));
    std::vector<Matrix> differences;
    for (std::size_t l = 0; l < weights.size(); ++l) {
        check_size("dimension of an estimate", estimates[l].rows(), weights[l].rows());
        check_size("columns of an estimate", estimates[l].cols(), weights[l].cols());
        differences.push_back(estimates[l] - weights[l]);
    }
    return self_overlaps(components_of(geometry, differences));
}

linalg::Overlap estimation_errors(std::span<const Matrix> estimates, std::span<const Matrix> weights) {
    return estimation_errors(channels::Geometry{}, estimates, weights);
}

double estimation_error(const linalg::Matrix& estimate, const linalg::Matrix& weights) {
    return estimation_errors({&estimate, 1}, {&weights, 1})(0, 0);
}

}  // namespace bayesaim::data
