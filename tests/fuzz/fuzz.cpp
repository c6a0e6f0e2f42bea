// SPDX-License-Identifier: MIT
#include "fuzz.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>

#include <fcntl.h>
#include <unistd.h>

#ifdef BAYESAIM_FUZZ
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);
#endif

namespace bayesaim::fuzz {

void fail(std::string_view message) {
    std::fprintf(stderr, "fuzz: %.*s\n", static_cast<int>(message.size()), message.data());
    std::abort();
}

bool accepts(const std::function<void()>& work) {
    try {
        work();
        return true;
    } catch (const InvalidArgument& error) {
        const std::string_view message = error.what();
        if (message.empty() || message.find('\n') != std::string_view::npos)
            fail("a message must have one line: " + std::string(message));
        return false;
    }
}

double Description::number() {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr std::array<double, 24> difficult = {0,
                                                  -0.0,
                                                  1,
                                                  -1,
                                                  2,
                                                  3,
                                                  0.5,
                                                  -0.5,
                                                  1e-3,
                                                  1e3,
                                                  1e-6,
                                                  1e6,
                                                  1e-12,
                                                  1e12,
                                                  1e-30,
                                                  1e30,
                                                  1e-300,
                                                  1e300,
                                                  5e-324,
                                                  std::numeric_limits<double>::max(),
                                                  infinity,
                                                  -infinity,
                                                  std::numeric_limits<double>::quiet_NaN(),
                                                  1e19};
    const unsigned code = byte();
    if (code < difficult.size()) return difficult[code];
    if (code < 128) return static_cast<double>(code - difficult.size());
    if (code < 192) return std::exp2(0.25 * (static_cast<double>(code) - 160));  // 2^-8 .. 2^8
    if (code < 224) return -std::exp2(0.5 * (static_cast<double>(code) - 208));
    std::uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) bits = bits << 8 | byte();
    return std::bit_cast<double>(bits);
}

std::string memory_file(std::string_view content) {
    // Not of memfd_create: HDF5 asks for a real path.
    static const std::string name = "/dev/shm/bayesaim_fuzz_" + std::to_string(getpid());
    static const int descriptor = [] {
        std::atexit([] { unlink(name.c_str()); });
        return open(name.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    }();
    if (descriptor < 0 || ftruncate(descriptor, 0) != 0 ||
        pwrite(descriptor, content.data(), content.size(), 0) != static_cast<ssize_t>(content.size()))
        fail("no file in memory");
    return name;
}

#ifdef BAYESAIM_FUZZ
std::size_t mutate_pieces(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed,
                          std::size_t head, std::size_t piece) {
    std::minstd_rand random(seed);
    const auto below = [&](std::size_t count) { return random() % std::max<std::size_t>(count, 1); };
    if (size < head) return LLVMFuzzerMutate(data, size, std::min(most, head));
    const std::size_t pieces = (size - head) / piece;
    if (pieces == 0 || below(8) == 0) return LLVMFuzzerMutate(data, size, most);
    std::uint8_t *one = data + head + below(pieces) * piece, *other = data + head + below(pieces) * piece;
    std::uint8_t* end = data + head + pieces * piece;
    switch (below(6)) {
        case 0:
            std::swap_ranges(one, one + piece, other);
            break;
        case 1:  // one more, like another
            if (static_cast<std::size_t>(end - data) + piece > most) break;
            std::copy(one, one + piece, end);
            return static_cast<std::size_t>(end - data) + piece;
        case 2:  // one less
            if (pieces < 2) break;
            std::copy(one + piece, end, one);
            return static_cast<std::size_t>(end - data) - piece;
        case 3:
            one[below(piece)] = static_cast<std::uint8_t>(random());
            break;
        case 4:
            one[below(piece)] ^= static_cast<std::uint8_t>(1 << below(8));
            break;
        default:
            LLVMFuzzerMutate(one, piece, piece);
    }
    return static_cast<std::size_t>(end - data);
}
#endif

}  // namespace bayesaim::fuzz
