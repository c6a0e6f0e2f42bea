// SPDX-License-Identifier: MIT
#pragma once
#include <chrono>
#include <cstddef>
#include <string>

namespace bayesaim::program {

/// Progress of long work on standard error: a bar on a terminal, a plain line now and then in a log, nothing
/// if quiet. Work that ends within seconds leaves no line in a log.
class Progress {
  public:
    Progress(bool quiet, std::size_t items);
    ~Progress() { clear(); }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// Shows the finished fraction of the current item, and a text about it.
    void update(double fraction, const std::string& text);
    /// The current item is done.
    void finish_item() { ++finished_; }
    /// Removes the bar before other output.
    void clear();

  private:
    using Clock = std::chrono::steady_clock;
    std::size_t items_, finished_ = 0;
    bool quiet_, terminal_, drawn_ = false;
    Clock::time_point start_, last_;
};

}  // namespace bayesaim::program
