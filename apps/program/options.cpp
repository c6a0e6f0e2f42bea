// SPDX-License-Identifier: MIT
#include "program/options.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/random.hpp"
#include "bayesaim/core/table.hpp"
#include "bayesaim/figures/gnuplot.hpp"
#include "bayesaim/linalg/random_matrix.hpp"

#include "program/interrupt.hpp"
#include "program/messages.hpp"

namespace bayesaim::program {

bool is_success(std::string_view status) {
    return status == to_string(Termination::converged) || status == to_string(Termination::exact_recovery);
}

namespace {

/// One line per row of a table, for help texts.
template <class Row>
std::string summaries(const std::vector<Row>& table, const std::vector<std::string>& names) {
    std::string text;
    for (const Row& row : table) {
        if (std::find(names.begin(), names.end(), row.name) != names.end())
            text += fmt::format("\n  {}: {}", row.name, row.summary);
    }
    return text;
}

/// The options of models that a command may have, as the tables name them.
constexpr const char* model_options[] = {"tokens", "beta",  "label_noise", "layers",    "residual",
                                         "heads",  "width", "spectrum",    "attention", "key_tokens",
                                         "aspect", "scale", "exponent",    "cutoff"};

/// --label-noise for label_noise
std::string option_of(std::string name) {
    std::replace(name.begin(), name.end(), '_', '-');
    return "--" + name;
}

}  // namespace

void ModelArguments::add_channel_to(Command& to, Channels taken) {
    command = to;
    const auto& table = channels::channel_table();
    for (const channels::ChannelEntry& entry : table) {
        if (taken == Channels::all || (taken == Channels::one_layer && !takes(entry, "layers")))
            taken_.push_back(entry.name);
    }
    if (taken == Channels::smooth) taken_ = channels::smooth_channels();
    // The command gets an option if one of its channels has it. The help names these channels unless all do.
    const auto add = [&](const char* name, auto& value, std::string help) {
        std::vector<std::string> owners;
        for (const std::string& channel : takers_of(table, name)) {
            if (std::find(taken_.begin(), taken_.end(), channel) != taken_.end()) owners.push_back(channel);
        }
        if (owners.empty()) return;
        if (owners.size() < taken_.size()) help += fmt::format(" ({})", fmt::join(owners, ", "));
        if constexpr (std::is_same_v<decltype(value), int&>) {
            to.count(option_of(name), value, value == 0 ? 0 : 1, help);
        } else if (learnable && std::string_view(name) != "residual") {
            const std::string option = option_of(name), key = name;
            to.parsed(
                  option,
                  [this, option, key, &value](const std::string& text) {
                      if (text == "learn") {
                          learned.insert(key);
                      } else {
                          value = parse_number(option, "a number or learn", text);
                      }
                  },
                  help + ", or learn")
                .type_name("NUMBER")
                .default_text(fmt::format("{:g}", value))
                .values({"learn"});
        } else {
            to.number(option_of(name), value, help);
        }
    };
    channels::ChannelOptions& of_channel = options.channel_options;
    to.text("--channel", options.channel,
            "how the output depends on the attention indices h:" + summaries(table, taken_))
        .values(taken_);
    add("tokens", of_channel.tokens, "number of tokens T");
    to.parsed(
          "--attention",
          [&of_channel](const std::string& text) {
              of_channel.attention = channels::parse_attention("--attention", text);
          },
          "tied: queries and keys share their weights (S symmetric)\n"
          "cross: any S, queries and keys are two sets of tokens\n"
          "masked: any S, one set of tokens, no token attends to itself\n"
          "self: any S, one set of tokens; approximate, see docs/theory.md\n"
          "causal: the same, and token a attends to tokens b <= a only")
        .type_name("TEXT")
        .default_text("tied")
        .values({"tied", "cross", "masked", "self", "causal"});
    add("key_tokens", of_channel.key_tokens,
        "number of key tokens of cross-attention (0: as many as tokens)");
    add("beta", of_channel.beta, "inverse temperature of the softmax");
    add("label_noise", of_channel.label_noise, "variance of the label noise");
    add("layers", of_channel.layers, "number of layers L");
    add("residual", of_channel.residual, "strength c of the residual connections");
    add("heads", options.heads, "number of heads M");
}

void ModelArguments::add_prior_to(Command& to) {
    command = to;
    const auto& table = priors::prior_table();
    to.text("--prior", options.prior, "prior on the weight matrix S:" + summaries(table, names_of(table)))
        .values(names_of(table));
    to.parsed(
          "--width",
          [this](const std::string& text) {
              if (learnable && text == "learn") {
                  learned.insert("width");
                  return;
              }
              options.widths.clear();
              std::istringstream pieces(text);
              for (std::string piece; std::getline(pieces, piece, ',');)
                  options.widths.push_back(
                      parse_number("--width", "a number, or one per layer: 0.4,0.8", piece));
              if (options.widths.empty()) throw_invalid("--width", "a number", "''");
          },
          "width ratio rho = r/d of wishart, bilinear and multi-head, share of the eigenvalues that are not "
          "0\n"
          "of power-law; for several layers one each: 0.4,0.8")
        .default_text("1");
    add_scale_to(to);
    add_aspect_to(to);
    to.number("--exponent", options.exponent, "decay gamma of the eigenvalues (power-law)");
    to.number("--cutoff", options.cutoff, "x0, which bounds the largest eigenvalue (power-law)");
    to.text(
        "--spectrum", options.spectrum,
        "file for the prior `spectrum`: eigenvalues (untied attention: singular values), one per line, or\n"
        "with a weight, or with weight and variance; or an estimate that `fit` wrote",
        "FILE");
    if (taken_.empty()) to.count("--heads", options.heads, 1, "number of heads M (multi-head)");
}

void ModelArguments::add_scale_to(Command& to) {
    to.number("--scale", options.scale, "number c that multiplies S (wishart, bilinear, power-law)");
}

void ModelArguments::add_aspect_to(Command& to) {
    to.number("--aspect", options.aspect,
              "dimension of the key tokens over that of the tokens, d2/d1, of cross-attention\n"
              "(bilinear, ginibre); alpha then counts samples per d1 d2");
}

void ModelArguments::complete_from(const Record& description) {
    Record open;
    for (const auto& [name, value] : description) {
        if (!command.given(option_of(name))) open[name] = value;
    }
    model::read_options(open, options);
}

void ModelArguments::throw_as_typed(const std::string& message) const {
    for (const std::string name : model_options) {
        if (message.starts_with(name + " must") && command.given(option_of(name)))
            throw InvalidArgument("--" + message);
    }
    throw InvalidArgument(message);
}

model::Model ModelArguments::make() const {
    // The message lists the known names. Those of `fit` may come from a file.
    find_row(channels::channel_table(), command.given("--channel") ? "--channel" : "channel",
             options.channel);
    find_row(priors::prior_table(), command.given("--prior") ? "--prior" : "prior", options.prior);
    if (std::find(taken_.begin(), taken_.end(), options.channel) == taken_.end())
        throw_unavailable(fmt::format("--channel {}", options.channel), "for this command");
    const std::string implied = find_row(channels::channel_table(), "channel", options.channel).prior;
    const channels::Attention attention = options.channel_options.attention;
    if (command.given("--aspect") && options.aspect != 1 && attention != channels::Attention::cross)
        throw_inapplicable("--aspect", "--attention cross",
                           fmt::format("attention is {}", to_string(attention)));
    for (const char* name : model_options) {
        if (!command.given(option_of(name)) || model::takes_option(options, name)) continue;
        const std::string owners = model::owners_of_option(name);
        throw_inapplicable(option_of(name), "--" + owners,
                           owners.starts_with("prior")
                               ? fmt::format("prior is {}", implied.empty() ? options.prior : implied)
                               : fmt::format("channel is {}", options.channel));
    }
    if (options.prior == "spectrum" && options.spectrum.empty())
        throw_missing("--prior spectrum", "--spectrum FILE");
    if (attention != channels::Attention::tied && command.given("--prior") &&
        options.prior == model::ModelOptions{}.prior)  // otherwise the default makes way for bilinear
        throw_conflict(fmt::format("--prior {}", options.prior),
                       fmt::format("--attention {}, whose weights are not symmetric (--prior bilinear)",
                                   to_string(attention)));
    constexpr double wide = 10;  // a width that is rather meant as r
    if (command.given("--width") && options.widths.front() > wide && std::isfinite(options.widths.front()) &&
        !command.given("--quiet")) {
        tell("bayesaim: --width is r/d: {0:g} stands for r = {0:g} d\n", options.widths.front());
    }
    try {
        return model::make_model(options);
    } catch (const InvalidArgument& error) {
        throw_as_typed(error.what());
    }
}

std::shared_ptr<const channels::Channel> ModelArguments::make_channel(double label_noise) const {
    channels::ChannelOptions of_channel = options.channel_options;
    of_channel.label_noise = label_noise;
    return channels::make_channel(options.channel, of_channel);
}

std::vector<model::Model> ModelArguments::make_family() const {
    ModelArguments one = *this;
    std::vector<model::Model> family;
    if (options.widths.size() > 1 &&
        takes(find_row(channels::channel_table(), "channel", options.channel), "layers"))
        return {make()};
    for (const double width : options.widths) {
        one.options.widths = {width};
        family.push_back(one.make());
    }
    return family;
}

std::unique_ptr<priors::Prior> ModelArguments::make_prior() const {
    const auto& row = find_row(priors::prior_table(), "--prior", options.prior);
    for (const char* name : model_options) {
        if (!command.given(option_of(name)) || takes(row, name)) continue;
        throw_inapplicable(
            option_of(name),
            fmt::format("--prior {}", fmt::join(takers_of(priors::prior_table(), name), " or ")),
            fmt::format("prior is {}", options.prior));
    }
    if (takes(row, "spectrum") && options.spectrum.empty())
        throw_missing("--prior spectrum", "--spectrum FILE");
    if (options.widths.size() > 1)
        throw_invalid("--width", "one number", fmt::format("{} numbers", options.widths.size()));
    try {
        return row.make({.width = options.widths[0],
                         .spectrum = options.spectrum,
                         .heads = options.heads,
                         .aspect = options.aspect,
                         .scale = options.scale,
                         .exponent = options.exponent,
                         .cutoff = options.cutoff});
    } catch (const InvalidArgument& error) {
        throw_as_typed(error.what());
    }
}

void CommonArguments::add_to(Command& to, Points points) {
    to.seed("--seed", seed, "seed of all random numbers");
    add_without_seed_to(to, points);
}

void CommonArguments::add_without_seed_to(Command& to, Points points) {
    to.count("--threads", threads, 0,
             "number of threads (0: one per available core); results do not depend on it", 1024);
    to.text("--format", format, "table, csv or json").values({"table", "csv", "json"});
    if (!to.takes("--output"))
        to.text("--output", output, "file to write instead of standard output", "FILE");
    if (points == Points::may_fail) to.flag("--strict", strict, "exit code 2 if a point did not converge");
    to.flag("--quiet", quiet, "no messages on standard error");
    to.after_parsing([this, to] {
        check_one_of("--format", format, {"table", "csv", "json"});
        for (const char* ending : {"csv", "json"}) {
            if (!to.given("--format") && output.ends_with(fmt::format(".{}", ending))) format = ending;
        }
    });
}

void CommonArguments::check_writable(const std::string& picture) const {
    if (!picture.empty()) figures::check_picture_name(picture, "--plot");
    program::check_writable(picture);
    program::check_writable(output);
}

int CommonArguments::publish(const Report& report, const std::function<bool(std::string_view)>& good,
                             std::string_view remark) const {
    program::publish(report, format, output);
    std::size_t bad = 0;
    std::string first;
    for (const Record& point : report.points) {
        const Value* status = point.find("status");
        const std::string* text = status != nullptr ? status->as<std::string>() : nullptr;
        if (text == nullptr || good(*text) || ++bad > 1) continue;
        for (const char* name : {"width", "alpha", "dim"}) {
            const Value* value = point.find(name);
            if (value != nullptr && value->number())
                first += fmt::format("{} {:g}, ", name, *value->number());
        }
        first += *text;
    }
    if (bad > 0 && !quiet) {
        tell("bayesaim: {} of {} points did not converge; the first: {}\n", bad, report.points.size(), first);
    }
    std::string where = "the finished points are above";
    if (report.points.empty() && report.summary.empty()) {
        where = "no point was finished";
    } else if (!output.empty()) {
        where = fmt::format("the finished points are in '{}'", output);
    }
    return exit_code(bad == 0 || !strict, interrupted(), where + std::string(remark));
}

void IntegrationArguments::add_to(Command& to) {
    to.count("--integration-points", integration.points, 16,
             "points per shift of sampled expectations (hardmax-sampled, several layers, training losses of "
             "softmax):\n"
             "more points take more time and give more digits");
}

void NoiseArguments::add_to(Command& to, Variance variance) {
    Option option =
        to.number("--noise-variance", noise_variance,
                  "variance D of the noise sqrt(D) Xi, Xi ~ GOE (bilinear, ginibre: independent entries of "
                  "variance 1/d)")
            .default_text("");
    if (variance == Variance::required) option.required();
    model.add_prior_to(to);
    to.count("--dim", dim, 2, "size d of the sampled matrix");
}

std::unique_ptr<priors::Prior> NoiseArguments::make_prior() const {
    check_positive("--noise-variance", noise_variance);
    return model.make_prior();
}

Record NoiseArguments::describe(const priors::Prior& prior) const {
    Record record = model::describe(prior);
    if (!model.options.spectrum.empty()) record["spectrum"] = model.options.spectrum;
    record["noise_variance"] = noise_variance;
    return record;
}

void NoiseArguments::add_noise(bool symmetric, linalg::Matrix& matrix, std::uint64_t seed,
                               ThreadPool& pool) const {
    const RandomStream noise(seed, Purpose::noise);
    const Eigen::Index size = matrix.rows(), columns = matrix.cols();
    // sqrt(sqrt(d^2)) is sqrt(d) to the last bit.
    matrix +=
        std::sqrt(noise_variance) *
        (symmetric ? linalg::gaussian_orthogonal_ensemble(size, noise, pool)
                   : linalg::gaussian_matrix(size, columns, noise, pool) /
                         std::sqrt(std::sqrt(static_cast<double>(size) * static_cast<double>(columns))));
}

theory::StateEvolutionOptions IntegrationArguments::options(std::uint64_t seed, ThreadPool* pool) const {
    theory::StateEvolutionOptions options;
    options.integration = integration;
    options.integration.seed = seed;
    options.integration.pool = pool;
    return options;
}

void IntegrationArguments::describe(const channels::Channel& channel, std::uint64_t seed,
                                    Record& configuration) const {
    if (!channel.sampled()) return;
    configuration["integration_points"] = integration.points;
    configuration["seed"] = seed;
}

void TokenArguments::add_to(Command& to) {
    to.text("--token-storage", storage, "memory, or regenerate (blocks are made again)")
        .values({"memory", "regenerate"});
    to.text("--precision", precision, "precision of the tokens and of products with them: double or float")
        .values({"double", "float"});
}

data::SyntheticOptions TokenArguments::synthetic(int dim) const {
    data::SyntheticOptions options;
    options.dim = dim;
    options.storage = data::parse_token_storage("--token-storage", storage);
    options.precision = data::parse_precision("--precision", precision);
    return options;
}

void AmpArguments::add_to(Command& to) {
    to.parsed(
          "--response",
          [this](const std::string& text) {
              options.response = estimators::parse_response("--response", text);
          },
          "gain of AMP: power or slope of the score, or automatic: the slope for several layers, for linear\n"
          "and softmax outputs of untied attention, and if alpha d < 4 and it is fast; otherwise the power")
        .default_text(std::string(to_string(options.response)))
        .type_name("TEXT")
        .values({"power", "slope", "automatic"});
    to.number("--damping", options.damping, "weight of the previous omega and V: 0 or more, below 1");
    to.flag("--adaptive-damping", options.adaptive_damping, "more damping while the change grows");
    to.count("--iterations", options.max_iterations, 1, "maximum number of iterations");
    to.number("--tolerance", options.tolerance, "stop at this change, relative to the predicted error");
}

void AmpArguments::check() const {
    check_non_negative("--damping", options.damping);
    if (options.damping >= 1) throw_invalid("--damping", "below 1", options.damping);
    check_positive("--tolerance", options.tolerance);
}

void AmpArguments::describe(Record& configuration) const {
    configuration.update({{"response", to_string(options.response)},
                          {"damping", options.damping},
                          {"max_iterations", options.max_iterations},
                          {"tolerance", options.tolerance},
                          {"adaptive_damping", options.adaptive_damping}});
}

}  // namespace bayesaim::program
