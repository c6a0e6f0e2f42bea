// SPDX-License-Identifier: MIT
#include "bayesaim/core/tree_sum.hpp"

namespace bayesaim {
namespace {

struct Numbers {
    std::vector<double> values;

    void add(const Numbers& other) {
        for (std::size_t i = 0; i < values.size(); ++i) values[i] += other.values[i];
    }
    void for_parts(const auto& use) { use(bytes_of(values.data(), values.size())); }
};

}  // namespace

std::vector<double> sum_over_samples(ThreadPool& pool, const Shares& shares, std::size_t size,
                                     const std::function<void(Range, std::span<double>)>& leaf) {
    std::vector<Numbers> spare;
    return TreeSum<Numbers>(&pool, shares, spare)([&](Range samples, Numbers& sum) {
               sum.values.assign(size, 0);
               leaf(samples, sum.values);
           })
        .values;
}

double sum_over_samples(ThreadPool& pool, const Shares& shares, const std::function<double(Range)>& leaf) {
    return sum_over_samples(pool, shares, 1,
                            [&](Range samples, std::span<double> sum) { sum[0] = leaf(samples); })[0];
}

}  // namespace bayesaim
