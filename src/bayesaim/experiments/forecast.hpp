// SPDX-License-Identifier: MIT
#pragma once
#include <functional>

#include "bayesaim/core/parallel.hpp"
#include "bayesaim/core/record.hpp"
#include "bayesaim/linalg/blas.hpp"

/// What a computation will take, before it begins: operations are counted, seconds are those of the same computation with
/// a few samples, and at most a thousand dimensions.
namespace bayesaim::experiments {

/// The size of a problem that samples are divided for.
struct ProblemSize {
    double samples = 0, dim = 0;  ///< n, and d or sqrt(d1 d2)
    double tokens = 2, keys = 2;  ///< of a sample; keys are 0 if they are the tokens
    double pairs = 3;             ///< indices of a sample, of all layers
    double layers = 1;
    bool symmetric = true;  ///< S is, and products with it take half
    double token_size = 8;  ///< bytes of a number; 0 if tokens are made again
};

/// The seconds of a trial.
struct TrialSeconds {
    double setup = 0, iteration = 0;
};
/// Makes a problem of this many samples and dimensions, and iterates once. Each rank makes one of its own.
using Trial = std::function<TrialSeconds(Eigen::Index samples, Eigen::Index dim, ThreadPool& alone)>;

struct Forecast {
    double operations = 0;       ///< of an iteration, on all ranks
    double bytes_exchanged = 0;  ///< of an iteration, by the first rank
    double seconds_setup = 0, seconds_iteration = 0;
    double exchange_seconds = 0;  ///< of an iteration, in it
};

/// Runs trials of two sizes on all ranks at once. Time that grows with the samples is taken as proportional to d^2, the
/// rest (decompositions) to d^3. `matrix_size` is the number of bytes of the matrix that ranks exchange.
Forecast forecast(const ProblemSize& size, double operations_per_sample, double matrix_size,
                  const Trial& trial, ThreadPool& pool);

/// Peak memory of a rank besides the program itself, within a factor of 1.5: the data and messages of its samples, and
/// d x d matrices.
double amp_bytes(const ProblemSize& size, std::size_t threads, std::size_t ranks);
/// The same of gradient descent: a student of so many columns (of both factors), in numbers of `number_size` bytes.
double gd_bytes(const ProblemSize& size, double columns, double starts, double number_size,
                std::size_t threads, std::size_t ranks);

/// Products with the tokens for one sample: forward and back, half of each for a symmetric S.
double amp_operations_per_sample(const ProblemSize& size);
double gd_operations_per_sample(const ProblemSize& size, double columns);

/// The forecast of `iterations` iterations of `runs` runs, as a point of a report. `bytes` are those of amp_bytes or
/// gd_bytes.
Record describe(const ProblemSize& size, const Forecast& forecast, double bytes, double iterations,
                double runs, const ThreadPool& pool);

}  // namespace bayesaim::experiments
