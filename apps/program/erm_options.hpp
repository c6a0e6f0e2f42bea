// SPDX-License-Identifier: MIT
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bayesaim/losses/table.hpp"
#include "bayesaim/theory/erm.hpp"

#include "program/options.hpp"

namespace bayesaim::program {

/// What is trained: --loss, --penalty, --regularization; and --estimator of the commands that have theory of both kinds
struct ErmArguments {
    std::string estimator = "bayes", loss, penalty = "trace", regularization;
    Command command;

    /// --estimator too.
    void add_choice_to(Command& to);
    void add_to(Command& to);

    /// Whether ERM is asked for. Throws InvalidArgument for options that apply to it alone, and for a missing one.
    bool chosen() const;
    std::unique_ptr<losses::Loss> make_loss(const channels::Channel& channel) const;
    theory::ErmOptions options(const channels::Integration& integration) const;
    /// The numbers of --regularization; one std::nullopt for the best at each alpha.
    std::vector<std::optional<double>> regularizations() const;
    void describe(const losses::Loss& of, Record& configuration) const;
};

/// Throws InvalidArgument unless a trained estimate has this law as its teacher.
const spectral::SpectralLaw& teacher_of(const model::Model& model);

}  // namespace bayesaim::program
