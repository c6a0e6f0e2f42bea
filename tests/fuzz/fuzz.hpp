// SPDX-License-Identifier: MIT
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "bayesaim/core/checks.hpp"

/// What the fuzz targets share. A target takes bytes and calls what reads files or arguments of users. It fails by a report
/// of a sanitizer, a limit of time or memory, or an exception that is not one line of InvalidArgument.
namespace bayesaim::fuzz {

using Bytes = std::span<const std::uint8_t>;

inline std::string_view text_of(Bytes input) {
    return {reinterpret_cast<const char*>(input.data()), input.size()};
}

/// Ends the process: libFuzzer keeps the input.
[[noreturn]] void fail(std::string_view message);

/// Does the work, which may refuse the input. Returns whether it took it.
bool accepts(const std::function<void()>& work);

/// Takes a description apart. Behind its end everything is 0.
class Description {
  public:
    explicit Description(Bytes bytes) : rest_(bytes) {}
    bool ended() const { return rest_.empty(); }
    unsigned byte() {
        if (rest_.empty()) return 0;
        const unsigned result = rest_.front();
        rest_ = rest_.subspan(1);
        return result;
    }
    unsigned two_bytes() { return byte() + 256 * byte(); }
    template <class Item, std::size_t count>
    const Item& one_of(const std::array<Item, count>& items) {
        return items[byte() % count];
    }
    /// A number that programs find difficult, or an ordinary one.
    double number();
    /// The next bytes as they are.
    Bytes bytes(std::size_t count) {
        const Bytes result = rest_.first(std::min(count, rest_.size()));
        rest_ = rest_.subspan(result.size());
        return result;
    }

  private:
    Bytes rest_;
};

/// The name of a file in memory with this content, which the next call replaces.
std::string memory_file(std::string_view content);

/// Mutates a description that has `head` bytes and then pieces of `piece` bytes each: pieces stay aligned.
std::size_t mutate_pieces(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed,
                          std::size_t head, std::size_t piece);

using Target = void (*)(Bytes input);
/// For the program that runs the seeds through all targets.
bool add_target(const char* name, Target target);

}  // namespace bayesaim::fuzz

// FUZZ_TARGET(name) { .. input .. } defines a target, FUZZ_PIECES(head, piece) its mutator.
#ifdef BAYESAIM_FUZZ
#define FUZZ_TARGET(name)                                                               \
    static void run_##name(bayesaim::fuzz::Bytes input);                                \
    extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
        run_##name({data, size});                                                       \
        return 0;                                                                       \
    }                                                                                   \
    static void run_##name([[maybe_unused]] bayesaim::fuzz::Bytes input)
#define FUZZ_PIECES(head, piece)                                                                           \
    extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, \
                                                   unsigned seed) {                                        \
        return bayesaim::fuzz::mutate_pieces(data, size, most, seed, head, piece);                         \
    }
#else
#define FUZZ_TARGET(name)                                                                            \
    static void run_##name(bayesaim::fuzz::Bytes input);                                             \
    [[maybe_unused]] static const bool added_##name = bayesaim::fuzz::add_target(#name, run_##name); \
    static void run_##name([[maybe_unused]] bayesaim::fuzz::Bytes input)
#define FUZZ_PIECES(head, piece)
#endif
