// SPDX-License-Identifier: MIT
// bayesaim_fuzz_replay SEEDS: runs each file SEEDS/TARGET/* through its target. Every target must have a seed.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <vector>

#include "fuzz.hpp"

namespace bayesaim::fuzz {
namespace {

std::map<std::string, Target>& targets() {
    static std::map<std::string, Target> table;
    return table;
}

}  // namespace

bool add_target(const char* name, Target target) { return targets().emplace(name, target).second; }

}  // namespace bayesaim::fuzz

int main(int argc, char** argv) {
    using namespace bayesaim::fuzz;
    if (argc != 2) return 1;
    int failures = 0;
    for (const auto& [name, target] : targets()) {
        int seeds = 0;
        for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(argv[1]) / name)) {
            std::ifstream in(entry.path(), std::ios::binary);
            const std::vector<char> content(std::istreambuf_iterator<char>(in), {});
            try {
                target({reinterpret_cast<const std::uint8_t*>(content.data()), content.size()});
            } catch (const std::exception& error) {
                std::fprintf(stderr, "%s: %s\n", entry.path().c_str(), error.what());
                ++failures;
            }
            ++seeds;
        }
        std::printf("%s: %d seeds\n", name.c_str(), seeds);
        if (seeds == 0) ++failures;
    }
    return failures == 0 ? 0 : 1;
}
