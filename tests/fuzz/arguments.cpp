// SPDX-License-Identifier: MIT
// Command lines, one argument a line; the first byte chooses the command. They are parsed, but no command runs: an option
// that does not exist comes first, and is complained about last.
#include <sstream>

#include "fuzz.hpp"
#include "program/commands.hpp"

FUZZ_TARGET(arguments) {
    using namespace bayesaim;
    using namespace bayesaim::program;
    struct Entry {
        const char* name;
        void (*add)(Program&);
    };
    constexpr std::array<Entry, 18> commands = {{{"theory", add_theory},
                                                 {"threshold", add_threshold},
                                                 {"phase", add_phase},
                                                 {"samples", add_samples},
                                                 {"amp", add_amp},
                                                 {"gd", add_gd},
                                                 {"erm", add_erm},
                                                 {"spectrum", add_spectrum},
                                                 {"denoise", add_denoise},
                                                 {"generate", add_generate},
                                                 {"fit", add_fit},
                                                 {"predict", add_predict},
                                                 {"sweep", add_sweep},
                                                 {"merge", add_merge},
                                                 {"rerun", add_rerun},
                                                 {"plot", add_plot},
                                                 {"figure", add_figure},
                                                 {"explore", add_explore}}};
    fuzz::Description description(input);
    const Entry& command = description.one_of(commands);
    std::vector<std::string> arguments = {command.name, "--no-such-option"};
    std::istringstream lines{
        std::string(fuzz::text_of(input.subspan(std::min<std::size_t>(input.size(), 1))))};
    for (std::string line; std::getline(lines, line) && arguments.size() < 16;) {
        const bool help = line.starts_with("--")
                              ? line.starts_with("--help") || line.starts_with("--version")
                              : line.starts_with('-') && line.find('h') != std::string::npos;
        if (help) return;  // it prints
        arguments.push_back(line);
    }
    if (arguments.size() % 5 == 0) arguments.erase(arguments.begin());  // an unknown command
    const bool taken = fuzz::accepts([&] {
        Program program("bayesaim", "", "");
        command.add(program);
        program.run(arguments);
    });
    if (taken) fuzz::fail("an unknown option was taken");
}
