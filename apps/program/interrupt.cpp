// SPDX-License-Identifier: MIT
#include "program/interrupt.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>

#include <fmt/format.h>
#include <unistd.h>

#include "program/host.hpp"
#include "program/messages.hpp"
#include "program/ranks.hpp"

namespace bayesaim::program {
namespace {

std::atomic<bool> interrupt_flag = false;  // set by a signal, read by all threads
static_assert(std::atomic<bool>::is_always_lock_free);
std::string_view notice;  // of the first signal; set before signals are caught

void raise_flag(int signal) {
    const int error = errno;
    if (!interrupt_flag && write(STDERR_FILENO, notice.data(), notice.size()) < 0) errno = error;
    interrupt_flag = true;
    std::signal(signal, SIG_DFL);
    std::signal(SIGINT, SIG_DFL);
}

}  // namespace

void catch_interrupts() {
    if (Host::current() != nullptr) return;
    notice = "\r\033[Kbayesaim: stopping; press Ctrl-C again to quit at once\n";
    if (isatty(STDERR_FILENO) == 0) notice.remove_prefix(4);  // there is no bar to remove
    if (ranks().size() > 1) notice = "";  // the launcher ends ranks with a signal, also after a mistake
    std::signal(SIGINT, raise_flag);
    std::signal(SIGTERM, raise_flag);
    if (std::signal(SIGHUP, raise_flag) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);  // nohup
    ignore_file_size_signal();
}

void ignore_file_size_signal() { std::signal(SIGXFSZ, SIG_IGN); }

bool interrupted() {
    const Host* host = Host::current();
    return interrupt_flag || (host != nullptr && host->stopped());
}

bool any_rank_interrupted() {
    if (ranks().size() > 1 && any_rank(ranks(), interrupted())) interrupt_flag = true;
    return interrupted();
}

int exit_code(bool good, bool stopped, std::string_view remark) {
    if (!stopped) return good ? 0 : 2;
    if (Host::current() == nullptr) tell("bayesaim: interrupted; {}\n", remark);
    return interrupted_exit_code;
}

}  // namespace bayesaim::program
