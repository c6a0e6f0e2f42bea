// SPDX-License-Identifier: MIT
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "bayesaim/core/record.hpp"

#include "explorer/requests.hpp"

namespace bayesaim::explorer {

/// What a command said: its result as text, or why there is none.
struct Answer {
    std::string text{}, error{};
};

/// Runs commands of the program, a few at once. Others wait a while for their turn.
class Computations {
  public:
    /// `limit` of the time of one command; 0 s: that of the request.
    Computations(int at_once, std::chrono::seconds limit) : free_(at_once), limit_(limit) {}

    /// `gone` is asked now and then whether nobody waits for the answer any more; the command then stops. `news` gets what
    /// the command tells while it runs.
    Answer run(const Request& request, const std::vector<std::string>& arguments,
               const std::function<bool()>& gone, const std::function<void(const Record&)>& news = {});

  private:
    bool enter(const std::function<bool()>& gone);
    void leave();

    std::mutex mutex_;
    std::condition_variable left_;
    int free_;
    std::chrono::seconds limit_;
};

}  // namespace bayesaim::explorer
