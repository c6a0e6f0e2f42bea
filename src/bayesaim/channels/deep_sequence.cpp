// SPDX-License-Identifier: MIT
#include "bayesaim/channels/deep_sequence.hpp"

#include "bayesaim/channels/two_layer_posterior.hpp"
#include "bayesaim/core/checks.hpp"

namespace bayesaim::channels {

DeepSequence::DeepSequence(const DeepSequenceOptions& options) : LayeredChannel(2), options_(options) {
    check_non_negative("deep-seq2seq channel: residual", options.residual);
    check_between("deep-seq2seq channel: beta", options.beta, 1e-6, 1e6);
}

std::vector<std::pair<std::string, double>> DeepSequence::parameters() const {
    return {
        {"layers", layers()}, {"tokens", tokens()}, {"beta", options_.beta}, {"residual", options_.residual}};
}

void DeepSequence::draw(const ConstRowsRef& index, std::uint64_t, std::uint64_t, RowsRef outputs) const {
    check_size("columns of the indices", index.cols(), layers() * pairs());
    for (Eigen::Index i = 0; i < index.rows(); ++i) {
        const double* htilde = index.data() + i * index.outerStride();
        const TokenMatrix mixing = mixing_matrix(htilde, 1, 2, options_.beta, options_.residual);
        const TokenMatrix h = index_matrix(htilde + pairs(), 2);
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
        const TwoLayerPrior prior{{centre.head<2>(), centre.tail<2>()}, variance};
        result.push_back(layer_moments(sequence_posterior(
            {outputs(i, 1), outputs(i, 2)}, prior, options_.beta, options_.residual, options_.quadrature)));
    }
    return result;
}

}  // namespace bayesaim::channels
