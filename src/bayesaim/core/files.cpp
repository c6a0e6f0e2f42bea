// SPDX-License-Identifier: MIT
#include "bayesaim/core/files.hpp"

#include <cstdint>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>
#include <unistd.h>

#include "bayesaim/core/checks.hpp"

namespace bayesaim {

void write_whole(const std::filesystem::path& file, std::string_view text) {
    const std::string partial = fmt::format("{}.{}.part", file.string(), getpid());
    std::error_code error;
    {
        std::ofstream out(partial, std::ios::binary);
        out << text;
        out.close();
        if (!out) {
            std::filesystem::remove(partial, error);
            throw std::runtime_error(fmt::format("could not write '{}'", file.string()));
        }
    }
    std::filesystem::rename(partial, file, error);
    if (error) {
        const std::string reason = error.message();
        std::filesystem::remove(partial, error);
        throw std::runtime_error(fmt::format("could not write '{}': {}", file.string(), reason));
    }
}

std::string read_whole(std::string_view name, const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    if (!in || std::filesystem::is_directory(file)) {
        throw_invalid(name, "readable", fmt::format("'{}'", file.string()));
    }
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

std::string fingerprint(std::string_view text) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return fmt::format("{:016x}", hash);
}

}  // namespace bayesaim
