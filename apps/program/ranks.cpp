// SPDX-License-Identifier: MIT
#include "program/ranks.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "bayesaim/core/text.hpp"
#include "bayesaim/core/version.hpp"
#include "bayesaim/linalg/blas.hpp"

namespace bayesaim::program {
namespace {

Communicator* joined = nullptr;
int error_output = STDERR_FILENO;  // of a rank that is otherwise silent

void fall_silent() {
    error_output = dup(STDERR_FILENO);
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

/// srun starts as many processes as it is told, but only some of its ways let them find each other.
void check_found_each_other(const Communicator& ranks) {
    const char* tasks = std::getenv("SLURM_STEP_NUM_TASKS");
    const auto count = parse_number<int>(tasks == nullptr ? "1" : tasks);
    if (ranks.size() == 1 && count && *count > 1)
        throw std::runtime_error(
            fmt::format("srun started {} processes that do not know each other: use srun --mpi=pmix or "
                        "--mpi=pmi2, or mpirun",
                        *count));
}

}  // namespace

std::unique_ptr<Communicator> join_ranks() {
    const bool by_srun = std::getenv("SLURM_STEP_NUM_TASKS") != nullptr;
    if (!started_by_launcher()) {
        if (by_srun && has_mpi()) check_found_each_other(one_process());
        return nullptr;
    }
    auto ranks = start_mpi();
    joined = ranks.get();
    if (by_srun) check_found_each_other(*ranks);
    if (!ranks->first()) fall_silent();
    // Other kernels round differently, and ranks that disagree about the end of an iteration wait for ever.
    check_same_on_all_ranks(*ranks, "versions", fmt::format("{} {}", version(), git_commit()));
    check_same_on_all_ranks(*ranks, "processors", linalg::kernels());
    return ranks;
}

Communicator& ranks() { return joined != nullptr ? *joined : one_process(); }

int fail(const std::string& message, int exit_code) {
    Communicator& all = ranks();
    if (all.size() == 1) {
        say(message);
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
