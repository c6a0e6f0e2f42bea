// SPDX-License-Identifier: MIT
// Gradient descent against PyTorch, and its error against the Bayes-optimal error.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>
#include <unistd.h>

#include "bayesaim/channels/table.hpp"
#include "bayesaim/estimators/averaged_gradient_descent.hpp"
#include "bayesaim/priors/bilinear.hpp"
#include "bayesaim/priors/wishart.hpp"
#include "bayesaim/spectral/marchenko_pastur_law.hpp"
#include "bayesaim/theory/state_evolution.hpp"

namespace bayesaim {
namespace {

using linalg::Matrix;

std::vector<double> read_numbers(const std::string& file) {
    std::ifstream in(file);
    return {std::istream_iterator<double>(in), {}};
}

/// For torch_adam.py: the first line of numbers there.
void write_for_torch(const std::string& file, const data::Dataset& data, double beta,
                     const estimators::GradientDescentOptions& options, const Matrix& start) {
    const data::TokenSource& source = *data.tokens;
    const auto number = [](Eigen::Index i) { return static_cast<double>(i); };
    std::vector<double> numbers = {
        number(source.samples()), number(source.tokens()),  number(source.dim()), number(start.cols()), beta,
        options.learning_rate,    number(options.max_steps)};
    Matrix scratch;
    const auto block = source.block({0, static_cast<std::size_t>(source.samples())}, scratch);
    numbers.insert(numbers.end(), block.data(), block.data() + block.size());
    for (const double log_y : data.outputs.reshaped<Eigen::RowMajor>()) numbers.push_back(std::exp(log_y));
    for (const double w : start.reshaped<Eigen::RowMajor>()) numbers.push_back(w);
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(numbers.data()),
               static_cast<std::streamsize>(numbers.size() * sizeof(double)));
}

/// 51 losses and all of W after 50 steps, to 1e-10: round-off of another order of summation. Adam without
/// bias correction, or with eps inside the root, is off by more than 1e-3.
void expect_same_path(const std::vector<double>& theirs, const estimators::Descent& ours) {
    ASSERT_EQ(theirs.size(), ours.record.size() + static_cast<std::size_t>(ours.weights.size()));
    for (std::size_t t = 0; t < ours.record.size(); ++t)
        EXPECT_NEAR(ours.record[t].loss, theirs[t], 1e-10 * (1 + theirs[t])) << "step " << t;
    std::size_t next = ours.record.size();
    for (const double w : ours.weights.reshaped<Eigen::RowMajor>()) EXPECT_NEAR(w, theirs[next++], 1e-10);
    EXPECT_LT(ours.record.back().loss, 0.1 * ours.record.front().loss) << "the path leads nowhere";
}

TEST(GradientDescent, FollowsPyTorch) {
    constexpr double beta = 1.5;
    const auto channel = channels::make_channel("softmax", {.tokens = 3, .beta = beta});
    ThreadPool pool(1);
    data::SyntheticOptions synthetic;
    synthetic.dim = 12;
    synthetic.alpha = 0.4;
    const auto problem = data::make_synthetic(priors::Wishart(0.5), *channel, synthetic, pool);
    estimators::GradientDescentOptions options;
    options.width = 5;
    options.max_steps = 50;
    options.record_stride = 1;
    options.precision = data::Precision::double_precision;
    const auto ours = run_gradient_descent(problem.data, *channel, options, pool);
    const std::string scripts = BAYESAIM_SOURCE_DIR "/tests/agreement/";
    expect_same_path(read_numbers(scripts + "torch_adam.txt"), ours);

    const char* keep = std::getenv("BAYESAIM_KEEP");
    const std::string file =
        keep != nullptr ? keep : testing::TempDir() + "bayesaim_torch_" + std::to_string(getpid());
    const Matrix start = make_gradient_descent(problem.data, *channel, options, pool)->start(0).weights;
    write_for_torch(file, problem.data, beta, options, start);
    // Debian's own python3: the first one on PATH may be another, without the package.
    const std::string command =
        "/usr/bin/python3 " + scripts + "torch_adam.py " + file + " >" + file + ".txt 2>/dev/null";
    const bool has_torch = std::system("/usr/bin/python3 -c 'import torch, numpy' >/dev/null 2>&1") == 0;
    if (has_torch) {
        EXPECT_EQ(std::system(command.c_str()), 0);
        expect_same_path(read_numbers(file + ".txt"), ours);
    }
    std::filesystem::remove(file + ".txt");
    if (keep == nullptr) std::filesystem::remove(file);
}

struct Measured {
    double one = 0, averaged = 0;  // mean error of a start, error of the mean of all
    double transposed = 0;         // error of the transpose of the mean
};

Measured measure(const std::string& name, double alpha, int starts, int steps,
                 const priors::Prior& prior = priors::Wishart(0.5),
                 const channels::ChannelOptions& of_channel = {}) {
    const auto channel = channels::make_channel(name, of_channel);
    ThreadPool pool(2);
    data::SyntheticOptions synthetic;
    synthetic.dim = 60;
    synthetic.alpha = alpha;
    const auto problem = data::make_synthetic(prior, *channel, synthetic, pool);
    estimators::AveragedGradientDescentOptions options;
    options.descent.width = 30;
    options.descent.max_steps = steps;
    options.starts = starts;
    const auto result = run_averaged_gradient_descent(problem.data, *channel, options, pool);
    EXPECT_EQ(result.status, Termination::iteration_limit);
    Measured measured;
    for (const auto& descent : result.descents)
        measured.one += data::estimation_error(descent.estimate(), problem.weights[0]) / starts;
    measured.averaged = data::estimation_error(result.estimate, problem.weights[0]);
    measured.transposed = data::estimation_error(result.estimate.transpose(), problem.weights[0]);
    return measured;
}

double theory_error(const std::string& name, double alpha) {
    const spectral::MarchenkoPasturLaw law(0.5);
    const auto channel = channels::make_channel(name, {});
    return solve_state_evolution(theory::SpectralCurve(law), *channel, alpha).error();
}

/// Measured: a start 2.2 times the optimal error, the mean of 32 starts 1.13 times. An average over
/// one start only, or a descent that stays at its start (error about 2), fails.
TEST(AveragedGradientDescent, ComesNearTheBayesOptimalErrorWhereOneStartDoesNot) {
    const double optimal = theory_error("softmax", 0.12);
    const Measured measured = measure("softmax", 0.12, 32, 600);
    EXPECT_GT(measured.one, 1.8 * optimal);
    EXPECT_LT(measured.one, 3.5 * optimal);
    EXPECT_LT(measured.averaged, 1.4 * optimal);
    EXPECT_GT(measured.averaged, 0.8 * optimal);
    EXPECT_LT(measured.averaged, 0.6 * measured.one);
}

/// Strong recovery of softmax is at alpha = 0.1875, of linear at 0.125.
TEST(AveragedGradientDescent, FindsTheTruthPastStrongRecovery) {
    for (const auto& [name, alpha] : {std::pair{"softmax", 0.3}, {"linear", 0.25}}) {
        const Measured measured = measure(name, alpha, 2, 1500);
        EXPECT_LT(measured.one, 1e-3) << name;
        EXPECT_LT(measured.averaged, 1e-3) << name;
    }
}

constexpr channels::ChannelOptions cross_options{.attention = channels::Attention::cross},
    masked_options{.tokens = 3, .attention = channels::Attention::masked},
    self_options{.attention = channels::Attention::self},
    causal_options{.tokens = 3, .attention = channels::Attention::causal};

/// Strong recovery of two queries and two keys is at alpha = 0.375, of three masked tokens at 0.25
/// (softmax), as of two tokens of self-attention and three of causal attention; of two queries and two keys with linear
/// outputs at 0.1875. Measured: 0.011, 0.012, 0.053, 1e-5, 5e-6 for a start. A symmetric student has an error above 0.5, one that stays at its start 2, and the transpose of
/// the right S 2.
TEST(UntiedGradientDescent, FindsTheTruthPastStrongRecovery) {
    const priors::Bilinear prior(0.5);
    for (const auto& [name, alpha, of_channel, bound] : {std::tuple{"softmax", 0.45, cross_options, 0.05},
                                                         {"softmax", 0.3, masked_options, 0.05},
                                                         {"softmax", 0.45, self_options, 0.1},
                                                         {"softmax", 0.4, causal_options, 0.01},
                                                         {"linear", 0.25, cross_options, 1e-3}}) {
        const Measured measured = measure(name, alpha, 2, 800, prior, of_channel);
        EXPECT_LT(measured.one, bound) << name << ' ' << alpha;
        EXPECT_LT(measured.averaged, measured.one) << name << ' ' << alpha;
        EXPECT_GT(measured.transposed, 1) << name << ' ' << alpha;
    }
}

/// Below strong recovery. Measured: a start 0.99, the mean of 8 starts 0.43, Bayes-optimal 0.3515. The S of
/// the mean factors, which are free up to (W_Q A, W_K A^-T), has the error 0.87, the symmetric part of the
/// mean of S 0.70.
TEST(UntiedGradientDescent, AverageOfSIsNearerTheBayesOptimalErrorThanOneStart) {
    const priors::Bilinear prior(0.5);
    const double optimal = solve_state_evolution(theory::SpectralCurve(prior.law()),
                                                 *channels::make_channel("softmax", cross_options), 0.25)
                               .error();
    EXPECT_NEAR(optimal, 0.3514551576, 1e-8);
    const Measured measured = measure("softmax", 0.25, 8, 800, prior, cross_options);
    EXPECT_GT(measured.one, 2 * optimal);
    EXPECT_LT(measured.one, 4 * optimal);
    EXPECT_GT(measured.averaged, optimal);
    EXPECT_LT(measured.averaged, 1.6 * optimal);
}

}  // namespace
}  // namespace bayesaim
