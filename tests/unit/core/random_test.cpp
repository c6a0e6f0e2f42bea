// SPDX-License-Identifier: MIT
#include "bayesaim/core/random.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "support/generators.hpp"
#include "support/tolerance.hpp"

namespace bayesaim {
namespace {

constexpr std::uint64_t top = ~std::uint64_t{0};

/// The mean of (value of a sample point) over n standard normals of one stream.
template <class Function>
test::Estimate normal_average(std::size_t n, const RandomStream& stream, Function value) {
    std::vector<double> sample(n);
    stream.fill_normal(sample);
    for (double& x : sample) x = value(x);
    return test::estimate(sample);
}

// The words were made with numpy 1.24, whose Philox increments its counter before the first block:
//   n = (block + (index << 64) - 1) % (1 << 256)
//   counter = np.array([(n >> (64 * i)) & (2**64 - 1) for i in range(4)], dtype=np.uint64)
//   np.random.Philox(key=np.array([seed, purpose], dtype=np.uint64), counter=counter).random_raw(4)
TEST(RandomStream, WordsAreNumpysPhilox) {
    using Words = std::array<std::uint64_t, 4>;
    EXPECT_EQ(RandomStream(1, Purpose::weights).words(0),
              (Words{0x66387239d96c2992, 0x6e3eeb840de668fa, 0xb50319d6b017259b, 0x0143e22d19a96a8d}));
    EXPECT_EQ(RandomStream(1, Purpose::weights).words(1),
              (Words{0x133d1b1836b49e25, 0xfbd9ff744933275e, 0xf289b1b94ef9e741, 0xb298f47f8b702464}));
    EXPECT_EQ(RandomStream(42, Purpose::tokens, 7).words(12345678901),
              (Words{0xd46617500257e116, 0x3e695a7ef82b6aca, 0x77441b89fbfd5fd5, 0x5df02bdf2b6aaba1}));
    EXPECT_EQ(RandomStream(top, Purpose::integration, 1).words(0),
              (Words{0xcd6f0a17f1109364, 0xa0c39ed9e1a5ef34, 0x395787369cb8608f, 0x9c7c2800e76b6adf}));
    EXPECT_EQ(RandomStream(0, Purpose::noise, std::uint64_t{1} << 63).words(top),
              (Words{0xc07027633ee3cf71, 0x99135a962dd710f4, 0x44f12440aae69399, 0xd095377a623eb73c}));
}

TEST(RandomStream, PurposeNumbersAreNeverChanged) {
    EXPECT_EQ(static_cast<int>(Purpose::weights), 1);
    EXPECT_EQ(static_cast<int>(Purpose::noise), 2);
    EXPECT_EQ(static_cast<int>(Purpose::tokens), 3);
    EXPECT_EQ(static_cast<int>(Purpose::label_noise), 4);
    EXPECT_EQ(static_cast<int>(Purpose::rotation), 5);
    EXPECT_EQ(static_cast<int>(Purpose::initial), 6);
    EXPECT_EQ(static_cast<int>(Purpose::integration), 7);
}

RC_GTEST_PROP(RandomStream, AnyPartEqualsTheWholeInAnyOrder, ()) {
    const RandomStream stream(*rc::gen::arbitrary<std::uint64_t>(), Purpose::tokens,
                              *rc::gen::arbitrary<std::uint64_t>());
    const std::uint64_t start =
        *rc::gen::elementOf(std::vector<std::uint64_t>{0, 1, 3, 1000, std::uint64_t{1} << 40});
    std::vector<double> normal(64), uniform(64);
    stream.fill_normal(normal, start);
    stream.fill_uniform(uniform, start);
    for (int part = 0; part < 5; ++part) {
        const auto first = static_cast<std::size_t>(test::integer(0, 63));
        const auto size = static_cast<std::size_t>(test::integer(0, 64 - static_cast<int>(first)));
        std::vector<double> again(size);
        stream.fill_normal(again, start + first);
        RC_ASSERT(
            std::equal(again.begin(), again.end(), normal.begin() + static_cast<std::ptrdiff_t>(first)));
        stream.fill_uniform(again, start + first);
        RC_ASSERT(
            std::equal(again.begin(), again.end(), uniform.begin() + static_cast<std::ptrdiff_t>(first)));
    }
}

TEST(RandomStream, StreamsOfDifferentSeedPurposeIndexOrBlockDiffer) {
    std::set<std::uint64_t> words;
    int streams = 0;
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, top}) {
        for (const Purpose purpose : {Purpose::weights, Purpose::noise, Purpose::rotation}) {
            for (const std::uint64_t index : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32}) {
                for (const std::uint64_t block : {std::uint64_t{0}, std::uint64_t{1}}) {
                    for (const std::uint64_t word : RandomStream(seed, purpose, index).words(block))
                        words.insert(word);
                    ++streams;
                }
            }
        }
    }
    EXPECT_EQ(words.size(), 4U * static_cast<std::size_t>(streams));
}

TEST(RandomStream, NormalsHaveTheMomentsOfTheNormalLaw) {
    const RandomStream stream(2024, Purpose::weights);
    constexpr std::size_t n = 1'000'000;
    EXPECT_LE(normal_average(n, stream, [](double x) { return x; }).deviation(0), 4);
    EXPECT_LE(normal_average(n, stream, [](double x) { return x * x; }).deviation(1), 4);
    EXPECT_LE(normal_average(n, stream, [](double x) { return x * x * x; }).deviation(0), 4);
    EXPECT_LE(normal_average(n, stream, [](double x) { return x * x * x * x; }).deviation(3), 4);
    // The tail, which the moments hardly see: P(|x| > 3.5).
    const double tail = std::erfc(3.5 / std::sqrt(2.0));
    EXPECT_LE(
        normal_average(n, stream, [](double x) { return std::abs(x) > 3.5 ? 1.0 : 0.0; }).deviation(tail), 4);
}

TEST(RandomStream, NeighboursAndOtherStreamsAreUncorrelated) {
    constexpr std::size_t n = 400'000;
    std::vector<double> a(n + 4), b(n + 4), product(n);
    RandomStream(5, Purpose::weights, 1).fill_normal(a);
    const auto deviation = [&](const std::vector<double>& other, std::size_t lag) {
        for (std::size_t i = 0; i < n; ++i) product[i] = a[i] * other[i + lag];
        return test::estimate(product).deviation(0);
    };
    for (const std::size_t lag : {1, 2, 3, 4}) EXPECT_LE(deviation(a, lag), 4) << "lag " << lag;
    RandomStream(5, Purpose::noise, 1).fill_normal(b);
    EXPECT_LE(deviation(b, 0), 4) << "purpose";
    RandomStream(5, Purpose::weights, 2).fill_normal(b);
    EXPECT_LE(deviation(b, 0), 4) << "index";
    RandomStream(6, Purpose::weights, 1).fill_normal(b);
    EXPECT_LE(deviation(b, 0), 4) << "seed";
}

TEST(RandomStream, UniformsFillTheOpenUnitInterval) {
    std::vector<double> u(1'000'000), cell(u.size());
    RandomStream(3, Purpose::integration).fill_uniform(u);
    for (const double x : u) ASSERT_TRUE(x > 0 && x < 1) << x;
    for (const int k : {1, 2, 3}) {  // E u^k = 1/(k+1)
        std::transform(u.begin(), u.end(), cell.begin(), [&](double x) { return std::pow(x, k); });
        EXPECT_LE(test::estimate(cell).deviation(1.0 / (k + 1)), 4) << "moment " << k;
    }
}

}  // namespace
}  // namespace bayesaim
