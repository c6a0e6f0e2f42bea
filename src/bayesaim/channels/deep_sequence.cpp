// SPDX-License-Identifier: MIT
#include "bayesaim/channels/deep_sequence.hpp"

#include <cmath>

#include <fmt/format.h>

#include "bayesaim/channels/posteriors/two_layer_posterior.hpp"
#include "bayesaim/core/checks.hpp"

namespace bayesaim::channels {
namespace {

constexpr double unresolved = 0.02;  // from this error of the quadrature on, sampling is tried

}  // namespace

DeepSequence::DeepSequence(const DeepSequenceOptions& options)
    : LayeredChannel("deep-seq2seq", {options.layers, 2, options.beta, options.residual}, 100),
      quadrature_(options.quadrature),
      sampled_posterior_(options.layers, options.beta, options.residual, options.points) {}

void DeepSequence::check_outputs(const ConstRowsRef& outputs) const {
    Channel::check_outputs(outputs);
    const double row_sum = std::pow(model().residual + 1, layers() - 1);
    for (Eigen::Index i = 0; i < outputs.rows(); ++i) {
        for (int a = 0; a < 2; ++a) {
            const double first = outputs(i, 2 * a), second = outputs(i, 2 * a + 1);
            if (std::abs(first + second - row_sum) > output_tolerance * row_sum)
                throw_invalid(output_title("sum of the outputs", i, a), fmt::format("{}", row_sum),
                              first + second);
            // An output of saturated attention is the row sum up to round-off.
            for (const double y : {first, second})
                check_between(output_title("output", i, a), y, 0, row_sum * (1 + output_tolerance));
        }
    }
}

TokenMatrix DeepSequence::output(const TokenMatrix& logits, const TokenMatrix& mixing) const {
    return row_softmax(logits, model().beta) * mixing;
}

LayerMoments DeepSequence::posterior_of(const double* output, const Eigen::VectorXd& omega,
                                        const Overlap& variance) const {
    const Eigen::Vector4d y(output);
    if (layers() > 2) return sampled_posterior_(y, omega, variance);
    const LayerMoments moments =
        sequence_posterior({y[1], y[2]}, omega, variance, model().beta, model().residual, quadrature_);
    if (moments.error <= unresolved) return moments;
    const LayerMoments sampled = sampled_posterior_(y, omega, variance);
    return moments.error <= sampled.error ? moments : sampled;
}

}  // namespace bayesaim::channels
