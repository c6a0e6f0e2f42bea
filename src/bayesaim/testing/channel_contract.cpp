// SPDX-License-Identifier: MIT
#include "bayesaim/testing/channel_contract.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "bayesaim/core/random.hpp"
#include "bayesaim/numerics/statistics.hpp"

namespace bayesaim::testing {
namespace {

using channels::add_correlated;
using channels::Channel;
using channels::Integration;
using channels::OrderParameters;
using channels::Overlap;
using channels::Rows;
using linalg::scalar_overlap;
using Options = ChannelContractOptions;

Rows normal_rows(Eigen::Index rows, Eigen::Index cols, std::uint64_t seed) {
    Rows z(rows, cols);
    for (Eigen::Index i = 0; i < rows; ++i) {
        RandomStream(seed, Purpose::tokens, static_cast<std::uint64_t>(i))
            .fill_normal({z.row(i).data(), static_cast<std::size_t>(cols)});
    }
    return z;
}

/// Order parameters with these diagonals. Layers are correlated, which detects channels that confuse them.
OrderParameters parameters_at(const Channel& channel, double overlap, double error) {
    const int layers = channel.components();
    if (channel.geometry().parts() ==
        2) {  // never correlated; different, which detects channels that confuse them
        OrderParameters parts{linalg::zero_overlap(2), linalg::zero_overlap(2)};
        parts.overlap.diagonal() << 0.8 * overlap, 1.2 * overlap;
        parts.error.diagonal() << 1.3 * error, 0.7 * error;
        return parts;
    }
    OrderParameters result{Overlap::Constant(layers, layers, 0.3 * overlap),
                           Overlap::Constant(layers, layers, -0.2 * error / std::max(1, layers - 1))};
    result.overlap.diagonal().setConstant(overlap);
    result.error.diagonal().setConstant(error);
    return result;
}

/// Columns of htilde.
Eigen::Index columns(const Channel& channel) { return channel.components() * channel.pairs(); }

/// Samples of (omega, htilde, y) at the order parameters of the options.
struct Samples {
    Rows omega, index, outputs;
    OrderParameters parameters;
    Overlap variance;

    Samples(const Channel& channel, const Options& options, Eigen::Index n)
        : parameters(parameters_at(channel, options.overlap, options.error)),
          variance(channel.geometry().variance_factor() * parameters.error) {
        const Eigen::Index all = columns(channel);
        const Eigen::ArrayXXd z = normal_rows(n, 2 * all, options.seed);
        omega = Rows::Zero(n, all);
        add_correlated(linalg::lower_root(channel.geometry().variance_factor() * parameters.overlap),
                       z.leftCols(all), omega);
        index = omega;
        add_correlated(linalg::lower_root(variance), z.rightCols(all), index);
        outputs = Rows::Zero(n, channel.outputs());
        channel.draw(index, options.seed + 1, 0, outputs);
    }
};

/// Samples with their scores, which may take far longer than the samples.
struct ScoredSamples : Samples {
    Rows g;
    Eigen::VectorXd log_z;

