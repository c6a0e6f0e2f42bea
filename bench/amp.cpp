// SPDX-License-Identifier: MIT
// One AMP iteration (softmax, T = 2, width 0.5, alpha 0.12), and for comparison the bare operations of the
// same shapes, on one thread.
#include "bayesaim/estimators/amp.hpp"

#include <benchmark/benchmark.h>

#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"
#include "bayesaim/model/model.hpp"

namespace {

using namespace bayesaim;

constexpr double alpha = 0.12;
constexpr int tokens = 2;

void amp_iteration(benchmark::State& state, channels::Attention attention) {
    const model::Model model =
        model::make_model({.widths = {0.5}, .channel_options = {.tokens = tokens, .attention = attention}});
    ThreadPool pool(1);
    data::SyntheticOptions synthetic;
    synthetic.dim = state.range(0);
    synthetic.alpha = alpha;
    const auto problem = data::make_synthetic(model.priors(), model.channel(), synthetic, pool);
    estimators::AmpOptions options;
    options.max_iterations = 5;
    for (auto _ : state)
        benchmark::DoNotOptimize(
            run_amp(problem.data, model.laws(), model.channel(), options, pool).predicted_error);
    state.counters["seconds_per_iteration"] =
        benchmark::Counter(static_cast<double>(state.iterations()) * options.max_iterations,
                           benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK_CAPTURE(amp_iteration, tied, channels::Attention::tied)
    ->Arg(100)
    ->Arg(200)
    ->Arg(400)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(amp_iteration, cross, channels::Attention::cross)
    ->Arg(100)
    ->Arg(400)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(amp_iteration, self, channels::Attention::self)
    ->Arg(100)
    ->Arg(400)
    ->Unit(benchmark::kMillisecond);

/// One and a half products of the tokens (nT x d) with a d x d matrix, and one eigendecomposition.
void bare_operations(benchmark::State& state) {
    const Eigen::Index d = state.range(0),
                       columns = tokens * static_cast<Eigen::Index>(alpha * static_cast<double>(d * d));
    ThreadPool pool(1);
    const linalg::Matrix x = linalg::gaussian_matrix(d, columns, RandomStream(0, Purpose::tokens), pool);
    const linalg::Matrix half = x.leftCols(columns / 2);
    const linalg::Matrix s = linalg::gaussian_orthogonal_ensemble(d, RandomStream(0, Purpose::weights), pool);
    linalg::Matrix product(d, columns), square(d, d);
    for (auto _ : state) {
        linalg::multiply(1, s, linalg::Transpose::no, x, linalg::Transpose::no, 0, product);
        linalg::multiply(1, half, linalg::Transpose::no, half, linalg::Transpose::yes, 0, square);
        benchmark::DoNotOptimize(linalg::symmetric_eigen(s).values[0]);
    }
    state.counters["seconds_per_iteration"] = benchmark::Counter(
        static_cast<double>(state.iterations()), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(bare_operations)->Arg(100)->Arg(200)->Arg(400)->Unit(benchmark::kMillisecond);

/// Untied attention: two products of the tokens with a d x d matrix, and for each decomposition R'R, its eigenvectors and
/// two products of d x d matrices (self: two decompositions).
void bare_untied_operations(benchmark::State& state) {
    const Eigen::Index d = state.range(0),
                       columns = tokens * static_cast<Eigen::Index>(alpha * static_cast<double>(d * d));
    ThreadPool pool(1);
    const linalg::Matrix x = linalg::gaussian_matrix(d, columns, RandomStream(0, Purpose::tokens), pool);
    const linalg::Matrix s = linalg::gaussian_matrix(d, d, RandomStream(0, Purpose::weights), pool);
    linalg::Matrix product(d, columns), square(d, d);
    for (auto _ : state) {
        linalg::multiply(1, s, linalg::Transpose::yes, x, linalg::Transpose::no, 0, product);
        linalg::multiply(1, x, linalg::Transpose::no, product, linalg::Transpose::yes, 0, square);
        for (int i = 0; i < state.range(1); ++i) {
            const auto eigen = linalg::symmetric_eigen(linalg::gram(1, s.transpose()));
            const linalg::Matrix map = linalg::from_eigen(eigen.vectors, eigen.values, pool);
            linalg::multiply(1, s, linalg::Transpose::no, map, linalg::Transpose::no, 0, square);
        }
        benchmark::DoNotOptimize(square(0, 0));
    }
    state.counters["seconds_per_iteration"] = benchmark::Counter(
        static_cast<double>(state.iterations()), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(bare_untied_operations)
    ->Args({100, 1})
    ->Args({100, 2})
    ->Args({400, 1})
    ->Args({400, 2})
    ->Unit(benchmark::kMillisecond);

}  // namespace
