// SPDX-License-Identifier: MIT
#include "bayesaim/data/encoder.hpp"

#include <cmath>

#include "bayesaim/core/checks.hpp"

namespace bayesaim::data {
namespace {

using linalg::Matrix;

Matrix row_softmax(const Matrix& logits, double beta) {
    Matrix result = beta * logits;
    for (Eigen::Index a = 0; a < result.rows(); ++a) {
        result.row(a) = (result.row(a).array() - result.row(a).maxCoeff()).exp();
        result.row(a) /= result.row(a).sum();
    }
    return result;
}

}  // namespace

std::vector<EncoderLayer> run_encoder(const linalg::ConstMatrixRef& tokens, std::span<const Matrix> weights,
                                      const EncoderOptions& options) {
    check_weights("weights", weights, tokens.cols());
    check_at_least("tokens", tokens.rows(), 2);
    check_positive("beta", options.beta);
    check_non_negative("residual", options.residual);
    const double scale = 1 / std::sqrt(static_cast<double>(tokens.cols()));
    Matrix x = tokens, mixing = Matrix::Identity(tokens.rows(), tokens.rows());
    std::vector<EncoderLayer> layers;
    for (const Matrix& s : weights) {
        EncoderLayer layer;
        layer.logits = scale * (x * s * x.transpose() - s.trace() * mixing * mixing.transpose());
        layer.attention = row_softmax(layer.logits, options.beta);
        layer.read_out = layer.attention * x;
        layer.tokens = options.residual * x + layer.read_out;
        mixing = (options.residual * mixing + layer.attention * mixing).eval();
        x = layer.tokens;
        layers.push_back(std::move(layer));
    }
    return layers;
}

Matrix multi_head_attention(const linalg::ConstMatrixRef& tokens, std::span<const Matrix> heads, double beta,
                            HeadAveraging averaging) {
    check_weights("heads", heads, tokens.cols());
    check_positive("beta", beta);
    Matrix mean = Matrix::Zero(tokens.rows(), tokens.rows());
    for (const Matrix& s : heads) {
        Matrix h = tokens * s * tokens.transpose();
        h.diagonal().array() -= s.trace();
        h /= std::sqrt(static_cast<double>(tokens.cols()));
        mean += averaging == HeadAveraging::logits ? h : row_softmax(h, beta);
    }
    mean /= static_cast<double>(heads.size());
    return averaging == HeadAveraging::logits ? row_softmax(mean, beta) : mean;
}

}  // namespace bayesaim::data
