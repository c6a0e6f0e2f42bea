// SPDX-License-Identifier: MIT
#include "bayesaim/data/numpy_file.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include <Eigen/Core>
#include <fmt/format.h>
#include <zip.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/files.hpp"

namespace bayesaim::data {
namespace {

using Archive = std::shared_ptr<zip>;
using Bytes = std::vector<unsigned char>;

constexpr std::string_view suffix = ".npy";
constexpr std::size_t numbers_per_block = std::size_t{1} << 19, longest_header = std::size_t{1} << 16,
                      longest_text = std::size_t{1} << 16;

std::string entry_of(const std::string& name) { return name + std::string(suffix); }

/// An entry of the archive, read from its start to its end.
class EntryStream {
  public:
    EntryStream(const Archive& archive, std::uint64_t index)
        : archive_(archive), file_(zip_fopen_index(archive.get(), index, 0), zip_fclose) {}

    /// Fills the memory; false if there are not as many bytes, or damaged ones.
    bool read(void* out, std::size_t bytes) {
        auto* position = static_cast<unsigned char*>(out);
        while (file_ && bytes > 0) {
            const zip_int64_t count = zip_fread(file_.get(), position, bytes);
            if (count <= 0) return false;
            position += count;
            bytes -= static_cast<std::size_t>(count);
        }
        return file_ != nullptr;
    }

    /// Whether nothing is left. Only then has libzip compared the checksum.
    bool ended() {
        unsigned char next = 0;
        return file_ && zip_fread(file_.get(), &next, 1) == 0;
    }

  private:
    Archive archive_;
    std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> file_;
};

// ---- header ----------------------------------------------------------------------------------------------

struct NumpyHeader {
    std::string type;  ///< '<f8', or all of a structured type
    bool fortran = false;
    std::vector<std::uint64_t> sizes;
    std::size_t bytes = 0;  ///< of the header

    char kind() const { return type.size() > 1 ? type[1] : '?'; }
    /// Bytes of one number, characters of one text; 0 if the type has another form.
    std::size_t size() const {
        std::size_t result = 0;
        const char *first = type.data() + std::min<std::size_t>(type.size(), 2),
                   *end = type.data() + type.size();
        return std::from_chars(first, end, result).ptr == end ? result : 0;
    }
    bool swapped() const {
        const bool big = std::endian::native == std::endian::big;
        return size() > 1 && ((type[0] == '<' && big) || (type[0] == '>' && !big));
    }
};

/// Reads the literal of a Python dictionary, as far as numpy writes it.
class Literal {
  public:
    explicit Literal(std::string_view text) : rest_(text) {}

    bool take(char wanted) {
        skip_spaces();
        if (!rest_.starts_with(wanted)) return false;
        rest_.remove_prefix(1);
        return true;
    }

    std::optional<std::string> text() {
        skip_spaces();
        if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return std::nullopt;
        const std::size_t end = rest_.find(rest_[0], 1);
        if (end == std::string_view::npos) return std::nullopt;
        return remove(1, end, end + 1);
    }

    /// The list of a structured type, unread.
    std::optional<std::string> list() {
        skip_spaces();
        const std::size_t end = rest_.rfind(']');
        if (!rest_.starts_with('[') || end == std::string_view::npos) return std::nullopt;
        return remove(0, end + 1, end + 1);
    }

    std::optional<bool> boolean() {
        skip_spaces();
        for (const std::string_view word : {"True", "False"}) {
            if (!rest_.starts_with(word)) continue;
            rest_.remove_prefix(word.size());
            return word == "True";
        }
        return std::nullopt;
    }

    std::optional<std::vector<std::uint64_t>> tuple() {
        if (!take('(')) return std::nullopt;
        std::vector<std::uint64_t> result;
        while (!take(')')) {
            skip_spaces();
            std::uint64_t number = 0;
            const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
            if (error != std::errc()) return std::nullopt;
            rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
            take('L');  // of Python 2
            result.push_back(number);
            if (!take(',') && !rest_.starts_with(')')) return std::nullopt;
        }
        return result;
    }

