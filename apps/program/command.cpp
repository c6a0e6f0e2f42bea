// SPDX-License-Identifier: MIT
#include "program/command.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <limits>
#include <optional>
#include <stdexcept>
#include <type_traits>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"

#include "program/ranks.hpp"

namespace bayesaim::program {
namespace {

template <class Number>
Number parse_whole(const std::string& name, const std::string& requirement, const std::string& text) {
    Number value{};
    const bool plus = text.starts_with('+') && !text.starts_with("+-");  // from_chars takes no plus sign
    const char *begin = text.data() + (plus ? 1 : 0), *end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (error == std::errc::result_out_of_range && stop == end && !std::is_floating_point_v<Number>)
        throw_invalid(name,
                      fmt::format("between {} and {}", std::numeric_limits<Number>::min(),
                                  std::numeric_limits<Number>::max()),
                      text);
    if (error != std::errc() || stop != end) throw_invalid(name, requirement, fmt::format("'{}'", text));
    return value;
}

/// Steps from one word to the other: a letter inserted, removed, replaced, or exchanged with its neighbour.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::vector<std::size_t>> steps(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) {
        for (std::size_t j = 0; j <= b.size(); ++j) {
            if (i == 0 || j == 0) {
                steps[i][j] = i + j;
                continue;
            }
            steps[i][j] = std::min({steps[i - 1][j] + 1, steps[i][j - 1] + 1,
                                    steps[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                steps[i][j] = std::min(steps[i][j], steps[i - 2][j - 2] + 1);
        }
    }
    return steps[a.size()][b.size()];
}

/// The known word that a misspelled one resembles, or std::nullopt if none does.
std::optional<std::string> closest(const std::string& word, const std::vector<std::string>& known) {
    std::optional<std::string> best;
    std::size_t fewest = std::max<std::size_t>(1, word.size() / 3) + 1;
    for (const std::string& candidate : known) {
        if (const std::size_t steps = edit_distance(word, candidate); steps < fewest) {
            fewest = steps;
            best = candidate;
        }
    }
    return best;
}

/// The paper's letters and other likely names of our options.
constexpr std::pair<const char*, const char*> other_names[] = {{"--rho", "--width"},
                                                               {"--r", "--width, which is r/d"},
                                                               {"--rank", "--width, which is r/d"},
                                                               {"--T", "--tokens"},
                                                               {"--d", "--dim"},
                                                               {"--n", "--alpha, which is n/d^2"},
                                                               {"--L", "--layers"},
                                                               {"--c", "--residual"},
                                                               {"--samples", "--alpha, which is n/d^2"},
                                                               {"--M", "--heads"},
                                                               {"--noise", "--label-noise"},
                                                               {"--delta", "--label-noise"},
                                                               {"--lr", "--learning-rate"}};

/// A message about arguments that the command does not take.
std::string unexpected(const CLI::App& command) {
    std::vector<std::string> extras = command.remaining(true);
    const auto option = std::find_if(extras.begin(), extras.end(),
                                     [](const std::string& text) { return text.starts_with('-'); });
    if (option == extras.end()) return fmt::format("unexpected argument '{}'", extras.front());
    const std::string name = option->substr(0, option->find('='));
    std::vector<std::string> known;
    for (const CLI::Option* taken : command.get_options()) {
        for (const std::string& long_name : taken->get_lnames()) known.push_back("--" + long_name);
    }
    std::optional<std::string> meant;
    for (const auto& [other, ours] : other_names) {
        const std::string ours_alone = std::string(ours).substr(0, std::string(ours).find(','));
        const bool taken = std::find(known.begin(), known.end(), ours_alone) != known.end();
        if (taken && (name == other || name == std::string(other).substr(1))) meant = ours;
    }
    if (!meant) meant = closest(name, known);
    return fmt::format("unknown option {}{}", name, meant ? fmt::format("; did you mean {}?", *meant) : "");
}

/// What is written last would replace the other file. Devices may be named twice.
void check_files_differ(const CLI::App& command) {
    namespace fs = std::filesystem;
    std::vector<std::pair<fs::path, std::string>> files;
    for (const CLI::Option* option : command.get_options()) {
        if (option->count() == 0 || option->get_type_name().find("FILE") == std::string::npos) continue;
        const std::string& text = option->results().front();
        std::error_code error;
        const fs::path file = fs::weakly_canonical(text, error);
        if (error || fs::is_other(file, error)) continue;
        for (const auto& [other, name] : files) {
            if (other == file)
                throw_invalid(fmt::format("{} and {}", name, option->get_name()), "different files",
                              fmt::format("'{}'", text));
        }
        files.emplace_back(file, option->get_name());
    }
}

}  // namespace

double parse_number(const std::string& name, const std::string& requirement, const std::string& text) {
    return parse_whole<double>(name, requirement, text);
}

// ---- options ---------------------------------------------------------------------------------------------

Option& Option::required() {
    option_->required();
    return *this;
}

Option& Option::type_name(const std::string& name) {
    option_->type_name(name);
    return *this;
}

Option& Option::default_text(const std::string& text) {
    option_->default_str(text);
    return *this;
}

Option& Option::description(const std::string& text) {
    option_->description(text);
    return *this;
}

Option& Option::values(const std::vector<std::string>& words) {
    (*values_)[option_] = words;
    return *this;
}

// ---- a command -------------------------------------------------------------------------------------------

Option Command::text(const std::string& name, std::string& value, const std::string& description,
                     const std::string& type) {
    return handle(app_->add_option(name, value, description)->capture_default_str()->type_name(type));
}

Option Command::texts(const std::string& name, std::vector<std::string>& values,
                      const std::string& description) {
    return handle(app_->add_option(name, values, description));
}

Option Command::parsed(const std::string& name, const std::function<void(const std::string&)>& parse,
                       const std::string& description) {
    return handle(app_->add_option_function<std::string>(name, parse, description)->type_name("N"));
}

Option Command::number(const std::string& name, double& value, const std::string& description) {
    const auto parse = [name, &value](const std::string& text) {
        value = parse_number(name, "a number", text);
    };
    return parsed(name, parse, description).default_text(fmt::format("{}", value));
}

Option Command::count(const std::string& name, int& value, int lowest, const std::string& description,
                      int highest) {
    const auto parse = [name, &value, lowest, highest](const std::string& text) {
        value = parse_whole<int>(name, "a whole number", text);
        if (highest == std::numeric_limits<int>::max()) {
            check_at_least(name, value, lowest);
        } else if (value < lowest || value > highest) {
            throw_invalid(name, fmt::format("between {} and {}", lowest, highest), fmt::format("{}", value));
        }
    };
    return parsed(name, parse, description).default_text(fmt::format("{}", value));
}

Option Command::seed(const std::string& name, std::uint64_t& value, const std::string& description) {
    const auto parse = [name, &value](const std::string& text) {
        value = parse_whole<std::uint64_t>(name, "a non-negative whole number", text);
    };
    return parsed(name, parse, description).default_text(fmt::format("{}", value));
}

void Command::flag(const std::string& name, bool& value, const std::string& description) {
    app_->add_flag(name, value, description);
}

Option Command::option(const std::string& name) { return handle(app_->get_option(name)); }

void Command::footer(const std::string& text) { app_->footer(text); }

void Command::hide() { app_->group(""); }

void Command::after_parsing(const std::function<void()>& check) { app_->parse_complete_callback(check); }

bool Command::takes(const std::string& option) const {
    return app_ != nullptr && app_->get_option_no_throw(option) != nullptr;
}

bool Command::given(const std::string& option) const { return takes(option) && app_->count(option) > 0; }

// ---- the program -----------------------------------------------------------------------------------------

Program::Program(const std::string& name, const std::string& description, const std::string& version)
    : app_(std::make_unique<CLI::App>(description, name)) {
    app_->set_version_flag("--version", version);
    app_->require_subcommand(1);
    app_->get_formatter()->column_width(34);
}

Program::~Program() = default;

Command Program::add_action(const std::string& name, const std::string& description,
                            const std::function<int()>& action, Runs runs) {
    CLI::App* command = app_->add_subcommand(name, description);
    // One exit code is enough.
    actions_[command] = [=] {
        if (runs == Runs::divided) check_found_each_other();
        const int code = speaks() || runs != Runs::on_first_rank ? action() : 0;
        return speaks() ? code : 0;
    };
    return {command, &values_};
}

std::vector<const CLI::App*> Program::shown_commands() const {
    const CLI::App& app = *app_;
    return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

int Program::run(const std::vector<std::string>& arguments) {
    if (!arguments.empty() && !arguments.front().starts_with('-')) {
        const std::string& name = arguments.front();
        const CLI::App& app = *app_;
        const auto named = [&](const CLI::App* command) { return command->get_name() == name; };
        if (app.get_subcommands(named).empty()) {
            std::vector<std::string> names;
            for (const CLI::App* command : shown_commands()) names.push_back(command->get_name());
            if (const auto meant = closest(name, names))
                throw InvalidArgument(fmt::format("unknown command '{}'; did you mean {}? (see {} --help)",
                                                  name, *meant, app_->get_name()));
            check_one_of("command", name, names);
        }
    }
    try {
        app_->parse(
            std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // CLI11 takes the last first
    } catch (const CLI::Success& request) {                                   // --help, --version
        const int code = app_->exit(request);
        if (!std::cout.flush()) throw std::runtime_error("could not write to standard output");
        return code;
    } catch (const CLI::ParseError& error) {
        const std::vector<CLI::App*> chosen = app_->get_subcommands();
        const std::string help =
            app_->get_name() + (chosen.empty() ? "" : " " + chosen.front()->get_name()) + " --help";
        // A misspelled option is the mistake, also where it leaves a required one, or the command, missing.
        const CLI::App& place = chosen.empty() ? *app_ : *chosen.front();
        const bool extras = !place.remaining(true).empty();
        throw InvalidArgument(fmt::format("{} (see {})", extras ? unexpected(place) : error.what(), help));
    }
    const CLI::App* command = app_->get_subcommands().front();
    check_files_differ(*command);
    return actions_.at(command)();
}

// ---- what the tables say -----------------------------------------------------------------------------------

namespace {

CommandDescription describe_command(const CLI::App& app, const ValueTable& values) {
    CommandDescription command{app.get_name(), app.get_description(), app.get_footer(), {}};
    for (const CLI::Option* option : app.get_options()) {
        OptionDescription described;
        described.positional = option->get_positional();
        if (described.positional) described.names = {option->get_name()};
        for (const std::string& name : option->get_snames()) described.names.push_back("-" + name);
        for (const std::string& name : option->get_lnames()) described.names.push_back("--" + name);
        described.flag = option->get_items_expected_max() == 0;
        if (!described.flag) described.type = option->get_type_name();
        described.default_text = option->get_default_str();
        described.description = option->get_description();
        if (const auto words = values.find(option); words != values.end()) described.values = words->second;
        described.required = option->get_required();
        described.repeated = option->get_items_expected_max() > 1;
        command.options.push_back(std::move(described));
    }
    return command;
}

}  // namespace

ProgramDescription Program::describe() const {
    ProgramDescription program{describe_command(*app_, values_), app_->version(), {}};
    for (const CLI::App* command : shown_commands())
        program.commands.push_back(describe_command(*command, values_));
    return program;
}

}  // namespace bayesaim::program
