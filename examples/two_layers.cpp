// SPDX-License-Identifier: MIT
// Two attention layers of width 0.5, of which only the attention of the last is seen: what theory says of the error
// of each layer at alpha = 0.3, and what approximate message passing reaches at d = 40. The last layer is learned
// first. Prints:
//   theory          layer 1 0.22  layer 2 0.04
//   AMP, predicted  layer 1 0.24  layer 2 0.06
//   AMP, measured   layer 1 0.21  layer 2 0.05
#include <cstdio>

#include "bayesaim/estimators/amp.hpp"
#include "bayesaim/model/model.hpp"
#include "bayesaim/theory/state_evolution.hpp"

int main() {
    using namespace bayesaim;
    constexpr double alpha = 0.3;
    const model::Model model = model::make_model({.widths = {0.5}, .channel = "deep-softmax"});
    const channels::Channel& channel = model.channel();
    ThreadPool pool(0);

    theory::StateEvolutionOptions options;
    options.integration.pool = &pool;
    const auto point = theory::solve_state_evolution(theory::SpectralCurve(model.laws()), channel, alpha,
                                                     theory::Start::uninformed, options);
    const auto print = [](const char* what, const linalg::Overlap& error) {
        std::printf("%-15s layer 1 %.2f  layer 2 %.2f\n", what, error(0, 0), error(1, 1));
    };
    print("theory", point.parameters.error);

    const auto problem = data::make_synthetic(model.priors(), channel, {.dim = 40, .alpha = alpha}, pool);
    const auto result = estimators::run_amp(problem.data, model.laws(), channel, {}, pool);
    print("AMP, predicted", result.predicted_error);
    print("AMP, measured", data::estimation_errors(result.estimates, problem.weights));
}
