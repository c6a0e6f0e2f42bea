// SPDX-License-Identifier: MIT
#include "bayesaim/core/files.hpp"

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "bayesaim/core/checks.hpp"

namespace bayesaim {

void throw_unwritable(const std::filesystem::path& file, int error) {
    throw std::runtime_error(
        fmt::format("could not write '{}': {}", file.string(), std::generic_category().message(error)));
}

void write_whole(const std::filesystem::path& file, std::string_view text) {
    const std::string partial = fmt::format("{}.{}.part", file.string(), getpid());
    std::error_code error;
    errno = 0;  // the streams leave the reason here, where the system told one
    std::ofstream out(partial, std::ios::binary);
    out << text;
    out.close();
    if (!out) {
        error.assign(errno != 0 ? errno : EIO, std::generic_category());
    } else {
        std::filesystem::rename(partial, file, error);
    }
    if (!error) return;
    std::error_code ignored;
    std::filesystem::remove(partial, ignored);
    throw_unwritable(file, error.value());
}

void check_readable(std::string_view kind, const std::filesystem::path& file) {
    if (access(file.c_str(), R_OK) != 0) throw_unreadable(kind, file.string(), errno);
    if (std::filesystem::is_directory(file)) throw_unreadable(kind, file.string(), EISDIR);
}

std::string read_whole(std::string_view kind, const std::filesystem::path& file) {
    check_readable(kind, file);
    std::ifstream in(file, std::ios::binary);
    if (!in) throw_unreadable(kind, file.string(), errno);
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
