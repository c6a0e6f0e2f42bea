// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/descent_checkpoint.hpp"

#include <cmath>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

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

TEST(DescentCheckpoint, GivesBackEveryBit) {
    DescentCheckpoint checkpoint{"the settings", "", {some_descent(0), some_descent(1)}};
    checkpoint.descents[1].status = Termination::diverged;
    checkpoint.descents[1].record.clear();
    checkpoint.descents[1].factors = 2;
    const test::TemporaryFile file("");
    write_descent_checkpoint(file.path(), checkpoint);
    const DescentCheckpoint read = read_descent_checkpoint(file.path());
    EXPECT_EQ(read.settings, "the settings");
    EXPECT_EQ(read.finished, "");
    ASSERT_EQ(read.descents.size(), 2U);
    expect_same(read.descents[0], checkpoint.descents[0]);
    expect_same(read.descents[1], checkpoint.descents[1]);
}

TEST(DescentCheckpoint, KeepsDescentsWithoutMomentsAndNoDescents) {
    DescentCheckpoint checkpoint{"s", "f", {some_descent(0), some_descent(1)}};
    for (Descent& descent : checkpoint.descents) descent.first_moment = descent.second_moment = {};
    const test::TemporaryFile file("");
    write_descent_checkpoint(file.path(), checkpoint);
    expect_same(read_descent_checkpoint(file.path()).descents[1], checkpoint.descents[1]);
    write_descent_checkpoint(file.path(), {"s", "f"});
    EXPECT_TRUE(read_descent_checkpoint(file.path()).descents.empty());
}

TEST(DescentCheckpoint, RefusesADamagedFile) {
    const test::TemporaryFile file("");
    write_descent_checkpoint(file.path(), {"s", "f", {some_descent(0)}});
    std::ifstream in(file.path(), std::ios::binary);
    const std::string whole((std::istreambuf_iterator<char>(in)), {});
    const auto refuse = [&](const std::string& content) {
        const test::TemporaryFile damaged(content);
        test::expect_invalid([&] { read_descent_checkpoint(damaged.path()); },
                             "checkpoint '" + damaged.path());
    };
    refuse("");
    refuse("not HDF5");
    refuse(whole.substr(0, whole.size() / 2));
    // One bit of one number: HDF5 alone would not see it.
    const double first = read_descent_checkpoint(file.path()).descents[0].weights(0, 0);
    const std::string_view bytes(reinterpret_cast<const char*>(&first), sizeof first);
    const std::size_t place = whole.find(bytes);
    ASSERT_NE(place, std::string::npos);
    std::string flipped = whole;
    flipped[place] = static_cast<char>(flipped[place] ^ 1);
    refuse(flipped);
}

TEST(DescentCheckpoint, SaysWhichFileCannotBeReadOrWritten) {
    test::expect_invalid([] { read_descent_checkpoint("/nowhere/c.h5"); }, "checkpoint '/nowhere/c.h5'");
    EXPECT_THROW(write_descent_checkpoint("/nowhere/c.h5", {"s", "f"}), std::runtime_error);
}

}  // namespace
}  // namespace bayesaim::estimators
