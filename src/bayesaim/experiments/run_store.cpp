// SPDX-License-Identifier: MIT
#include "bayesaim/experiments/run_store.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/files.hpp"

namespace bayesaim::experiments {
namespace {

constexpr std::size_t digits = 16;  // length of keys and checksums

/// Records are forced to the disk at least this often: a machine that loses power loses no more than this.
constexpr std::chrono::milliseconds sync_interval{250};

[[noreturn]] void throw_failed(std::string_view verb, const std::filesystem::path& file, int error) {
    throw std::runtime_error(fmt::format("could not {} '{}': {}", verb, file.string(), std::strerror(error)));
}

/// Fills `records`, and returns the number of bytes in whole lines.
std::size_t parse(std::string_view text, const std::filesystem::path& file, StoredRecords& records) {
    const std::string_view first = text.substr(0, text.find('\n'));
    // The first line may have been cut off too; any other text without a line end never was a store.
    if (first.size() < text.size() ? first != store_format : !store_format.starts_with(text)) {
        throw_invalid("run store", fmt::format("a file that begins with '{}'", store_format),
                      fmt::format("'{}'", file.string()));
    }
    if (first.size() == text.size()) return 0;
    std::size_t begin = first.size() + 1;
    for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string_view::npos; begin = end + 1) {
        const std::string_view line = text.substr(begin, end - begin);
        // key, blank, payload, blank, checksum
        const bool long_enough = line.size() >= 2 * digits + 2;
        const std::string_view content = line.substr(0, long_enough ? line.size() - digits - 1 : 0);
        if (!long_enough || line[digits] != ' ' || line[content.size()] != ' ' ||
            fingerprint(content) != line.substr(content.size() + 1)) {
            ++records.damaged;
            continue;
        }
        records.payloads[std::string(content.substr(0, digits))] = content.substr(digits + 1);
    }
    return begin;
}

}  // namespace

RunStore::RunStore(const std::filesystem::path& file) : file_(file) {
    if (std::filesystem::exists(file) && !std::filesystem::is_regular_file(file)) {
        throw_invalid("run store", "a regular file", fmt::format("'{}'", file.string()));
    }
    descriptor_ = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor_ < 0) throw_failed("open", file, errno);
    try {
        if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
            if (errno != EWOULDBLOCK)
                throw std::runtime_error(
                    fmt::format("could not lock '{}': {}; choose a directory on a file system with locks",
                                file.string(), std::strerror(errno)));
            throw std::runtime_error(
                fmt::format("'{}' is in use by another process; wait for it, or choose another directory",
                            file.string()));
        }
        const std::string text = read_whole("run store", file);
        size_ = parse(text, file, records_);
        if (size_ < text.size()) {
            ++records_.damaged;
            if (ftruncate(descriptor_, static_cast<off_t>(size_)) != 0) throw_failed("repair", file, errno);
        }
        if (size_ == 0) write_line(std::string(store_format) + '\n');
    } catch (...) {
        close(descriptor_);
        throw;
    }
}

RunStore::~RunStore() {
    fdatasync(descriptor_);
    close(descriptor_);  // also unlocks the file
}

void RunStore::append(const std::string& key, const std::string& payload) {
    check_size("length of the key", static_cast<long long>(key.size()), digits);
    const std::string content = key + ' ' + payload;
    if (content.find('\n') != std::string::npos) throw_invalid("payload", "one line", "several");
    const std::lock_guard lock(mutex_);
    write_line(content + ' ' + fingerprint(content) + '\n');
    records_.payloads[key] = payload;
}

void RunStore::write_line(const std::string& line) {
    std::size_t done = 0;
    int error = 0;
    while (done < line.size() && error == 0) {
        const ssize_t written =
            pwrite(descriptor_, line.data() + done, line.size() - done, static_cast<off_t>(size_ + done));
        if (written > 0) {
            done += static_cast<std::size_t>(written);
        } else if (written == 0 || errno != EINTR) {
            error = written == 0 ? ENOSPC : errno;
        }
    }
    const auto now = std::chrono::steady_clock::now();
    if (error == 0 && now - synced_ > sync_interval) {
        if (fdatasync(descriptor_) != 0 && errno != EINVAL) error = errno;
        synced_ = now;
    }
    if (error != 0) {
        // The next start would notice part of a line, but it is better to leave none.
        if (ftruncate(descriptor_, static_cast<off_t>(size_)) != 0) error = error == 0 ? errno : error;
        throw_failed("write", file_, error);
    }
    size_ += line.size();
}

StoredRecords read_records(const std::filesystem::path& file) {
    StoredRecords records;
    if (!std::filesystem::exists(file)) return records;
    const std::string text = read_whole("run store", file);
    if (parse(text, file, records) < text.size()) ++records.damaged;
    return records;
}

}  // namespace bayesaim::experiments
