// SPDX-License-Identifier: MIT
#include "arrays.hpp"

#include <cmath>

#include "bayesaim/channels/table.hpp"
#include "bayesaim/data/dataset_file.hpp"
#include "bayesaim/model/model.hpp"

namespace bayesaim::fuzz {
namespace {

constexpr std::array<const char*, 16> array_names = {
    "tokens", "outputs", "weights", "log_outputs", "key_tokens", "error", "query_term", "key_term",
    "law",    "a.count", "a.0",     "amp",         "settings",   "x",     "tokens",     "weights"};
constexpr std::array<const char*, 24> attribute_names = {
    "prior",           "channel",     "attention", "width",    "tokens",        "layers",        "heads",
    "aspect",          "scale",       "beta",      "exponent", "cutoff",        "spectrum",      "key_tokens",
    "residual",        "label_noise", "settings",  "checksum", "diagonal_term", "constant_term", "bayesaim",
    "predicted_error", "commit",      "x"};
constexpr std::array<const char*, 24> texts = {
    "wishart", "bilinear", "ginibre", "wigner", "power-law",    "multi-head", "spectrum", "tied",
    "cross",   "self",     "masked",  "causal", "linear",       "softmax",    "hardmax",  "deep-softmax",
    "0.5,0.5", "0.4,0.8",  "learn",   "",       "/nowhere/law", "nan",        "a\nb",     "\xff\xfe"};

/// Small ones as they are, then some that no memory holds.
std::uint64_t size_of(unsigned code) {
    constexpr std::array<std::uint64_t, 8> large = {1000,
                                                    65'536,
                                                    1u << 20,
                                                    std::uint64_t{1} << 31,
                                                    std::uint64_t{1} << 33,
                                                    std::uint64_t{1} << 45,
                                                    std::uint64_t{1} << 62,
                                                    ~std::uint64_t{0}};
    return code < 240 ? code % 12 : large[code % 8];
}

double value_at(unsigned how, std::size_t i, std::size_t row) {
    const auto x = static_cast<double>((i * 7919 + how) % 101);
    switch (how % 8) {
        case 0:
            return 0.5;
        case 1:
            return i % (row + 1) == 0 ? 1 : 0;  // the identity
        case 2:
            return (x - 50) / 50;
        case 3:
            return 1 / static_cast<double>(std::max<std::size_t>(row, 1));  // probabilities
        case 4:
            return i == how / 8 ? std::numeric_limits<double>::quiet_NaN() : 0.25;
        case 5:
            return i == how / 8 ? -std::numeric_limits<double>::infinity() : -0.5;
        case 6:
            return (how & 8) != 0 ? 1e300 : -1e-300;
        default:
            return static_cast<double>(how / 8) - 4;
    }
}

const channels::Channel& channel_of(unsigned index) {
    using channels::Attention;
    static const auto table = [] {
        std::vector<std::unique_ptr<channels::Channel>> list;
        list.push_back(channels::make_channel("linear", {.tokens = 2}));
        list.push_back(channels::make_channel("softmax", {.tokens = 3}));
        list.push_back(channels::make_channel("hardmax", {.tokens = 2}));
        list.push_back(
            channels::make_channel("softmax", {.tokens = 2, .attention = Attention::cross, .key_tokens = 3}));
        list.push_back(channels::make_channel("softmax", {.tokens = 2, .attention = Attention::causal}));
        list.push_back(channels::make_channel("deep-softmax", {.tokens = 2, .layers = 2}));
        return list;
    }();
    return *table[index % table.size()];
}

}  // namespace

std::vector<Piece> pieces_of(Description& description) {
    constexpr std::size_t most_pieces = 12, most_values = 4096;
    std::vector<Piece> pieces;
    while (!description.ended() && pieces.size() < most_pieces) {
        Description bytes(description.bytes(array_piece));
        Piece piece;
        const unsigned kind = bytes.byte(), name = bytes.byte();
        piece.type = bytes.byte();
        const unsigned form = bytes.byte();
        piece.layout = form / 8;
        const std::size_t rank = form % 8 == 7 ? 3 : form % 8;
        if (kind % 16 < 8) {
            piece.name = array_names[name % array_names.size()];
            double count = 1;
            const std::array<unsigned, 3> codes = {bytes.byte(), bytes.byte(), bytes.byte()};
            for (std::size_t i = 0; i < rank; ++i) {
                piece.sizes.push_back(size_of(i < 3 ? codes[i] : 1));
                count *= static_cast<double>(piece.sizes.back());
            }
            const unsigned how = bytes.byte();
            if (count <= most_values) piece.values.resize(static_cast<std::size_t>(count));
            const std::size_t row = rank > 0 ? piece.sizes.back() : 1;
            for (std::size_t i = 0; i < piece.values.size(); ++i) piece.values[i] = value_at(how, i, row);
        } else if (kind % 16 < 11) {
            piece.kind = Piece::Kind::number;
            piece.name = attribute_names[name % attribute_names.size()];
            piece.values = {bytes.number()};
        } else if (kind % 16 < 15) {
            piece.kind = Piece::Kind::text;
            piece.name = attribute_names[name % attribute_names.size()];
            piece.text = bytes.one_of(texts);
        } else {
            piece.kind = Piece::Kind::damage;
            piece.place = bytes.two_bytes();
            piece.mask = static_cast<std::uint8_t>(bytes.byte());
        }
        pieces.push_back(std::move(piece));
    }
    return pieces;
}

void damage(const std::vector<Piece>& pieces, bool only_cut, std::string& file) {
    for (const Piece& piece : pieces) {
        if (piece.kind != Piece::Kind::damage || file.empty()) continue;
        const std::size_t place = piece.place % file.size();
        if (piece.mask == 0 || only_cut) {
            file.resize(place);
        } else {
            file[place] = static_cast<char>(file[place] ^ piece.mask);
        }
    }
}

void read_as_dataset(const std::string& file, unsigned channel) {
    accepts([&] {
        if (channel >= 192) return (void)data::read_dataset_header(file);
        data::read_dataset(file, channel_of(channel),
                           channel >= 128 ? data::Outputs::optional : data::Outputs::required);
    });
}

void make_model_of(const std::string& file, bool estimate) {
    accepts([&] {
        const Attributes attributes =
            estimate ? data::read_estimate(file).attributes : data::read_dataset_header(file).attributes;
        model::ModelOptions options;
        model::read_options(data::record_of(attributes), options);
        model::make_model(options);
    });
}

}  // namespace bayesaim::fuzz
