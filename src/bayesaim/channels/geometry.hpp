// SPDX-License-Identifier: MIT
#pragma once
#include <string_view>

namespace bayesaim::channels {

/// Who attends to whom, and whether queries and keys share their weights.
enum class Attention {
    tied,    ///< S symmetric: the pairs a <= b of one set of tokens
    cross,   ///< S any matrix: queries of one set of tokens, keys of another
    masked,  ///< S any matrix: one set of tokens, without the diagonal
    self,    ///< S any matrix: one set of tokens, with the diagonal
    causal,  ///< the same, but token a attends to the tokens b <= a only
};
/// From its name. Throws InvalidArgument with the argument's `name` in the message.
Attention parse_attention(std::string_view name, std::string_view text);
std::string_view to_string(Attention attention);

/// The attention indices of a sample: which pairs (a, b) of query and key are seen, row by row.
///
/// All theory and all algorithms are the same for every geometry but for one number v. With C = Q - q,
///   V = v C,   qhat = v^2 alpha F,   F = E sum g^2,   R = Shat + (v/d) qhat^-1 sum g Z.
/// v = 2 if S is symmetric, where each off-diagonal entry is seen twice and htilde = tau h has the variance 2 C; v = 1
/// if S is any matrix, with d^2 instead of d^2/2 entries, and htilde = h.
///
/// A token that attends to itself sees the symmetric part of S only. Then the symmetric and the antisymmetric part of S
/// have errors of their own, C = diag(E_s, E_a), and are treated like two layers of tied attention, v = 2, over the pairs
/// a <= b: htilde_ab = (h_ab + h_ba)/sqrt(2) and h_aa of the first part, (h_ab - h_ba)/sqrt(2) and 0 of the second.
/// Their noise is never correlated, whatever the scores: x_a x_b' + x_b x_a' and x_a x_b' - x_b x_a' are orthogonal.
struct Geometry {
    Attention attention = Attention::tied;
    int queries = 2;  ///< T, tokens that attend
    int keys = 2;     ///< tokens that are attended to; T unless they are another set

    bool symmetric() const { return attention == Attention::tied; }
    bool separate_keys() const { return attention == Attention::cross; }
    /// The parts of S with errors of their own: 2, symmetric and antisymmetric, or 1, all of S.
    int parts() const { return attention == Attention::self || attention == Attention::causal ? 2 : 1; }
    double variance_factor() const { return symmetric() || parts() == 2 ? 2 : 1; }  ///< v
    /// Whether the output shows how token a attends to token b.
    bool sees(int query, int key) const {
        return attention == Attention::masked ? query != key : attention != Attention::causal || key <= query;
    }
    /// Keys that a query sees.
    int row_length(int query) const {
        return attention == Attention::masked ? keys - 1 : attention == Attention::causal ? query + 1 : keys;
    }
    /// K, the indices of each part
    int pairs() const {
        return symmetric() || parts() == 2 ? queries * (queries + 1) / 2 : queries * row_length(0);
    }
    int outputs() const { return queries * keys; }
    /// Outputs that are seen, of outputs().
    int seen_outputs() const {
        int sum = 0;
        for (int a = 0; a < queries; ++a) sum += row_length(a);
        return sum;
    }

    /// Position of the pair (a, b), which must be seen, among the K pairs; if v = 2 in either order.
    int pair(int a, int b) const {
        if (!symmetric() && parts() == 1)
            return a * row_length(a) + b - (attention == Attention::masked && b > a ? 1 : 0);
        return a > b ? pair(b, a) : a * queries - a * (a - 1) / 2 + b - a;
    }
};

}  // namespace bayesaim::channels
