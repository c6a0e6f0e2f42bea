// SPDX-License-Identifier: MIT
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>

namespace bayesaim::program {

/// "40 s", "3 min", "5 h"
std::string duration(double seconds);

/// Progress of long work on standard error: a bar on a terminal, a plain line every ten seconds in a log,
/// nothing if quiet. A thread of its own draws it, so that work without news is not silent either. Work that
/// ends within seconds leaves no line in a log.
class Progress {
  public:
    Progress(bool quiet, std::size_t items);
    ~Progress() { clear(); }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// The finished fraction of the current item, and a text about it.
    void update(double fraction, const std::string& text);
    /// The current item is done.
    void finish_item();
    /// The current item was done before: it says nothing about the time left.
    void skip_item();
    /// Ends the drawing and removes the bar, before other output.
    void clear();

  private:
    using Clock = std::chrono::steady_clock;
    void draw() const;

    std::size_t items_, finished_ = 0;
    double fraction_ = 0;
    std::string text_;
    bool terminal_, ended_ = false;
    Clock::time_point start_;
    std::mutex mutex_;
    std::condition_variable end_;
    std::thread drawer_;
};

}  // namespace bayesaim::program
