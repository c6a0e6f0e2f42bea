// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>

#include "bayesaim/core/parallel.hpp"
#include "bayesaim/core/precision.hpp"
#include "bayesaim/core/random.hpp"
#include "bayesaim/core/shares.hpp"
#include "bayesaim/linalg/blas.hpp"

namespace bayesaim::data {

enum class TokenStorage { memory, regenerate };
using bayesaim::Precision;

/// Parse "memory" or "regenerate", "double" or "float". Other texts throw InvalidArgument with the argument's
/// `name` in the message.
TokenStorage parse_token_storage(std::string_view name, std::string_view text);
Precision parse_precision(std::string_view name, std::string_view text);

/// The tokens of n samples, T each, in R^d. A source need not hold more than one block in memory. Among several ranks it
/// need not hold samples of other ranks, as its shares say.
class TokenSource {
  public:
    virtual ~TokenSource() = default;

    Eigen::Index samples() const { return samples_; }  ///< n
    Eigen::Index tokens() const { return tokens_; }    ///< T
    Eigen::Index dim() const { return dim_; }          ///< d
    const Shares& shares() const { return shares_; }

    template <class Scalar>
    using BlockOf = Eigen::Map<const Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>>;
    using Block = BlockOf<double>;

    /// Tokens of a range of samples: column i T + a is token a of the i-th sample of the range. The view
    /// shows memory of the source or `scratch`, and is valid until either changes. Thread-safe.
    virtual Block block(Range samples, linalg::Matrix& scratch) const = 0;
    /// The same, rounded to single precision.
    virtual BlockOf<float> float_block(Range samples, linalg::FloatMatrix& scratch) const;

    /// Precision of the entries: products of single-precision tokens need no double precision.
    virtual Precision precision() const { return Precision::double_precision; }

  protected:
    TokenSource(Eigen::Index samples, Eigen::Index tokens, Eigen::Index dim);
    TokenSource(const Shares& shares, Eigen::Index tokens, Eigen::Index dim);

  private:
    Eigen::Index samples_, tokens_, dim_;
    Shares shares_;
};

/// Standard normal tokens of sample i from RandomStream(seed, purpose, i): kept in memory, those of this rank, or made
/// again block by block, with the same bits. Single precision rounds each entry in both cases.
std::unique_ptr<TokenSource> gaussian_tokens(Eigen::Index samples, Eigen::Index tokens, Eigen::Index dim,
                                             std::uint64_t seed, TokenStorage storage, Precision precision,
                                             ThreadPool& pool, Purpose purpose = Purpose::tokens);

/// Tokens given as a d x (n T) matrix, in the order of TokenSource::block.
std::unique_ptr<TokenSource> given_tokens(linalg::Matrix columns, Eigen::Index tokens);
std::unique_ptr<TokenSource> given_tokens(Eigen::MatrixXf columns, Eigen::Index tokens);

/// Tokens of which only the samples `kept` are here, those of this rank.
std::unique_ptr<TokenSource> given_tokens(linalg::Matrix columns, Eigen::Index tokens, Range kept,
                                          const Shares& shares);
std::unique_ptr<TokenSource> given_tokens(Eigen::MatrixXf columns, Eigen::Index tokens, Range kept,
                                          const Shares& shares);

/// The same without a copy: `columns` points to d x (n T) numbers, column after column, which stay valid
/// while `owner` lives.
std::unique_ptr<TokenSource> borrowed_tokens(const double* columns, Eigen::Index samples, Eigen::Index tokens,
                                             Eigen::Index dim, std::shared_ptr<const void> owner);
std::unique_ptr<TokenSource> borrowed_tokens(const float* columns, Eigen::Index samples, Eigen::Index tokens,
                                             Eigen::Index dim, std::shared_ptr<const void> owner);

/// Most samples per block of work: fixed, so that results do not depend on threads or storage.
std::size_t samples_per_block(const TokenSource& source);

}  // namespace bayesaim::data
