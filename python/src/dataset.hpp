// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/data/dataset.hpp"

#include "binding.hpp"

namespace bayesaim::python {

/// Tokens and outputs as Python holds them, and the truth where it is known.
struct PythonDataset {
    data::Dataset data;
    std::optional<linalg::Matrix> weights;
    py::object given_tokens = py::none();  ///< the caller's array, where the tokens are a view of one

    const data::TokenSource& tokens() const { return *data.tokens; }
};

/// Data of this channel? Throws InvalidArgument if not.
void check_data(const PythonDataset& dataset, const channels::Channel& channel);

}  // namespace bayesaim::python
