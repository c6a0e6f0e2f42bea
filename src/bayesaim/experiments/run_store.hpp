// SPDX-License-Identifier: MIT
#pragma once
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace bayesaim::experiments {

/// First line of every store; its number changes with the format.
inline constexpr std::string_view store_format = "bayesaim store 1";

/// The records of a store by key; the last record of a key counts.
struct StoredRecords {
    std::map<std::string, std::string> payloads{};
    std::size_t damaged = 0;  ///< number of lines with a wrong checksum, which are ignored
};

/// Finished work in an append-only text file: one line per record, made of key, payload (one line of text)
/// and a checksum of both. A process that is killed loses at most the record that it was writing, and the
/// checksum reveals that record.
class RunStore {
  public:
    /// Opens or creates the file and locks it. Removes a last line that was cut off. Throws
    /// std::runtime_error if another process has locked the file, InvalidArgument if it is not a store.
    explicit RunStore(const std::filesystem::path& file);
    ~RunStore();
    RunStore(const RunStore&) = delete;
    RunStore& operator=(const RunStore&) = delete;

    const StoredRecords& records() const { return records_; }

    /// Several threads may call it. If it throws (full disk), the file is as before. A process with a limit
    /// on file sizes has to ignore SIGXFSZ, or the signal ends it before the exception.
    void append(const std::string& key, const std::string& payload);

  private:
    void write_line(const std::string& line);

    std::filesystem::path file_;
    int descriptor_ = -1;
    std::size_t size_ = 0;
    std::chrono::steady_clock::time_point synced_;
    std::mutex mutex_;
    StoredRecords records_;
};

/// Only reads: does not lock or repair the file. A file that does not exist has no records.
StoredRecords read_records(const std::filesystem::path& file);

}  // namespace bayesaim::experiments
