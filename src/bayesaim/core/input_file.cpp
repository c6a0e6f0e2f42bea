// SPDX-License-Identifier: MIT
#include "bayesaim/core/input_file.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <system_error>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/user_numbers.hpp"

namespace bayesaim {

std::string to_string(const Shape& shape) {
    return fmt::format("({}, {}, {})", shape[0], shape[1], shape[2]);
}

std::string printable(std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](unsigned char c) { return c < ' '; }, '?');
    return text;
}

InputFile::InputFile(const std::string& file, std::string_view word, std::string_view prefix)
    : file_(file), word_(word), prefix_(prefix) {}

InputArray InputFile::array(const std::string& name, const char* dimensions, Matrices matrices) const {
    InputArray result;
    result.name = prefix_ + name;
    result.title = fmt::format("'{}': {} {}", file_, word_, result.name);
    if (!has(name)) throw_invalid(result.title, "in the file", "none");
    StoredArray stored = open(name, result.title);
    const std::size_t rank = stored.sizes.size();
    if (rank == 2 && matrices == Matrices::allowed) stored.sizes.insert(stored.sizes.begin(), 1);
    if (stored.sizes.size() != result.shape.size())
        throw_invalid(result.title, fmt::format("an array {}", dimensions),
                      fmt::format("{} dimensions", rank));
    double count = 1;
    for (std::size_t i = 0; i < result.shape.size(); ++i) {
        count *= static_cast<double>(stored.sizes[i]);
        result.shape[i] = static_cast<std::ptrdiff_t>(stored.sizes[i]);
    }
    if (count == 0)
        throw_invalid(result.title, fmt::format("a non-empty array {}", dimensions), to_string(result.shape));
    if (count > 0x1p45) throw_invalid(result.title, "small enough for the memory", to_string(result.shape));
    // The memory that we take must be that of the file: deflate makes at most 1032 bytes of one.
    std::error_code none;
    const std::uint64_t bytes =
        std::min<std::uint64_t>(stored.stored_bytes, std::filesystem::file_size(file_, none));
    if (stored.stored_bytes != elsewhere &&
        count * static_cast<double>(stored.number_bytes) > 1100 * static_cast<double>(bytes) + 0x1p20)
        throw_invalid(result.title, "stored as a whole",
                      fmt::format("{} in {} bytes", to_string(result.shape), bytes));
    result.precision = stored.precision;
    result.values = std::move(stored.values);
    return result;
}

template <class Scalar>
void read_samples(const InputArray& array, Range samples, Scalar* out, Numbers numbers) {
    const auto per_sample = static_cast<std::size_t>(array.shape[1] * array.shape[2]);
    const auto check = [&](Range range) {
        const Scalar *first = out + (range.begin - samples.begin) * per_sample,
                     *end = out + (range.end - samples.begin) * per_sample;
        const Scalar* bad = std::find_if_not(first, end, [&](Scalar value) {
            return numbers == Numbers::usable ? is_usable(value)
                                              : value < std::numeric_limits<Scalar>::infinity();
        });
        if (bad == end) return;
        const std::size_t sample = samples.begin + static_cast<std::size_t>(bad - out) / per_sample;
        const std::string name = fmt::format("{}, sample {},", array.title, sample);
        check_usable(name, *bad);
    };
    if (samples.size() > 0 && !array.values->read(samples, out, check))
        throw_invalid(array.title, "readable", "damaged data or an unknown filter");
}

template <class Scalar>
void read_all(const InputArray& array, Scalar* out) {
    read_samples(array, {0, static_cast<std::size_t>(array.shape[0])}, out);
}

template void read_samples(const InputArray& array, Range samples, double* out, Numbers numbers);
template void read_samples(const InputArray& array, Range samples, float* out, Numbers numbers);
template void read_all(const InputArray& array, double* out);
template void read_all(const InputArray& array, float* out);

}  // namespace bayesaim
