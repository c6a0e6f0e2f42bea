// SPDX-License-Identifier: MIT
#include "bayesaim/data/tokens.hpp"

#include <algorithm>
#include <stdexcept>

#include "bayesaim/core/checks.hpp"

namespace bayesaim::data {
namespace {

using linalg::Matrix;

/// Draws the columns of the samples in the range from their streams.
void generate(Range range, Eigen::Index tokens, Eigen::Index dim, std::uint64_t seed, Purpose purpose,
              Precision precision, double* out) {
    const auto per_sample = static_cast<std::size_t>(tokens * dim);
    for (std::size_t i = range.begin; i < range.end; ++i) {
        double* first = out + (i - range.begin) * per_sample;
        RandomStream(seed, purpose, i).fill_normal({first, per_sample});
        if (precision == Precision::float_precision) {
            std::transform(first, first + per_sample, first, [](double x) { return static_cast<float>(x); });
        }
    }
}

template <class Scalar>
class BorrowedTokens final : public TokenSource {
  public:
    /// `columns` are those of the samples `kept`.
    BorrowedTokens(const Scalar* columns, const Shares& shares, Eigen::Index tokens, Eigen::Index dim,
                   Range kept, std::shared_ptr<const void> owner)
        : TokenSource(shares, tokens, dim), columns_(columns), kept_(kept), owner_(std::move(owner)) {}

    Block block(Range range, Matrix& scratch) const override {
        if constexpr (std::is_same_v<Scalar, double>) {
            return own_block(range);
        } else {
            scratch = own_block(range).template cast<double>();
            return {scratch.data(), scratch.rows(), scratch.cols()};
        }
    }

    BlockOf<float> float_block(Range range, linalg::FloatMatrix& scratch) const override {
        if constexpr (std::is_same_v<Scalar, double>) {
            return TokenSource::float_block(range, scratch);
        } else {
            return own_block(range);
        }
    }

    Precision precision() const override {
        return std::is_same_v<Scalar, double> ? Precision::double_precision : Precision::float_precision;
    }

  private:
    BlockOf<Scalar> own_block(Range range) const {
        if (range.begin < kept_.begin || range.end > kept_.end)
            throw std::logic_error("tokens of another rank are not here");
        return {columns_ + static_cast<Eigen::Index>(range.begin - kept_.begin) * tokens() * dim(), dim(),
                static_cast<Eigen::Index>(range.size()) * tokens()};
    }

    const Scalar* columns_;
    Range kept_;
    std::shared_ptr<const void> owner_;
};

template <class Scalar>
using Columns = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>;

template <class Scalar>
std::unique_ptr<TokenSource> keep(Columns<Scalar> columns, Eigen::Index tokens, Range kept,
                                  const Shares& shares) {
    check_size("columns of the tokens", columns.cols(), static_cast<Eigen::Index>(kept.size()) * tokens);
    const auto owner = std::make_shared<const Columns<Scalar>>(std::move(columns));
    return std::make_unique<BorrowedTokens<Scalar>>(owner->data(), shares, tokens, owner->rows(), kept,
                                                    owner);
}

template <class Scalar>
std::unique_ptr<TokenSource> keep_all(Columns<Scalar> columns, Eigen::Index tokens) {
    check_at_least("tokens", tokens, 1);
    if (columns.cols() % tokens != 0)
        throw_invalid("columns of the tokens", "a multiple of T", static_cast<double>(columns.cols()));
    check_at_least("samples", columns.cols(), 1);
    const auto samples = static_cast<std::size_t>(columns.cols() / tokens);
    return keep(std::move(columns), tokens, {0, samples}, Shares(samples));
}

template <class Scalar>
std::unique_ptr<TokenSource> borrow_all(const Scalar* columns, Eigen::Index samples, Eigen::Index tokens,
                                        Eigen::Index dim, std::shared_ptr<const void> owner) {
    check_at_least("samples", samples, 1);
    const auto count = static_cast<std::size_t>(samples);
    return std::make_unique<BorrowedTokens<Scalar>>(columns, Shares(count), tokens, dim, Range{0, count},
                                                    std::move(owner));
}

class GeneratedTokens final : public TokenSource {
  public:
    GeneratedTokens(Eigen::Index samples, Eigen::Index tokens, Eigen::Index dim, std::uint64_t seed,
                    Purpose purpose, Precision precision)
        : TokenSource(samples, tokens, dim), seed_(seed), purpose_(purpose), precision_(precision) {}

    Block block(Range range, Matrix& scratch) const override {
        scratch.resize(dim(), static_cast<Eigen::Index>(range.size()) * tokens());
        generate(range, tokens(), dim(), seed_, purpose_, precision_, scratch.data());
        return {scratch.data(), scratch.rows(), scratch.cols()};
    }

