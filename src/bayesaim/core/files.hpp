// SPDX-License-Identifier: MIT
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace bayesaim {

/// Throws std::runtime_error, "could not write '{file}': {reason}"; `error` is the errno of the failed call.
[[noreturn]] void throw_unwritable(const std::filesystem::path& file, int error);

/// Whether it is a device or a pipe, which can be written to but not replaced.
bool is_special(const std::filesystem::path& file);

/// The temporary name of a file being written, a neighbour of the file. Removes it unless it was completed, and what
/// processes that were killed left of the same file. The file must be new or regular, or a link to such a file.
class PartialFile {
  public:
    /// Throws unless the disk takes this many bytes, which are reserved.
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

/// Writes a text file by way of a temporary neighbour, so that readers see all of it or the old one. Writes
/// into devices and pipes directly.
void write_whole(const std::filesystem::path& file, std::string_view text);

/// The text of a file. Throws InvalidArgument, "cannot read {kind} '{file}': {reason}", if it cannot be read.
std::string read_whole(std::string_view kind, const std::filesystem::path& file);

/// Throws InvalidArgument, as read_whole, if the file is missing, forbidden or a directory.
void check_readable(std::string_view kind, const std::filesystem::path& file);

/// 16 hexadecimal digits that tell texts apart (FNV-1a, 64 bits); the same on every machine.
std::string fingerprint(std::string_view text);

}  // namespace bayesaim
