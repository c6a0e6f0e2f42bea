// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "bayesaim/commands.hpp"
#include "bayesaim/core/checks.hpp"
#include "bayesaim/data/dataset_file.hpp"
#include "bayesaim/estimators/prediction.hpp"
#include "bayesaim/options.hpp"

namespace bayesaim::program {
namespace {

struct Arguments {
    OutputArguments output;
    std::string estimate_file, token_file;
    int threads = 0;
};

double needed_number(const data::Attributes& attributes, const std::string& name, const std::string& file) {
    const auto value = data::number_attribute(attributes, name);
    if (!value) throw_invalid(fmt::format("'{}': attribute {}", file, name), "in the file", "none");
    return *value;
}

/// The channel that the estimate was made with, for samples of T tokens.
std::unique_ptr<channels::Channel> channel_of(const data::Estimate& estimate, const std::string& file,
                                              Eigen::Index tokens) {
    const auto name = data::text_attribute(estimate.attributes, "channel");
    if (!name) throw_invalid(fmt::format("'{}': attribute channel", file), "in the file", "none");
    channels::ChannelOptions options;
    options.tokens = static_cast<int>(tokens);
    options.beta = data::number_attribute(estimate.attributes, "beta").value_or(options.beta);
    return channels::make_channel(*name, options);
}

int run(const Arguments& arguments) {
    const data::Estimate estimate = data::read_estimate(arguments.estimate_file);
    const data::DatasetHeader header = data::read_dataset_header(arguments.token_file);
    if (header.dim != estimate.weights.rows()) {
        throw_invalid(fmt::format("'{}': dimension of the tokens", arguments.token_file),
                      fmt::format("{}, as in '{}'", estimate.weights.rows(), arguments.estimate_file),
                      static_cast<double>(header.dim));
    }
    check_output_file(arguments.output.output, {arguments.estimate_file, arguments.token_file});
    const double error = needed_number(estimate.attributes, "predicted_error", arguments.estimate_file);
    const auto channel = channel_of(estimate, arguments.estimate_file, header.tokens);
    const data::DatasetContents contents =
        data::read_dataset(arguments.token_file, *channel, data::Outputs::optional);
    ThreadPool pool(static_cast<std::size_t>(arguments.threads));
    const auto prediction =
        estimators::predict(*contents.data.tokens, estimate.weights, error, *channel, pool);

    Report report{"predict"};
    describe(*channel, report.configuration);
    report.configuration["estimate"] = arguments.estimate_file;
    report.configuration["file"] = arguments.token_file;
    report.configuration["predicted_error"] = error;
    // For a posterior mean ||Shat||^2/d is the overlap with the truth.
    channels::GeneralizationError expected;
    if (error > 0) {
        const double overlap = estimate.weights.squaredNorm() / static_cast<double>(estimate.weights.rows());
        expected = channel->generalization({linalg::scalar_overlap(overlap), linalg::scalar_overlap(error)},
                                           {.pool = &pool});
    }
    // Outputs of the file have their noise, which no prediction can know.
    const double noise = data::number_attribute(estimate.attributes, "label_noise").value_or(0) *
                         static_cast<double>(header.tokens * header.tokens);
    const bool labelled = contents.data.outputs.size() > 0;
    const channels::Rows targets = channels::output_values(*channel, contents.data.outputs);
    const auto measured = [&](const channels::Rows& predicted) {
        return labelled ? Json(estimators::mean_squared_distance(predicted, targets)) : Json(nullptr);
    };
    report.points.push_back({{"samples", header.samples},
                             {"dim", header.dim},
                             {"generalization_error", measured(prediction.bayes_optimal)},
                             {"expected_generalization_error", expected.bayes_optimal + noise},
                             {"plugin_generalization_error", measured(prediction.plug_in)},
                             {"expected_plugin_generalization_error", expected.plug_in + noise}});

    data::Attributes attributes;
    for (const char* name :
         {"prior", "channel", "width", "beta", "label_noise", "predicted_error", "status"}) {
        if (const auto found = estimate.attributes.find(name); found != estimate.attributes.end())
            attributes.insert(*found);
    }
    data::write_predictions(arguments.output.output, prediction.bayes_optimal, prediction.plug_in,
                            header.tokens, attributes);
    publish(report, arguments.output.format, "");
    return 0;
}

}  // namespace

Action add_predict(CLI::App& app) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command =
        app.add_subcommand("predict", "Predict the outputs of new samples from an estimate that `fit` wrote");
    command->add_option("estimate", arguments->estimate_file, "HDF5 file that `fit` wrote")
        ->required()
        ->type_name("ESTIMATE.h5");
    command
        ->add_option("file", arguments->token_file,
                     "HDF5 file of new samples: /tokens; with outputs, the predictions are compared")
        ->required()
        ->type_name("FILE.h5");
    add_threads(*command, arguments->threads);
    arguments->output.add_to(*command);
    command->get_option("--output")
        ->required()
        ->type_name("PREDICTIONS.h5")
        ->description(
            "HDF5 file to write: /predictions (Bayes-optimal: the mean output) and /plugin_predictions");
    command->footer("Example:\n  bayesaim predict estimate.h5 new.h5 --output predictions.h5");
    return [arguments] { return run(*arguments); };
}

}  // namespace bayesaim::program
