// SPDX-License-Identifier: MIT
#include "bayesaim/experiments/forecast.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>

#include "bayesaim/core/shares.hpp"

namespace bayesaim::experiments {
namespace {

constexpr double largest_dim = 1000;    // of a trial
constexpr double program_bytes = 30e6;  // of the program itself, with MPI

/// The number that the slowest rank has.
double largest_of(double here, Communicator& ranks) {
    double largest = here;
    if (ranks.first()) {
        for (int other = 1; other < ranks.size(); ++other) {
            double there = 0;
            ranks.receive(bytes_of(there), other);
            largest = std::max(largest, there);
        }
    } else {
        ranks.send(bytes_of(largest), 0);
    }
    ranks.broadcast(bytes_of(largest));
    return largest;
}

/// Levels of a tree over the ranks.
double levels(int ranks) { return std::ceil(std::log2(std::max(ranks, 1))); }

/// Seconds per byte of a broadcast.
double exchange_speed(Communicator& ranks) {
    if (ranks.size() == 1) return 0;
    std::vector<double> numbers(1 << 20);
    double fastest = 1e9;
    for (int i = 0; i < 3; ++i) {
        any_rank(ranks, false);  // together
        const auto start = std::chrono::steady_clock::now();
        ranks.broadcast(bytes_of(numbers.data(), numbers.size()));
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
        fastest = std::min(fastest, largest_of(elapsed.count(), ranks));
    }
    return fastest / static_cast<double>(numbers.size() * sizeof(double));
}

double matrices_of_tree(const ProblemSize& size, std::size_t threads, std::size_t ranks) {
    const Shares shares(static_cast<std::size_t>(size.samples));
    const double own = std::max(1.0, static_cast<double>(shares.count()) / static_cast<double>(ranks));
    return static_cast<double>(threads) + std::ceil(std::log2(own)) + 1;
}

/// The tokens, if they stay in memory, and the outputs.
double data_bytes(const ProblemSize& size, std::size_t ranks) {
    const double own = size.samples / static_cast<double>(ranks);
    return own * ((size.tokens + size.keys) * size.dim * size.token_size +
                  8 * size.tokens * std::max(size.keys, size.tokens));
}

}  // namespace

Forecast forecast(const ProblemSize& size, double operations_per_sample, double matrix_size,
                  const Trial& trial, ThreadPool& pool) {
    Communicator& ranks = pool.ranks();
    ThreadPool alone(pool.threads());
    const double dim = std::min(size.dim, largest_dim), more = size.dim / dim;
    // Enough samples for each thread to be busy with whole blocks.
    const auto few = static_cast<Eigen::Index>(std::max(512.0, 128.0 * static_cast<double>(pool.threads())));
    const auto seconds = [&](Eigen::Index samples) {
        TrialSeconds fastest{1e9, 1e9};
        for (int i = 0; i < 2; ++i) {
            const TrialSeconds now = trial(samples, static_cast<Eigen::Index>(dim), alone);
            fastest = {std::min(fastest.setup, now.setup), std::min(fastest.iteration, now.iteration)};
        }
        return TrialSeconds{largest_of(fastest.setup, ranks), largest_of(fastest.iteration, ranks)};
    };
    const TrialSeconds one = seconds(few), three = seconds(3 * few);
    const double own = size.samples / ranks.size();
    const auto scaled = [&](double at_few, double at_three) {
        const double slope = std::max(0.0, (at_three - at_few) / (2 * static_cast<double>(few))),
                     rest = std::max(0.0, at_few - slope * static_cast<double>(few));
        return slope * own * more * more + rest * more * more * more;
    };
    Forecast result;
    result.operations = operations_per_sample * size.samples;
    if (ranks.size() > 1) {
        result.bytes_exchanged = matrix_size * (levels(ranks.size()) + 1);
        result.exchange_seconds = exchange_speed(ranks) * matrix_size * 2 * levels(ranks.size());
    }
    result.seconds_setup = scaled(one.setup, three.setup);
    result.seconds_iteration = scaled(one.iteration, three.iteration) + result.exchange_seconds;
    return result;
}

double amp_bytes(const ProblemSize& size, std::size_t threads, std::size_t ranks) {
    const double own = size.samples / static_cast<double>(ranks), matrix = 8 * size.dim * size.dim;
    // Of each layer: truth, estimate, the best, R, denoised, the factors of products; and 5 of a decomposition.
    return data_bytes(size, ranks) + 16 * own * size.pairs +
           matrix * (6 * size.layers + matrices_of_tree(size, threads, ranks) * size.layers + 5);
}

double gd_bytes(const ProblemSize& size, double columns, double starts, double number_size,
                std::size_t threads, std::size_t ranks) {
    const double own = size.samples / static_cast<double>(ranks), student = size.dim * columns;
    return data_bytes(size, ranks) + number_size * own * (size.tokens + size.keys) * size.dim +
           24 * student * starts +
           number_size * student * (4 + matrices_of_tree(size, threads, ranks)) *
               static_cast<double>(threads) +
           5 * 8 * size.dim * size.dim;
}

double amp_operations_per_sample(const ProblemSize& size) {
    return (size.symmetric ? 2 : 4) * size.layers * size.tokens * size.dim * size.dim;
}

double gd_operations_per_sample(const ProblemSize& size, double columns) {
    return 4 * (size.tokens + size.keys) * size.dim * columns;
}

Record describe(const ProblemSize& size, const Forecast& forecast, double bytes, double iterations,
                double runs, const ThreadPool& pool) {
    return {{"samples", static_cast<std::uint64_t>(size.samples)},
            {"ranks", static_cast<std::uint64_t>(pool.ranks().size())},
            {"threads", static_cast<std::uint64_t>(pool.threads())},
            {"estimated_bytes", static_cast<std::uint64_t>(std::min(program_bytes + bytes, 9e18))},
            {"operations_per_iteration", forecast.operations},
            {"bytes_exchanged_per_iteration", forecast.bytes_exchanged},
            {"estimated_seconds_per_iteration", forecast.seconds_iteration},
            {"estimated_iterations", iterations},
            {"estimated_seconds", runs * (forecast.seconds_setup + iterations * forecast.seconds_iteration)}};
}

}  // namespace bayesaim::experiments