    ScoredSamples(const Channel& channel, const Options& options, Eigen::Index n)
        : Samples(channel, options, n), g(Rows::Zero(n, columns(channel))), log_z(Eigen::VectorXd::Zero(n)) {
        channel.score(outputs, omega, variance, g, log_z);
    }
};

numerics::Estimate mean_over(const Eigen::ArrayXd& values) {
    return numerics::combine({values.data(), static_cast<std::size_t>(values.size())});
}

/// Requires |got - expected| <= allowance; NaN is a violation.
void expect_near(Violations& lines, double got, double expected, double allowance, const std::string& what) {
    if (!(std::abs(got - expected) <= allowance)) {
        lines.push_back(
            fmt::format("{} is {:.8g} instead of {:.8g} +- {:.2g}", what, got, expected, allowance));
    }
}

constexpr std::array<double, 4> shift = {-2, -1, 1, 2}, weight = {1, -8, 8, -1};  // fourth-order difference

Violations score_is_gradient(const Channel& channel, const Options& options) {
    Violations lines;
    const Eigen::Index n = 5;
    const ScoredSamples s(channel, options, n);
    if (!s.log_z.allFinite())
        return {"score does not give a finite log Z, of which it should be the gradient"};
    const double step = 1e-3;
    for (Eigen::Index p = 0; p < columns(channel); ++p) {
        Eigen::VectorXd difference = Eigen::VectorXd::Zero(n);
        for (std::size_t k = 0; k < shift.size(); ++k) {
            Rows moved = s.omega, ignored = s.g;
            Eigen::VectorXd value(n);
            moved.col(p).array() += shift[k] * step;
            channel.score(s.outputs, moved, s.variance, ignored, value);
            difference += weight[k] / (12 * step) * value;
        }
        for (Eigen::Index i = 0; i < n; ++i) {
            const double finite_difference = options.score_accuracy * std::max(1.0, std::abs(s.g(i, p))) +
                                             1e-13 * std::abs(s.log_z[i]) / step;
            expect_near(lines, s.g(i, p), difference[i], finite_difference,
                        fmt::format("score of sample {}, pair {},", i, p));
        }
    }
    return lines;
}

/// For second-order differences. The error of a score by quadrature varies with omega as fast as the score.
double slope_allowance(const Options& options) { return std::max(1e-5, 4 * options.score_accuracy); }

Violations slope_is_gradient(const Channel& channel, const Options& options) {
    Violations lines;
    const ScoredSamples s(channel, options, 3);
    const double step = 1e-3;
    for (Eigen::Index i = 0; i < 3; ++i) {
        const Eigen::MatrixXd slope = channel.score_slope(s.outputs.row(i), s.omega.row(i), s.variance);
        if (!slope.isApprox(slope.transpose(), 1e-9)) {
            lines.push_back(fmt::format("slope of sample {} is not symmetric", i));
        }
        for (Eigen::Index p = 0; p < columns(channel); ++p) {
            Rows up = s.omega, down = s.omega, g_up = s.g, g_down = s.g;
            Eigen::VectorXd no_log_z(0);
            up(i, p) += step;
            down(i, p) -= step;
            channel.score(s.outputs, up, s.variance, g_up, no_log_z);
            channel.score(s.outputs, down, s.variance, g_down, no_log_z);
            const Eigen::VectorXd difference = (g_up.row(i) - g_down.row(i)).transpose() / (2 * step);
            expect_near(lines, (slope.col(p) - difference).norm(), 0, slope_allowance(options),
                        fmt::format("distance of the slope of sample {}, pair {},", i, p));
        }
    }
    return lines;
}

Violations score_is_centred(const Channel& channel, const Options& options) {
    Violations lines;
    const ScoredSamples s(channel, options, options.samples);
    const Eigen::Index pairs = columns(channel);
    for (Eigen::Index p = 0; p < pairs; ++p) {
        const auto mean = mean_over(s.g.col(p));
        expect_near(lines, mean.value, 0, 4 * mean.standard_error + 1e-12,
                    fmt::format("mean score of pair {}", p));
    }
    const Eigen::Index few =
        channel.sampled() ? options.samples / 20 : options.samples / 3;  // slopes are slow
    // The scatter is taken about 0, the expected mean.
    Eigen::MatrixXd sum = Eigen::MatrixXd::Zero(pairs, pairs), squares = sum;
    for (Eigen::Index i = 0; i < few; ++i) {
        const Eigen::MatrixXd value = s.g.row(i).transpose() * s.g.row(i) +
                                      channel.score_slope(s.outputs.row(i), s.omega.row(i), s.variance);
        sum += value;
        squares += value.cwiseProduct(value);
    }
    const double count = static_cast<double>(few);
    for (Eigen::Index p = 0; p < pairs; ++p) {
        for (Eigen::Index q = 0; q <= p; ++q) {
            expect_near(lines, sum(p, q) / count, 0, 4 * std::sqrt(squares(p, q)) / count + 1e-9,
                        fmt::format("mean of g g' + dg/domega at pairs {}, {}", p, q));
        }
    }
    return lines;
}

Violations permutations(const Channel& channel, const Options& options) {
    Violations lines;
    const channels::Geometry geometry = channel.geometry();
    if (geometry.attention == channels::Attention::causal) return lines;  // the order of the tokens matters
    const ScoredSamples s(channel, options, 20);
    // Queries and keys move together unless they are two sets.
    const auto moved = [](int token, int count) { return (token + count - count / 2) % count; };
    const auto query = [&](int a) { return moved(a, geometry.queries); };
    const auto key = [&](int b) { return moved(b, geometry.keys); };
    // The antisymmetric part changes its sign with the order of two tokens.
    const auto sign = [&](int first, int a, int b) {
        return geometry.parts() == 2 && first > 0 && (a < b) != (query(a) < key(b)) ? -1.0 : 1.0;
    };
    Rows omega = s.omega, outputs = s.outputs, g = s.g;
    Eigen::VectorXd log_z = s.log_z;
    for (int a = 0; a < geometry.queries; ++a) {
        for (int b = 0; b < geometry.keys; ++b) {
            outputs.col(query(a) * geometry.keys + key(b)) = s.outputs.col(a * geometry.keys + b);
            if (!geometry.sees(a, b)) continue;
            for (int first = 0; first < columns(channel); first += channel.pairs())
                omega.col(first + geometry.pair(query(a), key(b))) =
                    sign(first, a, b) * s.omega.col(first + geometry.pair(a, b));
        }
    }
    channel.score(outputs, omega, s.variance, g, log_z);
    const double roundoff = std::max(1e-8, options.score_accuracy);
    for (int a = 0; a < geometry.queries; ++a) {
        for (int b = 0; b < geometry.keys; ++b) {
            if (!geometry.sees(a, b)) continue;
            for (int first = 0; first < columns(channel); first += channel.pairs()) {
                const auto change = g.col(first + geometry.pair(query(a), key(b))) -
                                    sign(first, a, b) * s.g.col(first + geometry.pair(a, b));
                expect_near(lines, change.norm(), 0, roundoff * (1 + s.g.norm()),
                            fmt::format("change of the score of pair {}, {} under a permutation", a, b));
            }
        }
    }
    if (!s.log_z.allFinite()) return lines;
    expect_near(lines, (log_z - s.log_z).cwiseAbs().maxCoeff(), 0,
                roundoff * (1 + s.log_z.cwiseAbs().maxCoeff()), "change of log Z under a permutation");
    return lines;
}

Violations score_power(const Channel& channel, const Options& options) {
    Violations lines;
    const ScoredSamples s(channel, options, options.samples);
    const auto expected = channel.score_power(s.parameters, {.shifts = 8, .points = 32});
    const Eigen::Index pairs = channel.pairs();
    for (Eigen::Index l = 0; l < channel.components(); ++l) {
        for (Eigen::Index k = 0; k <= l; ++k) {
            const auto product =
                s.g.middleCols(l * pairs, pairs).cwiseProduct(s.g.middleCols(k * pairs, pairs));
            const auto power = mean_over(product.rowwise().sum());
            const double scale = std::sqrt(expected.value(l, l) * expected.value(k, k));
            const double allowance = 4 * std::hypot(power.standard_error, expected.relative_error * scale);
            expect_near(lines, expected.value(l, k), power.value, allowance, "score power");
            // Integrals of limited accuracy report an error that more samples do not reduce.
            const double uncertain = 0.15 + std::min(0.2, 4 * options.score_accuracy);
            if (!(allowance < uncertain * scale))
                lines.push_back("score power is too uncertain for this check to have power");
        }
    }
    return lines;
}

/// score_with_slope() must return the sum of the -dg/domega of score_slope().
Violations slope_sum(const Channel& channel, const Options& options) {
    Violations lines;
    const Eigen::Index n = 3, pairs = channel.pairs();
    const ScoredSamples s(channel, options, n);
    Rows g = s.g;
    const Overlap sum = channel.score_with_slope(s.outputs, s.omega, s.variance, g);
    expect_near(lines, (g - s.g).norm(), 0, 1e-12 * (1 + s.g.norm()),
                "distance of the scores with and without slope");
    for (Eigen::Index l = 0; l < channel.components(); ++l) {
        for (Eigen::Index k = 0; k < channel.components(); ++k) {
            double trace = 0;
            for (Eigen::Index i = 0; i < n; ++i) {
                trace -= channel.score_slope(s.outputs.row(i), s.omega.row(i), s.variance)
                             .block(l * pairs, k * pairs, pairs, pairs)
                             .trace();
            }
            expect_near(lines, sum(l, k), trace, slope_allowance(options) * static_cast<double>(n),
                        fmt::format("sum of slopes between layers {} and {}", l, k));
        }
    }
    return lines;
}

/// dI_out/dq = v F/2 at fixed Q: free entropy and state evolution agree.
Violations information(const Channel& channel, const Options& options) {
    if (channel.components() > 1) return {};  // no free entropy is known
    // Sampled values share their points, some of which change their output within a step: steps are longer.
    Integration integration{.shifts = 4, .points = 64};
    const double q = options.overlap, total = q + options.error;
    const auto at = [&](double overlap) {
        return channel.information({scalar_overlap(overlap), scalar_overlap(total - overlap)}, integration);
    };
    const auto here = at(q);
    if (!here) return {};
    // The information may be sampled even if the score power is not: then it changes with the seed.
    ++integration.seed;
    const bool sampled = channel.sampled() || at(q) != here;
    --integration.seed;
    const double step = sampled ? 0.2 * std::min(q, options.error) : 1e-3;
    const double derivative =
        (8 * (*at(q + step) - *at(q - step)) - (*at(q + 2 * step) - *at(q - 2 * step))) / (12 * step);
    const double power =
        channel.score_power({scalar_overlap(q), scalar_overlap(options.error)}, integration).value(0, 0);
    Violations lines;
    expect_near(lines, 2 / channel.geometry().variance_factor() * derivative / power, 1, sampled ? 0.1 : 1e-7,
                "slope of the information over v/2 times the score power");
    return lines;
}

Violations generalization(const Channel& channel, const Options& options) {
    Violations lines;
    const double total = options.overlap + options.error;
    double last = 0;
    for (const double part : {0.01, 0.1, 0.4}) {
        const double error = part * total;
        const auto result = channel.generalization(parameters_at(channel, total - error, error), {});
        if (!(result.bayes_optimal > last))
            lines.push_back(fmt::format("error at Q - q = {:g} is {:.8g}, not above {:.8g}", error,
                                        result.bayes_optimal, last));
        if (!(result.plug_in * (1 + 4 * result.relative_error + 1e-9) >= result.bayes_optimal))
            lines.push_back(fmt::format("plug-in error {:.8g} is below the optimal one, {:.8g}",
                                        result.plug_in, result.bayes_optimal));
        last = result.bayes_optimal;
    }
    if (options.label_noise) return lines;
    // Bayes-optimal: half the mean squared distance of two outputs that share omega.
    const Eigen::Index n = options.prediction_samples;
    const Samples s(channel, options, n);
    Rows other_index = s.omega;
    add_correlated(linalg::lower_root(s.variance), normal_rows(n, columns(channel), options.seed + 2).array(),
                   other_index);
    Rows other = s.outputs;
    channel.draw(other_index, options.seed + 1, 0, other);
    const auto measured = mean_over(
        0.5 *
        (output_values(channel, s.outputs) - output_values(channel, other)).rowwise().squaredNorm().array());
    const auto expected = channel.generalization(s.parameters, {});
    expect_near(lines, expected.bayes_optimal, measured.value,
                4 * std::hypot(measured.standard_error, expected.relative_error * measured.value),
                "Bayes-optimal error");
    return lines;
}

Violations predictions(const Channel& channel, const Options& options) {
    Violations lines;
    const Samples s(channel, options, options.prediction_samples);
    Rows truth = s.outputs, prediction = s.outputs;
    const Overlap none = linalg::zero_overlap(channel.components());
    channel.predict(s.index, none, truth);
    if (!options.label_noise && truth != output_values(channel, s.outputs))
        lines.push_back(
            "prediction at V = 0 is not the output; for outputs with label noise set label_noise");
    const auto expected = channel.generalization(s.parameters, {});
    const auto check = [&](const Overlap& variance, double value, const char* what) {
        channel.predict(s.omega, variance, prediction);
        const auto measured = mean_over((prediction - truth).rowwise().squaredNorm());
        expect_near(lines, measured.value, value,
                    4 * std::hypot(measured.standard_error, expected.relative_error * measured.value), what);
    };
    check(none, expected.plug_in, "error of plug-in predictions");
    check(s.variance, expected.bayes_optimal, "error of predictions");
    // No other prediction from omega is better: the misses do not correlate with omega.
    for (Eigen::Index column = 0; column < truth.cols(); ++column) {
        const Eigen::ArrayXd miss = (truth - prediction).col(column);
        for (Eigen::Index p = 0; p < columns(channel); ++p) {
            const auto product = mean_over(miss * s.omega.col(p).array());
            expect_near(lines, product.value, 0, 4.5 * product.standard_error + 1e-12,
                        fmt::format("mean of what is missed of output {} times omega of pair {}", column, p));
        }
    }
    return lines;
}

/// The words of a line without its numbers.
std::string kind_of(const std::string& line) {
    std::string kind, word;
    for (std::istringstream words(line); words >> word;) {
        if (word.find_first_of("0123456789") != std::string::npos || word == "nan" || word == "-nan" ||
            word == "inf" || word == "-inf")
            continue;
        kind += word + ' ';
    }
    return kind;
}

}  // namespace

Violations summary(const std::string& check, const Violations& lines) {
    std::map<std::string, int> counts;
    for (const std::string& line : lines) ++counts[kind_of(line)];
    Violations result;
    for (const std::string& line : lines) {
        const int count = std::exchange(counts[kind_of(line)], 0);
        if (count == 0) continue;
        result.push_back(check + ": " + line);
        if (count > 1) result.back() += fmt::format(" (the first of {} alike)", count);
    }
    return result;
}

const std::vector<ChannelCheck>& channel_checks() {
    static const std::vector<ChannelCheck> checks = {
        {"score_is_gradient", score_is_gradient},
        {"slope_is_gradient", slope_is_gradient},
        {"slope_sum", slope_sum},
        {"score_is_centred", score_is_centred},
        {"permutations", permutations},
        {"score_power", score_power},
        {"information", information},
        {"generalization", generalization},
        {"predictions", predictions},
    };
    return checks;
}

Violations check_channel(const Channel& channel, const Options& options) {
    return run_checks(channel_checks(), channel, options);
}

}  // namespace bayesaim::testing
