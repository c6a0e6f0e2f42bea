// SPDX-License-Identifier: MIT
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "bayesaim/losses/loss.hpp"

namespace bayesaim::losses {

struct LossEntry {
    std::string name;
    std::string summary;
    std::vector<std::string> channels;  ///< the channels that it can be trained on
};

/// Every loss that can be chosen by name; see core/table.hpp.
const std::vector<LossEntry>& loss_table();

/// The loss with which a user would train on outputs of this channel, if no name is given: square for linear, logit for
/// softmax. Throws InvalidArgument unless the channel is linear or softmax of tied attention and takes the loss.
std::unique_ptr<Loss> make_loss(const std::string& name, const channels::Channel& channel);

}  // namespace bayesaim::losses
