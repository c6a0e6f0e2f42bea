// SPDX-License-Identifier: MIT
// AMP of several layers against their state evolution, beyond two layers of two tokens.
#include <cmath>
#include <functional>
#include <memory>

#include <gtest/gtest.h>

#include "bayesaim/channels/deep_attention.hpp"
#include "bayesaim/channels/deep_sequence.hpp"
#include "bayesaim/estimators/amp.hpp"
#include "bayesaim/priors/wishart.hpp"
#include "bayesaim/theory/state_evolution.hpp"

#include "support/tolerance.hpp"

namespace bayesaim {
namespace {

std::unique_ptr<channels::Channel> attention(int layers, int tokens) {
    return std::make_unique<channels::DeepAttention>(
        channels::DeepAttentionOptions{.layers = layers, .tokens = tokens, .points = 256});
}

struct Case {
    const char* name;
    std::function<std::unique_ptr<channels::Channel>()> make;
    double alpha;
    Eigen::Index dim;
    double finite_size;  // how far errors are off at this dimension
    friend std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }
};

class LayersAmpAndTheory : public testing::TestWithParam<Case> {};

/// At these sizes runs end some percent above theory. The first two of three layers are hard to tell apart,
/// and the predicted error of the first is too small. The overlaps of a posterior mean with the truth and
/// with itself are equal (Nishimori), and predicted and measured error agree.
TEST_P(LayersAmpAndTheory, AgreeAndObeyTheNishimoriIdentities) {
    const auto& [name, make, alpha, dim, finite_size] = GetParam();
    const std::unique_ptr<channels::Channel> made = make();
    const channels::Channel& channel = *made;
    const int layers = channel.layers();
    const priors::Wishart prior(0.5);
    const std::vector<const priors::Prior*> priors(static_cast<std::size_t>(layers), &prior);
    const std::vector<const spectral::SpectralLaw*> laws(static_cast<std::size_t>(layers), &prior.law());
    ThreadPool pool(2);
    theory::StateEvolutionOptions theory_options;
    theory_options.integration = {.shifts = 8, .points = 32, .pool = &pool};
    const theory::FixedPoint theory =
        solve_state_evolution(theory::SpectralCurve(spectral::Laws(laws)), channel, alpha,
                              theory::Start::uninformed, theory_options);
    EXPECT_EQ(theory.status, Termination::converged);
    EXPECT_LT(theory.relative_error, 0.06);

    const auto size = static_cast<std::size_t>(layers);
    std::vector<std::vector<double>> errors(size), predicted(size), excess(size);
    for (const std::uint64_t seed : {11, 12, 13}) {
        data::SyntheticOptions synthetic;
        synthetic.dim = dim;
        synthetic.alpha = alpha;
        synthetic.seed = seed;
        const auto problem = data::make_synthetic(priors, channel, synthetic, pool);
        const auto result = estimators::run_amp(problem.data, laws, channel, {.max_iterations = 10}, pool);
        ASSERT_NE(result.status, Termination::diverged);
        const linalg::Overlap error = data::estimation_errors(result.estimates, problem.weights);
        for (std::size_t l = 0; l < size; ++l) {
            const auto at = static_cast<Eigen::Index>(l);
            const double truth =
                result.estimates[l].cwiseProduct(problem.weights[l]).sum() / static_cast<double>(dim);
            errors[l].push_back(error(at, at));
            predicted[l].push_back(result.predicted_error(at, at) - error(at, at));
            excess[l].push_back(result.record.back().self_overlap(at, at) - truth);
        }
    }
    for (std::size_t l = 0; l < size; ++l) {
        const auto at = static_cast<Eigen::Index>(l);
        const auto error = test::estimate(errors[l]), honesty = test::estimate(predicted[l]),
                   identity = test::estimate(excess[l]);
        const double expected = theory.parameters.error(at, at);
        EXPECT_LT(error.standard_error, 0.1 * expected) << "layer " << l + 1;
        EXPECT_NEAR(
            error.mean, expected,
            4 * std::hypot(error.standard_error, theory.relative_error * expected) + finite_size * expected)
            << "layer " << l + 1;
        EXPECT_NEAR(honesty.mean, 0, 4 * honesty.standard_error + finite_size * expected)
            << "layer " << l + 1;
        EXPECT_NEAR(identity.mean, 0, 4 * identity.standard_error + 0.5 * finite_size) << "layer " << l + 1;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, LayersAmpAndTheory,
    testing::Values(Case{"2 layers, 3 tokens", [] { return attention(2, 3); }, 0.06, 80, 0.1},
                    Case{"3 layers, 2 tokens", [] { return attention(3, 2); }, 0.15, 80, 0.25},
                    Case{"2 layers, seq2seq", [] { return std::make_unique<channels::DeepSequence>(); }, 0.1,
                         80, 0.1}));

}  // namespace
}  // namespace bayesaim
