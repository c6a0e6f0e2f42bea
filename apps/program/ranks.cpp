// SPDX-License-Identifier: MIT
#include "program/ranks.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "bayesaim/core/text.hpp"
#include "bayesaim/core/version.hpp"
#include "bayesaim/linalg/blas.hpp"

#include "program/messages.hpp"

namespace bayesaim::program {
namespace {

Communicator* joined = nullptr;
int error_output = STDERR_FILENO;  // of a rank that is otherwise silent

void fall_silent() {
    error_output = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    const int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nothing < 0) return;
    dup2(nothing, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
    close(nothing);
}

void say(const std::string& line) {
    const std::string text = fmt::format("bayesaim: {}\n", line);
    if (write(error_output, text.data(), text.size()) < 0) return;
}

}  // namespace

std::unique_ptr<Communicator> join_ranks() {
    if (!started_by_launcher()) return nullptr;
    auto ranks = start_mpi();
    joined = ranks.get();
    if (!ranks->first()) fall_silent();
    return ranks;
}

void check_ranks() {
    Communicator& all = ranks();
    // Other kernels round differently, and ranks that disagree about the end of an iteration wait for ever.
    check_same_on_all_ranks(all, "versions", fmt::format("{} {}", version(), git_commit()));
    check_same_on_all_ranks(all, "processors", linalg::kernels());
}

void check_found_each_other() {
    const char* tasks = std::getenv("SLURM_STEP_NUM_TASKS");
    const auto count = parse_number<int>(tasks == nullptr ? "1" : tasks);
    if (ranks().size() > 1 || !count || *count <= 1) return;
    // One line, not one per process.
    if (const char* process = std::getenv("SLURM_PROCID");
        process != nullptr && std::string_view(process) != "0")
        fall_silent();
    throw std::runtime_error(fmt::format(
        "srun started {} processes that do not know each other: use srun --mpi=pmix, or mpirun", *count));
}

Communicator& ranks() { return joined != nullptr ? *joined : one_process(); }

int fail(const std::string& message, int exit_code) {
    Communicator& all = ranks();
    if (all.size() == 1) {
        tell("bayesaim: {}\n", message);
        return exit_code;
    }
    if (all.first()) {
        say(message);
    } else {
        // The first rank may be about to say the same. It ends this one then.
        std::this_thread::sleep_for(std::chrono::milliseconds(1000 + 200 * all.rank()));
        say(fmt::format("rank {} of {}: {}", all.rank(), all.size(), message));
    }
    std::fflush(nullptr);
    all.abort(exit_code);
    return exit_code;  // not reached
}

}  // namespace bayesaim::program
