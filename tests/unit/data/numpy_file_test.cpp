// SPDX-License-Identifier: MIT
#include "bayesaim/data/numpy_file.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zip.h>

#include "bayesaim/channels/table.hpp"
#include "bayesaim/core/files.hpp"
#include "bayesaim/data/dataset_file.hpp"

#include "support/expect_invalid.hpp"

namespace {

using namespace bayesaim;
using namespace bayesaim::data;
using linalg::Matrix;
using Entries = std::map<std::string, std::string>;

template <class Scalar>
std::string bytes_of(const std::vector<Scalar>& values, bool swapped = false) {
    std::string result;
    for (const Scalar& value : values) {
        std::string one(reinterpret_cast<const char*>(&value), sizeof(Scalar));
        if (swapped) std::reverse(one.begin(), one.end());
        result += one;
    }
    return result;
}

/// An array as numpy.save writes it; version 1 unless told otherwise.
std::string npy(const std::string& type, const std::string& shape, const std::string& bytes,
                bool fortran = false, int version = 1) {
    std::string header =
        fmt::format("{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}",
                    type[0] == '[' ? type : "'" + type + "'", fortran ? "True" : "False", shape);
    header.resize(118 - 1, ' ');
    header += '\n';
    std::string start = "\x93NUMPY";
    start += static_cast<char>(version);
    start += '\0';
    for (int i = 0; i < (version == 1 ? 2 : 4); ++i) start += static_cast<char>(i == 0 ? header.size() : 0);
    return start + header + bytes;
}

class NumpyFile : public testing::Test {
  protected:
    NumpyFile() {
        std::string pattern = (std::filesystem::temp_directory_path() / "bayesaim_npz_XXXXXX").string();
        folder_ = mkdtemp(pattern.data());
        for (std::size_t i = 0; i < 24; ++i) tokens_.push_back(0.5 * static_cast<double>(i) - 3);
        for (int i = 0; i < 3; ++i) outputs_.insert(outputs_.end(), {1.0, 0.0, 0.0, 1.0});
        entries_ = {{"tokens", npy("<f8", "(3, 2, 4)", bytes_of(tokens_))},
                    {"outputs", npy("<f8", "(3, 2, 2)", bytes_of(outputs_))}};
    }
    ~NumpyFile() override {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }

