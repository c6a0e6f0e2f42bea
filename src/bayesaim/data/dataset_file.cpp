// SPDX-License-Identifier: MIT
#include "bayesaim/data/dataset_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <functional>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <hdf5.h>
#include <unistd.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/version.hpp"

namespace bayesaim::data {
namespace {

using linalg::Matrix;
using Shape = std::array<Eigen::Index, 3>;

std::string to_string(const Shape& shape) {
    return fmt::format("({}, {}, {})", shape[0], shape[1], shape[2]);
}

/// While it lives, HDF5 reports errors by return values alone.
class QuietErrors {
  public:
    QuietErrors() {
        H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
        H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    }
    ~QuietErrors() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }
    QuietErrors(const QuietErrors&) = delete;
    QuietErrors& operator=(const QuietErrors&) = delete;

  private:
    H5E_auto2_t function_ = nullptr;
    void* data_ = nullptr;
};

/// An HDF5 identifier and what closes it; not valid where the call that made it failed.
class Handle {
  public:
    using Close = herr_t (*)(hid_t);
    Handle(hid_t id, Close closer) : id_(id), close_(closer) {}
    Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
    Handle& operator=(Handle&&) = delete;
    ~Handle() { close(); }

    bool valid() const { return id_ >= 0; }
    hid_t get() const { return id_; }
    bool close() { return !valid() || close_(std::exchange(id_, H5I_INVALID_HID)) >= 0; }

  private:
    hid_t id_;
    Close close_;
};

/// Moves some samples between memory and a dataset, with H5Dread or H5Dwrite in `move`.
bool move_samples(const Handle& dataset, const Shape& shape, Range samples,
                  const std::function<herr_t(hid_t memory, hid_t file)>& move) {
    const std::array<hsize_t, 3> start = {samples.begin, 0, 0};
    const std::array<hsize_t, 3> count = {samples.size(), static_cast<hsize_t>(shape[1]),
                                          static_cast<hsize_t>(shape[2])};
    const Handle memory(H5Screate_simple(3, count.data(), nullptr), H5Sclose);
    const Handle file(H5Dget_space(dataset.get()), H5Sclose);
    return memory.valid() && file.valid() &&
           H5Sselect_hyperslab(file.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr) >=
               0 &&
           move(memory.get(), file.get()) >= 0;
}

/// Calls work(range) for the samples of a dataset, about four megabytes at a time.
void for_blocks(const Shape& shape, const std::function<void(Range)>& work) {
    const auto samples = static_cast<std::size_t>(shape[0]);
    const auto per_sample = static_cast<std::size_t>(shape[1] * shape[2]);
    const std::size_t block_size = std::max<std::size_t>((std::size_t{1} << 19) / per_sample, 1);
    for (std::size_t block = 0; block < block_count(samples, block_size); ++block) {
        work(block_range(samples, block_size, block));
    }
}

// ---- writing ------------------------------------------------------------------------------------------

/// The temporary name of a file that is being written, and the file under it unless it became complete.
class PartialFile {
  public:
    /// Throws unless the disk takes this many bytes: HDF5 cannot close a file cleanly once a write has
    /// failed.
    PartialFile(const std::string& file, std::size_t bytes)
        : file_(file), name_(fmt::format("{}.{}.part", file, getpid())) {
        const int descriptor = open(name_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (descriptor < 0) fail(errno);
        const int error = posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
        close(descriptor);
        if (error != 0 && error != EINVAL && error != EOPNOTSUPP) {
            remove();
            fail(error);
        }
    }
    ~PartialFile() {
        if (!complete_) remove();
    }
    PartialFile(const PartialFile&) = delete;
    PartialFile& operator=(const PartialFile&) = delete;

    const std::string& name() const { return name_; }

    void complete() {
        std::error_code error;
        std::filesystem::rename(name_, file_, error);
        if (error) fail(error.value());
        complete_ = true;
    }

    [[noreturn]] void fail(int error) const {
        throw std::runtime_error(
            fmt::format("could not write '{}': {}", file_, std::generic_category().message(error)));
    }

  private:
    void remove() const {
        std::error_code ignored;
        std::filesystem::remove(name_, ignored);
    }

    std::string file_, name_;
    bool complete_ = false;
};

class FileWriter {
  public:
    /// For arrays of so many bytes in all.
    FileWriter(const std::string& file, Eigen::Index bytes)
        : partial_(file, static_cast<std::size_t>(bytes) + 65536),
          handle_(create(partial_.name()), H5Fclose) {
        check(handle_.valid());
    }

