// SPDX-License-Identifier: MIT
#pragma once
#include <span>
#include <string_view>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/data/tokens.hpp"
#include "bayesaim/linalg/lower_product.hpp"

namespace bayesaim::data {

/// The forward map of one attention layer,
///   htilde_ab = tau_ab (x_a' S x_b - delta_ab Tr S) / sqrt(d)     over the pairs a <= b,
/// for the samples of a block. With S = L + L' for a triangle L, x_a' S x_b = x_a' (L x_b) + x_b' (L x_a):
/// half a product of the tokens with a d x d matrix, in the precision of Scalar, double or float. The antisymmetric
/// part of S in self-attention is L - L', and has the other sign.
template <class Scalar>
class AttentionMap {
  public:
    using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>;

    explicit AttentionMap(const linalg::ConstMatrixRef& weights, bool antisymmetric = false);

    /// `projected` is scratch memory.
    void indices(const TokenSource::BlockOf<Scalar>& block, Eigen::Index tokens, Matrix& projected,
                 channels::RowsRef index) const;

  private:
    linalg::LowerFactor<Scalar> half_;  // the lower triangle of S, half of the diagonal
    double trace_;
    bool antisymmetric_;
};

/// The transpose of the forward map: lower += sum_i X_i G_i X_i' over the samples of a block, on the lower
/// triangle, with G_aa = g_aa, G_ab = g_ab / sqrt(2); then
///   sum_ab g_ab Z_ab = (sum_i X_i G_i X_i' - sum_i Tr(G_i) I) / sqrt(d).
/// G = sum_k lambda_k u_k u_k' makes it the difference of two A A', half a product in all. `mixed`
/// is scratch memory.
template <class Scalar>
void accumulate_transpose(const TokenSource::BlockOf<Scalar>& block, Eigen::Index tokens,
                          const channels::ConstRowsRef& g,
                          Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>& mixed,
                          linalg::Matrix& lower);

/// The forward map of untied attention, h_ab = x_a' S z_b / (d1 d2)^(1/4) over the pairs that the geometry shows, S of
/// size d1 x d2 (sqrt(d) if d1 = d2 = d): a product of
/// S' with the queries, and one scalar product with a key for each pair. No pair is a token with itself, so there is no
/// trace to subtract.
template <class Scalar>
class BilinearMap {
  public:
    using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>;

    BilinearMap(const linalg::ConstMatrixRef& weights, const channels::Geometry& geometry);

    /// `projected` is scratch memory.
    void indices(const TokenSource::BlockOf<Scalar>& queries, const TokenSource::BlockOf<Scalar>& keys,
                 Matrix& projected, channels::RowsRef index) const;

  private:
    Matrix weights_;
    channels::Geometry geometry_;
};

/// Its transpose: sum += sum_i X_i G_i Z_i' over the samples of a block, G_ab = g_ab. If g has two parts, G is the sum
/// of both, and so are the symmetric and the antisymmetric part of the result.
template <class Scalar>
void accumulate_bilinear(const channels::Geometry& geometry, const TokenSource::BlockOf<Scalar>& queries,
                         const TokenSource::BlockOf<Scalar>& keys, const channels::ConstRowsRef& g,
                         Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>& mixed, linalg::Matrix& sum);

/// What the maps act on: one symmetric matrix per layer, S itself, or its symmetric and antisymmetric part.
std::vector<linalg::Matrix> components_of(const channels::Geometry& geometry,
                                          std::span<const linalg::Matrix> weights);
/// The reverse: one matrix for each layer.
std::vector<linalg::Matrix> from_components(const channels::Geometry& geometry,
                                            std::vector<linalg::Matrix> components);

/// The maps of tied attention, or of the parts of S.
template <class Scalar>
std::vector<AttentionMap<Scalar>> attention_maps(const channels::Geometry& geometry,
                                                 std::span<const linalg::Matrix> components);

/// htilde of all samples of this rank, in n x L K, layer by layer; the rows of others are not set. Tied attention, or `keys` as the geometry needs them.
channels::Rows attention_indices(const TokenSource& source, std::span<const linalg::Matrix> weights,
                                 ThreadPool& pool);
channels::Rows attention_indices(const channels::Geometry& geometry, const TokenSource& queries,
                                 const TokenSource& keys, std::span<const linalg::Matrix> weights,
                                 ThreadPool& pool);

/// Throws InvalidArgument, with `name` in the message, unless there is at least one matrix and each is d x d.
void check_weights(std::string_view name, std::span<const linalg::Matrix> weights, Eigen::Index dim);
/// The same for weights of d1 x d2.
void check_weights(std::string_view name, std::span<const linalg::Matrix> weights, Eigen::Index rows,
                   Eigen::Index columns);

}  // namespace bayesaim::data
