// SPDX-License-Identifier: MIT
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "bayesaim/core/attributes.hpp"
#include "bayesaim/core/files.hpp"
#include "bayesaim/core/input_file.hpp"

/// HDF5 files of arrays with three dimensions and attributes of the root group. The first dimension counts
/// samples (or layers, or starts); arrays are read and written block by block. A bad input file throws
/// InvalidArgument with one line that names the file and the array. A file that cannot be written throws
/// std::runtime_error and is removed. HDF5 is not thread-safe: use these from one thread.
namespace bayesaim {

/// An HDF5 identifier and the function that closes it; invalid if the call that made it failed.
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

/// While an object of this class lives, HDF5 reports errors by return values only. Throws std::bad_alloc where HDF5 would
/// crash for want of memory.
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

class Hdf5Writer {
  public:
    /// `bytes` is the total size of the arrays.
    Hdf5Writer(const std::string& file, std::ptrdiff_t bytes);

    /// Writes an array. `fill(range)` returns a pointer to its samples, valid until the next call.
    void write(const char* name, const Shape& shape, Precision precision,
               const std::function<const double*(Range)>& fill);
    /// Writes an array that is in memory as a whole.
    void write(const char* name, const Shape& shape, const double* values);

    /// Writes these attributes, and the version and commit of the library, and renames the complete file to
    /// its final name.
    void finish(Attributes attributes);

  private:
    /// Throws if this call, or any write before, has failed.
    void check(bool success) const;
    void write_attribute(const std::string& name, Hdf5Handle::Id file_type, Hdf5Handle::Id memory_type,
                         const void* value);

    QuietHdf5 quiet_;
    PartialFile partial_;
    int error_ = 0;  // the first of a write, errno
    Hdf5Handle handle_;
};

/// Whether the file has the signature of HDF5.
bool is_hdf5(const std::string& file);

class Hdf5Reader final : public InputFile {
  public:
    /// Messages about the file as a whole call it `kind`.
    explicit Hdf5Reader(const std::string& file, std::string_view kind = "file");

    bool has(const std::string& name) const override;
    Attributes attributes() const override;  ///< of the root group
    std::vector<std::string> names() const;  ///< of what is in the root group

  private:
    StoredArray open(const std::string& name, const std::string& title) const override;

    QuietHdf5 quiet_;
    Hdf5Handle handle_;
};

}  // namespace bayesaim
