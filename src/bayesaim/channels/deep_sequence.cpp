// SPDX-License-Identifier: MIT
#include "bayesaim/channels/deep_sequence.hpp"

#include <cmath>

#include <fmt/format.h>

#include "bayesaim/channels/posteriors/two_layer_posterior.hpp"
#include "bayesaim/core/checks.hpp"

namespace bayesaim::channels {
namespace {

constexpr double unresolved = 0.02;  // from this error of the quadrature on, sampling is tried

const DeepSequenceOptions& checked(const DeepSequenceOptions& options) {
    check_between("deep-seq2seq channel: layers", options.layers, 2, linalg::max_layers);
    check_between("deep-seq2seq channel: residual", options.residual, 0, 1e6);
    check_between("deep-seq2seq channel: beta", options.beta, 1e-6, 100);
    return options;
}

}  // namespace

DeepSequence::DeepSequence(const DeepSequenceOptions& options)
    : LayeredChannel(2),
      options_(checked(options)),
      sampled_posterior_(options.layers, options.beta, options.residual, options.points) {}

std::vector<std::pair<std::string, double>> DeepSequence::parameters() const {
    return {
        {"layers", layers()}, {"tokens", tokens()}, {"beta", options_.beta}, {"residual", options_.residual}};
}

void DeepSequence::check_outputs(const ConstRowsRef& outputs) const {
    Channel::check_outputs(outputs);
    const double row_sum = std::pow(options_.residual + 1, layers() - 1);
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

void DeepSequence::draw(const ConstRowsRef& index, std::uint64_t, std::uint64_t, RowsRef outputs) const {
    check_size("columns of the indices", index.cols(), layers() * pairs());
    for (Eigen::Index i = 0; i < index.rows(); ++i) {
        const double* htilde = index.data() + i * index.outerStride();
        const TokenMatrix mixing = mixing_matrix(htilde, layers() - 1, 2, options_.beta, options_.residual);
        const TokenMatrix h = index_matrix(htilde + (layers() - 1) * pairs(), 2);
        const TokenMatrix y = row_softmax(mixing * h * mixing.transpose(), options_.beta) * mixing;
        outputs.row(i) << y(0, 0), y(0, 1), y(1, 0), y(1, 1);
    }
}

std::vector<LayerMoments> DeepSequence::posterior(const ConstRowsRef& outputs, const ConstRowsRef& omega,
                                                  const Overlap& variance) const {
    check_size("columns of omega", omega.cols(), layers() * pairs());
    check_size("layers of the variance", variance.rows(), layers());
    std::vector<LayerMoments> result;
    for (Eigen::Index i = 0; i < omega.rows(); ++i) {
        const Eigen::VectorXd centre = coordinates(omega, i);
        const Eigen::Vector4d y = outputs.row(i).transpose();
        if (layers() > 2) {
            result.push_back(sampled_posterior_(y, centre, variance));
            continue;
        }
        const TwoLayerPrior prior{{centre.head<2>(), centre.tail<2>()}, variance};
        LayerMoments moments = layer_moments(
            sequence_posterior({y[1], y[2]}, prior, options_.beta, options_.residual, options_.quadrature));
        if (!(moments.error <= unresolved)) {
            const LayerMoments sampled = sampled_posterior_(y, centre, variance);
            if (!(moments.error <= sampled.error)) moments = sampled;
        }
        result.push_back(std::move(moments));
    }
    return result;
}

}  // namespace bayesaim::channels
