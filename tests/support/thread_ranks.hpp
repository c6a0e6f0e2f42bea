// SPDX-License-Identifier: MIT
#pragma once
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "bayesaim/core/communicator.hpp"

/// Ranks that are threads of the test: what MPI does between processes, in one process.
namespace bayesaim::test {

class PostOffice {
  public:
    using Bytes = std::vector<std::byte>;

    void put(int from, int to, int kind, Bytes bytes) {
        const std::lock_guard lock(mutex_);
        letters_[{from, to, kind}].push_back(std::move(bytes));
        arrived_.notify_all();
    }

    /// Waits; throws if another rank has failed.
    Bytes take(int from, int to, int kind) {
        std::unique_lock lock(mutex_);
        auto& box = letters_[{from, to, kind}];
        arrived_.wait(lock, [&] { return failed_ || !box.empty(); });
        if (box.empty()) throw std::runtime_error("another rank has failed");
        Bytes bytes = std::move(box.front());
        box.pop_front();
        return bytes;
    }

    std::optional<Bytes> look(int from, int to, int kind) {
        const std::lock_guard lock(mutex_);
        auto& box = letters_[{from, to, kind}];
        if (box.empty()) return std::nullopt;
        Bytes bytes = std::move(box.front());
        box.pop_front();
        return bytes;
    }

    void fail() {
        const std::lock_guard lock(mutex_);
        failed_ = true;
        arrived_.notify_all();
    }

  private:
    std::mutex mutex_;
    std::condition_variable arrived_;
    std::map<std::tuple<int, int, int>, std::deque<Bytes>> letters_;
    bool failed_ = false;
};

class ThreadRank final : public Communicator {
  public:
    ThreadRank(int rank, int size, PostOffice& office) : Communicator(rank, size), office_(office) {}

    void send(std::span<const std::byte> bytes, int to) override {
        count(bytes.size());
        office_.put(rank(), to, arrays, {bytes.begin(), bytes.end()});
    }
    void receive(std::span<std::byte> bytes, int from) override {
        const auto letter = office_.take(from, rank(), arrays);
        if (letter.size() != bytes.size()) throw std::logic_error("sizes of a message differ");
        std::copy(letter.begin(), letter.end(), bytes.begin());
    }
    void broadcast(std::span<std::byte> bytes) override {
        for (int to = 1; to < size() && first(); ++to) send(bytes, to);
        if (!first()) receive(bytes, 0);
    }
    void post(const std::string& text, int to) override {
        const auto* first_byte = reinterpret_cast<const std::byte*>(text.data());
        office_.put(rank(), to, messages, {first_byte, first_byte + text.size()});
    }
    std::optional<Message> poll() override {
        for (int from = 0; from < size(); ++from) {
            if (const auto letter = office_.look(from, rank(), messages))
                return Message{from, {reinterpret_cast<const char*>(letter->data()), letter->size()}};
        }
        return std::nullopt;
    }
    void abort(int) override { throw std::logic_error("abort"); }

  private:
    static constexpr int arrays = 0, messages = 1;
    PostOffice& office_;
};

/// Calls work(rank) on each of so many ranks, and returns what the ranks return, in their order.
template <class Work>
auto on_ranks(int size, const Work& work) {
    using Result = std::invoke_result_t<Work, Communicator&>;
    static_assert(!std::is_same_v<Result, bool>, "the bits of a vector<bool> share their bytes");
    PostOffice office;
    std::vector<Result> results(static_cast<std::size_t>(size));
    std::vector<std::exception_ptr> errors(results.size());
    {
        std::vector<std::jthread> threads;
        for (int rank = 0; rank < size; ++rank) {
            threads.emplace_back([&, rank] {
                const auto i = static_cast<std::size_t>(rank);
                try {
                    ThreadRank communicator(rank, size, office);
                    results[i] = work(communicator);
                } catch (...) {
                    errors[i] = std::current_exception();
                    office.fail();
                }
            });
        }
    }
    for (const auto& error : errors) {
        if (error) std::rethrow_exception(error);
    }
    return results;
}

}  // namespace bayesaim::test
