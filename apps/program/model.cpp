// SPDX-License-Identifier: MIT
#include "program/model.hpp"

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/theory/thresholds.hpp"

namespace bayesaim::program {
namespace {

/// One width for all layers, or one for each.
std::vector<double> layer_widths(const PriorArguments& prior, int layers) {
    std::vector<double> widths = prior.widths;
    if (widths.size() == 1) widths.resize(static_cast<std::size_t>(layers), widths.front());
    if (widths.size() != static_cast<std::size_t>(layers)) {
        throw_invalid(prior.widths_name, fmt::format("one number, or one for each of the {} layers", layers),
                      fmt::format("{} numbers", widths.size()));
    }
    return widths;
}

Learned learn_one_layer(const data::Dataset& data, const Model& model, const AmpArguments& amp,
                        const LearnOptions& chosen, ThreadPool& pool) {
    estimators::AmpOptions options = amp.options;
    if (chosen.measure) {
        options.measure = [&](const linalg::Matrix& estimate) {
            return chosen.measure({&estimate, 1}).trace();
        };
    }
    options.progress = [&](const estimators::AmpIteration& now) {
        return chosen.progress(now.iteration, options.max_iterations,
                               now.true_error.value_or(now.predicted_error));
    };
    estimators::AmpResult result = run_amp(data, *model.laws[0], *model.channel, options, pool);
    Learned learned{
        {std::move(result.estimate)}, linalg::scalar_overlap(result.predicted_error), result.status, {}, 0};
    for (const auto& now : result.record) {
        Json row = {{"iteration", now.iteration}};
        if (now.true_error) row["true_error"] = *now.true_error;
        row.update({{"predicted_error", now.predicted_error},
                    {"self_overlap", now.self_overlap},
                    {"conjugate_overlap", now.conjugate},
                    {"change", now.change},
                    {"seconds", now.seconds}});
        learned.record.push_back(std::move(row));
        learned.seconds += now.seconds;
    }
    return learned;
}

/// The trace under the name itself, and the value of each layer under the name with its number.
void add_layers(const std::string& name, const linalg::Overlap& matrix, Json& row) {
    row[name] = matrix.trace();
    for (Eigen::Index l = 0; l < matrix.rows(); ++l) row[fmt::format("{}_{}", name, l + 1)] = matrix(l, l);
}

Learned learn_layers(const data::Dataset& data, const Model& model, const AmpArguments& amp,
                     const LearnOptions& chosen, ThreadPool& pool) {
    estimators::DeepAmpOptions options = amp.deep_options();
    options.measure = chosen.measure;
    options.progress = [&](const estimators::DeepAmpIteration& now) {
        return chosen.progress(now.iteration, options.max_iterations,
                               now.true_error.value_or(now.predicted_error).trace());
    };
    estimators::DeepAmpResult result = run_deep_amp(data, model.laws, *model.channel, options, pool);
    Learned learned{std::move(result.estimates), result.predicted_error, result.status, {}, 0};
    for (const auto& now : result.record) {
        Json row = {{"iteration", now.iteration}};
        if (now.true_error) add_layers("true_error", *now.true_error, row);
        add_layers("predicted_error", now.predicted_error, row);
        add_layers("self_overlap", now.self_overlap, row);
        add_layers("noise_variance", now.noise_covariance, row);
        row.update({{"change", now.change}, {"seconds", now.seconds}});
        learned.record.push_back(std::move(row));
        learned.seconds += now.seconds;
    }
    return learned;
}

}  // namespace

Model::Model(const PriorArguments& prior, const ChannelArguments& channel_arguments)
    : deep(channel_arguments.deep()) {
    if (!deep) {
        owned.push_back(make_prior(prior, channel_arguments));
        configuration = describe(prior, *owned[0]);
    } else {
        const std::vector<double> widths = layer_widths(prior, channel_arguments.layers);
        PriorArguments layer = prior;
        for (const double width : widths) {
            layer.width = width;
            layer.widths = {width};
            owned.push_back(layer.make());
        }
        configuration = describe(prior, *owned[0]);
        if (configuration.contains("width")) configuration["width"] = widths;
    }
    channel = channel_arguments.make(ChannelArguments::Layers::any);
    for (const auto& made : owned) {
        priors.push_back(made.get());
        laws.push_back(&made->law());
    }
    describe(*channel, configuration);
}

std::optional<double> Model::strong_recovery() const {
    if (deep) return theory::deep_strong_recovery(laws, *channel);
    return theory::strong_recovery(theory::SpectralCurve(*laws[0]), *channel);
}

theory::FixedPoint Model::solve(double alpha, const theory::StateEvolutionOptions& options) const {
    return solve_deep_state_evolution(laws, *channel, alpha, theory::Start::uninformed, options);
}

Learned learn(const data::Dataset& data, const Model& model, const AmpArguments& amp,
              const LearnOptions& options, ThreadPool& pool) {
    return (model.deep ? learn_layers : learn_one_layer)(data, model, amp, options, pool);
}

Json nested(const linalg::Overlap& matrix) {
    Json rows = Json::array();
    for (Eigen::Index i = 0; i < matrix.rows(); ++i) {
        Json row = Json::array();
        for (Eigen::Index j = 0; j < matrix.cols(); ++j) row.push_back(finite_or_null(matrix(i, j)));
        rows.push_back(row);
    }
    return rows;
}

Json diagonal(const linalg::Overlap& matrix) {
    Json values = Json::array();
    for (Eigen::Index i = 0; i < matrix.rows(); ++i) values.push_back(matrix(i, i));
    return values;
}

}  // namespace bayesaim::program
