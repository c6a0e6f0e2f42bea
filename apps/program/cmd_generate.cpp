// SPDX-License-Identifier: MIT
#include <filesystem>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/data/dataset_file.hpp"

#include "program/commands.hpp"
#include "program/interrupt.hpp"
#include "program/options.hpp"
#include "program/progress.hpp"

namespace bayesaim::program {
namespace {

struct Arguments : CommonArguments {
    ModelArguments model;
    std::string precision = "double";
    double alpha = 0;
    int dim = 100;
    bool no_weights = false, test = false;
};

int run(const Arguments& arguments) {
    data::SyntheticOptions options;
    options.precision = data::parse_precision("--precision", arguments.precision);
    check_positive("--alpha", arguments.alpha);
    check_output_file(arguments.output, {});
    const model::Model model = arguments.model.make();
    ThreadPool pool(arguments.thread_count());

    options.dim = arguments.dim;
    options.alpha = arguments.alpha;
    options.seed = arguments.seed;
    options.test = arguments.test;
    options.storage = data::TokenStorage::regenerate;
    data::Synthetic problem = data::make_synthetic(model.priors(), model.channel(), options, pool);
    if (arguments.no_weights) problem.weights.clear();
    const Record description = model::describe(model);
    data::Attributes attributes = data::attributes_of(description);
    attributes["seed"] = arguments.seed;
    catch_interrupts();  // from here on Ctrl-C must remove the partial file
    Progress progress(arguments.quiet, 1);
    data::write_dataset(arguments.output, problem.data, model.channel(), problem.weights, attributes,
                        options.precision, [&](double fraction) {
                            if (interrupted()) throw Interrupted();
                            progress.update(fraction, "tokens written");
                        });
    progress.clear();

    Report report{"generate", description};
    report.configuration.update({{"alpha", arguments.alpha},
                                 {"dim", arguments.dim},
                                 {"seed", arguments.seed},
                                 {"precision", arguments.precision},
                                 {"test", arguments.test},
                                 {"weights", !arguments.no_weights}});
    report.points.push_back({{"alpha", problem.data.alpha()},
                             {"samples", problem.data.tokens->samples()},
                             {"tokens", problem.data.tokens->tokens()},
                             {"dim", problem.data.tokens->dim()},
                             {"bytes", std::filesystem::file_size(arguments.output)}});
    if (const auto key_dim = problem.data.keys().dim(); key_dim != problem.data.tokens->dim())
        report.points.back()["key_dim"] = key_dim;
    publish(report, arguments.format, "");
    return 0;
}

}  // namespace

void add_generate(Program& program) {
    auto [command, arguments] =
        program.add_command<Arguments>("generate", "Write a synthetic dataset to an HDF5 file", run);
    command.number("--alpha", arguments.alpha, "samples per d^2").default_text("").required();
    command.count("--dim", arguments.dim, 2, "dimension d");
    arguments.model.add_channel_to(command);
    arguments.model.add_prior_to(command);
    command.text("--precision", arguments.precision, "precision of the tokens: double or float")
        .values({"double", "float"});
    command.flag("--test", arguments.test,
                 "other samples of the same weights: a test set for the data of the same --seed");
    command.flag("--no-weights", arguments.no_weights, "leave the weights S_1 .. S_L out of the file");
    arguments.add_to(command, Arguments::Points::never_fail);
    command.option("--output")
        .required()
        .type_name("FILE.h5")
        .description("HDF5 file to write: /tokens, /outputs (softmax: /log_outputs), /weights");
    command.footer(
        "Examples:\n  bayesaim generate --dim 100 --alpha 0.1 --width 0.5 --output data.h5\n"
        "  bayesaim generate --channel deep-softmax --width 0.4,0.8 --dim 100 --alpha 0.3 --output deep.h5");
}

}  // namespace bayesaim::program