    /// A dataset whose samples `fill(range)` gives, as a pointer that lives until the next call.
    void write(const char* name, const Shape& shape, Precision precision,
               const std::function<const double*(Range)>& fill) {
        std::array<hsize_t, 3> sizes{};
        std::copy(shape.begin(), shape.end(), sizes.begin());
        const hid_t type = precision == Precision::float_precision ? H5T_IEEE_F32LE : H5T_IEEE_F64LE;
        const Handle space(H5Screate_simple(3, sizes.data(), nullptr), H5Sclose);
        const Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
        check(H5Pset_obj_track_times(properties.get(), false) >= 0);  // same data, same bytes
        Handle dataset(
            H5Dcreate2(handle_.get(), name, type, space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT),
            H5Dclose);
        check(dataset.valid());
        for_blocks(shape, [&](Range range) {
            const double* values = fill(range);
            check(move_samples(dataset, shape, range, [&](hid_t memory, hid_t file) {
                return H5Dwrite(dataset.get(), H5T_NATIVE_DOUBLE, memory, file, H5P_DEFAULT, values);
            }));
        });
        check(dataset.close());
    }

    void write(Attributes attributes) {
        attributes["bayesaim"] = std::string(version());
        attributes["commit"] = std::string(git_commit());
        for (const auto& [name, value] : attributes) {
            std::visit([this, &key = name](const auto& v) { write_attribute(key, v); }, value);
        }
    }

    void write_weights(const Matrix& weights) {
        const channels::Rows rows = weights;
        write("weights", {1, rows.rows(), rows.cols()}, Precision::double_precision,
              [&](Range) { return rows.data(); });
    }

    /// Gives the file its name.
    void finish() {
        check(handle_.close());
        partial_.complete();
    }

  private:
    static hid_t create(const std::string& name) {
        const Handle properties(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
        H5Pset_obj_track_times(properties.get(), false);
        return H5Fcreate(name.c_str(), H5F_ACC_TRUNC, properties.get(), H5P_DEFAULT);
    }

    void check(bool success) const {
        if (!success) partial_.fail(EIO);
    }

    void write_attribute(const std::string& name, const std::string& text) {
        const Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
        check(H5Tset_size(type.get(), H5T_VARIABLE) >= 0 && H5Tset_cset(type.get(), H5T_CSET_UTF8) >= 0);
        const char* start = text.c_str();
        write_attribute(name, type.get(), type.get(), &start);
    }
    void write_attribute(const std::string& name, double value) {
        write_attribute(name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value);
    }
    void write_attribute(const std::string& name, std::uint64_t value) {
        write_attribute(name, H5T_STD_U64LE, H5T_NATIVE_UINT64, &value);
    }
    void write_attribute(const std::string& name, hid_t file_type, hid_t memory_type, const void* value) {
        const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
        const Handle attribute(
            H5Acreate2(handle_.get(), name.c_str(), file_type, space.get(), H5P_DEFAULT, H5P_DEFAULT),
            H5Aclose);
        check(attribute.valid() && H5Awrite(attribute.get(), memory_type, value) >= 0);
    }

    QuietErrors quiet_;
    PartialFile partial_;
    Handle handle_;
};

const char* outputs_name(const channels::Channel& channel) {
    return channel.name() == "softmax" ? "log_outputs" : "outputs";
}

// ---- reading ------------------------------------------------------------------------------------------

/// A dataset of a file that is being read.
struct Array {
    std::string title;  ///< file and dataset, for messages
    Handle handle;
    Shape shape{};
};

class FileReader {
  public:
    explicit FileReader(const std::string& file) : file_(file), handle_(open(file), H5Fclose) {}

    bool has(const std::string& name) const {
        return H5Lexists(handle_.get(), name.c_str(), H5P_DEFAULT) > 0;
    }

    /// Throws unless there is such a dataset, of numbers, with three dimensions, not empty and not absurdly
    /// large.
    Array array(const std::string& name, const char* dimensions) const {
        const std::string title = fmt::format("'{}': dataset /{}", file_, name);
        if (!has(name)) throw_invalid(title, "in the file", "none");
        Handle handle(H5Dopen2(handle_.get(), name.c_str(), H5P_DEFAULT), H5Dclose);
        if (!handle.valid()) throw_invalid(title, "a readable array", "something else");
        const Handle type(H5Dget_type(handle.get()), H5Tclose), space(H5Dget_space(handle.get()), H5Sclose);
        const H5T_class_t kind = H5Tget_class(type.get());
        if (kind != H5T_FLOAT && kind != H5T_INTEGER)
            throw_invalid(title, "an array of numbers", "another type");
        const int rank = H5Sget_simple_extent_ndims(space.get());
        if (rank != 3) {
            throw_invalid(title, fmt::format("an array {}", dimensions), fmt::format("{} dimensions", rank));
        }
        std::array<hsize_t, 3> sizes{};
        H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr);
        Array result{title, std::move(handle)};
        std::copy(sizes.begin(), sizes.end(), result.shape.begin());
        if (*std::min_element(sizes.begin(), sizes.end()) == 0) {
            throw_invalid(title, fmt::format("a non-empty array {}", dimensions), to_string(result.shape));
        }
        double count = 1;
        for (const hsize_t size : sizes) count *= static_cast<double>(size);
        if (count > 0x1p45) throw_invalid(title, "small enough for the memory", to_string(result.shape));
        return result;
    }

