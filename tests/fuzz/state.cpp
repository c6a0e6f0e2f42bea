// SPDX-License-Identifier: MIT
// States of interrupted computations. The description changes arrays of a genuine state; then the computation goes on.
#include <memory>

#include "bayesaim/channels/table.hpp"
#include "bayesaim/data/dataset.hpp"
#include "bayesaim/data/saved_state.hpp"
#include "bayesaim/estimators/amp.hpp"
#include "bayesaim/estimators/averaged_gradient_descent.hpp"
#include "bayesaim/estimators/erm.hpp"
#include "bayesaim/losses/table.hpp"
#include "bayesaim/priors/wishart.hpp"

#include "fuzz.hpp"

namespace {

using namespace bayesaim;
using data::SavedState;

struct Problem {
    ThreadPool pool{1};
    priors::Wishart prior{0.5};
    std::unique_ptr<channels::Channel> channel =
        channels::make_channel("linear", {.tokens = 2, .label_noise = 0.1});
    std::unique_ptr<losses::Loss> loss = losses::make_loss("", *channel);
    data::Synthetic synthetic = data::make_synthetic(prior, *channel, {.dim = 3, .alpha = 1}, pool);
    SavedState amp, passing, descending, descents;

    estimators::AmpOptions amp_options() const { return {.max_iterations = 2}; }
    estimators::ErmOptions erm_options(estimators::Solver solver) const {
        return {.solver = solver, .max_iterations = 2};
    }
    estimators::AveragedGradientDescentOptions gd_options() const {
        return {.descent = {.width = 2, .max_steps = 2}, .starts = 2, .progress_stride = 1};
    }

    Problem() {
        const auto stop = [](const auto&) { return false; };
        auto of_amp = amp_options();
        of_amp.save = [this](const SavedState& state) { amp = state; };
        of_amp.progress = stop;
        run_amp(synthetic.data, prior.law(), *channel, of_amp, pool);
        for (const auto& [solver, state] : {std::pair(estimators::Solver::message_passing, &passing),
                                            std::pair(estimators::Solver::proximal_gradient, &descending)}) {
            auto of_erm = erm_options(solver);
            of_erm.save = [target = state](const SavedState& saved) { *target = saved; };
            of_erm.progress = stop;
            run_erm(synthetic.data, *loss, of_erm, pool);
        }
        auto of_gd = gd_options();
        of_gd.progress = [this](const std::vector<estimators::Descent>& now) {
            save(descents, "descents", now);
            return false;
        };
        run_averaged_gradient_descent(synthetic.data, *channel, of_gd, pool);
    }
};

/// Eight bytes change one array: its shape, all its numbers or one of them; or remove it.
void change(SavedState& state, fuzz::Description bytes) {
    auto array = state.arrays.begin();
    std::advance(array, bytes.byte() % state.arrays.size());
    const unsigned how = bytes.byte(), rows = 1 + bytes.byte() % 20, columns = 1 + bytes.byte() % 20;
    linalg::Matrix& values = array->second;
    switch (how % 4) {
        case 0:
            values.setConstant(rows, columns, bytes.number());
            break;
        case 1:
            values.setConstant(bytes.number());
            break;
        case 2:
            values(rows % values.rows(), columns % values.cols()) = bytes.number();
            break;
        default:
            if (state.arrays.size() > 1) state.arrays.erase(array);
    }
}

}  // namespace

FUZZ_PIECES(1, 8)

FUZZ_TARGET(state) {
    static Problem problem;
    fuzz::Description description(input);
    const unsigned kind = description.byte() % 4;
    const SavedState* states[] = {&problem.amp, &problem.passing, &problem.descending, &problem.descents};
    const auto state = std::make_shared<SavedState>(*states[kind]);
    for (int changes = 0; !description.ended() && changes < 8; ++changes)
        change(*state, fuzz::Description(description.bytes(8)));
    fuzz::accepts([&] {
        const data::Dataset& data = problem.synthetic.data;
        if (kind == 0) {
            auto options = problem.amp_options();
            options.resume = state;
            run_amp(data, problem.prior.law(), *problem.channel, options, problem.pool);
        } else if (kind < 3) {
            auto options = problem.erm_options(kind == 1 ? estimators::Solver::message_passing
                                                         : estimators::Solver::proximal_gradient);
            options.resume = state;
            run_erm(data, *problem.loss, options, problem.pool);
        } else {
            auto options = problem.gd_options();
            load(*state, "descents", options.resume);
            const auto result = run_averaged_gradient_descent(data, *problem.channel, options, problem.pool);
            to_string(result.status);
        }
    });
}
