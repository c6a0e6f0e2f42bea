// SPDX-License-Identifier: MIT
// One AMP iteration (softmax, T = 2, width 0.5, alpha 0.12), and for comparison the bare operations of the
// same shapes, on one thread.
#include "bayesaim/estimators/amp.hpp"

#include <benchmark/benchmark.h>

#include "bayesaim/channels/softmax.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"
#include "bayesaim/priors/wishart.hpp"

namespace {

using namespace bayesaim;

constexpr double alpha = 0.12;
constexpr int tokens = 2;

void amp_iteration(benchmark::State& state) {
    const priors::Wishart prior(0.5);
    const channels::Softmax channel(tokens);
    ThreadPool pool(1);
    data::SyntheticOptions synthetic;
    synthetic.dim = state.range(0);
    synthetic.alpha = alpha;
    const auto problem = data::make_synthetic(prior, channel, synthetic, pool);
    estimators::AmpOptions options;
    options.max_iterations = 5;
    for (auto _ : state)
        benchmark::DoNotOptimize(run_amp(problem.data, prior.law(), channel, options, pool).predicted_error);
    state.counters["seconds_per_iteration"] =
        benchmark::Counter(static_cast<double>(state.iterations()) * options.max_iterations,
                           benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(amp_iteration)->Arg(100)->Arg(200)->Arg(400)->Unit(benchmark::kMillisecond);

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

}  // namespace