    /// Writes the entries as {name}.npy of a zip archive, and returns its name.
    std::string write(const Entries& entries, bool compressed = false) const {
        const std::string file = (folder_ / "data.npz").string();
        std::filesystem::remove(file);
        int error = 0;
        zip_t* archive = zip_open(file.c_str(), ZIP_CREATE, &error);
        for (const auto& [name, bytes] : entries) {
            zip_source_t* source = zip_source_buffer(archive, bytes.data(), bytes.size(), 0);
            const zip_int64_t index = zip_file_add(archive, (name + ".npy").c_str(), source, 0);
            zip_set_file_compression(archive, static_cast<zip_uint64_t>(index),
                                     compressed ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
        }
        EXPECT_EQ(zip_close(archive), 0);
        return file;
    }
    std::string write_with(const std::string& name, const std::string& bytes) const {
        Entries changed = entries_;
        changed[name] = bytes;
        return write(changed);
    }

    DatasetContents read(const std::string& file) const { return read_dataset(file, *hardmax_); }
    void expect_refused(const std::string& file, const std::string& message) const {
        test::expect_invalid([&] { read(file); }, message);
    }

    void expect_the_tokens(const TokenSource& source) const {
        ASSERT_EQ(source.samples(), 3);
        Matrix scratch;
        const auto all = source.block({0, 3}, scratch);
        EXPECT_EQ(all, Eigen::Map<const Matrix>(tokens_.data(), 4, 6));
    }

    std::vector<double> tokens_, outputs_;
    Entries entries_;
    const std::shared_ptr<const channels::Channel> hardmax_ =
        channels::make_channel("hardmax", {.tokens = 2});

  private:
    std::filesystem::path folder_;
};

TEST_F(NumpyFile, IsReadAsADataset) {
    Entries entries = entries_;
    Matrix weights = Matrix::Random(4, 4);
    entries["weights"] =
        npy("<f8", "(4, 4)", bytes_of(std::vector<double>(weights.data(), weights.data() + 16)));
    for (const bool compressed : {false, true}) {
        const std::string file = write(entries, compressed);
        const DatasetHeader header = read_dataset_header(file);
        EXPECT_EQ(header.samples, 3);
        EXPECT_EQ(header.tokens, 2);
        EXPECT_EQ(header.dim, 4);
        EXPECT_EQ(header.key_tokens, 0);
        const DatasetContents found = read(file);
        expect_the_tokens(*found.data.tokens);
        EXPECT_EQ(found.data.tokens->precision(), Precision::double_precision);
        EXPECT_EQ(found.data.outputs, (Eigen::Map<const channels::Rows>(outputs_.data(), 3, 4)));
        ASSERT_EQ(found.weights.size(), 1U);
        EXPECT_EQ(found.weights[0], weights.transpose());  // rows follow each other in the file
    }
    entries["weights"] = npy("<f8", "(1, 4, 4)", entries["weights"].substr(128));
    EXPECT_EQ(read(write(entries)).weights[0], weights.transpose());
}

TEST_F(NumpyFile, IsKnownByItsContentNotItsName) {
    const std::string file = write(entries_), other = file + ".h5";
    std::filesystem::rename(file, other);
    expect_the_tokens(*read(other).data.tokens);
}

TEST_F(NumpyFile, EveryTypeOfNumbersIsTaken) {
    const auto expect_tokens = [&](const std::string& entry, Precision precision) {
        const DatasetContents found = read(write_with("tokens", entry));
        expect_the_tokens(*found.data.tokens);
        EXPECT_EQ(found.data.tokens->precision(), precision);
    };
    const std::vector<float> floats(tokens_.begin(), tokens_.end());
    expect_tokens(npy("<f4", "(3, 2, 4)", bytes_of(floats)), Precision::float_precision);
    expect_tokens(npy(">f4", "(3, 2, 4)", bytes_of(floats, true)), Precision::float_precision);
    expect_tokens(npy(">f8", "(3, 2, 4)", bytes_of(tokens_, true)), Precision::double_precision);
    std::vector<std::uint16_t> halves;
    for (const float x : floats) halves.push_back(Eigen::half(x).x);
    expect_tokens(npy("<f2", "(3, 2, 4)", bytes_of(halves)), Precision::float_precision);
    for (double& token : tokens_) token = 2 * token + 1;  // whole numbers, some negative
    const auto whole = [&]<class Integer>(Integer) {
        return std::vector<Integer>(tokens_.begin(), tokens_.end());
    };
    expect_tokens(npy("|i1", "(3, 2, 4)", bytes_of(whole(std::int8_t()))), Precision::double_precision);
    expect_tokens(npy(">i2", "(3, 2, 4)", bytes_of(whole(std::int16_t()), true)),
                  Precision::double_precision);
    expect_tokens(npy("<i4", "(3, 2, 4)", bytes_of(whole(std::int32_t()))), Precision::double_precision);
    expect_tokens(npy("<i8", "(3, 2, 4)", bytes_of(whole(std::int64_t()))), Precision::double_precision);
    const auto expect_outputs = [&](const std::string& entry) {
        EXPECT_EQ(read(write_with("outputs", entry)).data.outputs,
                  (Eigen::Map<const channels::Rows>(outputs_.data(), 3, 4)));
    };
    expect_outputs(
        npy("|b1", "(3, 2, 2)", bytes_of(std::vector<std::uint8_t>(outputs_.begin(), outputs_.end()))));
    expect_outputs(
        npy("<u4", "(3, 2, 2)", bytes_of(std::vector<std::uint32_t>(outputs_.begin(), outputs_.end()))));
    expect_outputs(
        npy("<u8", "(3L, 2L, 2L)", bytes_of(std::vector<std::uint64_t>(outputs_.begin(), outputs_.end()))));
}

TEST_F(NumpyFile, FortranOrderIsTurned) {
    std::vector<double> turned;
    for (std::size_t k = 0; k < 4; ++k)
        for (std::size_t j = 0; j < 2; ++j)
            for (std::size_t i = 0; i < 3; ++i) turned.push_back(tokens_[(i * 2 + j) * 4 + k]);
    expect_the_tokens(
        *read(write_with("tokens", npy("<f8", "(3, 2, 4)", bytes_of(turned), true))).data.tokens);
    const Matrix weights = Matrix::Random(4, 4);
    const std::string bytes = bytes_of(std::vector<double>(weights.data(), weights.data() + 16));
    EXPECT_EQ(read(write_with("weights", npy("<f8", "(4, 4)", bytes, true))).weights[0], weights);
    turned[7] = std::numeric_limits<double>::infinity();  // sample 1
    expect_refused(write_with("tokens", npy("<f8", "(3, 2, 4)", bytes_of(turned), true)),
                   "array tokens, sample 1, must be a finite number, got inf");
}

TEST_F(NumpyFile, NewerHeadersAreRead) {
    for (const int version : {2, 3})
        expect_the_tokens(
            *read(write_with("tokens", npy("<f8", "(3, 2, 4)", bytes_of(tokens_), false, version)))
                 .data.tokens);
}

/// More numbers than one block of 2^19, and blocks that end within a sample.
TEST_F(NumpyFile, SeveralBlocksAreOneArray) {
    const Eigen::Index n = 9001, d = 61;
    const Matrix tokens = Matrix::Random(d, 2 * n);
    channels::Rows outputs = channels::Rows::Zero(n, 4);
    outputs.col(0).setOnes();
    outputs.col(3).setOnes();
    Entries entries;
    entries["tokens"] = npy("<f8", "(9001, 2, 61)",
                            bytes_of(std::vector<double>(tokens.data(), tokens.data() + tokens.size())));
    entries["outputs"] = npy("<f8", "(9001, 2, 2)",
                             bytes_of(std::vector<double>(outputs.data(), outputs.data() + outputs.size())));
    const DatasetContents found = read(write(entries, true));
    Matrix scratch;
    EXPECT_EQ(found.data.tokens->block({0, static_cast<std::size_t>(n)}, scratch), tokens);
    EXPECT_EQ(found.data.outputs, outputs);
}

TEST_F(NumpyFile, ProbabilitiesOfSoftmaxBecomeLogarithms) {
    const auto softmax = channels::make_channel("softmax", {.tokens = 2});
    std::vector<double> y;
    for (int i = 0; i < 6; ++i) y.insert(y.end(), {0.25, 0.75});
    const DatasetContents found =
        read_dataset(write_with("outputs", npy("<f8", "(3, 2, 2)", bytes_of(y))), *softmax);
    EXPECT_EQ(found.data.outputs(2, 1), std::log(0.75));
    for (double& value : y) value = std::log(value);
    const std::string file = write_with("log_outputs", npy("<f8", "(3, 2, 2)", bytes_of(y)));
    EXPECT_EQ(read_dataset(file, *softmax).data.outputs, found.data.outputs);
}

TEST_F(NumpyFile, KeyTokensOfCrossAttentionAreRead) {
    const auto cross = channels::make_channel(
        "linear", {.tokens = 2, .attention = channels::Attention::cross, .key_tokens = 3});
    Entries entries = entries_;
    entries["key_tokens"] = npy("<f8", "(3, 3, 5)", bytes_of(std::vector<double>(45, 1.5)));
    entries["outputs"] = npy("<f8", "(3, 2, 3)", bytes_of(std::vector<double>(18, 0.5)));
    const std::string file = write(entries);
    EXPECT_EQ(read_dataset_header(file).key_tokens, 3);
    EXPECT_EQ(read_dataset_header(file).key_dim, 5);
    const DatasetContents found = read_dataset(file, *cross);
    ASSERT_TRUE(found.data.key_tokens);
    EXPECT_EQ(found.data.key_tokens->tokens(), 3);
    EXPECT_EQ(found.data.key_tokens->dim(), 5);
}

TEST_F(NumpyFile, ArraysWithoutDimensionsOrOfOneNumberAreAttributes) {
    Entries entries = entries_;
    entries["width"] = npy("<f8", "(1,)", bytes_of(std::vector<double>{0.25}));
    entries["beta"] = npy(">f4", "()", bytes_of(std::vector<float>{1.5F}, true));
    const std::uint64_t seed = (std::uint64_t{1} << 63) + 3;  // no double holds it
    entries["seed"] = npy("<u8", "()", bytes_of(std::vector<std::uint64_t>{seed}));
    entries["offset"] = npy("<i4", "()", bytes_of(std::vector<std::int32_t>{-7}));
    entries["channel"] =
        npy("<U8", "()", bytes_of(std::vector<std::uint32_t>{'h', 0xE9, 0x2211, 0x1F600, '\n', 0, 0, 0}));
    entries["prior"] = npy("|S9", "()", std::string("wishart\0\0", 9));
    entries["nothing"] = npy("|O", "()", "pickled");
    entries["list"] = npy("<f8", "(2,)", bytes_of(std::vector<double>{1, 2}));
    for (const bool compressed : {false, true}) {
        const Attributes found = read_dataset_header(write(entries, compressed)).attributes;
        EXPECT_EQ(found.size(), 6U);
        EXPECT_EQ(number_attribute(found, "width"), 0.25);
        EXPECT_EQ(number_attribute(found, "beta"), 1.5);
        EXPECT_EQ(found.at("seed"), Value(seed));
        EXPECT_EQ(number_attribute(found, "offset"), -7);
        EXPECT_EQ(text_attribute(found, "channel"), "h\xC3\xA9\xE2\x88\x91\xF0\x9F\x98\x80?");
        EXPECT_EQ(text_attribute(found, "prior"), "wishart");
    }
    EXPECT_EQ(read(write(entries)).attributes.size(), 6U);
}

TEST_F(NumpyFile, MissingArraysAreNamed) {
    expect_refused(write({{"outputs", entries_["outputs"]}}),
                   "data.npz': array tokens must be in the file, got none");
    expect_refused(write({{"tokens", entries_["tokens"]}}),
                   "data.npz': array outputs must be in the file, got none");
    EXPECT_EQ(read_dataset(write({{"tokens", entries_["tokens"]}}), *hardmax_, Outputs::optional)
                  .data.outputs.size(),
              0);
}

TEST_F(NumpyFile, WrongShapesAreNamed) {
    expect_refused(write_with("tokens", npy("<f8", "(6, 4)", bytes_of(tokens_))),
                   "array tokens must be an array (samples, tokens, dim), got 2 dimensions");
    expect_refused(write_with("tokens", npy("<f8", "()", bytes_of(std::vector<double>{1}))),
                   "got 0 dimensions");
    expect_refused(write_with("tokens", npy("<f8", "(0, 2, 4)", "")),
                   "array tokens must be a non-empty array (samples, tokens, dim), got (0, 2, 4)");
    expect_refused(write_with("outputs", npy("<f8", "(2, 2, 3)", bytes_of(outputs_))),
                   "array outputs must be of shape (3, 2, 2), as tokens is (3, 2, 4), got (2, 2, 3)");
    expect_refused(write_with("weights", npy("<f8", "(4, 6)", bytes_of(tokens_))),
                   "array weights must be of shape (1, 4, 4), as tokens is (3, 2, 4), got (1, 4, 6)");
    expect_refused(write_with("tokens", npy("<f8", "(2, 3, 4)", bytes_of(tokens_))),
                   "array tokens must be of 2 tokens per sample");
}

TEST_F(NumpyFile, TypesThatAreNotRealNumbersAreNamed) {
    expect_refused(
        write_with("tokens", npy("|O", "(3, 2, 4)", "pickled")),
        "array tokens must be an array of real numbers of at most 8 bytes, got type '|O', objects");
    expect_refused(write_with("tokens", npy("<c16", "(3, 2, 2)", bytes_of(tokens_))), "got type '<c16'");
    expect_refused(write_with("tokens", npy("<f16", "(3, 2, 2)", bytes_of(tokens_))), "got type '<f16'");
    expect_refused(write_with("tokens", npy("<U2", "(3, 2, 4)", bytes_of(tokens_))), "got type '<U2'");
    expect_refused(write_with("tokens", npy("[('a', '<f8')]", "(3, 2, 4)", bytes_of(tokens_))),
                   "got type '[('a', '<f8')]'");
}

TEST_F(NumpyFile, ValuesThatAreNotFiniteAreNamed) {
    tokens_[17] = std::nan("");
    expect_refused(write_with("tokens", npy("<f8", "(3, 2, 4)", bytes_of(tokens_))),
                   "array tokens, sample 2, must be a finite number, got nan");
    tokens_[17] = -1e200;  // its square is not finite
    expect_refused(write_with("tokens", npy("<f8", "(3, 2, 4)", bytes_of(tokens_))),
                   "array tokens, sample 2, must be between -1e+70 and 1e+70, got -1e+200");
    tokens_[17] = 0;
    outputs_[5] = 1;
    expect_refused(write_with("outputs", npy("<f8", "(3, 2, 2)", bytes_of(outputs_))),
                   "array outputs: hardmax output of sample 1, row 0 must be one 1 and zeros");
}

TEST_F(NumpyFile, DamagedHeadersAreNamed) {
    const std::string good = entries_["tokens"];
    for (const std::string& bad :
         {std::string("hello"), std::string(), good.substr(0, 60), good.substr(1),
          npy("<f8", "(3, two, 4)", bytes_of(tokens_)), npy("<f8", "(3, 2, 4", bytes_of(tokens_)),
          npy("<f8", "(3, -2, 4)", bytes_of(tokens_)), npy("<f8", "(3, 2, 4), 'extra': 1", bytes_of(tokens_)),
          npy("<f8", "(3, 2, 4)", bytes_of(tokens_), false, 9)})
        expect_refused(write_with("tokens", bad),
                       "array tokens must be a readable array of numpy, got a damaged header");
    expect_refused(write_with("tokens", good.substr(0, good.size() - 8)),
                   "array tokens must be of 320 bytes, as its header says, got 312");
    expect_refused(write_with("tokens", good + "more"), "array tokens must be of 320 bytes");
    expect_refused(write_with("tokens", npy("<f8", "(4294967296, 4294967296, 4294967296)", "")),
                   "array tokens must be of ");
}

TEST_F(NumpyFile, AnyTruncationIsNoticed) {
    for (const bool compressed : {false, true}) {
        const std::string file = write(entries_, compressed), all = read_whole("file", file);
        for (std::size_t length = 0; length < all.size(); length += length < 8 ? 1 : 37) {
            std::ofstream(file, std::ios::binary | std::ios::trunc) << all.substr(0, length);
            test::expect_invalid([&] { read(file); },
                                 length < 2 ? "dataset must be an HDF5 file or an npz file of numpy, got '"
                                            : "dataset must be a complete npz file, got '");
        }
    }
}

/// A byte that is changed is noticed, or does not matter; nothing but InvalidArgument is thrown.
TEST_F(NumpyFile, DamagedBytesOfAnArrayAreNoticed) {
    for (const bool compressed : {false, true}) {
        const std::string file = write(entries_, compressed), all = read_whole("file", file);
        int refused = 0;
        for (std::size_t i = 0; i < all.size(); i += 3) {
            std::string bad = all;
            bad[i] = static_cast<char>(bad[i] ^ 0x11);
            std::ofstream(file, std::ios::binary | std::ios::trunc) << bad;
            try {
                expect_the_tokens(*read(file).data.tokens);
            } catch (const InvalidArgument& error) {
                ++refused;
                EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
            }
        }
        EXPECT_GT(refused, 100);
    }
}

TEST_F(NumpyFile, OneArrayAloneIsNoDataset) {
    const std::string file = write(entries_);
    std::ofstream(file, std::ios::binary | std::ios::trunc) << entries_["tokens"];
    expect_refused(file, "data.npz', one array alone (numpy.savez writes several)");
    std::filesystem::remove(file);
    expect_refused(file, "cannot read dataset '");
}

// Header and directory agree on 1.6 GB that the file does not have.
TEST_F(NumpyFile, SizesBeyondTheFileAreRefusedBeforeTheMemoryIsTaken) {
    const std::string file = write_with("tokens", npy("<f8", "(1000, 2, 100000)", bytes_of(tokens_)));
    std::string bytes = read_whole("file", file);
    const std::uint32_t said = 1'600'000'000 + 128;
    for (std::size_t at = bytes.find("PK\1\2"); at != std::string::npos; at = bytes.find("PK\1\2", at + 1)) {
        if (bytes.compare(at + 46, 10, "tokens.npy") != 0) continue;
        std::memcpy(bytes.data() + at + 20, &said, sizeof said);  // compressed size
        std::memcpy(bytes.data() + at + 24, &said, sizeof said);
    }
    std::ofstream(file, std::ios::binary) << bytes;
    expect_refused(file, "array tokens must be stored as a whole, got (1000, 2, 100000) in");
}

}  // namespace
