// SPDX-License-Identifier: MIT
#include "bayesaim/core/files.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/text.hpp"

namespace bayesaim {

namespace {

constexpr std::string_view ending = ".part";

std::string host_name() {
    std::array<char, 256> name{};
    if (gethostname(name.data(), name.size() - 1) != 0) return "";
    return name.data();
}

/// Whether a temporary file, FILE.HOST.PROCESS.part, has lost its writer. Processes of this machine are known; files of
/// others are so if they are a day older than `ours`, by the clock of the file system.
bool is_abandoned(const std::filesystem::path& partial, const std::string& host,
                  const std::filesystem::path& ours) {
    const std::string name = partial.stem().string();
    const std::size_t dot = name.rfind('.');
    const auto process = parse_number<pid_t>(name.substr(dot + 1));
    if (!process) return false;
    if (name.substr(0, dot).ends_with('.' + host)) return kill(*process, 0) != 0 && errno == ESRCH;
    std::error_code error;
    const auto age = last_write_time(ours, error) - last_write_time(partial, error);
    return !error && age > std::chrono::hours(24);
}

/// Removes what processes that were killed left of the same file.
void remove_abandoned(const std::filesystem::path& file, const std::string& host,
                      const std::filesystem::path& ours) {
    std::error_code ignored;
    const std::string beginning = file.filename().string() + '.';
    for (const auto& entry : std::filesystem::directory_iterator(ours.parent_path(), ignored)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with(beginning) && name.ends_with(ending) && is_abandoned(entry.path(), host, ours))
            std::filesystem::remove(entry.path(), ignored);
    }
}

}  // namespace

bool is_special(const std::filesystem::path& file) {
    std::error_code ignored;
    return exists(file, ignored) && !is_regular_file(file, ignored) && !is_directory(file, ignored);
}

PartialFile::PartialFile(const std::filesystem::path& file, std::size_t bytes) : file_(file) {
    std::error_code ignored;
    if (is_directory(file, ignored)) fail(EISDIR);
    if (is_special(file))
        throw std::runtime_error(
            fmt::format("could not write '{}': it must be a regular file", file.string()));
    if (is_symlink(file, ignored) && exists(file, ignored)) file_ = canonical(file);  // the link stays
    const std::string host = host_name();
    name_ = fmt::format("{}.{}.{}{}", absolute(file_).string(), host, getpid(), ending);
    const int descriptor = open(name_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor < 0) fail(errno);
    const int error = bytes > 0 ? posix_fallocate(descriptor, 0, static_cast<off_t>(bytes)) : 0;
    close(descriptor);
    if (error != 0 && error != EINVAL && error != EOPNOTSUPP) {
        std::filesystem::remove(name_, ignored);
        fail(error);
    }
    remove_abandoned(file_, host, name_);
}

PartialFile::~PartialFile() {
    std::error_code ignored;
    if (!complete_) std::filesystem::remove(name_, ignored);
}

void PartialFile::complete() {
    // On the disk before the name: a machine that loses power has the old file or the new one.
    const int descriptor = open(name_.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) fail(errno);
    const int sync_error = fsync(descriptor) != 0 && errno != EINVAL ? errno : 0;
    close(descriptor);
    if (sync_error != 0) fail(sync_error);
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
    if (is_special(file)) {
        errno = 0;
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
