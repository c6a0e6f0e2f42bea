// SPDX-License-Identifier: MIT
#include "bayesaim/core/communicator.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include <fmt/format.h>

namespace bayesaim {
namespace {

/// Alone there is nobody to wait for.
class OneProcess final : public Communicator {
  public:
    OneProcess() : Communicator(0, 1) {}

    void send(std::span<const std::byte>, int) override { throw_alone(); }
    void receive(std::span<std::byte>, int) override { throw_alone(); }
    void broadcast(std::span<std::byte>) override {}
    void post(const std::string&, int) override { throw_alone(); }
    std::optional<Message> poll() override { return std::nullopt; }
    void abort(int exit_code) override { std::_Exit(exit_code); }

  private:
    [[noreturn]] static void throw_alone() { throw std::logic_error("there is no other process"); }
};

}  // namespace

Communicator& one_process() {
    static OneProcess alone;
    return alone;
}

bool started_by_launcher() {
    // mpirun of Open MPI; srun and others by PMIx. Debian's Open MPI does not take PMI 2.
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK"}) {
        if (std::getenv(name) != nullptr) return true;
    }
    return false;
}

std::size_t processes_here() {
    // mpirun; srun, which writes "2" or "2(x3),1".
    for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_STEP_TASKS_PER_NODE"}) {
        if (const char* text = std::getenv(name))
            return static_cast<std::size_t>(std::max(std::strtol(text, nullptr, 10), 1L));
    }
    return 1;
}

bool any_rank(Communicator& ranks, bool here) {
    if (ranks.size() == 1) return here;
    auto any = static_cast<unsigned char>(here);
    if (ranks.first()) {
        for (int other = 1; other < ranks.size(); ++other) {
            unsigned char there = 0;
            ranks.receive(bytes_of(there), other);
            any |= there;
        }
    } else {
        ranks.send(bytes_of(any), 0);
    }
    ranks.broadcast(bytes_of(any));
    return any != 0;
}

void check_same_on_all_ranks(Communicator& ranks, const std::string& what, const std::string& text) {
    std::size_t size = text.size();
    if (!ranks.first()) {
        std::string copy = text;
        ranks.send(bytes_of(size), 0);
        ranks.send(bytes_of(copy.data(), size), 0);
        return;
    }
    for (int other = 1; other < ranks.size(); ++other) {
        ranks.receive(bytes_of(size), other);
        std::string there(size, '\0');
        ranks.receive(bytes_of(there.data(), size), other);
        if (there == text) continue;
        throw std::runtime_error(
            fmt::format("{} must be the same on all ranks, got '{}' on rank 0 and '{}' on rank {}", what,
                        text, there, other));
    }
}

}  // namespace bayesaim
