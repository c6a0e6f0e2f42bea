// SPDX-License-Identifier: MIT
#pragma once
#include <string_view>

namespace bayesaim::channels {

/// Who attends to whom, and whether queries and keys share their weights.
enum class Attention {
    tied,    ///< S symmetric: the pairs a <= b of one set of tokens
    cross,   ///< S any matrix: queries of one set of tokens, keys of another
    masked,  ///< S any matrix: one set of tokens, without the diagonal
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
struct Geometry {
    Attention attention = Attention::tied;
    int queries = 2;  ///< T, tokens that attend
    int keys = 2;     ///< tokens that are attended to; T unless they are another set

    bool symmetric() const { return attention == Attention::tied; }
    bool separate_keys() const { return attention == Attention::cross; }
    double variance_factor() const { return symmetric() ? 2 : 1; }  ///< v
    /// Whether the output shows how token a attends to token b.
    bool sees(int query, int key) const { return attention != Attention::masked || query != key; }
    int row_length() const {
        return attention == Attention::masked ? keys - 1 : keys;
    }  ///< keys that a query sees
    int pairs() const { return symmetric() ? queries * (queries + 1) / 2 : queries * row_length(); }  ///< K
    int outputs() const { return queries * keys; }

    /// Position of the pair (a, b), which must be seen, among the K pairs; in tied attention in either order.
    int pair(int a, int b) const {
        if (!symmetric()) return a * row_length() + b - (attention == Attention::masked && b > a ? 1 : 0);
        return a > b ? pair(b, a) : a * queries - a * (a - 1) / 2 + b - a;
    }
};

}  // namespace bayesaim::channels
