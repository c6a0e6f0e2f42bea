// SPDX-License-Identifier: MIT
#include "bayesaim/data/dataset.hpp"

#include <cmath>

#include <fmt/format.h>

#include "bayesaim/channels/deep_sequence.hpp"
#include "bayesaim/core/checks.hpp"
#include "bayesaim/data/deep_attention.hpp"

namespace bayesaim::data {

Synthetic make_synthetic(const priors::Prior& prior, const channels::Channel& channel,
                         const SyntheticOptions& options, ThreadPool& pool) {
    const priors::Prior* one[] = {&prior};
    DeepSynthetic made = make_deep_synthetic(one, channel, options, pool);
    return {std::move(made.weights.front()), std::move(made.data)};
}

TestSet make_test_set(const linalg::Matrix& weights, const channels::Channel& channel, Eigen::Index samples,
                      std::uint64_t seed, ThreadPool& pool) {
    return make_deep_test_set({&weights, 1}, channel, samples, seed, pool);
}

void check_outputs(const channels::Channel& channel, const Dataset& data) {
    const int tokens = channel.tokens();
    check_size("tokens of the data", data.tokens->tokens(), tokens);
    check_size("rows of the outputs", data.outputs.rows(), data.tokens->samples());
    check_size("columns of the outputs", data.outputs.cols(), tokens * tokens);
    const auto* sequence = dynamic_cast<const channels::DeepSequence*>(&channel);
    constexpr double tolerance = 1e-4;  // outputs may have been kept in single precision
    for (Eigen::Index i = 0; i < data.outputs.rows(); ++i) {
        const auto y = [&](int a, int b) { return data.outputs(i, a * tokens + b); };
        for (int a = 0; a < tokens; ++a) {
            const auto name = [&](const char* what) {
                return fmt::format("{} of sample {}, row {}", what, i, a);
            };
            double sum = 0;
            int ones = 0, zeros = 0;
            for (int b = 0; b < tokens; ++b) {
                check_finite(name("output"), y(a, b));
                sum += channel.logarithmic_outputs() ? std::exp(y(a, b)) : y(a, b);
                if (std::abs(y(a, b) - 1) <= tolerance) ++ones;
                if (std::abs(y(a, b)) <= tolerance) ++zeros;
                if (channel.name() == "linear" &&
                    std::abs(y(a, b) - y(b, a)) > tolerance * (1 + std::abs(y(a, b)))) {
                    throw_invalid(name("output"), fmt::format("symmetric, {} like its mirror", y(b, a)),
                                  y(a, b));
                }
            }
            if (channel.logarithmic_outputs() && std::abs(sum - 1) > tolerance) {
                throw_invalid(name("sum of the probabilities"), "1", sum);
            }
            if (sequence != nullptr) {
                const double row_sum = sequence->row_sum();
                if (std::abs(sum - row_sum) > tolerance * row_sum)
                    throw_invalid(name("sum of the outputs"), fmt::format("{}", row_sum), sum);
                // Where attention is saturated an output is the row sum, give or take round-off.
                for (int b = 0; b < tokens; ++b)
                    check_between(name("output"), y(a, b), 0, row_sum * (1 + tolerance));
            }
            if (channel.name().starts_with("hardmax") && (ones != 1 || zeros != tokens - 1)) {
                throw_invalid(name("hardmax output"), "one 1 and zeros", fmt::format("sum {}", sum));
            }
        }
    }
}

double estimation_error(const linalg::Matrix& estimate, const linalg::Matrix& weights) {
    check_size("dimension of the estimate", estimate.rows(), weights.rows());
    return (estimate - weights).squaredNorm() / static_cast<double>(weights.rows());
}

}  // namespace bayesaim::data
