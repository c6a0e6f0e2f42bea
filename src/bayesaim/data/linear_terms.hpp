// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/channels/channel.hpp"
#include "bayesaim/data/tokens.hpp"

/// What real attention adds to the indices x_a' S z_b / sqrt(d). With s = sqrt(d), or (d1 d2)^(1/4) if keys have
/// another dimension,
///   h_ab += (query . x_a + key . z_b)/s + diagonal delta_ab + constant.
/// Biases of queries and keys give the vectors, and so does a mean of the tokens. The diagonal is there if the trace
/// of S is not subtracted, or if the tokens were whitened.
namespace bayesaim::data {

struct LinearTerms {
    linalg::Vector query{},
        key{};  ///< empty: zero. Tied attention: `key` serves both sides, `query` is empty
    double diagonal = 0, constant = 0;

    bool zero() const { return query.size() == 0 && key.size() == 0 && diagonal == 0 && constant == 0; }
};

/// Which of them are there.
struct TermChoice {
    bool query = false, key = false, diagonal = false, constant = false;

    bool any() const { return query || key || diagonal || constant; }
};

/// The terms as one vector of parameters, query, key, diagonal, constant, those that are chosen.
class TermLayout {
  public:
    TermLayout(const channels::Geometry& geometry, const TermChoice& choice, Eigen::Index dim,
               Eigen::Index key_dim);

    Eigen::Index size() const { return size_; }
    const TermChoice& choice() const { return choice_; }
    LinearTerms terms(const linalg::Vector& parameters) const;
    linalg::Vector parameters(const LinearTerms& terms) const;

    /// index += F parameters, for the samples of a block; `terms` are those of the parameters.
    template <class Scalar>
    void add(const LinearTerms& terms, const TokenSource::BlockOf<Scalar>& queries,
             const TokenSource::BlockOf<Scalar>& keys, channels::RowsRef index) const;
    /// sum += F' g
    template <class Scalar>
    void add_transpose(const TokenSource::BlockOf<Scalar>& queries, const TokenSource::BlockOf<Scalar>& keys,
                       const channels::ConstRowsRef& g, linalg::Vector& sum) const;
    /// sum over all samples of F' H F, H the same for each.
    linalg::Matrix gram(const TokenSource& queries, const TokenSource& keys, const Eigen::MatrixXd& h,
                        ThreadPool& pool) const;

  private:
    channels::Geometry geometry_;
    TermChoice choice_;
    Eigen::Index dim_, key_dim_, size_;
    /// The indices of a sample, linear in query . x_a/s, key . z_b/s, the diagonal and the constant, in this order.
    Eigen::MatrixXd mixing_;
};

}  // namespace bayesaim::data
