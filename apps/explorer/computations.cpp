// SPDX-License-Identifier: MIT
#include "explorer/computations.hpp"

#include <exception>
#include <memory>
#include <new>

#include <fmt/format.h>

#include "program/host.hpp"
#include "program/interrupt.hpp"

namespace bayesaim::explorer {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto patience = 10s;        // of a request that waits for its turn
constexpr auto between_looks = 20ms;  // at the connection: commands ask more often than that

/// Whether to go on, for a command that asks often.
class Watch {
  public:
    Watch(const std::function<bool()>& gone, std::chrono::seconds limit)
        : gone_(gone), end_(Clock::now() + limit) {}
    bool stopped() {
        const auto now = Clock::now();
        if (stopped_ || now < next_) return stopped_;
        next_ = now + between_looks;
        late_ = now > end_;
        return stopped_ = late_ || gone_();
    }
    bool late() const { return late_; }

  private:
    const std::function<bool()>& gone_;
    Clock::time_point end_, next_{};
    bool stopped_ = false, late_ = false;
};

}  // namespace

bool Computations::enter(const std::function<bool()>& gone) {
    const auto end = Clock::now() + patience;
    std::unique_lock lock(mutex_);
    while (!left_.wait_for(lock, between_looks, [this] { return free_ > 0; })) {
        lock.unlock();
        if (Clock::now() > end || program::interrupted() || gone()) return false;
        lock.lock();
    }
    --free_;
    return true;
}

void Computations::leave() {
    {
        const std::lock_guard lock(mutex_);
        ++free_;
    }
    left_.notify_one();
}

Answer Computations::run(const Request& request, const std::vector<std::string>& arguments,
                         const std::function<bool()>& gone, const std::function<void(const Record&)>& news) {
    if (!enter(gone))
        return {.error = "other computations are running; stop one of them, or ask again later"};
    const auto turn =
        std::unique_ptr<Computations, void (*)(Computations*)>(this, [](Computations* of) { of->leave(); });
    Answer answer;
    const std::chrono::seconds limit = limit_.count() > 0 ? limit_ : request.limit;
    Watch watch(gone, limit);
    const program::Host host{[&] { return watch.stopped(); },
                             [&](const Record& told) {
                                 if (news) news(told);
                             },
                             [&](const std::string& text) { answer.text = text; }};
    const program::Hosting hosting(host);
    try {
        program::Program commands("bayesaim", "", "");
        request.add(commands);
        commands.run(arguments);
    } catch (const std::bad_alloc&) {
        answer.error = "not enough memory for problems of this size";
    } catch (const std::exception& error) {
        answer.error = error.what();
    }
    if (program::interrupted())
        answer.error =
            watch.late()
                ? fmt::format("stopped after {} s, the limit here; the same command in a terminal has none",
                              limit.count())
                : "stopped";
    return answer;
}

}  // namespace bayesaim::explorer
