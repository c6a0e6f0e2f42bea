// SPDX-License-Identifier: MIT
#include "bayesaim/losses/table.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/table.hpp"
#include "bayesaim/losses/quadratic.hpp"
#include "bayesaim/losses/softmax_loss.hpp"

namespace bayesaim::losses {

const std::vector<LossEntry>& loss_table() {
    static const std::vector<LossEntry> table = {
        {"square", "half the squared distance of the outputs", {"linear", "softmax"}},
        {"logit", "half the squared distance of the logits, without their mean", {"softmax"}},
        {"row-logit", "half the squared distance of the logits, without the mean of each row", {"softmax"}},
        {"cross-entropy",
         "Kullback-Leibler divergence of the rows, that is cross-entropy up to a constant",
         {"softmax"}},
    };
    return table;
}

std::unique_ptr<Loss> make_loss(const std::string& name, const channels::Channel& channel) {
    const auto output = channel.smooth_output();
    if (!output || channel.layers() > 1 || !channel.geometry().symmetric())
        throw_invalid("channel of a trained estimate", "linear or softmax, one layer of tied attention",
                      channel.geometry().symmetric() ? channel.name()
                                                     : fmt::format("{} of {} attention", channel.name(),
                                                                   to_string(channel.geometry().attention)));
    const std::string kind = output->softmax ? "softmax" : "linear", chosen = !name.empty()     ? name
                                                                              : output->softmax ? "logit"
                                                                                                : "square";
    const LossEntry& entry = find_row(loss_table(), "loss", chosen);
    if (std::ranges::find(entry.channels, kind) == entry.channels.end())
        throw_invalid(fmt::format("loss of channel {}", kind), "square", chosen);
    const int tokens = channel.tokens();
    if (kind == "linear") {
        double label_noise = 0;
        for (const auto& [parameter, value] : channel.parameters()) {
            if (parameter == "label_noise") label_noise = value;
        }
        return std::make_unique<Quadratic>(Quadratic::Kind::square, tokens, 1, label_noise);
    }
    if (chosen == "logit")
        return std::make_unique<Quadratic>(Quadratic::Kind::logit, tokens, output->beta, 0);
    if (chosen == "row-logit")
        return std::make_unique<Quadratic>(Quadratic::Kind::row_logit, tokens, output->beta, 0);
    return std::make_unique<SoftmaxLoss>(
        chosen == "square" ? SoftmaxLoss::Kind::square : SoftmaxLoss::Kind::cross_entropy, tokens,
        output->beta);
}

}  // namespace bayesaim::losses
