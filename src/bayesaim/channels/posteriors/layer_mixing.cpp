// SPDX-License-Identifier: MIT
#include "bayesaim/channels/posteriors/layer_mixing.hpp"

#include <cmath>
#include <numbers>

namespace bayesaim::channels {

TokenMatrix index_matrix(const double* htilde, int tokens) {
    TokenMatrix h(tokens, tokens);
    for (int a = 0; a < tokens; ++a) {
        h(a, a) = htilde[pair_index(a, a, tokens)];
        for (int b = a + 1; b < tokens; ++b) {
            h(a, b) = h(b, a) = htilde[pair_index(a, b, tokens)] / std::numbers::sqrt2;
        }
    }
    return h;
}

void scaled_indices(const TokenMatrix& h, double* htilde) {
    const int tokens = static_cast<int>(h.rows());
    for (int a = 0; a < tokens; ++a) {
        htilde[pair_index(a, a, tokens)] = h(a, a);
        for (int b = a + 1; b < tokens; ++b) {
            htilde[pair_index(a, b, tokens)] = (h(a, b) + h(b, a)) / std::numbers::sqrt2;
        }
    }
}

TokenMatrix row_log_softmax(const TokenMatrix& h, double beta) {
    TokenMatrix result = beta * h;
    for (Eigen::Index a = 0; a < h.rows(); ++a) {
        const double largest = result.row(a).maxCoeff();
        const double log_sum = largest + std::log((result.row(a).array() - largest).exp().sum());
        result.row(a).array() -= log_sum;
    }
    return result;
}

TokenMatrix row_softmax(const TokenMatrix& h, double beta) {
    TokenMatrix result = beta * h;
    for (Eigen::Index a = 0; a < h.rows(); ++a) {
        result.row(a) = (result.row(a).array() - result.row(a).maxCoeff()).exp();
        result.row(a) /= result.row(a).sum();
    }
    return result;
}

TokenMatrix next_mixing(const TokenMatrix& mixing, const TokenMatrix& h, double beta, double residual) {
    TokenMatrix attention = row_softmax(mixing * h * mixing.transpose(), beta);
    attention.diagonal().array() += residual;
    return attention * mixing;
}

TokenMatrix mixing_matrix(const double* htilde, int layers, int tokens, double beta, double residual) {
    const int pairs = tokens * (tokens + 1) / 2;
    TokenMatrix mixing = TokenMatrix::Identity(tokens, tokens);
    for (int l = 0; l < layers; ++l) {
        mixing = next_mixing(mixing, index_matrix(htilde + l * pairs, tokens), beta, residual);
    }
    return mixing;
}

TokenMatrix logits_of_output(const double* log_outputs, int tokens, double beta) {
    const int last = tokens - 1;
    const auto phi = [&](int a, int b) {
        return (log_outputs[a * tokens + b] - log_outputs[a * tokens + last]) / beta;
    };
    TokenMatrix logits(tokens, tokens);
    for (int a = 0; a < tokens; ++a) {
        for (int b = a; b < tokens; ++b) {
            // Symmetric for exact outputs; rounded outputs need the mean of both halves.
            logits(a, b) = logits(b, a) = 0.5 * (phi(a, b) + phi(last, a) + phi(b, a) + phi(last, b));
        }
    }
    return logits;
}

Eigen::MatrixXd informed_directions(int tokens) {
    const Eigen::VectorXd scale = pair_scales(tokens);
    const Eigen::Index pairs = scale.size();
    if (tokens == 2) {
        const double root = std::numbers::sqrt2;
        Eigen::MatrixXd directions(2, 3);
        directions << 1 / root, 0, -1 / root, 0.5, -1 / root, 0.5;
        return directions;
    }
    // Helmert's contrasts: row k compares pair k + 1 with the pairs before it, weighted by tau.
    Eigen::MatrixXd directions = Eigen::MatrixXd::Zero(pairs - 1, pairs);
    for (Eigen::Index k = 0; k < pairs - 1; ++k) {
        directions.row(k).head(k + 1) = scale.head(k + 1).transpose();
        directions(k, k + 1) = -scale.head(k + 1).squaredNorm() / scale[k + 1];
        directions.row(k).normalize();
    }
    return directions;
}

}  // namespace bayesaim::channels
