// SPDX-License-Identifier: MIT
#include "bayesaim/data/tokens.hpp"

#include <algorithm>

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
    BorrowedTokens(const Scalar* columns, Eigen::Index samples, Eigen::Index tokens, Eigen::Index dim,
                   std::shared_ptr<const void> owner)
        : TokenSource(samples, tokens, dim), columns_(columns), owner_(std::move(owner)) {}

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
        return {columns_ + static_cast<Eigen::Index>(range.begin) * tokens() * dim(), dim(),
                static_cast<Eigen::Index>(range.size()) * tokens()};
    }

    const Scalar* columns_;
    std::shared_ptr<const void> owner_;
};

template <class Scalar>
std::unique_ptr<TokenSource> keep(Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic> columns,
                                  Eigen::Index tokens) {
    check_at_least("tokens", tokens, 1);
    if (columns.cols() % tokens != 0)
        throw_invalid("columns of the tokens", "a multiple of T", static_cast<double>(columns.cols()));
    using Columns = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>;
    const auto owner = std::make_shared<const Columns>(std::move(columns));
    return std::make_unique<BorrowedTokens<Scalar>>(owner->data(), owner->cols() / tokens, tokens,
                                                    owner->rows(), owner);
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
    : samples_(samples), tokens_(tokens), dim_(dim) {
    check_at_least("samples", samples, 1);
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
    // columns: the d x d matrices of large problems pass through memory once per block. Small problems get 8
    // blocks, so that several threads have work.
    const auto dim = static_cast<std::size_t>(source.dim()),
               tokens = static_cast<std::size_t>(source.tokens()),
               samples = static_cast<std::size_t>(source.samples());
    const std::size_t columns = std::max<std::size_t>((std::size_t{1} << 16) / dim, 256);
    const std::size_t most = std::clamp<std::size_t>(columns / tokens, 16, 4096);
    return std::clamp<std::size_t>((samples + 7) / 8, 16, most);
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
    const auto fill = [&]<class Columns>(Columns columns) {
        parallel_for(pool, static_cast<std::size_t>(samples), samples_per_block(*generated),
                     [&](Range range) {
                         Matrix scratch;
                         const auto block = generated->block(range, scratch);
                         columns.middleCols(static_cast<Eigen::Index>(range.begin) * tokens, block.cols()) =
                             block.template cast<typename Columns::Scalar>();
                     });
        return keep(std::move(columns), tokens);
    };
    if (precision == Precision::float_precision) return fill(Eigen::MatrixXf(dim, samples * tokens));
    return fill(Matrix(dim, samples * tokens));
}

std::unique_ptr<TokenSource> given_tokens(Matrix columns, Eigen::Index tokens) {
    return keep(std::move(columns), tokens);
}
std::unique_ptr<TokenSource> given_tokens(Eigen::MatrixXf columns, Eigen::Index tokens) {
    return keep(std::move(columns), tokens);
}

std::unique_ptr<TokenSource> borrowed_tokens(const double* columns, Eigen::Index samples, Eigen::Index tokens,
                                             Eigen::Index dim, std::shared_ptr<const void> owner) {
    return std::make_unique<BorrowedTokens<double>>(columns, samples, tokens, dim, std::move(owner));
}
std::unique_ptr<TokenSource> borrowed_tokens(const float* columns, Eigen::Index samples, Eigen::Index tokens,
                                             Eigen::Index dim, std::shared_ptr<const void> owner) {
    return std::make_unique<BorrowedTokens<float>>(columns, samples, tokens, dim, std::move(owner));
}

}  // namespace bayesaim::data
