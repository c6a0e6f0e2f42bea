// SPDX-License-Identifier: MIT
// Two layers of two tokens (width 0.5, c = 1, beta = 1): the score of one sample on one thread, one AMP
// iteration and one state-evolution point on two threads.
#include <cmath>

#include <benchmark/benchmark.h>

#include "bayesaim/channels/deep_attention.hpp"
#include "bayesaim/estimators/amp.hpp"
#include "bayesaim/priors/wishart.hpp"
#include "bayesaim/theory/state_evolution.hpp"

namespace {

using namespace bayesaim;

/// Arguments: 10000 x C_11 and 10000 x C_22, on the path of state evolution.
void score(benchmark::State& state) {
    const channels::DeepAttention channel;
    const double error[] = {1e-4 * static_cast<double>(state.range(0)),
                            1e-4 * static_cast<double>(state.range(1))};
    linalg::Overlap variance = linalg::Overlap::Zero(2, 2);
    constexpr Eigen::Index samples = 512;
    channels::Rows omega(samples, 6), index(samples, 6), outputs(samples, 4), g(samples, 6);
    for (Eigen::Index i = 0; i < samples; ++i) {
        double z[12];
        RandomStream(0, Purpose::tokens, static_cast<std::uint64_t>(i)).fill_normal(z);
        for (int column = 0; column < 6; ++column) {
            const int l = column / 3;
            variance(l, l) = 2 * error[l];
            omega(i, column) = std::sqrt(2 * (1.5 - error[l])) * z[column];
            index(i, column) = omega(i, column) + std::sqrt(2 * error[l]) * z[column + 6];
        }
    }
    channel.draw(index, 0, 0, outputs);
    for (auto _ : state) benchmark::DoNotOptimize(channel.score_with_slope(outputs, omega, variance, g));
    state.counters["seconds_per_sample"] =
        benchmark::Counter(static_cast<double>(state.iterations() * samples),
                           benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(score)->Args({10000, 10000})->Args({5460, 2070})->Args({2200, 428})->Unit(benchmark::kMillisecond);

void amp_iteration(benchmark::State& state) {
    const priors::Wishart prior(0.5);
    const priors::Prior* priors[] = {&prior, &prior};
    const spectral::SpectralLaw* laws[] = {&prior.law(), &prior.law()};
    const channels::DeepAttention channel;
    ThreadPool pool(2);
    data::SyntheticOptions synthetic;
    synthetic.dim = state.range(0);
    synthetic.alpha = 0.2;
    const auto problem = data::make_synthetic(priors, channel, synthetic, pool);
    estimators::AmpOptions options;
    options.max_iterations = 5;
    for (auto _ : state) {
        benchmark::DoNotOptimize(run_amp(problem.data, laws, channel, options, pool).predicted_error);
    }
    state.counters["seconds_per_iteration"] =
        benchmark::Counter(static_cast<double>(state.iterations()) * options.max_iterations,
                           benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(amp_iteration)->Arg(100)->Arg(200)->Unit(benchmark::kMillisecond)->UseRealTime();

/// 8 x 8192 points: the error of Tr C is 1.3e-3 at alpha = 0.3, as reported.
void state_evolution_point(benchmark::State& state) {
    const priors::Wishart prior(0.5);
    const spectral::SpectralLaw* laws[] = {&prior.law(), &prior.law()};
    const theory::SpectralCurve prior_curve{theory::Laws(laws)};
    const channels::DeepAttention channel;
    ThreadPool pool(2);
    theory::StateEvolutionOptions options;
    options.integration = {.shifts = 8, .points = 8192, .pool = &pool};
    for (auto _ : state) {
        const auto point =
            theory::solve_state_evolution(prior_curve, channel, 0.3, theory::Start::uninformed, options);
        state.counters["relative_error"] = point.relative_error;
    }
}
BENCHMARK(state_evolution_point)->Iterations(1)->Unit(benchmark::kSecond)->UseRealTime();

}  // namespace
