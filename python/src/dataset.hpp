// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/data/dataset.hpp"

#include "binding.hpp"

namespace bayesaim::python {

/// Tokens and outputs of a Python Dataset, and the truth if it is known.
struct PythonDataset {
    data::Dataset data;
    std::vector<linalg::Matrix> weights;   ///< S of each layer; empty if they are not known
    py::object given_tokens = py::none();  ///< the caller's array, if the tokens are a view of it

    const data::TokenSource& tokens() const { return *data.tokens; }
};

/// Throws InvalidArgument unless these can be data of this channel.
void check_data(const PythonDataset& dataset, const channels::Channel& channel);

}  // namespace bayesaim::python
