// SPDX-License-Identifier: MIT
#include "bayesaim/core/parallel.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace bayesaim {

struct ThreadPool::State {
    std::mutex mutex;
    std::condition_variable work_ready, work_done;
    std::vector<std::jthread> workers;

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
    if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
    for (std::size_t i = 1; i < threads; ++i) {
        state_->workers.emplace_back([state = state_.get()] { state->serve(); });
    }
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

std::size_t block_count(std::size_t count, std::size_t block_size) {
    return (count + block_size - 1) / block_size;
}

Range block_range(std::size_t count, std::size_t block_size, std::size_t block) {
    return {block * block_size, std::min(count, (block + 1) * block_size)};
}

void parallel_for(ThreadPool& pool, std::size_t count, std::size_t block_size,
                  const std::function<void(Range)>& work) {
    pool.for_each(block_count(count, block_size),
                  [&](std::size_t block) { work(block_range(count, block_size, block)); });
}

}  // namespace bayesaim
