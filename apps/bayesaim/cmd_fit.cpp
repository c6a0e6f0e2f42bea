// SPDX-License-Identifier: MIT
#include <filesystem>
#include <stdexcept>

#include <fmt/format.h>
#include <unistd.h>

#include "bayesaim/commands.hpp"
#include "bayesaim/core/checks.hpp"
#include "bayesaim/data/attention.hpp"
#include "bayesaim/data/dataset_file.hpp"
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

/// Before hours of work: whether there is a place for their result.
void check_output_file(const Arguments& arguments) {
    namespace fs = std::filesystem;
    const std::string& output = arguments.output.output;
    std::error_code error;
    if (fs::equivalent(arguments.file, output, error)) {
        throw_invalid("--output", "another file than the dataset", fmt::format("'{}'", output));
    }
    const fs::path folder = fs::absolute(output).parent_path();
    if (access(folder.c_str(), W_OK) != 0)
        throw std::runtime_error(fmt::format("could not write '{}'", output));
}

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
    if (arguments.given("--tokens") && arguments.channel.options.tokens != header.tokens) {
        throw_invalid("--tokens", fmt::format("{}, as in '{}'", header.tokens, arguments.file),
                      arguments.channel.options.tokens);
    }
    arguments.channel.options.tokens = static_cast<int>(header.tokens);
}

/// Mean over the samples of ||y - g(htilde of the estimate)||^2, in probabilities for softmax.
double training_fit(const Arguments& arguments, const data::Dataset& data, const linalg::Matrix& estimate,
                    ThreadPool& pool) {
    channels::ChannelOptions noiseless = arguments.channel.options;
    noiseless.label_noise = 0;
    const auto channel = channels::make_channel(arguments.channel.channel, noiseless);
    const channels::Rows index = data::all_attention_indices(*data.tokens, estimate, pool);
    channels::Rows plug_in(data.outputs.rows(), data.outputs.cols());
    channel->draw(index, 0, 0, plug_in);
    const double samples = static_cast<double>(plug_in.rows());
    if (channel->name() != "softmax") return (plug_in - data.outputs).squaredNorm() / samples;
    return (plug_in.array().exp() - data.outputs.array().exp()).matrix().squaredNorm() / samples;
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
    check_output_file(arguments);
    complete_from(header, arguments);
    const auto prior = arguments.prior.make();
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
    report.points.push_back(
        {{"alpha", contents.data.alpha()},
         {"dim", header.dim},
         {"samples", header.samples},
         {"predicted_error", result.predicted_error},
         {"measured_error",
          weights ? Json(data::estimation_error(result.estimate, *weights)) : Json(nullptr)},
         {"training_fit", training_fit(arguments, contents.data, result.estimate, pool)},
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
    add_count(*command, "--threads", arguments->threads, 0,
              "threads; results do not depend on it (0: one per core)");
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
