// SPDX-License-Identifier: MIT
#include <filesystem>

#include "bayesaim/commands.hpp"
#include "bayesaim/core/checks.hpp"
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
    RunArguments run;
    std::string precision = "double";
    double alpha = 0;
    int dim = 100;
    bool no_weights = false, test = false;
};

int run(const Arguments& arguments) {
    check_one_of("--precision", arguments.precision, {"double", "float"});
    check_positive("--alpha", arguments.alpha);
    check_output_file(arguments.output.output, {});
    const auto prior = make_prior(arguments.prior, arguments.channel);
    const auto channel = arguments.channel.make();
    catch_interrupts();
    ThreadPool pool(arguments.run.thread_count());

    data::SyntheticOptions options;
    options.dim = arguments.dim;
    options.alpha = arguments.alpha;
    options.seed = arguments.run.seed;
    options.test = arguments.test;
    options.storage = data::TokenStorage::regenerate;
    options.precision = arguments.precision == "double" ? data::Precision::double_precision
                                                        : data::Precision::float_precision;
    const data::Synthetic problem = data::make_synthetic(*prior, *channel, options, pool);
    data::Attributes attributes = data::describe(*prior, *channel);
    attributes["seed"] = arguments.run.seed;
    Progress progress(arguments.output.quiet, 1);
    data::write_dataset(arguments.output.output, problem.data, *channel,
                        arguments.no_weights ? nullptr : &problem.weights, attributes, options.precision,
                        [&](double fraction) {
                            if (interrupted()) throw Interrupted();
                            progress.update(fraction, "tokens written");
                        });
    progress.clear();

    Report report{"generate"};
    report.configuration = describe(arguments.prior, *prior);
    describe(*channel, report.configuration);
    report.configuration["alpha"] = arguments.alpha;
    report.configuration["dim"] = arguments.dim;
    report.configuration["seed"] = arguments.run.seed;
    report.configuration["precision"] = arguments.precision;
    report.configuration["test"] = arguments.test;
    report.configuration["weights"] = !arguments.no_weights;
    report.points.push_back({{"alpha", problem.data.alpha()},
                             {"samples", problem.data.tokens->samples()},
                             {"tokens", problem.data.tokens->tokens()},
                             {"dim", problem.data.tokens->dim()},
                             {"bytes", std::filesystem::file_size(arguments.output.output)}});
    publish(report, arguments.output.format, "");
    return 0;
}

}  // namespace

Action add_generate(CLI::App& app) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand("generate", "Write a synthetic dataset to an HDF5 file");
    add_number(*command, "--alpha", arguments->alpha, "samples per d^2")->default_str("")->required();
    add_count(*command, "--dim", arguments->dim, 2, "dimension d");
    arguments->channel.add_to(*command);
    arguments->prior.add_to(*command);
    command->add_option("--precision", arguments->precision, "of the tokens: double or float")
        ->capture_default_str();
    command->add_flag("--test", arguments->test,
                      "other samples of the same weights: a test set for the data of the same --seed");
    command->add_flag("--no-weights", arguments->no_weights, "leave the weights S out of the file");
    arguments->run.add_to(*command);
    arguments->output.add_to(*command);
    command->get_option("--output")
        ->required()
        ->type_name("FILE.h5")
        ->description("HDF5 file to write: /tokens, /outputs (softmax: /log_outputs), /weights");
    command->footer("Example:\n  bayesaim generate --dim 100 --alpha 0.1 --width 0.5 --output data.h5");
    return [arguments] { return run(*arguments); };
}

}  // namespace bayesaim::program
