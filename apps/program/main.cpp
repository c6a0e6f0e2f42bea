// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <string>

#include <unistd.h>

#include "bayesaim/core/version.hpp"
#include "bayesaim/linalg/blas.hpp"

#include "program/commands.hpp"
#include "program/interrupt.hpp"
#include "program/ranks.hpp"

namespace {

constexpr int bad_usage = 1;

/// See linalg::better_blas_kernels. If execv fails, this process continues with the slower kernels.
void start_again_with_better_kernels(char** argv) {
    const char* kernels = bayesaim::linalg::better_blas_kernels();
    if (kernels == nullptr || std::getenv("OPENBLAS_CORETYPE") != nullptr) return;
    setenv("OPENBLAS_CORETYPE", kernels, 1);
    setenv("OPENBLAS_NUM_THREADS", "1", 0);  // threads of OpenBLAS would compete with ours
    execv("/proc/self/exe", argv);
}

}  // namespace

int main(int argc, char** argv) {
    start_again_with_better_kernels(argv);
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
