// SPDX-License-Identifier: MIT
// npz files of numpy. The archive is written here: libzip would not write sizes and checksums that are wrong.
#include <fmt/format.h>
#include <zlib.h>

#include "arrays.hpp"

namespace {

using namespace bayesaim;
using fuzz::Piece;

constexpr std::array<const char*, 18> types = {"<f8", "<f4", "<f2", ">f8",  "|b1", "|i1",
                                               "<i4", ">i8", "<u8", "<u2",  "=f8", "<c16",
                                               "|O",  "<U3", "|S4", "<f16", "",    "<f99999999999"};

void append(std::string& to, std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) to.push_back(static_cast<char>(value >> (8 * i)));
}

template <class Number>
void append_numbers(std::string& to, const std::vector<double>& values) {
    for (const double value : values) {
        Number number{};
        if constexpr (std::is_floating_point_v<Number>)
            number = static_cast<Number>(value);
        else
            number = value >= 0 && value < 100 ? static_cast<Number>(value) : Number{1};
        to.append(reinterpret_cast<const char*>(&number), sizeof number);
    }
}

std::string entry_of(const Piece& piece) {
    const bool text = piece.kind == Piece::Kind::text;
    const std::string type = text
                                 ? fmt::format("{}{}", piece.layout % 2 == 0 ? "<U" : "|S", piece.text.size())
                                 : types[piece.type < 128 ? 0 : piece.type % types.size()];
    std::string shape;
    for (const std::uint64_t size : piece.sizes) shape += fmt::format("{}, ", size);
    std::string header = fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': ({}), }}\n", type,
                                     piece.layout % 4 == 3 ? "True" : "False", shape);
    if (piece.layout % 16 == 9) header.resize(header.size() / 2);
    const bool second = piece.layout % 16 == 10;
    std::string data = "\x93NUMPY";
    append(data, second ? 2 : 1, 2);
    append(data, piece.layout % 16 == 11 ? 65535 : header.size(), second ? 4 : 2);
    data += header;
    if (text) {
        for (const char c : piece.text) append(data, static_cast<unsigned char>(c), type[1] == 'U' ? 4 : 1);
    } else if (type.ends_with("f4")) {
        append_numbers<float>(data, piece.values);
    } else if (type.ends_with('8') && type[1] != 'f') {
        append_numbers<std::uint64_t>(data, piece.values);
    } else if (type.ends_with('1')) {
        append_numbers<std::uint8_t>(data, piece.values);
    } else if (type.ends_with('2')) {
        append_numbers<std::uint16_t>(data, piece.values);
    } else {
        append_numbers<double>(data, piece.values);
    }
    return data;
}

std::string deflated(const std::string& data) {
    z_stream stream{};
    std::string result(data.size() + 64, '\0');
    deflateInit2(&stream, 1, Z_DEFLATED, -9, 1, Z_DEFAULT_STRATEGY);  // the least memory
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
    stream.avail_in = static_cast<uInt>(data.size());
    stream.next_out = reinterpret_cast<Bytef*>(result.data());
    stream.avail_out = static_cast<uInt>(result.size());
    deflate(&stream, Z_FINISH);
    result.resize(stream.total_out);
    deflateEnd(&stream);
    return result;
}

std::string make_file(const std::vector<Piece>& pieces) {
    std::string file, directory;
    unsigned count = 0;
    for (const Piece& piece : pieces) {
        if (piece.kind == Piece::Kind::damage) continue;
        const std::string data = entry_of(piece), name = piece.name + ".npy";
        const bool compressed = piece.layout % 8 == 4;
        const std::string stored = compressed ? deflated(data) : data;
        std::uint64_t said = data.size();
        if (piece.layout % 16 == 13) said = 0x7fffffff;
        std::string common;  // of the entry and of the directory
        append(common, 0, 2);
        append(common, compressed ? 8 : 0, 2);
        append(common, 0, 4);
        append(common,
               crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size())) ^
                   (piece.layout % 16 == 14 ? 1 : 0),
               4);
        append(common, compressed ? stored.size() : said, 4);
        append(common, said, 4);
        append(common, name.size(), 2);
        append(common, 0, 2);
        directory += "PK\1\2";
        append(directory, 20, 2);
        append(directory, 20, 2);
        directory += common;
        append(directory, 0, 6);
        append(directory, 0, 4);
        append(directory, file.size(), 4);
        directory += name;
        file += "PK\3\4";
        append(file, 20, 2);
        file += common + name + stored;
        ++count;
    }
    std::string end = "PK\5\6";
    append(end, 0, 4);
    append(end, count, 2);
    append(end, count, 2);
    append(end, directory.size(), 4);
    append(end, file.size(), 4);
    append(end, 0, 2);
    return file + directory + end;
}

}  // namespace

FUZZ_PIECES(fuzz::array_head, fuzz::array_piece)

FUZZ_TARGET(npz) {
    fuzz::Description description(input);
    const unsigned mode = description.byte(), channel = description.byte();
    const auto pieces = fuzz::pieces_of(description);
    std::string image = make_file(pieces);
    fuzz::damage(pieces, false, image);
    const std::string file = fuzz::memory_file(image);
    if (mode % 4 == 0) return fuzz::make_model_of(file, false);
    fuzz::read_as_dataset(file, channel);
}
