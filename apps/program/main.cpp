// SPDX-License-Identifier: MIT
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "program/commands.hpp"
#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/version.hpp"
#include "program/interrupt.hpp"
#include "bayesaim/linalg/blas.hpp"

namespace {

constexpr int bad_usage = 1;

int fail(const char* message) {
    fmt::print(stderr, "bayesaim: {}\n", message);
    return bad_usage;
}

/// See linalg::better_blas_kernels. Where the new start fails the old one goes on, slower.
void start_again_with_better_kernels(char** argv) {
    const char* kernels = bayesaim::linalg::better_blas_kernels();
    if (kernels == nullptr || std::getenv("OPENBLAS_CORETYPE") != nullptr) return;
    setenv("OPENBLAS_CORETYPE", kernels, 1);
    setenv("OPENBLAS_NUM_THREADS", "1", 0);  // its own threads would only wait in the way of ours
    execv("/proc/self/exe", argv);
}

}  // namespace

int main(int argc, char** argv) {
    start_again_with_better_kernels(argv);
    using namespace bayesaim::program;
    CLI::App app("Bayes-optimal learning of attention: exact errors, and the algorithms that reach them.",
                 "bayesaim");
    app.set_version_flag("--version", std::string(bayesaim::version()));
    app.require_subcommand(1);
    app.get_formatter()->column_width(34);
    try {
        std::vector<std::pair<CLI::App*, Action>> commands;
        for (const auto add :
             {add_theory, add_threshold, add_phase, add_amp, add_gd, add_spectrum, add_denoise, add_generate,
              add_fit, add_predict, add_sweep, add_merge, add_rerun, add_figure}) {
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
    } catch (const Interrupted& interruption) {
        fail(interruption.what());
        return interrupted_exit_code;
    } catch (const std::bad_alloc&) {
        return fail("not enough memory for problems of this size");
    } catch (const std::exception& error) {
        return fail(error.what());
    }
    return bad_usage;
}
