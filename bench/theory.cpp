// SPDX-License-Identifier: MIT
// State evolution: one point of each channel, on one core.
#include <benchmark/benchmark.h>

#include "bayesaim/channels/table.hpp"
#include "bayesaim/spectral/marchenko_pastur_law.hpp"
#include "bayesaim/theory/bayes_optimal.hpp"

namespace {

using namespace bayesaim;

/// Bayes-optimal fixed point, tied attention of width 0.5, alpha = range / 1000.
void theory_point(benchmark::State& state, const char* name, int tokens) {
    const spectral::MarchenkoPasturLaw law(0.5);
    const theory::SpectralCurve prior(law);
    const auto channel = channels::make_channel(name, {.tokens = tokens});
    const double alpha = static_cast<double>(state.range(0)) / 1000;
    for (auto _ : state)
        benchmark::DoNotOptimize(solve_bayes_optimal(prior, *channel, alpha).optimal().error());
}
BENCHMARK_CAPTURE(theory_point, softmax, "softmax", 2)
    ->Arg(20)
    ->Arg(50)
    ->Arg(100)
    ->Arg(150)
    ->Arg(180)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(theory_point, linear, "linear", 2)
    ->Arg(20)
    ->Arg(50)
    ->Arg(100)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(theory_point, hardmax, "hardmax", 2)
    ->Arg(100)
    ->Arg(1000)
    ->Arg(20000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(theory_point, hardmax_three_tokens, "hardmax", 3)
    ->Arg(1000)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

/// Generalisation error alone.
void generalization(benchmark::State& state, const char* name, int tokens) {
    const auto channel = channels::make_channel(name, {.tokens = tokens});
    const channels::OrderParameters parameters{linalg::scalar_overlap(1.2), linalg::scalar_overlap(0.3)};
    for (auto _ : state) benchmark::DoNotOptimize(channel->generalization(parameters, {}).bayes_optimal);
}
BENCHMARK_CAPTURE(generalization, softmax, "softmax", 2)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(generalization, softmax_four_tokens, "softmax", 4)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generalization, hardmax_three_tokens, "hardmax", 3)->Unit(benchmark::kMillisecond);

}  // namespace
