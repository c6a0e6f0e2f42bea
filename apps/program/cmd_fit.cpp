// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/data/dataset_file.hpp"
#include "bayesaim/estimators/prediction.hpp"

#include "program/commands.hpp"
#include "program/interrupt.hpp"
#include "program/options.hpp"
#include "program/progress.hpp"

namespace bayesaim::program {
namespace {

struct Arguments : CommonArguments {
    ModelArguments model;
    std::string file;
    AmpArguments amp;
};

/// Names attributes of the file that have no meaning here, and settings that neither the file nor the command
/// line gives.
void remark_on(const Record& attributes, const Arguments& arguments) {
    constexpr const char* of_data[] = {"alpha", "seed",     "samples", "dim",
                                       "test",  "bayesaim", "version", "commit"};
    const model::ModelOptions& options = arguments.model.options;
    for (const auto& [name, value] : attributes) {
        const bool known = std::find(std::begin(of_data), std::end(of_data), name) != std::end(of_data);
        if (!known && !model::is_option(name))
            fmt::print(stderr, "bayesaim: attribute '{}' of '{}' is not known and is ignored\n", name,
                       arguments.file);
    }
    const auto taken = [&](const char* name, double value) {
        if (model::takes_option(options, name) && !attributes.contains(name) &&
            !arguments.model.command.given(fmt::format("--{}", name)))
            fmt::print(stderr, "bayesaim: '{}' does not give {}; it is taken as {:g}\n", arguments.file, name,
                       value);
    };
    taken("width", options.widths.front());
    taken("beta", options.channel_options.beta);
}

/// The command line overrides the attributes of the file, which override the defaults.
void complete_from(const data::DatasetHeader& header, Arguments& arguments) {
    int& tokens = arguments.model.options.channel_options.tokens;
    if (arguments.model.command.given("--tokens") && tokens != header.tokens)
        throw_invalid("--tokens", fmt::format("{}, as in '{}'", header.tokens, arguments.file), tokens);
    arguments.model.complete_from(data::record_of(header.attributes));
    tokens = static_cast<int>(header.tokens);
    channels::ChannelOptions& channel = arguments.model.options.channel_options;
    if (header.key_tokens > 0 && channel.attention == channels::Attention::tied &&
        !arguments.model.command.given("--attention"))
        channel.attention = channels::Attention::cross;  // only cross-attention has them
    if (header.key_tokens > 0) channel.key_tokens = static_cast<int>(header.key_tokens);
    // The dimensions of the arrays decide; an aspect of the file or the command line must agree with them.
    double& aspect = arguments.model.options.aspect;
    const bool typed = arguments.model.command.given("--aspect");
    if (typed || header.attributes.contains("aspect")) {
        if (aspect > 0 && std::llround(aspect * static_cast<double>(header.dim)) != header.key_dim)
            throw_invalid(typed ? "--aspect" : fmt::format("attribute aspect of '{}'", arguments.file),
                          fmt::format("{:g}: tokens have dimension {}, key tokens {}",
                                      static_cast<double>(header.key_dim) / static_cast<double>(header.dim),
                                      header.dim, header.key_dim),
                          aspect);
    } else if (header.key_dim != header.dim) {
        aspect = static_cast<double>(header.key_dim) / static_cast<double>(header.dim);
    }
}

int run(Arguments arguments) {
    arguments.amp.check();
    const data::DatasetHeader header = data::read_dataset_header(arguments.file);
    check_output_file(arguments.output, {arguments.file});
    complete_from(header, arguments);
    const model::Model model = arguments.model.make();
    const data::DatasetContents contents = data::read_dataset(arguments.file, model.channel());
    if (!arguments.quiet) remark_on(data::record_of(header.attributes), arguments);
    ThreadPool pool(arguments.thread_count());
    Progress progress(arguments.quiet, 1);
    catch_interrupts();
    estimators::AmpOptions options = arguments.amp.options;
    options.progress = [&](const estimators::AmpIteration& now) {
        progress.update(
            static_cast<double>(now.iteration) / options.max_iterations,
            fmt::format("iteration {}, predicted error {:.6f}", now.iteration, now.predicted_error.trace()));
        return !interrupted();
    };
    const estimators::AmpResult result =
        estimators::run_amp(contents.data, model.laws(), model.channel(), options, pool);
    progress.clear();

    const std::string status(to_string(result.status));
    const Record description = model::describe(model);
    data::Estimate estimate{result.estimates, result.predicted_error, data::attributes_of(description)};
    estimate.attributes["alpha"] = contents.data.alpha();
    estimate.attributes["iterations"] = static_cast<std::uint64_t>(result.record.size());
    estimate.attributes["status"] = status;
    data::write_estimate(arguments.output, estimate);

    Report report{"fit", description};
    report.configuration["file"] = arguments.file;
    arguments.amp.describe(report.configuration);
    const auto fitted = estimators::predict(*contents.data.tokens, contents.data.keys(), result.estimates,
                                            0 * result.predicted_error, model.channel(), pool);
    const channels::Rows outputs = channels::output_values(model.channel(), contents.data.outputs);
    Record point = {{"alpha", contents.data.alpha()},
                    {"dim", header.dim},
                    {"samples", header.samples},
                    {"predicted_error", result.predicted_error.trace()},
                    {"measured_error", nullptr}};
    if (model.channel().components() > 1)
        point["predicted_layer_errors"] = linalg::diagonal_value(result.predicted_error);
    if (!contents.weights.empty()) {
        const linalg::Overlap error =
            data::estimation_errors(model.channel().geometry(), result.estimates, contents.weights);
        point["measured_error"] = error.trace();
        if (model.channel().components() > 1) point["measured_layer_errors"] = linalg::diagonal_value(error);
    }
    point["training_fit"] = estimators::mean_squared_distance(fitted.plug_in, outputs);
    point["iterations"] = result.record.size();
    point["status"] = status;
    report.points.push_back(std::move(point));
    publish(report, arguments.format, "");
    const bool good = succeeded(result.status);
    if (!good && !interrupted() && !arguments.quiet) {
        fmt::print(stderr, "bayesaim: AMP did not converge (status {}); {}\n", status,
                   result.status == Termination::diverged
                       ? "the data do not look like this model, see docs/transformers.md"
                       : "give it more --iterations");
    }
    return exit_code(good || !arguments.strict, interrupted(),
                     fmt::format("the last estimate is in '{}'", arguments.output));
}

}  // namespace

void add_fit(Program& program) {
    auto [command, arguments] = program.add_command<Arguments>(
        "fit", "Estimate the weight matrices of a dataset file by approximate message passing", run);
    command.text("file", arguments.file, "HDF5 file: /tokens, /outputs (softmax: /log_outputs)", "FILE.h5")
        .required();
    arguments.model.add_channel_to(command);
    arguments.model.add_prior_to(command);
    for (const char* option : {"--channel", "--prior", "--width", "--tokens"})
        command.option(option).default_text("as in FILE");
    arguments.amp.add_to(command);
    arguments.add_without_seed_to(command);
    command.option("--output")
        .required()
        .type_name("ESTIMATE.h5")
        .description("HDF5 file to write: the estimate as /weights, attributes predicted_error, status");
    command.footer(
        "Attributes of the file give channel, prior and their parameters; options override them.\n"
        "Example:\n  bayesaim fit data.h5 --output estimate.h5");
}

}  // namespace bayesaim::program
