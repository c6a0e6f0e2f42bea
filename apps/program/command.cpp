// SPDX-License-Identifier: MIT
#include "program/command.hpp"

#include <charconv>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"

namespace bayesaim::program {
namespace {

template <class Number>
Number parse_whole(const std::string& name, const std::string& requirement, const std::string& text) {
    Number value{};
    const bool plus = text.starts_with('+') && !text.starts_with("+-");  // from_chars takes no plus sign
    const char *begin = text.data() + (plus ? 1 : 0), *end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (error != std::errc() || stop != end) throw_invalid(name, requirement, fmt::format("'{}'", text));
    return value;
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

// ---- a command -------------------------------------------------------------------------------------------

Option Command::text(const std::string& name, std::string& value, const std::string& description,
                     const std::string& type) {
    return Option(app_->add_option(name, value, description)->capture_default_str()->type_name(type));
}

Option Command::texts(const std::string& name, std::vector<std::string>& values,
                      const std::string& description) {
    return Option(app_->add_option(name, values, description));
}

Option Command::parsed(const std::string& name, const std::function<void(const std::string&)>& parse,
                       const std::string& description) {
    return Option(app_->add_option_function<std::string>(name, parse, description)->type_name("N"));
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
        } else {
            check_between(name, value, lowest, highest);
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

Option Command::option(const std::string& name) { return Option(app_->get_option(name)); }

void Command::footer(const std::string& text) { app_->footer(text); }

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
                            const std::function<int()>& action) {
    CLI::App* command = app_->add_subcommand(name, description);
    actions_[command] = action;
    return Command(command);
}

int Program::run(int argc, char** argv) {
    if (argc > 1 && argv[1][0] != '-') {
        std::vector<std::string> names;
        for (const CLI::App* command : app_->get_subcommands({})) names.push_back(command->get_name());
        check_one_of("command", argv[1], names);
    }
    try {
        app_->parse(argc, argv);
    } catch (const CLI::Success& request) {  // --help, --version
        return app_->exit(request);
    } catch (const CLI::ParseError& error) {
        throw InvalidArgument(fmt::format("{} (see {} --help)", error.what(), app_->get_name()));
    }
    return actions_.at(app_->get_subcommands().front())();
}

}  // namespace bayesaim::program
