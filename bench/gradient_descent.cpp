// SPDX-License-Identifier: MIT
// One step of full-batch Adam (softmax, width 0.5, alpha 0.12) in tied attention (T = 2), and for
// comparison its two bare products; the same in cross (two queries, two keys; also at width 1) and masked
// (T = 3) attention with their four. One thread.
#include "bayesaim/estimators/gradient_descent.hpp"

#include <benchmark/benchmark.h>

#include "bayesaim/channels/table.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/priors/bilinear.hpp"
#include "bayesaim/priors/wishart.hpp"

namespace {

using namespace bayesaim;

constexpr double alpha = 0.12;
constexpr int tokens = 2, masked_tokens = 3;

template <class Scalar>
void time_steps(benchmark::State& state, const priors::Prior& prior, const channels::ChannelOptions& chosen,
                double width = 0.5) {
    const auto made = channels::make_channel("softmax", chosen);
    const channels::Channel& channel = *made;
    ThreadPool pool(1);
    data::SyntheticOptions synthetic;
    synthetic.dim = state.range(0);
    synthetic.alpha = alpha;
    const auto problem = data::make_synthetic(prior, channel, synthetic, pool);
    estimators::GradientDescentOptions options;
    options.width = estimators::student_columns(width, state.range(0));
    options.precision =
        std::is_same_v<Scalar, float> ? data::Precision::float_precision : data::Precision::double_precision;
    options.max_steps = 1 << 30;
    options.record_stride = 1 << 30;
    const auto descent = make_gradient_descent(problem.data, channel, options, pool);
    auto start = descent->start(0);
    for (auto _ : state) descent->advance(start, 1, &pool);
}

template <class Scalar>
void adam_step(benchmark::State& state) {
    time_steps<Scalar>(state, priors::Wishart(0.5), {.tokens = tokens});
}

template <class Scalar>
void cross_step(benchmark::State& state) {
    time_steps<Scalar>(state, priors::Bilinear(0.5),
                       {.tokens = tokens, .attention = channels::Attention::cross});
}

template <class Scalar>
void wide_cross_step(benchmark::State& state) {
    time_steps<Scalar>(state, priors::Bilinear(1),
                       {.tokens = tokens, .attention = channels::Attention::cross}, 1);
}

template <class Scalar>
void masked_step(benchmark::State& state) {
    time_steps<Scalar>(state, priors::Bilinear(0.5),
                       {.tokens = masked_tokens, .attention = channels::Attention::masked});
}

/// P = X W and X' P, for all samples at once, as often as there are factors.
template <class Scalar>
void time_products(benchmark::State& state, int per_sample, int factors, double width = 0.5) {
    using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>;
    using linalg::Transpose;
    const Eigen::Index d = state.range(0),
                       rows = per_sample * static_cast<Eigen::Index>(alpha * static_cast<double>(d * d));
    ThreadPool pool(1);
    const Matrix x =
        linalg::gaussian_matrix(rows, d, RandomStream(0, Purpose::tokens), pool).template cast<Scalar>();
    const Matrix w = linalg::gaussian_matrix(d, estimators::student_columns(width, d),
                                             RandomStream(0, Purpose::initial), pool)
                         .template cast<Scalar>();
    Matrix projected(rows, w.cols()), gradient(d, w.cols());
    for (auto _ : state) {
        for (int factor = 0; factor < factors; ++factor) {
            linalg::multiply(Scalar(1), x, Transpose::no, w, Transpose::no, Scalar(0), projected);
            linalg::multiply(Scalar(1), x, Transpose::yes, projected, Transpose::no, Scalar(0), gradient);
        }
    }
}

template <class Scalar>
void bare_products(benchmark::State& state) {
    time_products<Scalar>(state, tokens, 1);
}

template <class Scalar>
void cross_products(benchmark::State& state) {
    time_products<Scalar>(state, tokens, 2);
}

template <class Scalar>
void wide_cross_products(benchmark::State& state) {
    time_products<Scalar>(state, tokens, 2, 1);
}

template <class Scalar>
void masked_products(benchmark::State& state) {
    time_products<Scalar>(state, masked_tokens, 2);
}

BENCHMARK(adam_step<float>)->Arg(100)->Arg(200)->Unit(benchmark::kMillisecond);
BENCHMARK(bare_products<float>)->Arg(100)->Arg(200)->Unit(benchmark::kMillisecond);
BENCHMARK(adam_step<double>)->Arg(100)->Arg(200)->Unit(benchmark::kMillisecond);
BENCHMARK(bare_products<double>)->Arg(100)->Arg(200)->Unit(benchmark::kMillisecond);
BENCHMARK(cross_step<float>)->Arg(100)->Arg(200)->Unit(benchmark::kMillisecond);
BENCHMARK(cross_products<float>)->Arg(100)->Arg(200)->Unit(benchmark::kMillisecond);
BENCHMARK(cross_step<double>)->Arg(100)->Arg(200)->Unit(benchmark::kMillisecond);
BENCHMARK(cross_products<double>)->Arg(100)->Arg(200)->Unit(benchmark::kMillisecond);
BENCHMARK(wide_cross_step<float>)->Arg(100)->Arg(200)->Unit(benchmark::kMillisecond);
BENCHMARK(wide_cross_products<float>)->Arg(100)->Arg(200)->Unit(benchmark::kMillisecond);
BENCHMARK(wide_cross_step<double>)->Arg(100)->Arg(200)->Unit(benchmark::kMillisecond);
BENCHMARK(wide_cross_products<double>)->Arg(100)->Arg(200)->Unit(benchmark::kMillisecond);
BENCHMARK(masked_step<float>)->Arg(100)->Arg(200)->Unit(benchmark::kMillisecond);
BENCHMARK(masked_products<float>)->Arg(100)->Arg(200)->Unit(benchmark::kMillisecond);

}  // namespace
