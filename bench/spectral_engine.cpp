// SPDX-License-Identifier: MIT
// Spectral engine on one core: one mmse(D), one denoise, and for comparison the eigendecomposition and the
// product in a denoise.
#include <benchmark/benchmark.h>

#include "bayesaim/denoisers/rotation_invariant.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"
#include "bayesaim/priors/wishart.hpp"
#include "bayesaim/spectral/atomic_law.hpp"
#include "bayesaim/spectral/free_convolution.hpp"
#include "bayesaim/spectral/marchenko_pastur_law.hpp"

namespace {

using namespace bayesaim;

/// Arguments: 1000 x width, 1000 x noise variance.
void mmse_wishart(benchmark::State& state) {
    const spectral::MarchenkoPasturLaw law(static_cast<double>(state.range(0)) / 1000);
    const double noise_variance = static_cast<double>(state.range(1)) / 1000;
    for (auto _ : state) benchmark::DoNotOptimize(spectral::mmse(law, noise_variance));
    state.counters["nodes"] =
        static_cast<double>(spectral::FreeConvolution(law, noise_variance).quadrature_size());
}
BENCHMARK(mmse_wishart)
    ->ArgsProduct({{100, 500, 1000, 2000}, {1, 100, 500, 1000, 10000}})
    ->Unit(benchmark::kMicrosecond);

/// The worst case: two bulks that are about to merge.
void mmse_at_merging(benchmark::State& state) {
    const spectral::MarchenkoPasturLaw law(0.5);
    for (auto _ : state) benchmark::DoNotOptimize(spectral::mmse(law, 0.0174));
}
BENCHMARK(mmse_at_merging)->Unit(benchmark::kMicrosecond);

void mmse_of_atoms(benchmark::State& state) {
    std::vector<double> atoms;
    for (int i = 0; i < state.range(0); ++i) atoms.push_back(i / static_cast<double>(state.range(0)));
    const spectral::AtomicLaw law(atoms);
    for (auto _ : state) benchmark::DoNotOptimize(spectral::mmse(law, 0.5));
}
BENCHMARK(mmse_of_atoms)->Arg(2)->Arg(1000)->Unit(benchmark::kMicrosecond);

struct Problem {
    explicit Problem(Eigen::Index dim) : prior(0.5), pool(1) {
        noisy = prior.sample(dim, 0, 0, pool) +
                linalg::gaussian_orthogonal_ensemble(dim, RandomStream(0, Purpose::noise), pool);
    }
    priors::Wishart prior;
    ThreadPool pool;
    linalg::Matrix noisy;
};

void denoise(benchmark::State& state) {
    Problem problem(state.range(0));
    for (auto _ : state) {
        benchmark::DoNotOptimize(denoisers::denoise(problem.prior.law(), problem.noisy, 1, problem.pool));
    }
}
BENCHMARK(denoise)->Arg(100)->Arg(500)->Unit(benchmark::kMillisecond);

void eigendecomposition_and_product(benchmark::State& state) {
    const Problem problem(state.range(0));
    for (auto _ : state) {
        const auto eigen = linalg::symmetric_eigen(problem.noisy);
        benchmark::DoNotOptimize(linalg::product(eigen.vectors, problem.noisy));
    }
}
BENCHMARK(eigendecomposition_and_product)->Arg(100)->Arg(500)->Unit(benchmark::kMillisecond);

}  // namespace
