// SPDX-License-Identifier: MIT
#include "program/erm_options.hpp"

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/table.hpp"
#include "bayesaim/experiments/grid.hpp"

namespace bayesaim::program {

void ErmArguments::add_choice_to(Command& to) {
    to.text(
          "--estimator", estimator,
          "bayes: the best possible; erm: attention trained with weight decay (empirical risk minimisation)")
        .values({"bayes", "erm"});
    add_to(to);
}

void ErmArguments::add_to(Command& to) {
    command = to;
    std::string known;
    for (const auto& row : losses::loss_table()) known += fmt::format("\n{}: {}", row.name, row.summary);
    to.text("--loss", loss, "training loss (default: square for linear, logit for softmax):" + known)
        .values(names_of(losses::loss_table()));
    to.text("--penalty", penalty,
            "trace: Tr S over S >= 0, weight decay on W of width >= d\n"
            "frobenius: Tr S^2/2, weight decay on the entries of S")
        .values({"trace", "frobenius"});
    to.text("--regularization", regularization,
            "strength lambda of the penalty d lambda Tr S: numbers as in --alpha, or optimal", "GRID")
        .values({"optimal"});
}

bool ErmArguments::chosen() const {
    const bool erm =
        !command.takes("--estimator") || check_one_of("--estimator", estimator, {"bayes", "erm"}) == 1;
    if (!erm) {
        for (const char* option : {"--loss", "--penalty", "--regularization"}) {
            if (command.given(option)) throw_inapplicable(option, "--estimator erm", "estimator is bayes");
        }
        return false;
    }
    if (!loss.empty()) find_row(losses::loss_table(), "--loss", loss);
    losses::parse_penalty("--penalty", penalty);
    if (regularization.empty())
        throw_missing(command.takes("--estimator") ? "--estimator erm" : "erm",
                      "--regularization: a number such as 0.1, a grid, or optimal");
    return true;
}

std::unique_ptr<losses::Loss> ErmArguments::make_loss(const channels::Channel& channel) const {
    return losses::make_loss(loss, channel);
}

theory::ErmOptions ErmArguments::options(const channels::Integration& integration) const {
    theory::ErmOptions options;
    options.penalty = losses::parse_penalty("--penalty", penalty);
    options.integration = integration;
    return options;
}

std::vector<std::optional<double>> ErmArguments::regularizations() const {
    if (regularization == "optimal") return {std::nullopt};
    const experiments::Grid grid("--regularization", regularization, experiments::Grid::Zero::allowed);
    if (grid.relative()) throw_invalid("--regularization", "absolute numbers", "numbers with x");
    std::vector<std::optional<double>> values;
    for (const double value : grid.values()) values.emplace_back(value);
    return values;
}

void ErmArguments::describe(const losses::Loss& of, Record& configuration) const {
    if (command.takes("--estimator")) configuration["estimator"] = estimator;
    configuration["loss"] = of.name();
    configuration["penalty"] = penalty;
    configuration["regularization"] = regularization;
}

const spectral::SpectralLaw& teacher_of(const model::Model& model) {
    if (model.layers() > 1) throw_unavailable("training", "for several layers");
    return model.prior(0).law();
}

}  // namespace bayesaim::program
