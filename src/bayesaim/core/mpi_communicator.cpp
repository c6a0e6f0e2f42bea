// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "bayesaim/core/communicator.hpp"

#ifdef BAYESAIM_HAS_MPI
#include <mpi.h>
#endif

namespace bayesaim {

#ifdef BAYESAIM_HAS_MPI

namespace {

constexpr int tag_of_arrays = 1, tag_of_messages = 2;
/// MPI counts in int.
constexpr std::size_t most_bytes = std::size_t{1} << 30;

int rank_in(MPI_Comm communicator) {
    int rank = 0;
    MPI_Comm_rank(communicator, &rank);
    return rank;
}

int size_of(MPI_Comm communicator) {
    int size = 1;
    MPI_Comm_size(communicator, &size);
    return size;
}

/// Calls move(first, bytes) for pieces that MPI can count.
template <class Byte, class Move>
void in_pieces(std::span<Byte> bytes, const Move& move) {
    for (std::size_t first = 0; first < bytes.size(); first += most_bytes)
        move(bytes.data() + first, static_cast<int>(std::min(most_bytes, bytes.size() - first)));
}

class Mpi final : public Communicator {
  public:
    /// `owner`: ends MPI with this object.
    Mpi(MPI_Comm communicator, bool owner)
        : Communicator(rank_in(communicator), size_of(communicator)),
          communicator_(communicator),
          owner_(owner) {}
    ~Mpi() override {
        if (owner_) MPI_Finalize();
    }
    Mpi(const Mpi&) = delete;
    Mpi& operator=(const Mpi&) = delete;

    void send(std::span<const std::byte> bytes, int to) override {
        count(bytes.size());
        in_pieces(bytes, [&](const std::byte* first, int size) {
            MPI_Send(first, size, MPI_BYTE, to, tag_of_arrays, communicator_);
        });
    }

    void receive(std::span<std::byte> bytes, int from) override {
        count(bytes.size());
        in_pieces(bytes, [&](std::byte* first, int size) {
            MPI_Recv(first, size, MPI_BYTE, from, tag_of_arrays, communicator_, MPI_STATUS_IGNORE);
        });
    }

    void broadcast(std::span<std::byte> bytes) override {
        if (size() == 1) return;
        count(bytes.size());
        in_pieces(bytes,
                  [&](std::byte* first, int size) { MPI_Bcast(first, size, MPI_BYTE, 0, communicator_); });
    }

    void post(const std::string& text, int to) override {
        count(text.size());
        MPI_Send(text.data(), static_cast<int>(text.size()), MPI_BYTE, to, tag_of_messages, communicator_);
    }

    std::optional<Message> poll() override {
        int there = 0, size = 0;
        MPI_Status status;
        MPI_Iprobe(MPI_ANY_SOURCE, tag_of_messages, communicator_, &there, &status);
        if (there == 0) return std::nullopt;
        MPI_Get_count(&status, MPI_BYTE, &size);
        Message message{status.MPI_SOURCE, std::string(static_cast<std::size_t>(size), '\0')};
        MPI_Recv(message.text.data(), size, MPI_BYTE, message.from, tag_of_messages, communicator_,
                 MPI_STATUS_IGNORE);
        count(message.text.size());
        return message;
    }

    void abort(int exit_code) override {
        MPI_Abort(communicator_, exit_code);
        std::_Exit(exit_code);  // not reached
    }

  private:
    MPI_Comm communicator_;
    bool owner_;
};

}  // namespace

bool has_mpi() { return true; }

std::unique_ptr<Communicator> start_mpi() {
    int provided = 0;
    // Other threads compute, one talks.
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    return std::make_unique<Mpi>(MPI_COMM_WORLD, true);
}

std::unique_ptr<Communicator> given_mpi(const void* communicator) {
    return std::make_unique<Mpi>(*static_cast<const MPI_Comm*>(communicator), false);
}

#else

bool has_mpi() { return false; }

std::unique_ptr<Communicator> start_mpi() {
    throw std::runtime_error("this build has no MPI: install libopenmpi-dev and build again");
}

std::unique_ptr<Communicator> given_mpi(const void*) { return start_mpi(); }

#endif

}  // namespace bayesaim
