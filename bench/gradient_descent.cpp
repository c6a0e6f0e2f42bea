// SPDX-License-Identifier: MIT
// One step of full-batch Adam (softmax, T = 2, width 0.5, alpha 0.12), and for comparison its two bare
// products, on one thread.
#include "bayesaim/estimators/gradient_descent.hpp"

#include <benchmark/benchmark.h>

#include "bayesaim/channels/softmax.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/priors/wishart.hpp"

namespace {

using namespace bayesaim;

constexpr double alpha = 0.12;
constexpr int tokens = 2;

template <class Scalar>
void adam_step(benchmark::State& state) {
    const priors::Wishart prior(0.5);
    const channels::Softmax channel(tokens);
    ThreadPool pool(1);
    data::SyntheticOptions synthetic;
    synthetic.dim = state.range(0);
    synthetic.alpha = alpha;
    const auto problem = data::make_synthetic(prior, channel, synthetic, pool);
    estimators::GradientDescentOptions options;
    options.width = state.range(0) / 2;
    options.precision =
        std::is_same_v<Scalar, float> ? data::Precision::float_precision : data::Precision::double_precision;
    options.max_steps = 1 << 30;
    options.record_stride = 1 << 30;
    const auto descent = make_gradient_descent(problem.data, channel, options, pool);
    auto start = descent->start(0);
    for (auto _ : state) descent->advance(start, 1, &pool);
}

/// P = X W and X' P, for all samples at once.
template <class Scalar>
void bare_products(benchmark::State& state) {
    using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>;
    using linalg::Transpose;
    const Eigen::Index d = state.range(0),
                       rows = tokens * static_cast<Eigen::Index>(alpha * static_cast<double>(d * d));
    ThreadPool pool(1);
    const Matrix x =
        linalg::gaussian_matrix(rows, d, RandomStream(0, Purpose::tokens), pool).template cast<Scalar>();
    const Matrix w =
        linalg::gaussian_matrix(d, d / 2, RandomStream(0, Purpose::initial), pool).template cast<Scalar>();
    Matrix projected(rows, w.cols()), gradient(d, w.cols());
    for (auto _ : state) {
        linalg::multiply(Scalar(1), x, Transpose::no, w, Transpose::no, Scalar(0), projected);
        linalg::multiply(Scalar(1), x, Transpose::yes, projected, Transpose::no, Scalar(0), gradient);
    }
}

BENCHMARK(adam_step<float>)->Arg(100)->Arg(200)->Unit(benchmark::kMillisecond);
BENCHMARK(bare_products<float>)->Arg(100)->Arg(200)->Unit(benchmark::kMillisecond);
BENCHMARK(adam_step<double>)->Arg(100)->Arg(200)->Unit(benchmark::kMillisecond);
BENCHMARK(bare_products<double>)->Arg(100)->Arg(200)->Unit(benchmark::kMillisecond);

}  // namespace