  private:
    void skip_spaces() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n"), rest_.size())); }
    std::string remove(std::size_t begin, std::size_t end, std::size_t all) {
        std::string result(rest_.substr(begin, end - begin));
        rest_.remove_prefix(all);
        return result;
    }

    std::string_view rest_;
};

std::optional<NumpyHeader> parse_header(std::string_view text) {
    NumpyHeader result;
    Literal literal(text);
    bool has_type = false, has_order = false, has_shape = false;
    if (!literal.take('{')) return std::nullopt;
    while (!literal.take('}')) {
        const auto key = literal.text();
        if (!key || !literal.take(':')) return std::nullopt;
        if (*key == "descr") {
            auto type = literal.text();
            if (!type) type = literal.list();
            has_type = type.has_value();
            result.type = type.value_or("");
        } else if (*key == "fortran_order") {
            const auto order = literal.boolean();
            has_order = order.has_value();
            result.fortran = order.value_or(false);
        } else if (*key == "shape") {
            auto sizes = literal.tuple();
            has_shape = sizes.has_value();
            if (sizes) result.sizes = std::move(*sizes);
        } else {
            return std::nullopt;
        }
        literal.take(',');
    }
    return has_type && has_order && has_shape ? std::optional(result) : std::nullopt;
}

/// The header at the start of an entry; std::nullopt if there is none.
std::optional<NumpyHeader> read_header(EntryStream& stream) {
    std::array<unsigned char, 8> start{};
    if (!stream.read(start.data(), start.size()) || std::memcmp(start.data(), "\x93NUMPY", 6) != 0)
        return std::nullopt;
    const int version = start[6];
    if (version < 1 || version > 3) return std::nullopt;
    std::array<unsigned char, 4> length{};
    const std::size_t length_bytes = version == 1 ? 2 : 4;
    if (!stream.read(length.data(), length_bytes)) return std::nullopt;
    std::size_t size = 0;
    for (std::size_t i = length_bytes; i-- > 0;) size = 256 * size + length[i];
    if (size > longest_header) return std::nullopt;
    std::string text(size, '\0');
    if (!stream.read(text.data(), size)) return std::nullopt;
    auto result = parse_header(text);
    if (result) result->bytes = start.size() + length_bytes + size;
    return result;
}

// ---- numbers ---------------------------------------------------------------------------------------------

/// Sixteen bits of a float: Eigen converts them.
struct HalfBits {
    std::uint16_t bits;
    explicit operator double() const {
        return Eigen::half_impl::half_to_float(Eigen::half_impl::raw_uint16_to_half(bits));
    }
    explicit operator float() const { return static_cast<float>(static_cast<double>(*this)); }
    explicit operator std::uint64_t() const { return static_cast<std::uint64_t>(static_cast<double>(*this)); }
};

struct Boolean {
    unsigned char byte;
    template <class Scalar>
    explicit operator Scalar() const {
        return byte != 0 ? Scalar(1) : Scalar(0);
    }
};

/// Calls use(Stored()) with the type of the numbers; false if the type is not known.
template <class Use>
bool with_type(const NumpyHeader& header, const Use& use) {
    const auto is = [&](char kind, std::size_t size) {
        return header.kind() == kind && header.size() == size;
    };
    if (std::string_view("<>|=").find(header.type.empty() ? '?' : header.type[0]) == std::string_view::npos)
        return false;
    if (is('f', 8)) return use(double()), true;
    if (is('f', 4)) return use(float()), true;
    if (is('f', 2)) return use(HalfBits()), true;
    if (is('b', 1)) return use(Boolean()), true;
    if (is('i', 1)) return use(std::int8_t()), true;
    if (is('i', 2)) return use(std::int16_t()), true;
    if (is('i', 4)) return use(std::int32_t()), true;
    if (is('i', 8)) return use(std::int64_t()), true;
    if (is('u', 1)) return use(std::uint8_t()), true;
    if (is('u', 2)) return use(std::uint16_t()), true;
    if (is('u', 4)) return use(std::uint32_t()), true;
    if (is('u', 8)) return use(std::uint64_t()), true;
    return false;
}

bool has_numbers(const NumpyHeader& header) {
    return with_type(header, [](auto) {});
}

/// Converts numbers of the file; put(i, value) gets number i.
template <class Scalar, class Put>
void convert(const NumpyHeader& header, Bytes& bytes, std::size_t count, const Put& put) {
    const bool swapped = header.swapped();
    with_type(header, [&]<class Stored>(Stored value) {
        for (std::size_t i = 0; i < count; ++i) {
            unsigned char* first = bytes.data() + i * sizeof(Stored);
            if (swapped) std::reverse(first, first + sizeof(Stored));
            std::memcpy(&value, first, sizeof(Stored));
            put(i, static_cast<Scalar>(value));
        }
    });
}

class NumpyValues final : public StoredValues {
  public:
    NumpyValues(Archive archive, std::uint64_t index, NumpyHeader header)
        : archive_(std::move(archive)), index_(index), header_(std::move(header)) {}