    Attributes attributes() const {
        std::vector<std::string> names;
        const auto collect = [](hid_t, const char* name, const H5A_info_t*, void* list) noexcept -> herr_t {
            static_cast<std::vector<std::string>*>(list)->emplace_back(name);
            return 0;
        };
        H5Aiterate2(handle_.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, collect, &names);
        Attributes result;
        for (const std::string& name : names) {
            if (auto value = attribute(name)) result.emplace(name, std::move(*value));
        }
        return result;
    }

  private:
    static hid_t open(const std::string& file) {
        if (access(file.c_str(), R_OK) != 0 || std::filesystem::is_directory(file)) {
            throw_invalid("dataset file", "readable", fmt::format("'{}'", file));
        }
        if (H5Fis_hdf5(file.c_str()) <= 0) {
            throw_invalid("dataset file", "an HDF5 file",
                          fmt::format("'{}', another format or truncated", file));
        }
        const hid_t id = H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
        if (id < 0)
            throw_invalid("dataset file", "a complete HDF5 file",
                          fmt::format("'{}', truncated or damaged", file));
        return id;
    }

    std::optional<Attribute> attribute(const std::string& name) const {
        const Handle attribute(H5Aopen(handle_.get(), name.c_str(), H5P_DEFAULT), H5Aclose);
        if (!attribute.valid()) return std::nullopt;
        const Handle type(H5Aget_type(attribute.get()), H5Tclose),
            space(H5Aget_space(attribute.get()), H5Sclose);
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
                return read_number ? std::optional<Attribute>(number) : std::nullopt;
            case H5T_STRING:
                return text(attribute, type);
            default:
                return std::nullopt;
        }
    }

    static std::optional<Attribute> text(const Handle& attribute, const Handle& type) {
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
        // Names end up in messages of one line.
        std::replace_if(
            result.begin(), result.end(), [](unsigned char c) { return c < ' '; }, '?');
        return result;
    }

    QuietErrors quiet_;
    std::string file_;
    Handle handle_;
};

void check_shape(const Array& array, const Shape& expected, const Shape& tokens) {
    if (array.shape == expected) return;
    throw_invalid(array.title,
                  fmt::format("of shape {}, as /tokens is {}", to_string(expected), to_string(tokens)),
                  to_string(array.shape));
}

/// All of an array, block by block, to where the numbers stay. Each must be finite.
void read_all(const Array& array, double* out) {
    const auto per_sample = static_cast<std::size_t>(array.shape[1] * array.shape[2]);
    for_blocks(array.shape, [&](Range range) {
        double* first = out + range.begin * per_sample;
        const bool success = move_samples(array.handle, array.shape, range, [&](hid_t memory, hid_t file) {
            return H5Dread(array.handle.get(), H5T_NATIVE_DOUBLE, memory, file, H5P_DEFAULT, first);
        });
        if (!success) throw_invalid(array.title, "readable", "damaged data or an unknown filter");
        const double* end = first + range.size() * per_sample;
        const double* bad = std::find_if_not(static_cast<const double*>(first), end,
                                             [](double value) { return std::isfinite(value); });
        if (bad == end) return;
        const std::size_t sample = range.begin + static_cast<std::size_t>(bad - first) / per_sample;
        check_finite(fmt::format("{}, sample {},", array.title, sample), *bad);
    });
}

/// rows x cols doubles, for an array that its file says is there.
template <class Storage>
Storage allocate(const Array& array, Eigen::Index rows, Eigen::Index cols) {
    try {
        return Storage(rows, cols);
    } catch (const std::bad_alloc&) {
        throw_invalid(array.title, "small enough for the memory", to_string(array.shape));
    }
}

/// Probabilities to log-probabilities.
void take_logarithms(const Array& array, channels::Rows& outputs) {
    for (Eigen::Index i = 0; i < outputs.rows(); ++i) {
        for (double& value : outputs.row(i)) {
            if (!(value > 0))
                check_positive(fmt::format("{}, probability of sample {},", array.title, i), value);
            value = std::log(value);
        }
    }
}

constexpr const char* token_dimensions = "(samples, tokens, dim)";

}  // namespace

