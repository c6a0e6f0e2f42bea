// SPDX-License-Identifier: MIT
#include "bayesaim/core/hdf5_file.hpp"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <numeric>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hdf5.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/hdf5_driver.hpp"
#include "bayesaim/core/memory.hpp"
#include "bayesaim/core/version.hpp"

namespace bayesaim {
namespace {

using Handle = Hdf5Handle;
static_assert(std::is_same_v<hid_t, Handle::Id> && std::is_same_v<herr_t, int>);

using Sizes = std::vector<std::uint64_t>;
static_assert(sizeof(hsize_t) == sizeof(Sizes::value_type));

std::size_t size_of_sample(const Sizes& sizes) {
    return std::accumulate(sizes.begin() + 1, sizes.end(), std::size_t{1}, std::multiplies<>());
}

/// Moves samples (rows, of a matrix) between memory and a dataset, about four megabytes at a time, with
/// H5Dread or H5Dwrite in `move`. Returns whether every call succeeded.
bool move_samples(const Handle& dataset, const Sizes& sizes, Range samples,
                  const std::function<herr_t(Range samples, hid_t memory, hid_t file)>& move) {
    const std::size_t per_sample = size_of_sample(sizes);
    const std::size_t block_size = std::max<std::size_t>((std::size_t{1} << 19) / per_sample, 1);
    bool success = true;
    for (std::size_t block = 0; success && block < block_count(samples.size(), block_size); ++block) {
        const Range range = block_within(samples, block_size, block);
        std::vector<hsize_t> start(sizes.size(), 0), count(sizes.begin(), sizes.end());
        start[0] = range.begin;
        count[0] = range.size();
        const Handle memory(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr),
                            H5Sclose);
        const Handle file(H5Dget_space(dataset.get()), H5Sclose);
        success = memory.valid() && file.valid() &&
                  H5Sselect_hyperslab(file.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(),
                                      nullptr) >= 0 &&
                  move(range, memory.get(), file.get()) >= 0;
    }
    return success;
}

// ---- opening and attributes ------------------------------------------------------------------------------

/// No locks of HDF5, which some file systems do not have: files are replaced as a whole, and never changed.
Handle without_locks() {
    Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    H5Pset_file_locking(access.get(), false, true);
    return access;
}

hid_t open_file(const std::string& file, std::string_view kind) {
    check_readable(kind, file);
    if (H5Fis_hdf5(file.c_str()) <= 0)
        throw_invalid(kind, "an HDF5 file", fmt::format("'{}', another format or truncated", file));
    const hid_t id = H5Fopen(file.c_str(), H5F_ACC_RDONLY, without_locks().get());
    if (id < 0) throw_invalid(kind, "a complete HDF5 file", fmt::format("'{}', truncated or damaged", file));
    return id;
}

hid_t create_file(const std::string& name, int& error) {
    const Handle properties(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
    H5Pset_obj_track_times(properties.get(), false);
    return H5Fcreate(name.c_str(), H5F_ACC_TRUNC, properties.get(), access_that_keeps_errors(error).get());
}

/// Lists become texts, "0.4,0.8".
std::string text_of(const Value& value) {
    if (const auto* text = value.as<std::string>()) return *text;
    if (const auto number = value.number()) return fmt::format("{}", *number);
    std::vector<std::string> items;
    if (const auto* list = value.as<Value::List>())
        std::transform(list->begin(), list->end(), std::back_inserter(items), text_of);
    return fmt::format("{}", fmt::join(items, ","));
}

std::optional<Value> read_text(const Handle& attribute, const Handle& type) {
    std::string result;
    if (H5Tis_variable_str(type.get()) > 0) {
        char* start = nullptr;
        if (H5Aread(attribute.get(), type.get(), &start) < 0 || start == nullptr) return std::nullopt;
        result = start;
        H5free_memory(start);
    } else {
        result.resize(H5Tget_size(type.get()));
        if (H5Aread(attribute.get(), type.get(), result.data()) < 0) return std::nullopt;
        result.resize(std::min(result.find('\0'), result.size()));
        result.resize(result.find_last_not_of(' ') + 1);
    }
    return printable(std::move(result));
}

std::optional<Value> read_attribute(const Handle& file, const std::string& name) {
    const Handle attribute(H5Aopen(file.get(), name.c_str(), H5P_DEFAULT), H5Aclose);
    if (!attribute.valid()) return std::nullopt;
    const Handle type(H5Aget_type(attribute.get()), H5Tclose), space(H5Aget_space(attribute.get()), H5Sclose);
    if (!type.valid() || H5Sget_simple_extent_npoints(space.get()) != 1) return std::nullopt;
    double number = 0;
    std::uint64_t count = 0;
    const bool read_number = H5Aread(attribute.get(), H5T_NATIVE_DOUBLE, &number) >= 0;
    switch (H5Tget_class(type.get())) {
        case H5T_INTEGER:  // whole numbers exactly, unless negative
            if (read_number && number >= 0 && H5Aread(attribute.get(), H5T_NATIVE_UINT64, &count) >= 0)
                return count;
            [[fallthrough]];
        case H5T_FLOAT:
            return read_number ? std::optional<Value>(number) : std::nullopt;
        case H5T_STRING:
            return read_text(attribute, type);
        default:
            return std::nullopt;
    }
}

class Hdf5Values final : public StoredValues {
  public:
    Hdf5Values(Handle handle, Sizes sizes) : handle_(std::move(handle)), sizes_(std::move(sizes)) {}

    bool read(Range samples, double* out, const Done& done) const override {
        return read_as(H5T_NATIVE_DOUBLE, samples, out, done);
    }
    bool read(Range samples, float* out, const Done& done) const override {
        return read_as(H5T_NATIVE_FLOAT, samples, out, done);
    }

  private:
    template <class Scalar>
    bool read_as(hid_t type, Range samples, Scalar* out, const Done& done) const {
        const bool matrix = sizes_.size() == 2;
        if (matrix) samples = {0, sizes_[0]};  // its rows
        const bool success =
            move_samples(handle_, sizes_, samples, [&](Range range, hid_t memory, hid_t file) {
                Scalar* first = out + (range.begin - samples.begin) * size_of_sample(sizes_);
                const herr_t status = H5Dread(handle_.get(), type, memory, file, H5P_DEFAULT, first);
                if (status >= 0 && !matrix) done(range);
                return status;
            });
        if (success && matrix) done({0, 1});
        return success;
    }

    Handle handle_;
    Sizes sizes_;
};

}  // namespace

QuietHdf5::QuietHdf5() {
    constexpr std::size_t enough = std::size_t{16} << 20;  // to begin, and to open a file
    check_memory(enough);
    H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

QuietHdf5::~QuietHdf5() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }

// ---- writing ---------------------------------------------------------------------------------------------

Hdf5Writer::Hdf5Writer(const std::string& file, std::ptrdiff_t bytes)
    : partial_(file, static_cast<std::size_t>(bytes) + 65536),
      handle_(create_file(partial_.name(), error_), H5Fclose) {
    check(handle_.valid());
}

void Hdf5Writer::check(bool success) const {
    if (!success || error_ != 0) partial_.fail(error_ != 0 ? error_ : EIO);
}

void Hdf5Writer::write(const char* name, const Shape& shape, Precision precision,
                       const std::function<const double*(Range)>& fill) {
    const std::vector<hsize_t> sizes(shape.begin(), shape.end());
    const hid_t type = precision == Precision::float_precision ? H5T_IEEE_F32LE : H5T_IEEE_F64LE;
    const Handle space(H5Screate_simple(3, sizes.data(), nullptr), H5Sclose);
    const Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    check(H5Pset_obj_track_times(properties.get(), false) >= 0);  // same data, same bytes
    Handle dataset(
        H5Dcreate2(handle_.get(), name, type, space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT),
        H5Dclose);
    check(dataset.valid());
    const Sizes all(sizes.begin(), sizes.end());
    check(move_samples(dataset, all, {0, all[0]}, [&](Range range, hid_t memory, hid_t file) {
        check(true);
        return H5Dwrite(dataset.get(), H5T_NATIVE_DOUBLE, memory, file, H5P_DEFAULT, fill(range));
    }));
    check(dataset.close());
}

void Hdf5Writer::write(const char* name, const Shape& shape, const double* values) {
    const auto per_sample = static_cast<std::size_t>(shape[1] * shape[2]);
    write(name, shape, Precision::double_precision,
          [&](Range range) { return values + range.begin * per_sample; });
}

void Hdf5Writer::write_attribute(const std::string& name, hid_t file_type, hid_t memory_type,
                                 const void* value) {
    const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
    const Handle attribute(
        H5Acreate2(handle_.get(), name.c_str(), file_type, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    check(attribute.valid() && H5Awrite(attribute.get(), memory_type, value) >= 0);
}

void Hdf5Writer::finish(Attributes attributes) {
    attributes["bayesaim"] = version();
    attributes["commit"] = git_commit();
    const Handle text_type(H5Tcopy(H5T_C_S1), H5Tclose);
    check(H5Tset_size(text_type.get(), H5T_VARIABLE) >= 0 &&
          H5Tset_cset(text_type.get(), H5T_CSET_UTF8) >= 0);
    for (const auto& [name, value] : attributes) {
        if (const auto* whole = value.as<std::uint64_t>()) {
            write_attribute(name, H5T_STD_U64LE, H5T_NATIVE_UINT64, whole);
        } else if (const auto number = value.number()) {
            write_attribute(name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &*number);
        } else if (!value.absent()) {
            const std::string text = text_of(value);
            const char* start = text.c_str();
            write_attribute(name, text_type.get(), text_type.get(), &start);
        }
    }
    check(handle_.close());
    partial_.complete();
}

// ---- reading ---------------------------------------------------------------------------------------------

bool is_hdf5(const std::string& file) {
    const QuietHdf5 quiet;
    return H5Fis_hdf5(file.c_str()) > 0;
}

Hdf5Reader::Hdf5Reader(const std::string& file, std::string_view kind)
    : InputFile(file, "dataset", "/"), handle_(open_file(file, kind), H5Fclose) {}

bool Hdf5Reader::has(const std::string& name) const {
    return H5Lexists(handle_.get(), name.c_str(), H5P_DEFAULT) > 0;
}

StoredArray Hdf5Reader::open(const std::string& name, const std::string& title) const {
    Handle handle(H5Dopen2(handle_.get(), name.c_str(), H5P_DEFAULT), H5Dclose);
    if (!handle.valid()) throw_invalid(title, "a readable array", "something else");
    const Handle type(H5Dget_type(handle.get()), H5Tclose), space(H5Dget_space(handle.get()), H5Sclose);
    const H5T_class_t kind = H5Tget_class(type.get());
    if (kind != H5T_FLOAT && kind != H5T_INTEGER) throw_invalid(title, "an array of numbers", "another type");
    StoredArray result;
    if (kind == H5T_FLOAT && H5Tget_size(type.get()) <= sizeof(float))
        result.precision = Precision::float_precision;
    std::vector<hsize_t> sizes(
        static_cast<std::size_t>(std::max(H5Sget_simple_extent_ndims(space.get()), 0)));
    if (!sizes.empty()) H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr);
    result.sizes.assign(sizes.begin(), sizes.end());
    result.number_bytes = H5Tget_size(type.get());
    const Handle properties(H5Dget_create_plist(handle.get()), H5Pclose);
    const bool linked =
        H5Pget_layout(properties.get()) == H5D_VIRTUAL || H5Pget_external_count(properties.get()) > 0;
    result.stored_bytes = linked ? elsewhere : H5Dget_storage_size(handle.get());
    result.values = std::make_shared<Hdf5Values>(std::move(handle), result.sizes);
    return result;
}

std::vector<std::string> Hdf5Reader::names() const {
    std::vector<std::string> names;
    const auto collect = [](hid_t, const char* name, const H5L_info_t*, void* list) noexcept -> herr_t {
        static_cast<std::vector<std::string>*>(list)->emplace_back(name);
        return 0;
    };
    H5Literate(handle_.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, collect, &names);
    return names;
}

Attributes Hdf5Reader::attributes() const {
    std::vector<std::string> names;
    const auto collect = [](hid_t, const char* name, const H5A_info_t*, void* list) noexcept -> herr_t {
        static_cast<std::vector<std::string>*>(list)->emplace_back(name);
        return 0;
    };
    H5Aiterate2(handle_.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, collect, &names);
    Attributes result;
    for (const std::string& name : names) {
        if (auto value = read_attribute(handle_, name)) result.emplace(name, std::move(*value));
    }
    return result;
}

}  // namespace bayesaim
