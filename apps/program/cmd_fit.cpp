// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/table.hpp"
#include "bayesaim/data/dataset_file.hpp"
#include "bayesaim/estimators/fit.hpp"
#include "bayesaim/estimators/prediction.hpp"
#include "bayesaim/spectral/bump_law.hpp"

#include "program/commands.hpp"
#include "program/dry_run.hpp"
#include "program/interrupt.hpp"
#include "program/messages.hpp"
#include "program/options.hpp"
#include "program/progress.hpp"
#include "program/ranks.hpp"

namespace bayesaim::program {
namespace {

using estimators::Family;

struct Arguments : CommonArguments {
    ModelArguments model;
    std::string file;
    AmpArguments amp;
    double holdout = 0.1;
    bool tokens_as_given = false, dry_run = false;
    std::vector<Family> families = {Family::given};  // the candidates for the law of S
};

/// Names attributes of the file that have no meaning here, and settings that neither the file nor the command
/// line gives.
void remark_on(const Record& attributes, const Arguments& arguments) {
    constexpr const char* of_data[] = {"alpha",   "seed",   "samples", "dim",           "test", "bayesaim",
                                       "version", "commit", "mean",    "second_moment", "bumps"};
    const model::ModelOptions& options = arguments.model.options;
    for (const auto& [name, value] : attributes) {
        const bool known = std::find(std::begin(of_data), std::end(of_data), name) != std::end(of_data);
        if (!known && !model::is_option(name))
            tell("bayesaim: attribute '{}' of '{}' is not known and is ignored\n", name, arguments.file);
    }
    if (model::takes_option(options, "beta") && !attributes.contains("beta") &&
        !arguments.model.command.given("--beta")) {
        tell("bayesaim: '{}' does not give beta; it is taken as {:g}{}\n", arguments.file,
             options.channel_options.beta,
             arguments.families.front() == Family::given ? "" : ", so that S stands for beta S");
    }
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

/// What is learned: the law of S if the prior is `learn`, or if it has a width that nobody gives.
void choose_families(const Record& attributes, Arguments& arguments) {
    ModelArguments& model = arguments.model;
    model::ModelOptions& options = model.options;
    const bool typed = model.command.given("--prior");
    if (options.prior == "learn") {
        if (model.command.given("--width")) throw_conflict("--width", "--prior learn");
        options.prior =
            options.channel_options.attention == channels::Attention::tied ? "wishart" : "bilinear";
        arguments.families = {Family::gaussian, Family::smooth, Family::fine};
    } else {
        const bool is_product = options.prior == "wishart" || options.prior == "bilinear";
        const bool known = attributes.contains("width") || model.command.given("--width");
        const bool open =
            model.learned.contains("width") || (!known && model::takes_option(options, "width"));
        const bool learnable = open && options.channel != "multi-head" && is_product && options.aspect == 1;
        if (model.learned.contains("width") && !learnable)
            throw_unavailable("--width learn", options.aspect != 1
                                                   ? "for keys of another dimension"
                                                   : fmt::format("with the prior {}", options.prior));
        if (learnable) arguments.families = {Family::weights};
        // Nobody says that S is a product of weights.
        if (learnable && !typed && !attributes.contains("prior") && !model.learned.contains("width"))
            arguments.families = {Family::weights, Family::gaussian, Family::smooth, Family::fine};
    }
    if (model.learned.contains("beta")) {
        if (arguments.families.front() != Family::weights)
            throw_inapplicable("--beta learn", "--prior wishart or bilinear of learned width",
                               "no other prior fixes the scale of S");
        arguments.families = {Family::weights};
        options.channel_options.beta = 1;
    }
}

/// Too few samples for a tenth of them to say something: 20, if that leaves twice as many to learn from. Otherwise
/// none, where nothing is learned.
double share_held_out(const Arguments& arguments, Eigen::Index samples) {
    constexpr Eigen::Index fewest = 20;
    if (arguments.model.command.given("--holdout")) return arguments.holdout;
    const auto count = static_cast<double>(samples);
    if (arguments.holdout * count >= fewest) return arguments.holdout;
    if (samples >= 3 * fewest) return fewest / count;
    return arguments.families.front() == Family::given ? 0 : arguments.holdout;
}

/// What was learned about the prior and the channel, in the names of the model.
Record learned_values(const estimators::FitResult& result, const Arguments& arguments, bool symmetric) {
    Record values;
    if (result.learned.family != Family::given) {
        if (result.learned.width) {
            values["prior"] = symmetric ? "wishart" : "bilinear";
            values["width"] = *result.learned.width;
            if (!result.beta) values["scale"] = *result.learned.scale;
        } else {
            values["prior"] = std::string(to_string(result.learned.family));
            values["second_moment"] =
                result.learned.law ? Value(result.learned.law->second_moment()) : Value();
        }
    }
    if (result.beta) values["beta"] = *result.beta;
    if (arguments.model.learned.contains("label_noise")) values["label_noise"] = result.label_noise;
    return values;
}

const estimators::HeldOutFit* held_out(const estimators::FitResult& result) {
    return result.candidates.empty() ? nullptr : &result.candidates[result.chosen].held_out;
}

/// For programs: one value under each name.
Record in_numbers(const estimators::FitResult& result, const Record& learned) {
    Record record;
    std::string text;
    for (const auto& [name, value] : learned) {
        record[fmt::format("learned_{}", name)] = value;
        text += (text.empty() ? "" : ", ") + name + " " +
                (value.as<std::string>() ? *value.as<std::string>()
                                         : fmt::format("{:.6g}", value.number().value_or(0)));
    }
    record["learned"] = text.empty() ? Value() : Value(text);
    const estimators::HeldOutFit none, *held = held_out(result);
    if (held == nullptr) held = &none;
    record.update({{"holdout_samples", held->samples},
                   {"holdout_ratio", held->ratio},
                   {"holdout_z", held->z},
                   {"holdout_error", held->error}});
    Value::List names, losses;
    for (const estimators::Candidate& candidate : result.candidates) {
        names.emplace_back(std::string(to_string(candidate.family)));
        losses.emplace_back(candidate.held_out.loss);
    }
    record.update({{"candidates", std::move(names)},
                   {"candidate_losses", std::move(losses)},
                   {"spectral_misfit", result.spectral_misfit},
                   {"training_ratio", result.training_ratio},
                   {"token_whiteness", result.tokens.queries.whiteness},
                   {"token_length_spread", result.tokens.queries.length_spread},
                   {"tokens_whitened", result.tokens.whitened},
                   {"verdict", result.verdict.text}});
    return record;
}

/// For readers: each number with its value for the right model.
Record in_words(const estimators::FitResult& result, const Record& learned) {
    Record record;
    const Record numbers = in_numbers(result, learned);
    if (const Value* text = numbers.find("learned"); text != nullptr && !text->absent())
        record["learned"] = *text;
    if (result.candidates.size() > 1) {
        std::string text;
        for (const estimators::Candidate& candidate : result.candidates)
            text += fmt::format(
                "{}{} {:.4g}{}", text.empty() ? "" : ", ", to_string(candidate.family),
                candidate.held_out.loss,
                succeeded(candidate.status) ? "" : fmt::format(" ({})", to_string(candidate.status)));
        record["candidates"] = "held-out loss: " + text;
    }
    if (const estimators::HeldOutFit* held = held_out(result); held != nullptr && held->z) {
        record["holdout"] =
            held->ratio
                ? fmt::format(
                      "residuals are {:.3f} of what is promised (right model: 1 +- {:.3f}), z = {:.1f}",
                      *held->ratio, std::abs((*held->ratio - 1) / *held->z), *held->z)
                : fmt::format("z = {:.1f} (right model: 0 +- 1)", *held->z);
    } else if (held != nullptr && held->error) {
        record["holdout"] = fmt::format("residuals vanish: error {:.1e}", *held->error);
    }
    if (result.spectral_misfit)
        record["spectrum"] =
            fmt::format("d KS = {:.1f} (right model: about 2.5, at most 4)", *result.spectral_misfit);
    const data::TokenStatistics& tokens = result.tokens.queries;
    std::string done;
    if (result.tokens.whitened)
        done = fmt::format("; made white (covariance of condition {:.3g})", result.tokens.condition);
    if (result.tokens.one_length) done += "; taken at one length";
    const data::TermChoice& terms = result.tokens.terms;
    if (terms.query || terms.key) done += "; linear terms of the tokens are fitted";
    if (terms.diagonal) done += "; an offset of the diagonal is fitted";
    record["tokens"] = fmt::format("whiteness z = {:.1f} (white: 0 +- 1), gamma = {:.2f} (normal: 1){}",
                                   tokens.whiteness, tokens.length_spread, done);
    record["verdict"] = result.verdict.text;
    return record;
}

/// The exit code, and a remark on a run that did not reach its end.
int conclude(const Arguments& arguments, const estimators::FitResult& result, const std::string& status,
             bool written) {
    const bool good = succeeded(result.status);
    if (!good && !interrupted() && !arguments.quiet) {
        tell("bayesaim: AMP did not converge (status {}); {}\n", status,
             result.status == Termination::diverged
                 ? "the data do not look like this model, see docs/transformers.md"
                 : "give it more --iterations");
    }
    if (good && !result.verdict.fits && !interrupted() && !arguments.quiet)
        tell("bayesaim: the model does not fit: {}\n", result.verdict.text);
    // An unfinished run has no verdict.
    const bool refuted = !result.verdict.fits && (good || result.status == Termination::diverged);
    return exit_code(!refuted && (good || !arguments.strict), interrupted(),
                     written ? fmt::format("the last estimate is in '{}'", arguments.output)
                             : fmt::format("'{}' is left as it was", arguments.output));
}

/// What it would take: a run of AMP for each prior that is tried on the held-out samples, and the last one.
int plan(const Arguments& arguments, const model::Model& model, const data::DatasetHeader& header) {
    constexpr int usual_iterations = 80;
    ThreadPool pool(arguments.thread_count(), ranks());
    const auto trial = trial_of(model, {}, [&](const data::Synthetic& problem, ThreadPool& alone) {
        return amp_seconds(model, problem, alone);
    });
    const double tried = model.layers() > 1 || share_held_out(arguments, header.samples) == 0
                             ? 0
                             : static_cast<double>(arguments.families.size());
    const auto size =
        problem_size(model, static_cast<double>(header.dim), static_cast<double>(header.samples),
                     data::TokenStorage::memory, data::Precision::double_precision);
    Report report{"fit", model::describe(model)};
    report.configuration["file"] = arguments.file;
    Record point = {{"dim", header.dim}};
    point.update(amp_forecast(size, std::min(usual_iterations, arguments.amp.options.max_iterations),
                              tried + 1, trial, pool));
    report.points.push_back(std::move(point));
    publish(report, arguments.format, "");
    return 0;
}

int run(Arguments arguments) {
    arguments.amp.check();
    if (arguments.holdout != 0) check_between("--holdout", arguments.holdout, 0, 0.9);
    const data::DatasetHeader header = data::read_dataset_header(arguments.file);
    check_output_file(arguments.output, {arguments.file});
    complete_from(header, arguments);
    const Record attributes = data::record_of(header.attributes);
    choose_families(attributes, arguments);
    const model::Model model = arguments.model.make();
    const bool symmetric = model.channel().geometry().symmetric();
    if (arguments.dry_run) return plan(arguments, model, header);
    const data::DatasetContents contents =
        data::read_dataset(arguments.file, model.channel(), data::Outputs::required, ranks());
    if (!arguments.quiet) remark_on(attributes, arguments);
    ThreadPool pool(arguments.thread_count(), ranks());
    Progress progress(arguments.quiet, 1);
    catch_interrupts();

    estimators::FitOptions options;
    options.families = arguments.families;
    options.learn_label_noise = arguments.model.learned.contains("label_noise");
    options.learn_beta = arguments.model.learned.contains("beta");
    options.holdout = model.layers() > 1 ? 0 : share_held_out(arguments, header.samples);
    options.seed = arguments.seed;
    options.tokens_as_given = arguments.tokens_as_given;
    options.amp = arguments.amp.options;
    options.amp.progress = [&](const estimators::AmpIteration& now) {
        progress.update(
            static_cast<double>(now.iteration) / options.amp.max_iterations,
            fmt::format("iteration {}, predicted error {:.6f}", now.iteration, now.predicted_error.trace()));
        return !interrupted();
    };
    const auto channel_of = [&](double label_noise) { return arguments.model.make_channel(label_noise); };
    const estimators::FitResult result =
        estimators::fit(contents.data, channel_of, arguments.model.options.channel_options.label_noise,
                        model.laws(), options, pool);
    progress.clear();
    any_rank_interrupted();  // all ranks, if one was
    if (result.estimates.empty()) return exit_code(true, interrupted(), "nothing was written");
    if (result.beta) arguments.model.options.channel_options.beta = *result.beta;
    const auto channel = channel_of(result.label_noise);

    const std::string status(to_string(result.status));
    const bool learned_law = result.learned.family != Family::given;
    Record description = model::describe(model);
    if (learned_law) {
        for (const char* name : {"prior", "width", "scale", "heads", "atoms", "exponent", "cutoff"})
            description.erase(name);
    }
    const Record learned = learned_values(result, arguments, symmetric);
    for (const char* name : {"label_noise", "beta"}) {
        if (const Value* value = learned.find(name)) description[name] = *value;
    }
    data::Estimate estimate{result.estimates, result.predicted_error, data::attributes_of(description)};
    for (const auto& [name, value] : learned) {
        if (name != "second_moment") estimate.attributes[name] = value;
    }
    if (learned_law && !result.learned.width) {
        estimate.attributes["prior"] = "spectrum";
        if (const auto* law = dynamic_cast<const spectral::BumpLaw*>(result.learned.law.get()))
            estimate.law = law->bumps();
    }
    estimate.terms = result.terms;
    if (result.tokens.whitened)
        estimate.attributes["white_overlap"] =
            result.white_estimate.squaredNorm() / static_cast<double>(result.white_estimate.rows());
    estimate.attributes["alpha"] = contents.data.alpha();
    estimate.attributes["iterations"] = static_cast<std::uint64_t>(result.iterations);
    estimate.attributes["status"] = status;
    estimate.attributes["verdict"] = result.verdict.text;
    // An unfinished estimate does not replace another one.
    const bool written =
        !interrupted() || succeeded(result.status) || !std::filesystem::exists(arguments.output);
    if (speaks() && written) data::write_estimate(arguments.output, estimate);

    Report report{"fit", description};
    report.configuration["file"] = arguments.file;
    arguments.amp.describe(report.configuration);
    if (options.holdout > 0)
        report.configuration.update({{"holdout", options.holdout}, {"seed", options.seed}});
    const auto fitted = estimators::predict(*contents.data.tokens, contents.data.keys(), result.estimates,
                                            0 * result.predicted_error, *channel, pool, result.terms);
    const channels::Rows outputs = channels::output_values(*channel, contents.data.outputs);
    Record point = {{"alpha", contents.data.alpha()},
                    {"dim", header.dim},
                    {"samples", header.samples},
                    {"predicted_error", result.predicted_error.trace()},
                    {"measured_error", nullptr}};
    if (channel->components() > 1)
        point["predicted_layer_errors"] = linalg::diagonal_value(result.predicted_error);
    if (!contents.weights.empty()) {
        const linalg::Overlap error = estimators::measured_error(result, *channel, contents.weights);
        point["measured_error"] = error.trace();
        if (channel->components() > 1) point["measured_layer_errors"] = linalg::diagonal_value(error);
    }
    point["training_fit"] =
        estimators::mean_squared_distance(fitted.plug_in, outputs, contents.data.shares(), pool);
    point["iterations"] = result.iterations;
    if (arguments.format == "table") {
        report.summary = in_words(result, learned);
    } else {
        point.update(in_numbers(result, learned));
    }
    point["status"] = status;
    report.points.push_back(std::move(point));
    publish(report, arguments.format, "");
    return conclude(arguments, result, status, written);
}

}  // namespace

void add_fit(Program& program) {
    auto [command, arguments] = program.add_command<Arguments>(
        "fit", "Estimate the weight matrices of a dataset file by approximate message passing", run,
        Program::Runs::divided);
    command.text("file", arguments.file, "HDF5 or npz file: tokens, outputs (softmax: log_outputs)", "FILE")
        .required();
    arguments.model.learnable = true;
    arguments.model.add_channel_to(command);
    arguments.model.add_prior_to(command);
    for (const char* option : {"--channel", "--prior", "--tokens"})
        command.option(option).default_text("as in FILE");
    command.option("--width").default_text("as in FILE, or learn").values({"learn"});
    std::vector<std::string> priors = names_of(priors::prior_table());
    priors.emplace_back("learn");
    command.option("--prior").values(priors);
    command.number(
        "--holdout", arguments.holdout,
        "share of the samples that is held out, to choose the prior and to test the fit (0: none)");
    command.flag("--tokens-as-given", arguments.tokens_as_given,
                 "no whitening of the tokens, no linear terms of the indices");
    arguments.amp.add_to(command);
    command.flag("--dry-run", arguments.dry_run,
                 "only estimate memory of a rank, operations and seconds, from trials of a few samples");
    arguments.add_to(command);
    command.option("--seed").description("seed of the choice of held-out samples");
    command.option("--output")
        .required()
        .type_name("ESTIMATE.h5")
        .description(
            "HDF5 file to write: the estimate as /weights, attributes predicted_error, status, verdict");
    command.footer(
        "Attributes of the file give channel, prior and their parameters; options override them.\n"
        "A width that nobody gives is learned; --prior learn takes any spectrum. If nobody gives a prior, "
        "held-out\n"
        "samples choose. Exit code 2: the data are not those of this model.\n"
        "Example:\n  bayesaim fit data.h5 --output estimate.h5");
}

}  // namespace bayesaim::program