Attributes describe(const priors::Prior& prior, const channels::Channel& channel) {
    Attributes result = {{"prior", prior.name()}, {"channel", channel.name()}};
    for (const auto& [name, value] : prior.parameters()) result[name] = value;
    for (const auto& [name, value] : channel.parameters()) result[name] = value;
    return result;
}

std::optional<std::string> text_attribute(const Attributes& attributes, const std::string& name) {
    const auto found = attributes.find(name);
    if (found == attributes.end()) return std::nullopt;
    if (const auto* text = std::get_if<std::string>(&found->second)) return *text;
    throw_invalid(fmt::format("attribute {}", name), "text", "a number");
}

std::optional<double> number_attribute(const Attributes& attributes, const std::string& name) {
    const auto found = attributes.find(name);
    if (found == attributes.end()) return std::nullopt;
    if (const auto* number = std::get_if<double>(&found->second)) return *number;
    if (const auto* count = std::get_if<std::uint64_t>(&found->second)) return static_cast<double>(*count);
    throw_invalid(fmt::format("attribute {}", name), "a number",
                  fmt::format("'{}'", std::get<std::string>(found->second)));
}

void write_dataset(const std::string& file, const Dataset& data, const channels::Channel& channel,
                   const Matrix* weights, const Attributes& attributes, Precision precision) {
    const TokenSource& source = *data.tokens;
    const Eigen::Index samples = source.samples(), tokens = source.tokens();
    check_size("rows of the outputs", data.outputs.rows(), samples);
    check_size("columns of the outputs", data.outputs.cols(), tokens * tokens);
    const Eigen::Index dim = source.dim();
    const Eigen::Index token_size = precision == Precision::float_precision ? 4 : 8;
    FileWriter out(file, samples * tokens * (dim * token_size + tokens * 8) + dim * dim * 8);
    Matrix scratch;
    out.write("tokens", {samples, tokens, dim}, precision,
              [&](Range range) { return source.block(range, scratch).data(); });
    out.write(outputs_name(channel), {samples, tokens, tokens}, Precision::double_precision,
              [&](Range range) { return data.outputs.row(static_cast<Eigen::Index>(range.begin)).data(); });
    if (weights != nullptr) out.write_weights(*weights);
    out.write(attributes);
    out.finish();
}

DatasetHeader read_dataset_header(const std::string& file) {
    const FileReader reader(file);
    const Array tokens = reader.array("tokens", token_dimensions);
    return {tokens.shape[0], tokens.shape[1], tokens.shape[2], reader.attributes()};
}

DatasetContents read_dataset(const std::string& file, const channels::Channel& channel) {
    const FileReader reader(file);
    const Array tokens = reader.array("tokens", token_dimensions);
    const auto [n, t, d] = tokens.shape;
    if (t != channel.tokens()) {
        throw_invalid(tokens.title,
                      fmt::format("of {} tokens per sample, for this channel", channel.tokens()),
                      to_string(tokens.shape));
    }
    const bool take_logarithm =
        channel.name() == "softmax" && reader.has("outputs") && !reader.has("log_outputs");
    const Array outputs =
        reader.array(take_logarithm ? "outputs" : outputs_name(channel), "(samples, tokens, tokens)");
    check_shape(outputs, {n, t, t}, tokens.shape);
    DatasetContents result;
    if (reader.has("weights")) {
        const Array weights = reader.array("weights", "(1, dim, dim)");
        check_shape(weights, {1, d, d}, tokens.shape);
        auto rows = allocate<channels::Rows>(weights, d, d);
        read_all(weights, rows.data());
        result.weights = rows;
    }
    result.attributes = reader.attributes();
    result.data.outputs = allocate<channels::Rows>(outputs, n, t * t);
    read_all(outputs, result.data.outputs.data());
    if (take_logarithm) take_logarithms(outputs, result.data.outputs);
    auto columns = allocate<Matrix>(tokens, d, n * t);
    read_all(tokens, columns.data());
    result.data.tokens = given_tokens(std::move(columns), t);
    try {
        check_outputs(channel, result.data);
    } catch (const InvalidArgument& error) {
        throw InvalidArgument(fmt::format("{}: {}", outputs.title, error.what()));
    }
    return result;
}

void write_estimate(const std::string& file, const Matrix& estimate, const Attributes& attributes) {
    FileWriter out(file, estimate.size() * 8);
    out.write_weights(estimate);
    out.write(attributes);
    out.finish();
}

}  // namespace bayesaim::data
