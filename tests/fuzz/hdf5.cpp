// SPDX-License-Identifier: MIT
// HDF5 files: datasets, estimates, laws and checkpoints. HDF5 makes each from its description, in memory.
#include <hdf5.h>

#include "bayesaim/core/hdf5_file.hpp"
#include "bayesaim/data/saved_state.hpp"
#include "bayesaim/priors/prior.hpp"
#include "bayesaim/priors/spectrum_file.hpp"

#include "arrays.hpp"

namespace {

using namespace bayesaim;
using fuzz::Piece;
using Handle = Hdf5Handle;

/// A type of numbers, or another one; closed by nobody: they are few.
hid_t type_of(unsigned code) {
    static const std::array<hid_t, 14> types = [] {
        const hid_t fixed = H5Tcopy(H5T_C_S1), variable = H5Tcopy(H5T_C_S1), odd = H5Tcopy(H5T_STD_I32LE),
                    pair = H5Tcreate(H5T_COMPOUND, 16), tiny = H5Tcopy(H5T_IEEE_F32LE);
        H5Tset_size(fixed, 5);
        H5Tset_size(variable, H5T_VARIABLE);
        H5Tset_precision(odd, 13);
        H5Tinsert(pair, "a", 0, H5T_IEEE_F64LE);
        H5Tset_fields(tiny, 15, 10, 5, 0, 10);
        H5Tset_precision(tiny, 16);
        H5Tset_size(tiny, 2);
        return std::array<hid_t, 14>{
            H5T_IEEE_F64LE, H5T_IEEE_F64LE,     H5T_IEEE_F32LE, H5T_IEEE_F64BE, H5T_STD_I8LE, H5T_STD_I64BE,
            H5T_STD_U64LE,  H5T_NATIVE_LDOUBLE, fixed,          variable,       odd,          pair,
            tiny,           H5T_STD_B8LE};
    }();
    return types[code < 128 ? 0 : code % types.size()];
}

void add_array(hid_t file, const Piece& piece) {
    if (piece.layout % 16 == 15) {  // not an array
        const Handle group(H5Gcreate2(file, piece.name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                           H5Gclose);
        return;
    }
    if (piece.layout % 16 == 14) {
        H5Lcreate_soft("/nowhere", file, piece.name.c_str(), H5P_DEFAULT, H5P_DEFAULT);
        return;
    }
    const std::vector<hsize_t> sizes(piece.sizes.begin(), piece.sizes.end());
    const int rank = static_cast<int>(sizes.size());
    const Handle space(rank > 0 ? H5Screate_simple(rank, sizes.data(), nullptr)
                                : H5Screate(piece.layout % 2 == 0 ? H5S_SCALAR : H5S_NULL),
                       H5Sclose);
    const Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    if (piece.layout % 16 >= 8 && rank > 0) {
        std::vector<hsize_t> chunk(sizes);  // one to four, about, along each axis that is written
        for (hsize_t& size : chunk) size = std::clamp<hsize_t>(size / (1 + piece.layout % 4), 1, 100);
        H5Pset_chunk(properties.get(), rank, chunk.data());
        if (piece.layout % 16 >= 12) H5Pset_deflate(properties.get(), 1);
    }
    const Handle dataset(H5Dcreate2(file, piece.name.c_str(), type_of(piece.type), space.get(), H5P_DEFAULT,
                                    properties.get(), H5P_DEFAULT),
                         H5Dclose);
    if (dataset.valid() && !piece.values.empty() && piece.layout % 16 != 7)  // otherwise nothing is written
        H5Dwrite(dataset.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, piece.values.data());
}

void add_attribute(hid_t file, const Piece& piece) {
    const hsize_t two = 2;
    const Handle space(piece.layout % 8 == 7 ? H5Screate_simple(1, &two, nullptr) : H5Screate(H5S_SCALAR),
                       H5Sclose);
    const bool text = piece.kind == Piece::Kind::text;
    const Handle type(text ? H5Tcopy(H5T_C_S1) : H5Tcopy(type_of(piece.type)), H5Tclose);
    const bool variable = piece.layout % 2 == 0;
    if (text) H5Tset_size(type.get(), variable ? H5T_VARIABLE : std::max<std::size_t>(piece.text.size(), 1));
    const Handle attribute(
        H5Acreate2(file, piece.name.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    if (!attribute.valid()) return;
    const char* start = piece.text.c_str();
    const std::array<double, 2> numbers = {text ? 0 : piece.values[0], 1};
    const std::array<const char*, 2> starts = {start, start};
    if (!text)
        H5Awrite(attribute.get(), H5T_NATIVE_DOUBLE, numbers.data());
    else if (variable)
        H5Awrite(attribute.get(), type.get(), starts.data());
    else if (piece.layout % 8 != 7)
        H5Awrite(attribute.get(), type.get(), start);
}

std::string make_file(const std::vector<Piece>& pieces) {
    static const hid_t access = [] {
        const hid_t result = H5Pcreate(H5P_FILE_ACCESS);
        H5Pset_fapl_core(result, 1 << 14, false);
        return result;
    }();
    const Handle file(H5Fcreate("memory", H5F_ACC_TRUNC, H5P_DEFAULT, access), H5Fclose);
    for (const Piece& piece : pieces) {
        if (piece.kind == Piece::Kind::array) add_array(file.get(), piece);
        if (piece.kind == Piece::Kind::number || piece.kind == Piece::Kind::text)
            add_attribute(file.get(), piece);
    }
    H5Fflush(file.get(), H5F_SCOPE_GLOBAL);
    std::string image(static_cast<std::size_t>(H5Fget_file_image(file.get(), nullptr, 0)), '\0');
    H5Fget_file_image(file.get(), image.data(), image.size());
    return image;
}

}  // namespace

FUZZ_PIECES(fuzz::array_head, fuzz::array_piece)

FUZZ_TARGET(hdf5) {
    const QuietHdf5 quiet;
    // HDF5 keeps what it frees: otherwise half of the time goes into new pages for the cache of each file.
    [[maybe_unused]] static const herr_t kept = H5set_free_list_limits(-1, -1, -1, -1, -1, -1);
    fuzz::Description description(input);
    const unsigned mode = description.byte(), channel = description.byte();
    const auto pieces = fuzz::pieces_of(description);
    std::string image = make_file(pieces);
    // Not changed: HDF5 1.10 takes any amount of memory if the sizes of its own tables are wrong.
    constexpr bool only_cut = true;
    fuzz::damage(pieces, only_cut, image);
    const std::string file = fuzz::memory_file(image);
    switch (mode % 4) {
        case 0:
            return fuzz::read_as_dataset(file, channel);
        case 1:
            return fuzz::make_model_of(file, true);
        case 2:
            return (void)fuzz::accepts([&] { priors::read_spectrum(file, channel % 2 == 0); });
        default:
            fuzz::accepts([&] { data::read_checkpoint(file); });
    }
}
