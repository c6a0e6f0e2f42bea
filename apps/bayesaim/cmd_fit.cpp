// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "bayesaim/commands.hpp"
#include "bayesaim/core/checks.hpp"
#include "bayesaim/data/dataset_file.hpp"
#include "bayesaim/estimators/prediction.hpp"
#include "bayesaim/interrupt.hpp"
#include "bayesaim/options.hpp"
#include "bayesaim/progress.hpp"

namespace bayesaim::program {
namespace {

struct Arguments {
    PriorArguments prior;
    ChannelArguments channel;
    OutputArguments output;
    std::string file;
    int threads = 0;
    AmpArguments amp;
    const CLI::App* command = nullptr;

    bool given(const char* option) const { return command->count(option) > 0; }
};

/// What the command line leaves open is as the file says; what neither says keeps its default.
void complete_from(const data::DatasetHeader& header, Arguments& arguments) {
    const auto text = [&](const char* option, const char* name, std::string& value) {
        if (!arguments.given(option)) value = data::text_attribute(header.attributes, name).value_or(value);
    };
    const auto number = [&](const char* option, const char* name, double& value) {
        if (!arguments.given(option)) value = data::number_attribute(header.attributes, name).value_or(value);
    };
    text("--channel", "channel", arguments.channel.channel);
    number("--beta", "beta", arguments.channel.options.beta);
    number("--label-noise", "label_noise", arguments.channel.options.label_noise);
    text("--prior", "prior", arguments.prior.prior);
    number("--width", "width", arguments.prior.width);
    arguments.prior.widths = {arguments.prior.width};
    if (arguments.prior.prior == "multi-head") {  // as `generate` describes the mean of several heads
        arguments.prior.prior = "wishart";
        arguments.channel.channel = "multi-head";
        const auto heads = data::number_attribute(header.attributes, "heads");
        if (!arguments.given("--heads") && heads) arguments.channel.heads = static_cast<int>(*heads);
    }
    if (arguments.given("--tokens") && arguments.channel.options.tokens != header.tokens) {
        throw_invalid("--tokens", fmt::format("{}, as in '{}'", header.tokens, arguments.file),
                      arguments.channel.options.tokens);
    }
    arguments.channel.options.tokens = static_cast<int>(header.tokens);
}

estimators::AmpResult estimate_weights(const Arguments& arguments, const data::DatasetContents& contents,
                                       const priors::Prior& prior, const channels::Channel& channel,
                                       ThreadPool& pool) {
    Progress progress(arguments.output.quiet, 1);
    estimators::AmpOptions options = arguments.amp.options;
    options.progress = [&](const estimators::AmpIteration& now) {
        progress.update(
            static_cast<double>(now.iteration) / options.max_iterations,
            fmt::format("iteration {}, predicted error {:.6f}", now.iteration, now.predicted_error));
        return !interrupted();
    };
    catch_interrupts();
    return run_amp(contents.data, prior.law(), channel, options, pool);
}

int run(Arguments arguments) {
    const data::DatasetHeader header = data::read_dataset_header(arguments.file);
    check_output_file(arguments.output.output, {arguments.file});
    complete_from(header, arguments);
    const auto prior = make_prior(arguments.prior, arguments.channel);
    const auto channel = arguments.channel.make();
    const data::DatasetContents contents = data::read_dataset(arguments.file, *channel);
    ThreadPool pool(static_cast<std::size_t>(arguments.threads));

    const estimators::AmpResult result = estimate_weights(arguments, contents, *prior, *channel, pool);
    const std::string status(to_string(result.status));
    data::Attributes attributes = data::describe(*prior, *channel);
    attributes["alpha"] = contents.data.alpha();
    attributes["predicted_error"] = result.predicted_error;
    attributes["iterations"] = static_cast<std::uint64_t>(result.record.size());
    attributes["status"] = status;
    data::write_estimate(arguments.output.output, result.estimate, attributes);

    Report report{"fit"};
    report.configuration = describe(arguments.prior, *prior);
    describe(*channel, report.configuration);
    report.configuration["file"] = arguments.file;
    arguments.amp.describe(report.configuration);
    const auto& weights = contents.weights;
    const auto fitted = estimators::predict(*contents.data.tokens, result.estimate, 0, *channel, pool);
    const channels::Rows outputs = channels::output_values(*channel, contents.data.outputs);
    report.points.push_back(
        {{"alpha", contents.data.alpha()},
         {"dim", header.dim},
         {"samples", header.samples},
         {"predicted_error", result.predicted_error},
         {"measured_error",
          weights ? Json(data::estimation_error(result.estimate, *weights)) : Json(nullptr)},
         {"training_fit", estimators::mean_squared_distance(fitted.plug_in, outputs)},
         {"iterations", result.record.size()},
         {"status", status}});
    publish(report, arguments.output.format, "");
    if (interrupted()) {
        fmt::print(stderr, "bayesaim: interrupted; the last estimate is in '{}'\n", arguments.output.output);
        return interrupted_exit_code;
    }
    return succeeded(result.status) ? 0 : 2;
}

}  // namespace

Action add_fit(CLI::App& app) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand(
        "fit", "Estimate the weight matrix behind a dataset file, by approximate message passing");
    arguments->command = command;
    command->add_option("file", arguments->file, "HDF5 file: /tokens, /outputs (softmax: /log_outputs)")
        ->required()
        ->type_name("FILE.h5");
    arguments->channel.add_to(*command);
    arguments->prior.add_to(*command);
    command->get_option("--tokens")->default_str("as in FILE");
    arguments->amp.add_to(*command);
    add_threads(*command, arguments->threads);
    arguments->output.add_to(*command);
    command->get_option("--output")
        ->required()
        ->type_name("ESTIMATE.h5")
        ->description("HDF5 file to write: the estimate as /weights, attributes predicted_error, status");
    command->footer(
        "Channel, prior and their parameters are as the file's attributes say, unless they are given here.\n"
        "Example:\n  bayesaim fit data.h5 --output estimate.h5");
    return [arguments] { return run(*arguments); };
}

}  // namespace bayesaim::program
