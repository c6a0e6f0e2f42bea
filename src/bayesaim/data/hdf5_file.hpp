// SPDX-License-Identifier: MIT
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "bayesaim/data/tokens.hpp"

/// HDF5 files of arrays with three dimensions and attributes of the root group. The first dimension counts
/// samples (or layers, or starts), and arrays pass block by block. What is wrong with a file that is read is
/// InvalidArgument in one line that names the file and the array; a file that cannot be written is
/// std::runtime_error, and then nothing is left of it. HDF5 is not thread-safe: use these from one thread.
namespace bayesaim::data {

using Attribute = std::variant<std::string, double, std::uint64_t>;
using Attributes = std::map<std::string, Attribute>;

/// The attribute as text or as a number; nothing if there is none, InvalidArgument if it is something else.
std::optional<std::string> text_attribute(const Attributes& attributes, const std::string& name);
std::optional<double> number_attribute(const Attributes& attributes, const std::string& name);

using Shape = std::array<Eigen::Index, 3>;
std::string to_string(const Shape& shape);

/// An HDF5 identifier and what closes it; not valid where the call that made it failed.
class Hdf5Handle {
  public:
    using Id = std::int64_t;
    using Close = int (*)(Id);
    Hdf5Handle(Id id, Close closer) : id_(id), close_(closer) {}
    Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
    Hdf5Handle& operator=(Hdf5Handle&&) = delete;
    ~Hdf5Handle() { close(); }

    bool valid() const { return id_ >= 0; }
    Id get() const { return id_; }
    bool close() { return !valid() || close_(std::exchange(id_, -1)) >= 0; }

  private:
    Id id_;
    Close close_;
};

/// While it lives, HDF5 reports errors by return values alone.
class QuietHdf5 {
  public:
    QuietHdf5();
    ~QuietHdf5();
    QuietHdf5(const QuietHdf5&) = delete;
    QuietHdf5& operator=(const QuietHdf5&) = delete;

  private:
    int (*function_)(std::int64_t, void*) = nullptr;
    void* data_ = nullptr;
};

/// The temporary name of a file that is being written, and the file under it unless it became complete.
class PartialFile {
  public:
    /// Throws unless the disk takes this many bytes: HDF5 cannot close a file cleanly once a write has
    /// failed.
    PartialFile(const std::string& file, std::size_t bytes);
    ~PartialFile();
    PartialFile(const PartialFile&) = delete;
    PartialFile& operator=(const PartialFile&) = delete;

    const std::string& name() const { return name_; }
    void complete();
    [[noreturn]] void fail(int error) const;

  private:
    std::string file_, name_;
    bool complete_ = false;
};

class Hdf5Writer {
  public:
    /// For arrays of so many bytes in all.
    Hdf5Writer(const std::string& file, Eigen::Index bytes);

    /// An array whose samples `fill(range)` gives, as a pointer that lives until the next call.
    void write(const char* name, const Shape& shape, Precision precision,
               const std::function<const double*(Range)>& fill);
    /// An array that is there as a whole.
    void write(const char* name, const Shape& shape, const double* values);
    /// These, and the version and commit of the library.
    void write(Attributes attributes);

    /// Gives the file its name.
    void finish();

  private:
    void check(bool success) const;
    void write_attribute(const std::string& name, const std::string& text);
    void write_attribute(const std::string& name, double value);
    void write_attribute(const std::string& name, std::uint64_t value);
    void write_attribute(const std::string& name, Hdf5Handle::Id file_type, Hdf5Handle::Id memory_type,
                         const void* value);

    QuietHdf5 quiet_;
    PartialFile partial_;
    Hdf5Handle handle_;
};

/// An array of a file that is being read.
struct Hdf5Array {
    std::string title;  ///< file and name, for messages
    Hdf5Handle handle;
    Shape shape{};
    Precision precision = Precision::double_precision;  ///< enough for its type
};

class Hdf5Reader {
  public:
    explicit Hdf5Reader(const std::string& file);

    bool has(const std::string& name) const;
    /// Throws unless there is such an array, of numbers, with three dimensions (named for messages), not
    /// empty and not absurdly large.
    Hdf5Array array(const std::string& name, const char* dimensions) const;
    /// Those of the root group that are one number or one text.
    Attributes attributes() const;

  private:
    QuietHdf5 quiet_;
    std::string file_;
    Hdf5Handle handle_;
};

/// All of an array, block by block, to where the numbers stay. Each must be finite.
void read_all(const Hdf5Array& array, double* out);
void read_all(const Hdf5Array& array, float* out);

}  // namespace bayesaim::data
