// SPDX-License-Identifier: MIT
#include "bayesaim/experiments/task_crew.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <future>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace bayesaim::experiments {
namespace {

// Messages. A worker says "want" and gets "small 12", "large 12" or "end". It says "done 12 {result}", or "left 12" if
// it was stopped. "stop" may come at any time.
constexpr std::string_view want = "want", end = "end", stop = "stop", done = "done ", left = "left ",
                           small = "small ", large = "large ";

/// The number behind the word, and the text behind that.
std::pair<std::size_t, std::string> after(std::string_view word, const std::string& text) {
    std::size_t number = 0;
    const char* last = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + word.size(), last, number);
    if (error != std::errc()) throw std::logic_error("unknown message between ranks: " + text);
    return {number, std::string(std::min(rest + 1, last), last)};
}

/// The threads of this process that run tasks. The thread that owns the crew talks to other ranks meanwhile.
class Crew {
  public:
    Crew(std::size_t threads, std::function<void(std::size_t, ThreadPool&)> run)
        : threads_(threads == 0 ? default_threads() : threads), run_(std::move(run)) {}

    bool idle() const { return running_.empty(); }
    bool can_take(bool is_small) const {
        return is_small ? !large_ && running_.size() < threads_ : running_.empty();
    }

    void start(const Assignment& assignment) {
        large_ = !assignment.small;
        running_.push_back(std::async(std::launch::async, [this, assignment] {
            ThreadPool pool(assignment.small ? 1 : threads_);
            run_(assignment.task, pool);
        }));
    }

    /// Lets go of tasks that have ended. Throws what they threw. Returns whether there were any.
    bool collect() {
        const auto ended = [](std::future<void>& task) {
            if (task.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
            task.get();
            return true;
        };
        if (std::erase_if(running_, ended) == 0) return false;
        if (running_.empty()) large_ = false;
        return true;
    }

  private:
    std::size_t threads_;
    std::function<void(std::size_t, ThreadPool&)> run_;
    bool large_ = false;  // what runs is a large task
    std::vector<std::future<void>> running_;
};

void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

}  // namespace

void hand_out(const HandOut& work, Communicator& ranks) {
    Crew crew(work.threads, work.run);
    auto next = work.tasks.begin();
    std::set<int> working;  // ranks that are not home
    for (int other = 1; other < ranks.size(); ++other) working.insert(other);
    bool stopping = false;
    while (!working.empty() || !crew.idle() || next != work.tasks.end()) {
        bool news = crew.collect();
        if (!stopping && work.stops()) {
            stopping = true;
            next = work.tasks.end();
            for (const int other : working) ranks.post(std::string(stop), other);
        }
        for (; next != work.tasks.end() && crew.can_take(next->small); ++next) crew.start(*next);
        while (const auto message = ranks.poll()) {
            news = true;
            const std::string& text = message->text;
            if (text == want && next != work.tasks.end()) {
                ranks.post(fmt::format("{}{}", next->small ? small : large, next->task), message->from);
                ++next;
            } else if (text == want) {
                ranks.post(std::string(end), message->from);
            } else if (text == end) {
                working.erase(message->from);
            } else if (text.starts_with(done)) {
                const auto [task, result] = after(done, text);
                work.accept(task, result);
            } else if (!text.starts_with(left)) {
                throw std::logic_error("unknown message between ranks: " + text);
            }
        }
        if (!news) pause();
    }
}

void compute_tasks(std::size_t threads, Communicator& ranks,
                   const std::function<std::optional<std::string>(std::size_t, ThreadPool&,
                                                                  const std::function<bool()>&)>& compute) {
    std::mutex mutex;
    std::vector<std::string> results;  // guarded by the mutex
    std::atomic<bool> stopped = false;
    Crew crew(threads, [&](std::size_t task, ThreadPool& pool) {
        const auto result = compute(task, pool, [&] { return stopped.load(); });
        const std::lock_guard lock(mutex);
        results.push_back(result ? fmt::format("{}{} {}", done, task, *result)
                                 : fmt::format("{}{}", left, task));
    });
    bool asked = false, sent_home = false, runs_large = false;
    while (!sent_home || !crew.idle()) {
        bool news = crew.collect();
        {
            const std::lock_guard lock(mutex);
            for (const std::string& result : std::exchange(results, {})) ranks.post(result, 0);
        }
        if (crew.idle()) runs_large = false;
        if (!asked && !sent_home && !runs_large && crew.can_take(true)) {
            ranks.post(std::string(want), 0);
            asked = true;
        }
        while (const auto message = ranks.poll()) {
            news = true;
            const std::string& text = message->text;
            if (text == stop) {
                stopped = true;
            } else if (text == end) {
                sent_home = true;
            } else {
                const bool is_small = text.starts_with(small);
                crew.start({after(is_small ? small : large, text).first, is_small});
                runs_large = !is_small;
                asked = false;
            }
        }
        if (!news) pause();
    }
    for (const std::string& result : results) ranks.post(result, 0);
    ranks.post(std::string(end), 0);
}

}  // namespace bayesaim::experiments
