// SPDX-License-Identifier: MIT
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "bayesaim/core/input_file.hpp"

struct zip;

namespace bayesaim::data {

/// Files of numpy.savez and numpy.savez_compressed: a zip archive with one entry {name}.npy per array. Each
/// entry has a header, {'descr': '<f8', 'fortran_order': False, 'shape': (3, 2, 4), }, and then the numbers.
/// Real numbers, integers and booleans of up to eight bytes are taken, in either order of bytes and of
/// dimensions. Arrays without dimensions, one number or one text, are the attributes.
class NumpyReader final : public InputFile {
  public:
    /// Messages about the file as a whole call it `kind`.
    explicit NumpyReader(const std::string& file, std::string_view kind = "file");

    bool has(const std::string& name) const override;
    Attributes attributes() const override;

  private:
    StoredArray open(const std::string& name, const std::string& title) const override;

    std::shared_ptr<zip> archive_;
};

}  // namespace bayesaim::data
