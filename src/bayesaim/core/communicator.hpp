// SPDX-License-Identifier: MIT
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

/// The processes that compute one result together, called ranks. There are two implementations: one process, and MPI
/// (mpi_communicator.cpp, the only file that names MPI). Only one thread of each rank may call these functions.
namespace bayesaim {

class Communicator {
  public:
    virtual ~Communicator() = default;

    int rank() const { return rank_; }  ///< 0 .. size - 1
    int size() const { return size_; }
    bool first() const { return rank_ == 0; }

    /// Waits until the other rank has the bytes, or until they are on their way.
    virtual void send(std::span<const std::byte> bytes, int to) = 0;
    /// Waits for bytes that the other rank sends. Both give the same number of bytes.
    virtual void receive(std::span<std::byte> bytes, int from) = 0;
    /// All ranks get the bytes of the first.
    virtual void broadcast(std::span<std::byte> bytes) = 0;

    /// A message of any length, for ranks that do not know when the next one comes. It meets poll, not receive.
    struct Message {
        int from = 0;
        std::string text;
    };
    virtual void post(const std::string& text, int to) = 0;
    /// The next message, if one is there. Does not wait.
    virtual std::optional<Message> poll() = 0;

    /// Ends all ranks at once.
    [[noreturn]] virtual void abort(int exit_code) = 0;

    /// Bytes that this rank has sent and received so far.
    double bytes_moved() const { return bytes_moved_; }

  protected:
    Communicator(int rank, int size) : rank_(rank), size_(size) {}
    void count(std::size_t bytes) { bytes_moved_ += static_cast<double>(bytes); }

  private:
    int rank_, size_;
    double bytes_moved_ = 0;
};

/// One process: rank 0 of 1.
Communicator& one_process();

/// Whether a launcher of parallel programs (mpirun, srun) started this process.
bool started_by_launcher();

/// How many processes the launcher started on this machine; 1 if it does not tell.
std::size_t processes_here();

/// Whether the library was built with MPI.
bool has_mpi();

/// Starts MPI, and ends it when the object is destroyed. Throws std::runtime_error if the library has no MPI.
std::unique_ptr<Communicator> start_mpi();

/// The ranks of an MPI communicator that somebody else made and keeps, given by its address (an MPI_Comm*).
std::unique_ptr<Communicator> given_mpi(const void* communicator);

/// Whether any rank says so. All ranks ask together, and get the same answer.
bool any_rank(Communicator& ranks, bool here);

/// Reports to the caller, if it listens; false if it asks to stop on any rank.
template <class Now>
bool proceed(const std::function<bool(const Now&)>& progress, const Now& now, Communicator& ranks) {
    return !any_rank(ranks, progress && !progress(now));
}

/// Throws std::runtime_error on the first rank unless all have the same text, such as the kernels they compute with.
void check_same_on_all_ranks(Communicator& ranks, const std::string& what, const std::string& text);

/// The bytes of a number, or of a list of them.
template <class Number>
    requires std::is_trivially_copyable_v<Number> std::span<std::byte> bytes_of(Number& number) {
        return std::as_writable_bytes(std::span<Number, 1>(&number, 1));
    }
template <class Number>
std::span<std::byte> bytes_of(Number* first, std::size_t count) {
    return std::as_writable_bytes(std::span<Number>(first, count));
}

}  // namespace bayesaim
