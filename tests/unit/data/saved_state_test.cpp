// SPDX-License-Identifier: MIT
#include "bayesaim/data/saved_state.hpp"

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>

#include <gtest/gtest.h>

#include "bayesaim/estimators/amp.hpp"
#include "bayesaim/estimators/gradient_descent.hpp"

#include "support/expect_invalid.hpp"
#include "support/temporary_file.hpp"

namespace bayesaim::estimators {
namespace {

Descent some_descent(std::uint64_t start) {
    Descent descent;
    descent.start = start;
    descent.step = 123;
    descent.weights = linalg::Matrix::Random(5, 3) / 3;
    descent.first_moment = linalg::Matrix::Random(5, 3) * 1e-300;
    descent.second_moment = linalg::Matrix::Random(5, 3) * 1e300;
    descent.record = {{0, 0.1, 1.0 / 3, {}}, {10, 1e-9, 2, 0.7}};
    descent.seconds = 1.5;
    return descent;
}

void expect_same(const Descent& a, const Descent& b) {
    EXPECT_EQ(a.start, b.start);
    EXPECT_EQ(a.step, b.step);
    EXPECT_EQ(a.factors, b.factors);
    EXPECT_EQ(a.weights, b.weights);
    EXPECT_EQ(a.first_moment, b.first_moment);
    EXPECT_EQ(a.second_moment, b.second_moment);
    EXPECT_EQ(a.status, b.status);
    EXPECT_EQ(a.seconds, b.seconds);
    ASSERT_EQ(a.record.size(), b.record.size());
    for (std::size_t i = 0; i < a.record.size(); ++i) {
        EXPECT_EQ(a.record[i].step, b.record[i].step);
        EXPECT_EQ(a.record[i].loss, b.record[i].loss);
        EXPECT_EQ(a.record[i].gradient_norm, b.record[i].gradient_norm);
        EXPECT_EQ(a.record[i].true_error, b.record[i].true_error);
    }
}

data::Checkpoint checkpoint_of(const std::vector<Descent>& descents, const std::string& settings = "s") {
    data::Checkpoint checkpoint{settings};
    save(checkpoint.state, "descents", descents);
    return checkpoint;
}

std::vector<Descent> descents_of(const data::Checkpoint& checkpoint) {
    std::vector<Descent> descents;
    load(checkpoint.state, "descents", descents);
    return descents;
}

TEST(SavedState, GivesBackEveryBitOfDescents) {
    std::vector<Descent> descents = {some_descent(0), some_descent(1)};
    descents[1].status = Termination::diverged;
    descents[1].record.clear();
    descents[1].factors = 2;
    const test::TemporaryFile file("");
    data::write_checkpoint(file.path(), checkpoint_of(descents, "the settings"));
    const data::Checkpoint read = data::read_checkpoint(file.path());
    EXPECT_EQ(read.settings, "the settings");
    const std::vector<Descent> again = descents_of(read);
    ASSERT_EQ(again.size(), 2U);
    expect_same(again[0], descents[0]);
    expect_same(again[1], descents[1]);
}

TEST(SavedState, KeepsNumbersThatAreNotFinite) {
    Descent descent = some_descent(0);
    descent.status = Termination::diverged;
    descent.weights(0, 0) = std::numeric_limits<double>::infinity();
    descent.weights(1, 0) = std::nan("");
    const test::TemporaryFile file("");
    data::write_checkpoint(file.path(), checkpoint_of({descent}));
    const std::vector<Descent> again = descents_of(data::read_checkpoint(file.path()));
    EXPECT_EQ(again.at(0).weights(0, 0), descent.weights(0, 0));
    EXPECT_TRUE(std::isnan(again.at(0).weights(1, 0)));
}

TEST(SavedState, KeepsDescentsWithoutMomentsAndNoDescents) {
    std::vector<Descent> descents = {some_descent(0), some_descent(1)};
    for (Descent& descent : descents) descent.first_moment = descent.second_moment = {};
    const test::TemporaryFile file("");
    data::write_checkpoint(file.path(), checkpoint_of(descents));
    expect_same(descents_of(data::read_checkpoint(file.path()))[1], descents[1]);
    data::write_checkpoint(file.path(), checkpoint_of({}));
    EXPECT_TRUE(descents_of(data::read_checkpoint(file.path())).empty());
}

TEST(SavedState, TellsPartsOfOneNameFromThoseOfALongerOne) {
    data::SavedState state;
    save(state, "error", std::optional<double>());
    save(state, "error_of_layers", 2.0);
    std::optional<double> error = 1.0;
    load(state, "error", error);
    EXPECT_FALSE(error.has_value());
    double other = 0;
    load(state, "error_of_layers", other);
    EXPECT_EQ(other, 2.0);
    test::expect_invalid([&] { load(state, "errors", other); }, "no array 'errors'");
}

TEST(SavedState, RefusesADamagedFile) {
    const test::TemporaryFile file("");
    data::write_checkpoint(file.path(), checkpoint_of({some_descent(0)}));
    std::ifstream in(file.path(), std::ios::binary);
    const std::string whole((std::istreambuf_iterator<char>(in)), {});
    const auto refuse = [&](const std::string& content) {
        const test::TemporaryFile damaged(content);
        test::expect_invalid([&] { data::read_checkpoint(damaged.path()); }, "checkpoint '" + damaged.path());
    };
    refuse("");
    refuse("not HDF5");
    refuse(whole.substr(0, whole.size() / 2));
    // One bit of one number: HDF5 alone would not see it.
    const double first = descents_of(data::read_checkpoint(file.path()))[0].weights(0, 0);
    const std::string_view bytes(reinterpret_cast<const char*>(&first), sizeof first);
    const std::size_t place = whole.find(bytes);
    ASSERT_NE(place, std::string::npos);
    std::string flipped = whole;
    flipped[place] = static_cast<char>(flipped[place] ^ 1);
    refuse(flipped);
}

// A file whose checksum is right, but whose numbers no run of ours wrote. Read as they are, they would be written beyond the
// storage of an Overlap, index a table of names, or ask for any number of items.
TEST(SavedState, RefusesNumbersThatDoNotFitTheirParts) {
    const auto refuse = [](const std::string& name, const linalg::Matrix& array, auto part,
                           const std::string& message) {
        data::SavedState state;
        state.arrays[name] = array;
        test::expect_invalid([&] { load(state, "part", part); }, message);
    };
    using linalg::Matrix;
    refuse("part", Matrix::Zero(20, 20), linalg::Overlap(),
           "checkpoint must be of this computation, got 20 as part");
    refuse("part", Matrix::Constant(1, 1, 5), Termination::stopped, "got 5 as part");
    refuse("part", Matrix::Constant(1, 1, std::nan("")), 0, "got nan as part");
    refuse("part", Matrix::Constant(1, 1, -1), std::uint64_t{0}, "got -1 as part");
    refuse("part", Matrix::Constant(1, 1, 3e9), 0, "got 3000000000 as part");
    refuse("part", Matrix::Constant(1, 1, 0.5), 0, "got 0.5 as part");
    refuse("part.count", Matrix::Constant(1, 1, 1e15), std::vector<Matrix>(), "as part.count");
    refuse("part.count", Matrix::Constant(1, 1, 1002), std::vector<Matrix>(), "as part.count");
    refuse("part", Matrix::Constant(9, 1, -3), std::vector<AmpIteration>(), "got -3 as self_overlap");
    refuse("part", Matrix::Constant(9, 1, 9), std::vector<AmpIteration>(), "got 9 as self_overlap");
}

TEST(SavedState, SaysWhichFileCannotBeReadOrWritten) {
    test::expect_invalid([] { data::read_checkpoint("/nowhere/c.h5"); }, "checkpoint '/nowhere/c.h5'");
    EXPECT_THROW(data::write_checkpoint("/nowhere/c.h5", {"s"}), std::runtime_error);
}

}  // namespace
}  // namespace bayesaim::estimators