    bool read(Range samples, double* out, const Done& done) const override {
        return read_as(samples, out, done);
    }
    bool read(Range samples, float* out, const Done& done) const override {
        return read_as(samples, out, done);
    }

  private:
    template <class Scalar>
    bool read_as(Range samples, Scalar* out, const Done& done) const {
        std::array<std::size_t, 3> shape = {1, 1, 1};  // a matrix is one sample
        std::copy_backward(header_.sizes.begin(), header_.sizes.end(), shape.end());
        const std::size_t per_sample = shape[1] * shape[2], all = shape[0] * per_sample,
                          skipped = samples.begin * per_sample;
        // Entries are compressed: what is before must be read, what is behind need not.
        const std::size_t total = header_.fortran ? all : samples.end * per_sample;
        EntryStream stream(archive_, index_);
        if (!read_header(stream)) return false;
        Bytes bytes;
        std::array<std::size_t, 3> at{};  // of a Fortran array, whose first index is the fastest
        std::size_t complete = samples.begin;
        for (std::size_t first = 0; first < total; first += numbers_per_block) {
            const std::size_t count = std::min(numbers_per_block, total - first);
            bytes.resize(count * header_.size());
            if (!stream.read(bytes.data(), bytes.size())) return false;
            if (header_.fortran) {
                convert<Scalar>(header_, bytes, count, [&](std::size_t, Scalar value) {
                    if (at[0] >= samples.begin && at[0] < samples.end)
                        out[((at[0] - samples.begin) * shape[1] + at[1]) * shape[2] + at[2]] = value;
                    for (std::size_t k = 0; k < 3 && ++at[k] == shape[k]; ++k) at[k] = 0;
                });
                continue;
            }
            convert<Scalar>(header_, bytes, count, [&](std::size_t i, Scalar value) {
                if (first + i >= skipped) out[first + i - skipped] = value;
            });
            const std::size_t now = (first + count) / per_sample;
            if (now > complete) done({complete, now});
            complete = now;
        }
        if (total == all && !stream.ended()) return false;
        if (header_.fortran) done(samples);
        return true;
    }