    Precision precision() const override { return precision_; }

  private:
    std::uint64_t seed_;
    Purpose purpose_;
    Precision precision_;
};

}  // namespace

TokenSource::TokenSource(Eigen::Index samples, Eigen::Index tokens, Eigen::Index dim)
    : TokenSource(Shares(static_cast<std::size_t>(std::max<Eigen::Index>(samples, 0))), tokens, dim) {}

TokenSource::TokenSource(const Shares& shares, Eigen::Index tokens, Eigen::Index dim)
    : samples_(static_cast<Eigen::Index>(shares.samples())), tokens_(tokens), dim_(dim), shares_(shares) {
    check_at_least("samples", samples_, 1);
    check_at_least("tokens", tokens, 1);
    check_at_least("dimension", dim, 1);
}

TokenSource::BlockOf<float> TokenSource::float_block(Range samples, linalg::FloatMatrix& scratch) const {
    Matrix wide;
    scratch = block(samples, wide).cast<float>();
    return {scratch.data(), scratch.rows(), scratch.cols()};
}

std::size_t samples_per_block(const TokenSource& source) {
    // About 2^16 numbers: the block and its product with S stay in the second-level cache. At least 256
    // columns: the d x d matrices of large problems pass through memory once per block.
    const auto dim = static_cast<std::size_t>(source.dim()),
               tokens = static_cast<std::size_t>(source.tokens());
    const std::size_t columns = std::max<std::size_t>((std::size_t{1} << 16) / dim, 256);
    return std::clamp<std::size_t>(columns / tokens, 16, 4096);
}

TokenStorage parse_token_storage(std::string_view name, std::string_view text) {
    return static_cast<TokenStorage>(check_one_of(name, text, {"memory", "regenerate"}));
}

Precision parse_precision(std::string_view name, std::string_view text) {
    return static_cast<Precision>(check_one_of(name, text, {"double", "float"}));
}

std::unique_ptr<TokenSource> gaussian_tokens(Eigen::Index samples, Eigen::Index tokens, Eigen::Index dim,
                                             std::uint64_t seed, TokenStorage storage, Precision precision,
                                             ThreadPool& pool, Purpose purpose) {
    auto generated = std::make_unique<GeneratedTokens>(samples, tokens, dim, seed, purpose, precision);
    if (storage == TokenStorage::regenerate) return generated;
    const Shares& shares = generated->shares();
    const Range own = shares.own_samples(pool.ranks());
    const auto fill = [&]<class Scalar>(Columns<Scalar> columns) {
        for_own_blocks(pool, shares, samples_per_block(*generated), [&](Range range) {
            Matrix scratch;
            const auto block = generated->block(range, scratch);
            columns.middleCols(static_cast<Eigen::Index>(range.begin - own.begin) * tokens, block.cols()) =
                block.template cast<Scalar>();
        });
        return keep(std::move(columns), tokens, own, shares);
    };
    const Eigen::Index columns = static_cast<Eigen::Index>(own.size()) * tokens;
    if (precision == Precision::float_precision) return fill(Columns<float>(dim, columns));
    return fill(Columns<double>(dim, columns));
}

std::unique_ptr<TokenSource> given_tokens(Matrix columns, Eigen::Index tokens) {
    return keep_all<double>(std::move(columns), tokens);
}
std::unique_ptr<TokenSource> given_tokens(Eigen::MatrixXf columns, Eigen::Index tokens) {
    return keep_all<float>(std::move(columns), tokens);
}

std::unique_ptr<TokenSource> given_tokens(Matrix columns, Eigen::Index tokens, Range kept,
                                          const Shares& shares) {
    return keep<double>(std::move(columns), tokens, kept, shares);
}
std::unique_ptr<TokenSource> given_tokens(Eigen::MatrixXf columns, Eigen::Index tokens, Range kept,
                                          const Shares& shares) {
    return keep<float>(std::move(columns), tokens, kept, shares);
}

std::unique_ptr<TokenSource> borrowed_tokens(const double* columns, Eigen::Index samples, Eigen::Index tokens,
                                             Eigen::Index dim, std::shared_ptr<const void> owner) {
    return borrow_all(columns, samples, tokens, dim, std::move(owner));
}
std::unique_ptr<TokenSource> borrowed_tokens(const float* columns, Eigen::Index samples, Eigen::Index tokens,
                                             Eigen::Index dim, std::shared_ptr<const void> owner) {
    return borrow_all(columns, samples, tokens, dim, std::move(owner));
}

}  // namespace bayesaim::data
