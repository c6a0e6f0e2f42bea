// SPDX-License-Identifier: MIT
#include <filesystem>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/data/dataset_file.hpp"
#include "bayesaim/estimators/prediction.hpp"

#include "program/commands.hpp"
#include "program/messages.hpp"
#include "program/options.hpp"

namespace bayesaim::program {
namespace {

struct Arguments : CommonArguments {
    std::string estimate_file, token_file;
};

/// The estimate; the message about another kind of file says what makes one.
data::Estimate read_estimate(const std::string& file) {
    try {
        data::Estimate estimate = data::read_estimate(file);
        if (!data::text_attribute(estimate.attributes, "channel"))
            throw_invalid(fmt::format("'{}': attribute channel", file), "in the file", "none");
        return estimate;
    } catch (const InvalidArgument& error) {
        if (!std::filesystem::exists(file)) throw;
        throw InvalidArgument(fmt::format("{}; an estimate is a file that bayesaim fit wrote", error.what()));
    }
}

/// The channel that the estimate was made with, for the tokens of the new samples.
std::unique_ptr<channels::Channel> channel_of(const data::Estimate& estimate, const std::string& file,
                                              const data::DatasetHeader& header) {
    model::ModelOptions options;
    model::read_options(data::record_of(estimate.attributes), options);
    options.channel_options.tokens = static_cast<int>(header.tokens);
    options.channel_options.key_tokens = static_cast<int>(header.key_tokens);
    auto channel = channels::make_channel(options.channel, options.channel_options);
    if (estimate.weights.size() != static_cast<std::size_t>(channel->layers()))
        throw_invalid(fmt::format("'{}': dataset /weights", file),
                      fmt::format("of {} layers, as its channel", channel->layers()),
                      static_cast<double>(estimate.weights.size()));
    return channel;
}

int run(const Arguments& arguments) {
    const data::Estimate estimate = read_estimate(arguments.estimate_file);
    const data::DatasetHeader header = data::read_dataset_header(arguments.token_file);
    const Eigen::Index dim = estimate.weights[0].rows();
    if (header.dim != dim) {
        throw_invalid(fmt::format("'{}': dimension of the tokens", arguments.token_file),
                      fmt::format("{}, as in '{}'", dim, arguments.estimate_file),
                      static_cast<double>(header.dim));
    }
    const Eigen::Index key_dim = estimate.weights[0].cols();
    if (header.key_tokens > 0 && header.key_dim != key_dim) {
        throw_invalid(fmt::format("'{}': dimension of the key tokens", arguments.token_file),
                      fmt::format("{}, as in '{}'", key_dim, arguments.estimate_file),
                      static_cast<double>(header.key_dim));
    }
    check_output_file(arguments.output, {arguments.estimate_file, arguments.token_file});
    const auto channel = channel_of(estimate, arguments.estimate_file, header);
    const data::DatasetContents contents =
        data::read_dataset(arguments.token_file, *channel, data::Outputs::optional);
    ThreadPool pool(arguments.thread_count());
    const channels::Rows omega =
        estimators::predicted_indices(contents.data, estimate.weights, estimate.terms, *channel, pool);
    const auto prediction = estimators::predict(omega, estimate.error, *channel, pool);

    if (const auto status = data::text_attribute(estimate.attributes, "status");
        status && !is_success(*status) && !arguments.quiet) {
        tell("bayesaim: the estimate '{}' did not converge (status {})\n", arguments.estimate_file, *status);
    }
    Report report{"predict", model::describe(*channel)};
    report.configuration.update({{"estimate", arguments.estimate_file},
                                 {"file", arguments.token_file},
                                 {"predicted_error", estimate.error.trace()}});
    // For a posterior mean Tr(Shat_l Shat_k)/d is the overlap with the truth.
    channels::GeneralizationError expected;
    if (estimate.error.trace() > 0) {
        const std::vector<linalg::Matrix> nothing(estimate.weights.size(),
                                                  linalg::Matrix::Zero(dim, key_dim));
        linalg::Overlap overlap = data::estimation_errors(channel->geometry(), estimate.weights, nothing);
        // Errors are promised for white tokens; the overlap of their estimate stands in the file.
        if (const auto white = data::number_attribute(estimate.attributes, "white_overlap"))
            overlap *= *white / overlap.trace();
        expected = channel->generalization({overlap, estimate.error}, {.pool = &pool});
    }
    // Outputs of the file contain label noise, which no prediction can know.
    const double noise = data::number_attribute(estimate.attributes, "label_noise").value_or(0) *
                         channel->geometry().seen_outputs();
    const bool labelled = contents.data.outputs.size() > 0;
    const channels::Rows targets = channels::output_values(*channel, contents.data.outputs);
    const auto measured = [&](const channels::Rows& predicted) {
        return labelled ? Value(estimators::mean_squared_distance(predicted, targets)) : Value();
    };
    report.points.push_back({{"samples", header.samples},
                             {"dim", header.dim},
                             {"generalization_error", measured(prediction.bayes_optimal)},
                             {"expected_generalization_error", expected.bayes_optimal + noise},
                             {"plugin_generalization_error", measured(prediction.plug_in)},
                             {"expected_plugin_generalization_error", expected.plug_in + noise}});

    data::Attributes attributes;
    for (const char* name :
         {"prior", "channel", "attention", "aspect", "scale", "width", "heads", "exponent", "cutoff",
          "layers", "beta", "residual", "label_noise", "predicted_error", "status"}) {
        if (const auto found = estimate.attributes.find(name); found != estimate.attributes.end())
            attributes.insert(*found);
    }
    data::write_predictions(arguments.output, prediction.bayes_optimal, prediction.plug_in,
                            estimators::prediction_deviation(omega, estimate.error, *channel, pool),
                            header.tokens, attributes);
    publish(report, arguments.format, "");
    return 0;
}

}  // namespace

void add_predict(Program& program) {
    auto [command, arguments] = program.add_command<Arguments>(
        "predict", "Predict the outputs of new samples from an estimate that `fit` wrote", run);
    command.text("estimate", arguments.estimate_file, "HDF5 file that `fit` wrote", "ESTIMATE.h5").required();
    command
        .text("file", arguments.token_file,
              "HDF5 file of new samples: /tokens; if it has outputs, predictions are compared with them",
              "FILE.h5")
        .required();
    arguments.add_without_seed_to(command, Arguments::Points::never_fail);
    command.option("--output")
        .required()
        .type_name("PREDICTIONS.h5")
        .description(
            "HDF5 file to write: /predictions (Bayes-optimal: the mean output) and /plugin_predictions");
    command.footer("Example:\n  bayesaim predict estimate.h5 new.h5 --output predictions.h5");
}

}  // namespace bayesaim::program
