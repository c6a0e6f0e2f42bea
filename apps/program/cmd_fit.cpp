// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "program/commands.hpp"
#include "bayesaim/core/checks.hpp"
#include "bayesaim/data/dataset_file.hpp"
#include "bayesaim/data/deep_attention.hpp"
#include "bayesaim/estimators/prediction.hpp"
#include "program/interrupt.hpp"
#include "program/model.hpp"
#include "program/progress.hpp"

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
    const data::Attributes& attributes = header.attributes;
    arguments.channel.complete_from(attributes);
    if (!arguments.given("--prior"))
        arguments.prior.prior = data::text_attribute(attributes, "prior").value_or(arguments.prior.prior);
    if (const auto width = attributes.find("width");
        width != attributes.end() && !arguments.given("--width")) {
        const bool several = arguments.channel.deep() && std::holds_alternative<std::string>(width->second);
        arguments.prior.set_widths("attribute width",
                                   several ? std::get<std::string>(width->second)
                                           : fmt::format("{}", *data::number_attribute(attributes, "width")));
    }
    // As `generate` describes the mean of several heads.
    if (arguments.prior.prior == "multi-head" && !arguments.given("--prior")) {
        check_one_of("channel with prior multi-head", arguments.channel.channel, {"softmax", "multi-head"});
        arguments.prior.prior = "wishart";
        arguments.channel.channel = "multi-head";
    }
    if (arguments.given("--tokens") && arguments.channel.options.tokens != header.tokens) {
        throw_invalid("--tokens", fmt::format("{}, as in '{}'", header.tokens, arguments.file),
                      arguments.channel.options.tokens);
    }
    arguments.channel.options.tokens = static_cast<int>(header.tokens);
}

int run(Arguments arguments) {
    const data::DatasetHeader header = data::read_dataset_header(arguments.file);
    check_output_file(arguments.output.output, {arguments.file});
    complete_from(header, arguments);
    const Model model(arguments.prior, arguments.channel);
    const data::DatasetContents contents = data::read_dataset(arguments.file, *model.channel);
    ThreadPool pool(static_cast<std::size_t>(arguments.threads));
    Progress progress(arguments.output.quiet, 1);
    catch_interrupts();
    const auto show = [&](int iteration, int most, double error) {
        progress.update(static_cast<double>(iteration) / most,
                        fmt::format("iteration {}, predicted error {:.6f}", iteration, error));
        return !interrupted();
    };
    const Learned result = learn(contents.data, model, arguments.amp, {.progress = show}, pool);
    progress.clear();

    const std::string status(to_string(result.status));
    data::Estimate estimate{result.estimates, result.predicted_error,
                            data::describe(model.priors, *model.channel)};
    estimate.attributes["alpha"] = contents.data.alpha();
    estimate.attributes["iterations"] = static_cast<std::uint64_t>(result.record.size());
    estimate.attributes["status"] = status;
    data::write_estimate(arguments.output.output, estimate);

    Report report{"fit", model.configuration};
    report.configuration["file"] = arguments.file;
    arguments.amp.describe(model.deep, report.configuration);
    const auto fitted = estimators::predict(*contents.data.tokens, result.estimates,
                                            0 * result.predicted_error, *model.channel, pool);
    const channels::Rows outputs = channels::output_values(*model.channel, contents.data.outputs);
    Json point = {{"alpha", contents.data.alpha()},
                  {"dim", header.dim},
                  {"samples", header.samples},
                  {"predicted_error", result.predicted_error.trace()},
                  {"measured_error", nullptr}};
    if (model.deep) point["predicted_layer_errors"] = diagonal(result.predicted_error);
    if (!contents.weights.empty()) {
        const linalg::Overlap error = data::estimation_errors(result.estimates, contents.weights);
        point["measured_error"] = error.trace();
        if (model.deep) point["measured_layer_errors"] = diagonal(error);
    }
    point["training_fit"] = estimators::mean_squared_distance(fitted.plug_in, outputs);
    point["iterations"] = result.record.size();
    point["status"] = status;
    report.points.push_back(std::move(point));
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
        "fit", "Estimate the weight matrices behind a dataset file, by approximate message passing");
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
