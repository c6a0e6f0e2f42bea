// SPDX-License-Identifier: MIT
#include "bayesaim/core/memory.hpp"

#include <new>

#include <sys/mman.h>

namespace bayesaim {

void check_memory(std::size_t bytes) {
    void* trial =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (trial == MAP_FAILED) throw std::bad_alloc();
    munmap(trial, bytes);
}

}  // namespace bayesaim
