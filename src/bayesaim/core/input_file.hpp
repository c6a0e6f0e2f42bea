// SPDX-License-Identifier: MIT
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bayesaim/core/attributes.hpp"
#include "bayesaim/core/parallel.hpp"
#include "bayesaim/core/precision.hpp"

/// Files of arrays with three dimensions and attributes, of any kind: core/hdf5_file.hpp,
/// data/numpy_file.hpp. The first dimension counts samples (or layers, or starts); arrays are read block by
/// block. A bad file throws InvalidArgument with one line that names the file and the array.
namespace bayesaim {

using Shape = std::array<std::ptrdiff_t, 3>;
std::string to_string(const Shape& shape);

/// The numbers of an array in an open file.
class StoredValues {
  public:
    virtual ~StoredValues() = default;

    /// Writes the numbers of these samples to `out`, the last index fastest. Calls done(range) when some of them are
    /// there; the ranges follow each other. Returns whether the file could be read.
    using Done = std::function<void(Range)>;
    virtual bool read(Range samples, double* out, const Done& done) const = 0;
    virtual bool read(Range samples, float* out, const Done& done) const = 0;
};

/// The bytes of an array that is in other files.
inline constexpr std::uint64_t elsewhere = ~std::uint64_t{0};

/// An array as its file describes it; nothing is checked but that it has numbers.
struct StoredArray {
    std::vector<std::uint64_t> sizes;
    Precision precision = Precision::double_precision;  ///< sufficient for the type in the file
    std::uint64_t number_bytes = sizeof(double);        ///< of one number
    std::uint64_t stored_bytes = 0;                     ///< of all, compressed or not, or `elsewhere`
    std::shared_ptr<const StoredValues> values;
};

/// An array of an input file, whose shape is checked.
struct InputArray {
    std::string title;  ///< file and name, for messages
    std::string name;   ///< name alone, for messages
    Shape shape{};
    Precision precision = Precision::double_precision;
    std::shared_ptr<const StoredValues> values;
};

class InputFile {
  public:
    virtual ~InputFile() = default;

    virtual bool has(const std::string& name) const = 0;
    /// Attributes that are one number or one text.
    virtual Attributes attributes() const = 0;

    /// Throws unless the file has this array of numbers, with three dimensions (named for messages), not
    /// empty, not absurdly large and not larger than its bytes in the file can be. If a matrix is allowed, it becomes an array of one sample.
    enum class Matrices { refused, allowed };
    InputArray array(const std::string& name, const char* dimensions,
                     Matrices matrices = Matrices::refused) const;

  protected:
    /// Messages call an array '{file}': {word} {prefix}{name}.
    InputFile(const std::string& file, std::string_view word, std::string_view prefix);

  private:
    /// The array of this name, which exists. Throws if it is not an array of numbers.
    virtual StoredArray open(const std::string& name, const std::string& title) const = 0;

    std::string file_, word_, prefix_;
};

/// Which numbers are taken: those that can be computed with (core/user_numbers.hpp), or, of outputs that the channel
/// checks because it knows which ones are seen, all that are finite, and minus infinity.
enum class Numbers { usable, outputs };

/// Reads these samples of an array, block by block, into the destination. Other numbers are refused.
template <class Scalar>  // double or float
void read_samples(const InputArray& array, Range samples, Scalar* out, Numbers numbers = Numbers::usable);
/// The whole array.
template <class Scalar>
void read_all(const InputArray& array, Scalar* out);

/// The text without control characters: messages have one line, and texts of files become part of them.
std::string printable(std::string text);

}  // namespace bayesaim
