// SPDX-License-Identifier: MIT
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace bayesaim {

/// Throws std::runtime_error, "could not write '{file}': {reason}"; `error` is the errno of the failed call.
[[noreturn]] void throw_unwritable(const std::filesystem::path& file, int error);

/// The temporary name of a file being written. Removes the file unless it was completed.
class PartialFile {
  public:
    /// Throws unless the disk takes this many bytes: after a failed write HDF5 cannot close a file cleanly.
    explicit PartialFile(const std::filesystem::path& file, std::size_t bytes = 0);
    ~PartialFile();
    PartialFile(const PartialFile&) = delete;
    PartialFile& operator=(const PartialFile&) = delete;

    const std::string& name() const { return name_; }
    void complete();
    [[noreturn]] void fail(int error) const { throw_unwritable(file_, error); }

  private:
    std::filesystem::path file_;
    std::string name_;
    bool complete_ = false;
};

/// Writes a text file by way of a temporary neighbour, so that readers see all of it or the old one.
void write_whole(const std::filesystem::path& file, std::string_view text);

/// The text of a file. Throws InvalidArgument, "cannot read {kind} '{file}': {reason}", if it cannot be read.
std::string read_whole(std::string_view kind, const std::filesystem::path& file);

/// Throws InvalidArgument, as read_whole, if the file is missing, forbidden or a directory.
void check_readable(std::string_view kind, const std::filesystem::path& file);

/// 16 hexadecimal digits that tell texts apart (FNV-1a, 64 bits); the same on every machine.
std::string fingerprint(std::string_view text);

}  // namespace bayesaim
