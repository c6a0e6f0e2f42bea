// SPDX-License-Identifier: MIT
#include "bayesaim/data/dataset_file.hpp"

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <gtest/gtest.h>
#include <unistd.h>

#include "bayesaim/channels/deep_attention.hpp"
#include "bayesaim/channels/table.hpp"
#include "bayesaim/model/model.hpp"
#include "bayesaim/priors/wishart.hpp"

#include "support/expect_invalid.hpp"

namespace {

using namespace bayesaim;
using namespace bayesaim::data;
using linalg::Matrix;

/// A directory for one test.
class DatasetFile : public testing::Test {
  protected:
    DatasetFile() {
        std::string pattern = (std::filesystem::temp_directory_path() / "bayesaim_data_XXXXXX").string();
        folder_ = mkdtemp(pattern.data());
    }
    ~DatasetFile() override {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    std::string file(const char* name) const { return (folder_ / name).string(); }
    std::size_t file_count() const {
        return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
    }

    Synthetic make(const std::string& channel, Eigen::Index dim, double alpha) {
        channel_ = channels::make_channel(channel, {.tokens = 2});
        SyntheticOptions options;
        options.dim = dim;
        options.alpha = alpha;
        options.seed = 3;
        options.storage = TokenStorage::regenerate;
        return make_synthetic(*prior_, *channel_, options, pool_);
    }

    static Matrix all_tokens(const TokenSource& source) {
        Matrix scratch;
        return source.block({0, static_cast<std::size_t>(source.samples())}, scratch);
    }

    ThreadPool pool_{1};
    const std::shared_ptr<const priors::Prior> prior_ = std::make_shared<priors::Wishart>(0.5);
    std::shared_ptr<const channels::Channel> channel_;

  private:
    std::filesystem::path folder_;
};

TEST_F(DatasetFile, RoundTripInDoublePrecisionIsExact) {
    for (const char* name : {"linear", "softmax", "hardmax"}) {
        const Synthetic made = make(name, 11, 0.4);
        write_dataset(file("a.h5"), made.data, *channel_, made.weights, {});
        const DatasetContents read = read_dataset(file("a.h5"), *channel_);
        EXPECT_EQ(all_tokens(*read.data.tokens), all_tokens(*made.data.tokens)) << name;
        EXPECT_EQ(read.data.outputs, made.data.outputs) << name;
        EXPECT_EQ(read.weights, made.weights) << name;
    }
    EXPECT_EQ(file_count(), 1U);
}

TEST_F(DatasetFile, SeveralLayersKeepTheirOrder) {
    const model::Model model = model::make_model({.widths = {0.25, 2, 0.25},
                                                  .channel = "deep-softmax",
                                                  .channel_options = {.layers = 3, .residual = 0.5}});
    const channels::Channel& channel = model.channel();
    const Synthetic made = make_synthetic(model.priors(), channel, {.dim = 9, .alpha = 0.5}, pool_);
    write_dataset(file("a.h5"), made.data, channel, made.weights, attributes_of(model::describe(model)));
    const DatasetContents read = read_dataset(file("a.h5"), channel);
    EXPECT_EQ(read.weights, made.weights);
    EXPECT_EQ(read.data.outputs, made.data.outputs);
    EXPECT_EQ(text_attribute(read.attributes, "width"), "0.25,2,0.25");
    EXPECT_EQ(number_attribute(read.attributes, "layers"), 3);
    EXPECT_EQ(number_attribute(read.attributes, "residual"), 0.5);
    test::expect_invalid([&] { read_dataset(file("a.h5"), channels::DeepAttention()); },
                         "dataset /weights must be of shape (2, 9, 9)");

    linalg::Overlap error(3, 3);
    error << 1, 0.25, 0, 0.25, 0.5, -0.125, 0, -0.125, 2;
    write_estimate(file("b.h5"), {made.weights, error, {{"status", "converged"}}});
    const Estimate estimate = read_estimate(file("b.h5"));
    EXPECT_EQ(estimate.weights, made.weights);
    EXPECT_EQ(estimate.error, error);
    EXPECT_EQ(number_attribute(estimate.attributes, "predicted_error"), 3.5);
    error(0, 1) = error(1, 0) = 3;
    write_estimate(file("b.h5"), {made.weights, error, {}});
    test::expect_invalid([&] { read_estimate(file("b.h5")); },
                         "dataset /error must be symmetric with no negative eigenvalue, got -");
}

TEST_F(DatasetFile, SinglePrecisionRoundsTheTokensAndNothingElse) {
    const Synthetic made = make("softmax", 11, 0.4);
    write_dataset(file("a.h5"), made.data, *channel_, {}, {}, Precision::float_precision);
    const DatasetContents read = read_dataset(file("a.h5"), *channel_);
    const Matrix exact = all_tokens(*made.data.tokens), rounded = exact.cast<float>().cast<double>();
    EXPECT_EQ(all_tokens(*read.data.tokens), rounded);
    EXPECT_NE(exact, rounded);
    EXPECT_EQ(read.data.outputs, made.data.outputs);
    EXPECT_TRUE(read.weights.empty());
}

TEST_F(DatasetFile, SeveralBlocksAndARemainderAreOneArray) {
    const Synthetic made = make("hardmax", 30, 20);  // 18000 samples; blocks of 2^19 numbers are 8738
    write_dataset(file("a.h5"), made.data, *channel_, {}, {});
    const DatasetContents read = read_dataset(file("a.h5"), *channel_);
    EXPECT_EQ(read.data.tokens->samples(), 18000);
    EXPECT_EQ(all_tokens(*read.data.tokens), all_tokens(*made.data.tokens));
    EXPECT_EQ(read.data.outputs, made.data.outputs);
}

TEST_F(DatasetFile, HeaderHasTheShapeAndTheAttributes) {
    const Synthetic made = make("softmax", 11, 0.4);
    Attributes attributes = attributes_of(model::describe(model::Model(channel_, {prior_})));
    const std::uint64_t seed = (std::uint64_t{1} << 63) + 3;  // no double holds it
    attributes["seed"] = seed;
    write_dataset(file("a.h5"), made.data, *channel_, {}, attributes);
    const DatasetHeader header = read_dataset_header(file("a.h5"));
    EXPECT_EQ(header.samples, 48);
    EXPECT_EQ(header.tokens, 2);
    EXPECT_EQ(header.dim, 11);
    EXPECT_EQ(text_attribute(header.attributes, "channel"), "softmax");
    EXPECT_EQ(text_attribute(header.attributes, "prior"), "wishart");
    EXPECT_EQ(number_attribute(header.attributes, "width"), 0.5);
    EXPECT_EQ(number_attribute(header.attributes, "beta"), 1);
    EXPECT_EQ(header.attributes.at("seed"), Value(seed));
    EXPECT_TRUE(text_attribute(header.attributes, "bayesaim"));
    EXPECT_TRUE(text_attribute(header.attributes, "commit"));
    EXPECT_FALSE(text_attribute(header.attributes, "absent"));
    test::expect_invalid([&] { number_attribute(header.attributes, "channel"); },
                         "attribute channel must be a number");
}

TEST_F(DatasetFile, ProbabilitiesBecomeLogProbabilities) {
    const Synthetic made = make("softmax", 11, 0.4);
    Dataset probabilities = made.data;
    probabilities.outputs = made.data.outputs.array().exp();
    const auto other = channels::make_channel("hardmax", {.tokens = 2});  // writes /outputs
    write_dataset(file("a.h5"), probabilities, *other, {}, {});
    const DatasetContents read = read_dataset(file("a.h5"), *channel_);
    EXPECT_LT((read.data.outputs - made.data.outputs).cwiseAbs().maxCoeff(), 1e-12);
}

/// Fails after some samples, like a disk that is full.
class FailingTokens final : public TokenSource {
  public:
    FailingTokens() : TokenSource(20000, 2, 30) {}
    Block block(Range samples, Matrix& scratch) const override {
        if (samples.begin > 0) throw std::runtime_error("no more tokens");
        scratch.setZero(dim(), static_cast<Eigen::Index>(samples.size()) * tokens());
        return {scratch.data(), scratch.rows(), scratch.cols()};
    }
};

TEST_F(DatasetFile, FailureInTheMiddleLeavesTheOldFileAndNoPart) {
    const Synthetic made = make("linear", 5, 1);
    write_dataset(file("a.h5"), made.data, *channel_, {}, {});
    const Dataset failing{std::make_shared<FailingTokens>(), channels::Rows::Zero(20000, 4)};
    EXPECT_THROW(write_dataset(file("a.h5"), failing, *channel_, {}, {}), std::runtime_error);
    EXPECT_THROW(write_dataset(file("b.h5"), failing, *channel_, {}, {}), std::runtime_error);
    EXPECT_EQ(file_count(), 1U);
    EXPECT_EQ(read_dataset(file("a.h5"), *channel_).data.outputs, made.data.outputs);
}

TEST_F(DatasetFile, PlaceThatCannotBeWrittenIsAnError) {
    const Estimate estimate{{Matrix::Identity(3, 3)}, linalg::scalar_overlap(1), {}};
    EXPECT_THROW(write_estimate(file("nowhere/a.h5"), estimate), std::runtime_error);
    std::filesystem::create_directory(file("folder"));
    EXPECT_THROW(write_estimate(file("folder"), estimate), std::runtime_error);
    EXPECT_EQ(file_count(), 1U);
}

TEST_F(DatasetFile, AnyTruncationIsNoticed) {
    const Synthetic made = make("softmax", 11, 0.4);
    write_dataset(file("a.h5"), made.data, *channel_, made.weights, {});
    const auto size = std::filesystem::file_size(file("a.h5"));
    for (const auto length :
         {size - 1, size / 2, size / 10, std::uintmax_t{100}, std::uintmax_t{7}, std::uintmax_t{0}}) {
        std::filesystem::copy_file(file("a.h5"), file("b.h5"),
                                   std::filesystem::copy_options::overwrite_existing);
        std::filesystem::resize_file(file("b.h5"), length);
        test::expect_invalid([&] { read_dataset(file("b.h5"), *channel_); }, "b.h5', ");
    }
}

TEST_F(DatasetFile, ChannelWithOtherTokensIsRefused) {
    const Synthetic made = make("softmax", 11, 0.4);
    write_dataset(file("a.h5"), made.data, *channel_, {}, {});
    const auto three = channels::make_channel("softmax", {.tokens = 3});
    test::expect_invalid([&] { read_dataset(file("a.h5"), *three); },
                         "dataset /tokens must be of 3 tokens per sample");
}

}  // namespace
