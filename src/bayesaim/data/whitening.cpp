// SPDX-License-Identifier: MIT
#include "bayesaim/data/whitening.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"

namespace bayesaim::data {
namespace {

using linalg::Matrix;
using linalg::Vector;

constexpr Eigen::Index tokens_per_dimension = 10;
constexpr double smallest_relative_eigenvalue = 1e-10;

/// A copy of the tokens of this rank in memory, of the same precision. `change(first, tokens)` gets a copy of some tokens, of which the
/// first has number `first`, and changes it.
std::shared_ptr<const TokenSource> changed_copy(const TokenSource& source, ThreadPool& pool,
                                                const std::function<void(Eigen::Index, Matrix&)>& change) {
    const Range own = source.shares().own_samples(pool.ranks());
    const auto fill = [&]<class Columns>(Columns columns) {
        for_own_blocks(pool, source.shares(), samples_per_block(source), [&](Range range) {
            Matrix scratch, tokens = source.block(range, scratch);
            change(static_cast<Eigen::Index>(range.begin) * source.tokens(), tokens);
            columns.middleCols(static_cast<Eigen::Index>(range.begin - own.begin) * source.tokens(),
                               tokens.cols()) = tokens.cast<typename Columns::Scalar>();
        });
        return given_tokens(std::move(columns), source.tokens(), own, source.shares());
    };
    const Eigen::Index count = static_cast<Eigen::Index>(own.size()) * source.tokens();
    if (source.precision() == Precision::float_precision)
        return fill(linalg::FloatMatrix(source.dim(), count));
    return fill(Matrix(source.dim(), count));
}

Matrix between(const Matrix& left, const linalg::ConstMatrixRef& weights, const Matrix& right) {
    Matrix result = left.size() == 0 ? Matrix(weights) : linalg::product(left, weights);
    if (right.size() > 0) result = linalg::product(result, right);
    return result;
}

void check_dimensions(const linalg::ConstMatrixRef& weights, const Whitening& queries,
                      const Whitening& keys) {
    if (weights.rows() != queries.mean.size() || weights.cols() != keys.mean.size())
        throw_invalid("weights",
                      fmt::format("{} x {}, as the whitening", queries.mean.size(), keys.mean.size()),
                      fmt::format("{} x {}", weights.rows(), weights.cols()));
}

class TokenSubset final : public TokenSource {
  public:
    TokenSubset(std::shared_ptr<const TokenSource> source, std::span<const Eigen::Index> samples)
        : TokenSource(shares_of(*source, samples), source->tokens(), source->dim()),
          source_(std::move(source)),
          samples_of_source_(samples.begin(), samples.end()) {}

    Block block(Range range, Matrix& scratch) const override {
        return gather<double>(range, scratch,
                              [&](Range part, Matrix& memory) { return source_->block(part, memory); });
    }

    BlockOf<float> float_block(Range range, linalg::FloatMatrix& scratch) const override {
        return gather<float>(range, scratch, [&](Range part, linalg::FloatMatrix& memory) {
            return source_->float_block(part, memory);
        });
    }

    Precision precision() const override { return source_->precision(); }

  private:
    /// Each sample stays in its share, and so with its rank, if they are in their order.
    static Shares shares_of(const TokenSource& source, std::span<const Eigen::Index> samples) {
        for (const Eigen::Index sample : samples) {
            if (sample < 0 || sample >= source.samples())
                throw_invalid("sample of a subset", fmt::format("between 0 and {}", source.samples() - 1),
                              fmt::format("{}", sample));
        }
        const std::vector<std::size_t> numbers(samples.begin(), samples.end());
        return std::is_sorted(numbers.begin(), numbers.end()) ? source.shares().subset(numbers)
                                                              : Shares(numbers.size());
    }

    /// The longest run of neighbouring samples from `begin` on, as samples of the source.
    Range run_from(std::size_t begin, std::size_t end) const {
        Range run{samples_of_source_[begin], samples_of_source_[begin] + 1};
        while (++begin < end && samples_of_source_[begin] == run.end) ++run.end;
        return run;
    }