    Archive archive_;
    std::uint64_t index_;
    NumpyHeader header_;
};

// ---- attributes ------------------------------------------------------------------------------------------

void append_utf8(std::uint32_t code, std::string& text) {
    const auto add = [&](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
    if (code < 0x80) return add(code);
    if (code < 0x800) return add(0xC0 | code >> 6), add(0x80 | (code & 0x3F));
    if (code < 0x10000)
        return add(0xE0 | code >> 12), add(0x80 | (code >> 6 & 0x3F)), add(0x80 | (code & 0x3F));
    add(0xF0 | (code >> 18 & 7)), add(0x80 | (code >> 12 & 0x3F));
    add(0x80 | (code >> 6 & 0x3F)), add(0x80 | (code & 0x3F));
}

std::optional<Value> read_number(EntryStream& stream, const NumpyHeader& header) {
    Bytes bytes(header.size());
    if (!stream.read(bytes.data(), bytes.size()) || !stream.ended()) return std::nullopt;
    Bytes copy = bytes;
    double number = 0;
    std::uint64_t whole = 0;
    convert<double>(header, copy, 1, [&](std::size_t, double value) { number = value; });
    if (header.kind() == 'f' || number < 0) return number;
    convert<std::uint64_t>(header, bytes, 1, [&](std::size_t, std::uint64_t value) { whole = value; });
    return whole;
}

/// Four bytes a character (U) or one (S), filled up with zeros.
std::optional<Value> read_text(EntryStream& stream, const NumpyHeader& header) {
    if (header.size() > longest_text) return std::nullopt;
    const std::size_t width = header.kind() == 'U' ? 4 : 1;
    Bytes bytes(header.size() * width);
    if (!stream.read(bytes.data(), bytes.size()) || !stream.ended()) return std::nullopt;
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); i += width) {
        std::uint32_t code = 0;
        for (std::size_t k = 0; k < width; ++k)
            code = code << 8 | bytes[i + (header.type[0] == '>' ? k : width - 1 - k)];
        if (code == 0) break;
        if (width == 1) {
            text.push_back(static_cast<char>(code));
        } else {
            append_utf8(code, text);
        }
    }
    return printable(std::move(text));
}

std::optional<Value> read_attribute(const Archive& archive, std::uint64_t index) {
    EntryStream stream(archive, index);
    const auto header = read_header(stream);
    if (!header) return std::nullopt;
    const auto& sizes = header->sizes;
    if (!sizes.empty() && (sizes.size() > 1 || sizes[0] != 1)) return std::nullopt;  // an array
    if (has_numbers(*header)) return read_number(stream, *header);
    if (header->kind() == 'U' || header->kind() == 'S') return read_text(stream, *header);
    return std::nullopt;
}

}  // namespace

NumpyReader::NumpyReader(const std::string& file, std::string_view kind) : InputFile(file, "array", "") {
    check_readable(kind, file);
    int error = 0;
    archive_ = Archive(zip_open(file.c_str(), ZIP_RDONLY, &error), [](zip* archive) {
        if (archive != nullptr) zip_discard(archive);
    });
    if (!archive_)
        throw_invalid(kind, "a complete npz file", fmt::format("'{}', truncated or damaged", file));
}

bool NumpyReader::has(const std::string& name) const {
    return zip_name_locate(archive_.get(), entry_of(name).c_str(), 0) >= 0;
}

StoredArray NumpyReader::open(const std::string& name, const std::string& title) const {
    const auto index = static_cast<std::uint64_t>(zip_name_locate(archive_.get(), entry_of(name).c_str(), 0));
    EntryStream stream(archive_, index);
    const auto header = read_header(stream);
    if (!header) throw_invalid(title, "a readable array of numpy", "a damaged header");
    if (!has_numbers(*header)) {
        const std::string type = printable(header->type.substr(0, 40));
        throw_invalid(title, "an array of real numbers of at most 8 bytes",
                      fmt::format("type '{}'{}", type, header->kind() == 'O' ? ", objects" : ""));
    }
    zip_stat_t entry;
    zip_stat_init(&entry);
    double expected = static_cast<double>(header->size());
    for (const std::uint64_t size : header->sizes) expected *= static_cast<double>(size);
    expected += static_cast<double>(header->bytes);
    if (zip_stat_index(archive_.get(), index, 0, &entry) != 0 || static_cast<double>(entry.size) != expected)
        throw_invalid(title, fmt::format("of {:.0f} bytes, as its header says", expected),
                      fmt::format("{}", entry.size));
    StoredArray result;
    result.sizes = header->sizes;
    result.number_bytes = header->size();
    result.stored_bytes = entry.comp_size;
    if (header->kind() == 'f' && header->size() <= sizeof(float))
        result.precision = Precision::float_precision;
    result.values = std::make_shared<NumpyValues>(archive_, index, *header);
    return result;
}

Attributes NumpyReader::attributes() const {
    Attributes result;
    const zip_int64_t count = zip_get_num_entries(archive_.get(), 0);
    for (zip_int64_t i = 0; i < count; ++i) {
        const char* found = zip_get_name(archive_.get(), static_cast<std::uint64_t>(i), 0);
        const std::string entry = found == nullptr ? "" : found;
        if (!entry.ends_with(suffix)) continue;
        if (auto value = read_attribute(archive_, static_cast<std::uint64_t>(i)))
            result.emplace(printable(entry.substr(0, entry.size() - suffix.size())), std::move(*value));
    }
    return result;
}

}  // namespace bayesaim::data
