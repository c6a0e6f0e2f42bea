// SPDX-License-Identifier: MIT
#include "bayesaim/core/parallel.hpp"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <fstream>
#include <mutex>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <sched.h>

#include "bayesaim/core/communicator.hpp"
#include "bayesaim/core/text.hpp"

namespace bayesaim {
namespace {

/// Processors of the CPU affinity; 0 if the system does not tell.
std::size_t affinity_count() {
    // A machine may have more processors than a cpu_set_t; the call then fails with EINVAL.
    for (std::size_t size = CPU_SETSIZE; size <= std::size_t{1} << 20; size *= 4) {
        cpu_set_t* set = CPU_ALLOC(size);
        if (set == nullptr) return 0;
        const bool known = sched_getaffinity(0, CPU_ALLOC_SIZE(size), set) == 0;
        const int count = known ? CPU_COUNT_S(CPU_ALLOC_SIZE(size), set) : 0;
        CPU_FREE(set);
        if (known) return static_cast<std::size_t>(count);
    }
    return 0;
}

std::optional<std::string> read_text(const std::string& file) {
    std::ifstream in(file);
    if (!in) return std::nullopt;
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

/// "200000 100000" is 2; "max 100000" and "-1 100000" are no limit.
std::optional<double> quota_per_period(const std::string& text) {
    std::istringstream words(text);
    std::string quota, period;
    words >> quota >> period;
    const auto allowed = parse_number<double>(quota), each = parse_number<double>(period);
    if (!allowed || !each || !(*allowed > 0) || !(*each > 0)) return std::nullopt;
    return *allowed / *each;
}

}  // namespace

struct ThreadPool::State {
    Communicator* ranks = &one_process();
    std::mutex mutex;
    std::condition_variable work_ready, work_done;
    std::vector<std::jthread> workers;
    std::function<bool()> stop;  // does not change during a loop

    // The current loop; guarded by mutex.
    const std::function<void(std::size_t)>* work = nullptr;
    std::size_t count = 0, next = 0, running = 0;
    bool closing = false;
    std::exception_ptr error;
    std::size_t error_index = 0;

    /// Takes items until none is left. The caller holds the lock, before and after.
    void drain(std::unique_lock<std::mutex>& lock) {
        while (next < count) {
            const std::size_t item = next++;
            ++running;
            lock.unlock();
            std::exception_ptr thrown;
            try {
                if (stop && stop()) throw Stopped();
                (*work)(item);
            } catch (...) {
                thrown = std::current_exception();
            }
            lock.lock();
            --running;
            if (thrown && (!error || item < error_index)) {
                error = thrown;
                error_index = item;
                next = count;  // do not start the remaining items
            }
        }
        if (running == 0) work_done.notify_all();
    }

    void serve() {
        std::unique_lock lock(mutex);
        while (true) {
            work_ready.wait(lock, [this] { return closing || next < count; });
            if (closing) return;
            drain(lock);
        }
    }
};

ThreadPool::ThreadPool(std::size_t threads) : state_(std::make_unique<State>()) {
    if (threads == 0) threads = default_threads();
    state_->workers.reserve(threads - 1);
    try {
        while (state_->workers.size() + 1 < threads)
            state_->workers.emplace_back([state = state_.get()] { state->serve(); });
    } catch (const std::system_error&) {
        // The system has no more threads for us: fewer do the same.
    }
}

ThreadPool::ThreadPool(std::size_t threads, Communicator& ranks) : ThreadPool(threads) {
    state_->ranks = &ranks;
}

ThreadPool::~ThreadPool() {
    {
        const std::lock_guard lock(state_->mutex);
        state_->closing = true;
    }
    state_->work_ready.notify_all();
    state_->workers.clear();  // joins
}

std::size_t ThreadPool::threads() const { return state_->workers.size() + 1; }

Communicator& ThreadPool::ranks() const { return *state_->ranks; }

void ThreadPool::for_each(std::size_t count, const std::function<void(std::size_t)>& work) {
    std::unique_lock lock(state_->mutex);
    state_->work = &work;
    state_->count = count;
    state_->next = 0;
    state_->error = nullptr;
    state_->work_ready.notify_all();
    state_->drain(lock);
    state_->work_done.wait(lock, [this] { return state_->running == 0; });
    if (state_->error) std::rethrow_exception(std::exchange(state_->error, nullptr));
}

void ThreadPool::stop_when(std::function<bool()> condition) { state_->stop = std::move(condition); }

std::size_t default_threads() {
    std::size_t count = affinity_count();
    if (count == 0) count = std::max(1U, std::thread::hardware_concurrency());
    const auto limit =
        control_group_limit(read_text("/proc/self/cgroup").value_or(""),
                            [](const std::string& file) { return read_text("/sys/fs/cgroup" + file); });
    // Rounded up: two threads use 1.5 processors, one does not.
    if (limit && *limit < static_cast<double>(count)) count = static_cast<std::size_t>(std::ceil(*limit));
    // Ranks that are not bound to processors share those of the machine.
    const std::size_t all = std::max(1U, std::thread::hardware_concurrency());
    count = std::min(count, std::max<std::size_t>(all / processes_here(), 1));
    return std::max<std::size_t>(count, 1);
}

std::optional<double> control_group_limit(
    std::string_view membership, const std::function<std::optional<std::string>(const std::string&)>& read) {
    std::optional<double> least;
    const auto add = [&](const std::optional<std::string>& text) {
        const auto limit = text ? quota_per_period(*text) : std::nullopt;
        if (limit && (!least || *limit < *least)) least = limit;
    };
    for (const std::string_view line : split(membership, '\n')) {
        // number:controllers:path; version 2 has no controllers here
        const auto fields = split(line, ':');
        if (fields.size() < 3) continue;
        const auto controllers = split(fields[1], ',');
        const bool second = fields[1].empty();
        if (!second && std::find(controllers.begin(), controllers.end(), "cpu") == controllers.end())
            continue;
        std::string group(line.substr(fields[0].size() + fields[1].size() + 2));
        while (true) {
            if (group == "/") group.clear();
            if (second) {
                add(read(group + "/cpu.max"));
            } else {
                for (const std::string& mount : {std::string("/cpu"), '/' + std::string(fields[1])}) {
                    const auto quota = read(mount + group + "/cpu.cfs_quota_us"),
                               period = read(mount + group + "/cpu.cfs_period_us");
                    if (quota && period) add(*quota + ' ' + *period);
                }
            }
            if (group.empty()) break;
            group.resize(std::min(group.rfind('/'), group.size() - 1));
        }
    }
    return least;
}

std::size_t block_count(std::size_t count, std::size_t block_size) {
    return (count + block_size - 1) / block_size;
}

Range block_range(std::size_t count, std::size_t block_size, std::size_t block) {
    return {block * block_size, std::min(count, (block + 1) * block_size)};
}

Range block_within(Range items, std::size_t block_size, std::size_t block) {
    const Range within = block_range(items.size(), block_size, block);
    return {items.begin + within.begin, items.begin + within.end};
}

void parallel_for(ThreadPool& pool, std::size_t count, std::size_t block_size,
                  const std::function<void(Range)>& work) {
    pool.for_each(block_count(count, block_size),
                  [&](std::size_t block) { work(block_range(count, block_size, block)); });
}

}  // namespace bayesaim
