// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "bayesaim/core/version.hpp"
#include "bayesaim/linalg/blas.hpp"

#include "program/commands.hpp"
#include "program/interrupt.hpp"
#include "program/ranks.hpp"

namespace {

constexpr int bad_usage = 1;

/// OpenBLAS reads its settings when it is loaded: see linalg::better_blas_kernels. Threads of its own would compete with
/// ours, take 128 MB of addresses each, and never end if there is no memory for that. If execv fails, this process
/// continues as it is.
void start_again_with_better_blas(char** argv) {
    const char* kernels = bayesaim::linalg::better_blas_kernels();
    const bool slow = kernels != nullptr && std::getenv("OPENBLAS_CORETYPE") == nullptr;
    if (!slow && std::getenv("OPENBLAS_NUM_THREADS") != nullptr) return;
    if (slow) setenv("OPENBLAS_CORETYPE", kernels, 1);
    setenv("OPENBLAS_NUM_THREADS", "1", 0);
    std::error_code error;
    execv(std::filesystem::read_symlink("/proc/self/exe", error).c_str(), argv);
}

/// A file that is opened takes the number of a standard stream that was closed, and messages would be written into it.
/// Printing on a standard output that was closed fails, as it should.
void open_standard_streams() {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (fcntl(stream, F_GETFD) < 0 &&
            open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY) < 0)
            return;
    }
}

}  // namespace

int main(int argc, char** argv) {
    open_standard_streams();
    start_again_with_better_blas(argv);
    using namespace bayesaim::program;
    std::unique_ptr<bayesaim::Communicator> ranks;
    try {
        ranks = join_ranks();
        check_ranks();
        Program program(
            "bayesaim",
            "Bayes-optimal learning of attention: exact errors, and the algorithms that reach them.",
            std::string(bayesaim::version()));
        for (const auto add : {add_theory, add_threshold, add_phase, add_samples, add_amp, add_gd, add_erm,
                               add_spectrum, add_denoise, add_generate, add_fit, add_predict, add_sweep,
                               add_merge, add_rerun, add_plot, add_figure, add_explore, add_documentation}) {
            add(program);
        }
        return program.run({argv + std::min(argc, 1), argv + argc});
    } catch (const Interrupted& interruption) {
        return fail(interruption.what(), interrupted_exit_code);
    } catch (const std::bad_alloc&) {
        return fail("not enough memory for problems of this size", bad_usage);
    } catch (const std::exception& error) {
        return fail(error.what(), bad_usage);
    }
}
