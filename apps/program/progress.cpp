// SPDX-License-Identifier: MIT
#include "program/progress.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace bayesaim::program {

Progress::Progress(bool quiet, std::size_t items)
    : items_(std::max<std::size_t>(items, 1)),
      quiet_(quiet),
      terminal_(isatty(STDERR_FILENO) != 0),
      start_(Clock::now()),
      last_(start_) {}

void Progress::clear() {
    if (std::exchange(drawn_, false) && terminal_) fmt::print(stderr, "\r\033[K");
}

void Progress::update(double fraction, const std::string& text) {
    if (quiet_) return;
    constexpr std::chrono::milliseconds redraw{100}, log_line{10'000};
    const Clock::time_point now = Clock::now();
    if (now - last_ < (terminal_ ? redraw : log_line)) return;
    last_ = now;
    drawn_ = true;
    const double done =
        (static_cast<double>(finished_) + std::clamp(fraction, 0.0, 1.0)) / static_cast<double>(items_);
    if (terminal_) {
        constexpr int width = 24;
        const auto filled = static_cast<std::size_t>(done * width);
        fmt::print(stderr, "\r\033[K[{}{}] {:3.0f}%  {}", std::string(filled, '='),
                   std::string(width - filled, ' '), 100 * done, text);
        std::fflush(stderr);
    } else {
        const double seconds = std::chrono::duration<double>(now - start_).count();
        fmt::print(stderr, "bayesaim: {:.0f} s, {:.0f}% done, {}\n", seconds, 100 * done, text);
    }
}

}  // namespace bayesaim::program
