// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/data/dataset.hpp"
#include "bayesaim/estimators/prediction.hpp"

#include "binding.hpp"

namespace bayesaim::python {

/// Tokens and outputs as Python holds them, and the truth where it is known.
struct PythonDataset {
    data::Dataset data;
    std::vector<linalg::Matrix> weights;   ///< S of each layer; none where they are not known
    py::object given_tokens = py::none();  ///< the caller's array, where the tokens are a view of one

    const data::TokenSource& tokens() const { return *data.tokens; }
};

/// Data of this channel? Throws InvalidArgument if not.
void check_data(const PythonDataset& dataset, const channels::Channel& channel);

data::SyntheticOptions synthetic_options(Eigen::Index dim, double alpha, std::uint64_t seed, bool regenerate,
                                         bool single, bool test);

/// (Bayes-optimal, plug-in), each (n, T, T).
py::tuple prediction_arrays(estimators::Prediction prediction, py::ssize_t tokens);

}  // namespace bayesaim::python
