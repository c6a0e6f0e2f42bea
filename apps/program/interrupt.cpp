// SPDX-License-Identifier: MIT
#include "program/interrupt.hpp"

#include <csignal>

#include <fmt/format.h>

namespace bayesaim::program {
namespace {

volatile std::sig_atomic_t interrupt_flag = 0;

void raise_flag(int signal) {
    interrupt_flag = 1;
    std::signal(signal, SIG_DFL);
}

}  // namespace

void catch_interrupts() {
    std::signal(SIGINT, raise_flag);
    std::signal(SIGTERM, raise_flag);
    ignore_file_size_signal();
}

void ignore_file_size_signal() { std::signal(SIGXFSZ, SIG_IGN); }

bool interrupted() { return interrupt_flag != 0; }

int exit_code(bool good, bool stopped, std::string_view remark) {
    if (!stopped) return good ? 0 : 2;
    fmt::print(stderr, "bayesaim: interrupted; {}\n", remark);
    return interrupted_exit_code;
}

}  // namespace bayesaim::program
