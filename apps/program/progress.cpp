// SPDX-License-Identifier: MIT
#include "program/progress.hpp"

#include <algorithm>
#include <csignal>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "program/messages.hpp"

namespace bayesaim::program {

std::string duration(double seconds) {
    if (seconds < 100) return fmt::format("{:.0f} s", seconds);
    if (seconds < 6000) return fmt::format("{:.0f} min", seconds / 60);
    return fmt::format("{:.0f} h", seconds / 3600);
}

Progress::Progress(bool quiet, std::size_t items)
    : items_(std::max<std::size_t>(items, 1)), terminal_(isatty(STDERR_FILENO) != 0), start_(Clock::now()) {
    if (quiet) return;
    // Signals go to the threads that can react to them.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        drawer_ = std::thread([this] {
            const std::chrono::milliseconds interval{terminal_ ? 200 : 10'000};
            std::unique_lock lock(mutex_);
            while (!end_.wait_for(lock, interval, [this] { return ended_; })) draw();
        });
    } catch (const std::system_error&) {
        // The system has no thread for it: the work goes on without a report.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Progress::clear() {
    if (!drawer_.joinable()) return;
    {
        const std::lock_guard lock(mutex_);
        ended_ = true;
    }
    end_.notify_one();
    drawer_.join();
    if (terminal_) tell("\r\033[K");
}

void Progress::update(double fraction, const std::string& text) {
    const std::lock_guard lock(mutex_);
    fraction_ = std::clamp(fraction, 0.0, 1.0);
    text_ = text;
}

void Progress::finish_item() {
    const std::lock_guard lock(mutex_);
    ++finished_;
    fraction_ = 0;
}

void Progress::skip_item() {
    const std::lock_guard lock(mutex_);
    if (items_ > 1) --items_;
}

void Progress::draw() const {
    const double done = std::min(1.0,
                                 (static_cast<double>(finished_) + fraction_) / static_cast<double>(items_)),
                 seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    std::string line = fmt::format("{:.0f}% done", 100 * done);
    constexpr double enough = 0.02;  // of the work, to tell its length
    if (done >= enough && done < 1)
        line += fmt::format(", about {} left", duration(seconds * (1 - done) / done));
    if (!text_.empty()) line += ", " + text_;
    if (terminal_) {
        constexpr int width = 24;
        const auto filled = static_cast<std::size_t>(done * width);
        tell("\r\033[K[{}{}] {}", std::string(filled, '='), std::string(width - filled, ' '), line);
    } else {
        tell("bayesaim: {}, {}\n", duration(seconds), line);
    }
    std::fflush(stderr);
}

}  // namespace bayesaim::program
