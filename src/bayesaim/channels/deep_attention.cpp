// SPDX-License-Identifier: MIT
#include "bayesaim/channels/deep_attention.hpp"

#include "bayesaim/channels/posteriors/two_layer_posterior.hpp"
#include "bayesaim/core/checks.hpp"

namespace bayesaim::channels {
namespace {

const DeepAttentionOptions& checked(const DeepAttentionOptions& options) {
    check_between("deep-softmax channel: layers", options.layers, 2, linalg::max_layers);
    check_between("deep-softmax channel: tokens", options.tokens, 2, max_deep_tokens);
    check_between("deep-softmax channel: residual", options.residual, 0, 1e6);
    check_between("deep-softmax channel: beta", options.beta, 1e-6, 1e6);
    return options;
}

}  // namespace

DeepAttention::DeepAttention(const DeepAttentionOptions& options)
    : LayeredChannel(checked(options).tokens), options_(options) {
    if (layers() > 2 || tokens() > 2) {
        sampled_posterior_ = std::make_shared<LayerPosterior>(layers(), tokens(), options_.beta,
                                                              options_.residual, options_.points);
    }
}

std::vector<std::pair<std::string, double>> DeepAttention::parameters() const {
    return {
        {"layers", layers()}, {"tokens", tokens()}, {"beta", options_.beta}, {"residual", options_.residual}};
}

void DeepAttention::draw(const ConstRowsRef& index, std::uint64_t, std::uint64_t, RowsRef outputs) const {
    check_size("columns of the indices", index.cols(), layers() * pairs());
    for (Eigen::Index i = 0; i < index.rows(); ++i) {
        const double* htilde = index.data() + i * index.outerStride();
        const TokenMatrix mixing =
            mixing_matrix(htilde, layers() - 1, tokens(), options_.beta, options_.residual);
        const TokenMatrix h = index_matrix(htilde + (layers() - 1) * pairs(), tokens());
        const TokenMatrix y = row_log_softmax(mixing * h * mixing.transpose(), options_.beta);
        for (int a = 0; a < tokens(); ++a) {
            for (int b = 0; b < tokens(); ++b) outputs(i, a * tokens() + b) = y(a, b);
        }
    }
}

std::vector<LayerMoments> DeepAttention::posterior(const ConstRowsRef& outputs, const ConstRowsRef& omega,
                                                   const Overlap& variance) const {
    check_size("columns of omega", omega.cols(), layers() * pairs());
    check_size("layers of the variance", variance.rows(), layers());
    const double beta = options_.beta;
    std::vector<LayerMoments> result;
    for (Eigen::Index i = 0; i < omega.rows(); ++i) {
        const double* log_y = outputs.data() + i * outputs.outerStride();
        const Eigen::VectorXd centre = coordinates(omega, i);
        if (sampled_posterior_) {
            result.push_back(
                (*sampled_posterior_)(logits_of_output(log_y, tokens(), beta), centre, variance));
            continue;
        }
        const Eigen::Vector2d m((log_y[1] - log_y[0]) / beta, (log_y[2] - log_y[3]) / beta);
        const TwoLayerPrior prior{{centre.head<2>(), centre.tail<2>()}, variance};
        result.push_back(
            layer_moments(attention_posterior(m, prior, beta, options_.residual, options_.quadrature)));
    }
    return result;
}

}  // namespace bayesaim::channels