    template <class Scalar, class Columns, class Read>
    BlockOf<Scalar> gather(Range range, Columns& scratch, const Read& read) const {
        Range run = run_from(range.begin, range.end);
        if (run.size() == range.size()) return read(run, scratch);
        Columns part;
        scratch.resize(dim(), static_cast<Eigen::Index>(range.size()) * tokens());
        for (std::size_t i = range.begin; i < range.end; i += run.size()) {
            run = run_from(i, range.end);
            const BlockOf<Scalar> columns = read(run, part);
            scratch.middleCols(static_cast<Eigen::Index>(i - range.begin) * tokens(), columns.cols()) =
                columns;
        }
        return {scratch.data(), scratch.rows(), scratch.cols()};
    }

    std::shared_ptr<const TokenSource> source_;
    std::vector<std::size_t> samples_of_source_;
};

}  // namespace

Whitening whitening_of(const TokenStatistics& statistics) {
    const Eigen::Index d = statistics.mean.size(), least = tokens_per_dimension * d;
    if (statistics.count < least)
        throw_invalid("number of tokens",
                      fmt::format("at least {} d = {} to whiten them", tokens_per_dimension, least),
                      fmt::format("{} (d = {})", statistics.count, d));
    const linalg::SymmetricEigen eigen = linalg::symmetric_eigen(statistics.covariance);
    const double largest = eigen.values[d - 1];
    const Eigen::Index missing = (eigen.values.array() <= smallest_relative_eigenvalue * largest).count();
    if (missing > 0)
        throw_invalid("covariance of the tokens", "invertible",
                      fmt::format("{} of d = {} directions that the tokens do not span", missing, d));
    ThreadPool pool;
    const Vector roots = eigen.values.cwiseSqrt();
    return {statistics.mean, linalg::from_eigen(eigen.vectors, roots, pool),
            linalg::from_eigen(eigen.vectors, roots.cwiseInverse(), pool), largest / eigen.values[0]};
}

Whitening centring_of(const TokenStatistics& statistics) { return {statistics.mean, {}, {}}; }

std::shared_ptr<const TokenSource> whitened(const TokenSource& source, const Whitening& whitening,
                                            ThreadPool& pool) {
    check_size("mean of the whitening", whitening.mean.size(), source.dim());
    return changed_copy(source, pool, [&](Eigen::Index, Matrix& tokens) {
        tokens.colwise() -= whitening.mean;
        if (!whitening.identity()) tokens = linalg::product(whitening.inverse_root, tokens);
    });
}

Matrix whitened_weights(const linalg::ConstMatrixRef& weights, const Whitening& queries,
                        const Whitening& keys) {
    check_dimensions(weights, queries, keys);
    return between(queries.root, weights, keys.root);
}

Matrix unwhitened_weights(const linalg::ConstMatrixRef& weights, const Whitening& queries,
                          const Whitening& keys) {
    check_dimensions(weights, queries, keys);
    return between(queries.inverse_root, weights, keys.inverse_root);
}

std::shared_ptr<const TokenSource> length_normalised(const TokenSource& source, Vector& squared_lengths,
                                                     ThreadPool& pool) {
    squared_lengths.resize(source.samples() * source.tokens());
    return changed_copy(source, pool, [&](Eigen::Index first, Matrix& tokens) {
        for (Eigen::Index i = 0; i < tokens.cols(); ++i) {
            const double s = tokens.col(i).squaredNorm() / static_cast<double>(source.dim());
            if (!(s > 0))
                throw_invalid(fmt::format("token {} of sample {}", (first + i) % source.tokens(),
                                          (first + i) / source.tokens()),
                              "of positive length", std::sqrt(s));
            squared_lengths[first + i] = s;
            tokens.col(i) /= std::sqrt(s);
        }
    });
}

std::shared_ptr<const TokenSource> token_subset(std::shared_ptr<const TokenSource> source,
                                                std::span<const Eigen::Index> samples) {
    return std::make_shared<TokenSubset>(std::move(source), samples);
}

}  // namespace bayesaim::data
