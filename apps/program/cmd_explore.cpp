// SPDX-License-Identifier: MIT
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bayesaim/core/checks.hpp"

#include "explorer/guard.hpp"
#include "explorer/server.hpp"
#include "program/commands.hpp"
#include "program/interrupt.hpp"
#include "program/messages.hpp"

namespace bayesaim::program {
namespace {

struct Arguments {
    std::string host = "127.0.0.1", token;
    int port = 0, time_limit = 0;
    bool no_browser = false;
};

#ifdef BAYESAIM_WITH_EXPLORER

constexpr const char* by_hand = "open the address in a browser";

/// Starts the browser of the desktop, if there is one.
void open_browser(const std::string& address) {
    if (std::getenv("DISPLAY") == nullptr && std::getenv("WAYLAND_DISPLAY") == nullptr) {
        tell("bayesaim: no display here; {}\n", by_hand);
        return;
    }
    std::string program = "xdg-open", argument = address;
    std::array<char*, 3> command = {program.data(), argument.data(), nullptr};
    pid_t child = 0;
    // In a process group of its own: Ctrl-C ends the explorer, not the browser.
    posix_spawnattr_t group;
    posix_spawnattr_init(&group);
    posix_spawnattr_setflags(&group, POSIX_SPAWN_SETPGROUP);
    const int failed = posix_spawnp(&child, command[0], nullptr, &group, command.data(), environ);
    posix_spawnattr_destroy(&group);
    if (failed != 0) {
        tell("bayesaim: no browser was found (xdg-open); {}\n", by_hand);
        return;
    }
    // It may take as long as the browser runs.
    std::thread([child] {
        int status = 0;
        if (waitpid(child, &status, 0) == child && status != 0)
            tell("bayesaim: no browser could be opened (xdg-open); {}\n", by_hand);
    }).detach();
}

int run(Arguments arguments) {
    if (!explorer::is_loopback(arguments.host) && arguments.token.empty())
        throw InvalidArgument(
            fmt::format("--host {} needs --token TEXT: whoever reaches this port and knows the token can "
                        "compute on this machine, and the traffic is not encrypted",
                        arguments.host));
    if (arguments.token.empty()) arguments.token = explorer::random_token();
    for (const char c : arguments.token) {
        if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_')
            throw_invalid("--token", "made of letters, digits, - and _",
                          fmt::format("'{}'", arguments.token));
    }
    constexpr std::size_t shortest = 16;
    if (arguments.token.size() < shortest)
        throw_invalid("--token", fmt::format("at least {} characters long", shortest),
                      fmt::format("{}", arguments.token.size()));
    explorer::Server server({arguments.host, arguments.port, arguments.token, arguments.time_limit});
    catch_interrupts();
    fmt::print("{}\n", server.address());
    std::fflush(stdout);
    if (!explorer::is_loopback(arguments.host))
        tell(
            "bayesaim: other machines reach {}: whoever knows the token can compute here, and the "
            "traffic is not "
            "encrypted\n",
            arguments.host);
    tell("bayesaim: the explorer is at the address above; Ctrl-C ends it\n");
    if (!arguments.no_browser) open_browser(server.address());
    server.serve(interrupted);
    tell("bayesaim: the explorer has ended\n");
    return 0;
}

#else

int run(const Arguments&) {
    throw InvalidArgument(
        "this program was built without the explorer; ./setup installs the packages that it needs and builds "
        "it");
}

#endif

}  // namespace

void add_explore(Program& program) {
    auto [command, arguments] = program.add_command<Arguments>(
        "explore", "A page in the browser: move a slider, and the theory follows", run);
    command.count("--port", arguments.port, 0, "port of the server (0: any that is free)", 65535);
    command.flag("--no-browser", arguments.no_browser, "only print the address");
    command.count("--time-limit", arguments.time_limit, 0,
                  "seconds after which a computation is stopped (0: 300 for AMP, 60 or less for the others)");
    command.text("--host", arguments.host,
                 "address to listen at; other machines reach one that is not loopback, which needs --token");
    command.text("--token", arguments.token, "secret of the address (default: a random one)")
        .default_text("");
    command.footer(
        "Prints the address of the page, with its token, on one line.\n"
        "To see it from another machine: ssh -L 8000:localhost:8000 MACHINE, with --port 8000 there\n"
        "Example:\n  bayesaim explore --port 8000 --no-browser");
}

}  // namespace bayesaim::program
