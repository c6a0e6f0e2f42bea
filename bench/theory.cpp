// SPDX-License-Identifier: MIT
// State evolution: one point of each channel, on one core.
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "bayesaim/channels/table.hpp"
#include "bayesaim/model/model.hpp"
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

/// The same for untied attention of width 0.5.
void untied_point(benchmark::State& state, const char* name, channels::ChannelOptions options) {
    const model::Model model =
        model::make_model({.widths = {0.5}, .channel = name, .channel_options = options});
    const auto prior = theory::make_curve(model.laws(), model.channel().geometry());
    const double alpha = static_cast<double>(state.range(0)) / 1000;
    for (auto _ : state)
        benchmark::DoNotOptimize(solve_bayes_optimal(*prior, model.channel(), alpha).optimal().error());
}
using enum channels::Attention;
BENCHMARK_CAPTURE(untied_point, softmax_cross, "softmax", {.attention = cross})
    ->Arg(100)
    ->Arg(350)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(untied_point, linear_cross_noise, "linear", {.label_noise = 0.1, .attention = cross})
    ->Arg(200)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(untied_point, hardmax_cross, "hardmax", {.attention = cross})
    ->Arg(1000)
    ->Unit(benchmark::kMicrosecond);
/// Two variances: from little data to next to recovery, which is at 375 (softmax: self T = 2), 125 (T = 3), 750 (causal
/// T = 2) and 250 (T = 3).
const std::vector<std::int64_t> to_125{5, 20, 50, 100, 118, 124}, to_250{10, 50, 100, 200, 235, 247},
    to_375{10, 50, 100, 200, 300, 350, 371}, to_750{50, 200, 500, 700, 743}, with_noise{50, 200, 400, 1000};
BENCHMARK_CAPTURE(untied_point, softmax_self, "softmax", {.attention = self})
    ->ArgsProduct({to_375})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(untied_point, softmax_self_three_tokens, "softmax", {.tokens = 3, .attention = self})
    ->ArgsProduct({to_125})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(untied_point, softmax_causal, "softmax", {.attention = causal})
    ->ArgsProduct({to_750})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(untied_point, softmax_causal_three_tokens, "softmax", {.tokens = 3, .attention = causal})
    ->ArgsProduct({to_250})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(untied_point, softmax_causal_four_tokens, "softmax", {.tokens = 4, .attention = causal})
    ->Arg(80)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(untied_point, linear_self_noise, "linear", {.label_noise = 0.1, .attention = self})
    ->ArgsProduct({with_noise})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(untied_point, linear_self_more_noise, "linear", {.label_noise = 0.5, .attention = self})
    ->ArgsProduct({with_noise})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(untied_point, linear_causal_noise, "linear", {.label_noise = 0.1, .attention = causal})
    ->ArgsProduct({with_noise})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(untied_point, hardmax_self, "hardmax", {.attention = self})
    ->Arg(1000)
    ->Unit(benchmark::kMillisecond);

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
