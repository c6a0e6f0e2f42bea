// SPDX-License-Identifier: MIT
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "bayesaim/core/outcome.hpp"
#include "bayesaim/data/dataset.hpp"
#include "program/options.hpp"
#include "bayesaim/theory/deep_state_evolution.hpp"

/// One layer and several under one roof, for the commands that take both.
namespace bayesaim::program {

/// The channel, and a prior for each of its layers.
struct Model {
    Model(const PriorArguments& prior, const ChannelArguments& channel);

    bool deep;  ///< several layers, or the algorithms of several for one
    std::unique_ptr<channels::Channel> channel;
    std::vector<std::unique_ptr<priors::Prior>> owned;
    std::vector<const priors::Prior*> priors;
    std::vector<const spectral::SpectralLaw*> laws;
    Json configuration;  ///< as it goes with every result

    std::optional<double> strong_recovery() const;
    theory::FixedPoint solve(double alpha, const theory::StateEvolutionOptions& options) const;
};

/// What AMP has learned from a dataset.
struct Learned {
    std::vector<linalg::Matrix> estimates;  ///< one per layer
    linalg::Overlap predicted_error;        ///< C
    Termination status = Termination::stopped;
    std::vector<Json> record;  ///< of each iteration
    double seconds = 0;
};

struct LearnOptions {
    /// Measures the estimates, when the truth is known.
    std::function<linalg::Overlap(std::span<const linalg::Matrix>)> measure{};
    /// Told of each iteration, of how many, and the error (the predicted one where it is not measured); false
    /// stops the run.
    std::function<bool(int iteration, int most, double error)> progress{};
};

Learned learn(const data::Dataset& data, const Model& model, const AmpArguments& amp,
              const LearnOptions& options, ThreadPool& pool);

/// Rows of a matrix between layers, and the values of each layer.
Json nested(const linalg::Overlap& matrix);
Json diagonal(const linalg::Overlap& matrix);

}  // namespace bayesaim::program
