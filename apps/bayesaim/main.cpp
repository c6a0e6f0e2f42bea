// SPDX-License-Identifier: MIT
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bayesaim/commands.hpp"
#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/version.hpp"

namespace {

constexpr int bad_usage = 1;

int fail(const char* message) {
    fmt::print(stderr, "bayesaim: {}\n", message);
    return bad_usage;
}

}  // namespace

int main(int argc, char** argv) {
    using namespace bayesaim::program;
    CLI::App app("Bayes-optimal learning of attention: exact errors, and the algorithms that reach them.",
                 "bayesaim");
    app.set_version_flag("--version", std::string(bayesaim::version()));
    app.require_subcommand(1);
    app.get_formatter()->column_width(34);
    try {
        std::vector<std::pair<CLI::App*, Action>> commands;
        for (const auto add : {add_theory, add_threshold, add_phase, add_spectrum, add_denoise}) {
            Action action = add(app);
            commands.emplace_back(app.get_subcommands({}).back(), std::move(action));
        }
        if (argc > 1 && argv[1][0] != '-') {
            std::vector<std::string> names;
            for (const auto& [command, action] : commands) names.push_back(command->get_name());
            bayesaim::check_one_of("command", argv[1], names);
        }
        app.parse(argc, argv);
        for (const auto& [command, action] : commands) {
            if (command->parsed()) return action();
        }
    } catch (const CLI::Success& request) {  // --help, --version
        return app.exit(request);
    } catch (const CLI::ParseError& error) {
        return fail(fmt::format("{} (see bayesaim --help)", error.what()).c_str());
    } catch (const std::exception& error) {
        return fail(error.what());
    }
    return bad_usage;
}
