// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/data/dataset.hpp"
#include "bayesaim/experiments/forecast.hpp"
#include "bayesaim/model/model.hpp"

/// --dry-run of commands that iterate over data.
namespace bayesaim::program {

/// `storage` and `precision` are those of the tokens.
experiments::ProblemSize problem_size(const model::Model& model, double dim, double samples,
                                      data::TokenStorage storage, data::Precision precision);

/// Makes a problem of this size, and lets `iterate` take one iteration of it, whose seconds it returns.
experiments::Trial trial_of(const model::Model& model, data::SyntheticOptions synthetic,
                            std::function<double(const data::Synthetic&, ThreadPool&)> iterate);

/// One iteration of AMP.
double amp_seconds(const model::Model& model, const data::Synthetic& problem, ThreadPool& pool);

/// The forecast of AMP, or of a solver with the same passes over the data.
Record amp_forecast(const experiments::ProblemSize& size, double iterations, double runs,
                    const experiments::Trial& trial, ThreadPool& pool);

}  // namespace bayesaim::program
