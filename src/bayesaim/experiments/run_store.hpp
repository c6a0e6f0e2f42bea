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

/// The records of a store by key; of several with one key the last counts.
struct StoredRecords {
    std::map<std::string, std::string> payloads{};
    std::size_t damaged = 0;  ///< lines whose checksum does not fit: as if they were not there
};

/// Finished work in an append-only text file: one line per record, made of key, payload (one line of text)
/// and a checksum of both. A process that is killed loses at most the record that it was writing, and that
/// one is noticed.
class RunStore {
  public:
    /// Opens or makes the file and locks it; throws std::runtime_error, in one line, when another process has
    /// it. A last line that was cut off is taken away, unless it never was a store.
    explicit RunStore(const std::filesystem::path& file);
    ~RunStore();
    RunStore(const RunStore&) = delete;
    RunStore& operator=(const RunStore&) = delete;

    const StoredRecords& records() const { return records_; }

    /// For several threads. When it throws (full disk) the file is as before. A process with a limit on file
    /// sizes has to ignore SIGXFSZ to come so far.
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

/// Only reads: no lock, nothing repaired; a file that does not exist has no records.
StoredRecords read_records(const std::filesystem::path& file);

}  // namespace bayesaim::experiments
