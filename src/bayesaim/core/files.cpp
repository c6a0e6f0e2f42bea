// SPDX-License-Identifier: MIT
#include "bayesaim/core/files.hpp"

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "bayesaim/core/checks.hpp"

namespace bayesaim {

PartialFile::PartialFile(const std::filesystem::path& file, std::size_t bytes)
    : file_(file), name_(fmt::format("{}.{}.part", file.string(), getpid())) {
    const int descriptor = open(name_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor < 0) fail(errno);
    const int error = bytes > 0 ? posix_fallocate(descriptor, 0, static_cast<off_t>(bytes)) : 0;
    close(descriptor);
    if (error != 0 && error != EINVAL && error != EOPNOTSUPP) {
        std::filesystem::remove(name_);
        fail(error);
    }
}

PartialFile::~PartialFile() {
    std::error_code ignored;
    if (!complete_) std::filesystem::remove(name_, ignored);
}

void PartialFile::complete() {
    std::error_code error;
    std::filesystem::rename(name_, file_, error);
    if (error) fail(error.value());
    complete_ = true;
}

void throw_unwritable(const std::filesystem::path& file, int error) {
    throw std::runtime_error(
        fmt::format("could not write '{}': {}", file.string(), std::generic_category().message(error)));
}

void write_whole(const std::filesystem::path& file, std::string_view text) {
    std::error_code ignored;
    if (std::filesystem::is_symlink(file, ignored) && std::filesystem::exists(file, ignored))
        return write_whole(std::filesystem::canonical(file), text);  // the link stays
    if (std::filesystem::exists(file, ignored) && !std::filesystem::is_regular_file(file, ignored)) {
        errno = 0;  // a device or a pipe cannot be replaced; a directory gives its message here
        std::ofstream out(file, std::ios::binary);
        out << text;
        out.close();
        if (!out) throw_unwritable(file, errno != 0 ? errno : EIO);
        return;
    }
    PartialFile partial(file);
    errno = 0;  // the streams leave the reason here, where the system told one
    std::ofstream out(partial.name(), std::ios::binary);
    out << text;
    out.close();
    if (!out) partial.fail(errno != 0 ? errno : EIO);
    partial.complete();
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
