// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/gradient_descent.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/random.hpp"
#include "bayesaim/estimators/attention_loss.hpp"
#include "bayesaim/linalg/random_matrix.hpp"

namespace bayesaim::estimators {
namespace {

void check(const GradientDescentOptions& options) {
    check_at_least("student width", options.width, 1);
    check_positive("learning rate", options.learning_rate);
    for (const auto& [name, value] : {std::pair{"beta1", options.beta1}, {"beta2", options.beta2}}) {
        check_non_negative(name, value);
        if (value >= 1) throw_invalid(name, "below 1", value);
    }
    check_positive("epsilon", options.epsilon);
    check_non_negative("weight decay", options.weight_decay);
    check_at_least("steps", options.max_steps, 1);
    check_at_least("batch size", options.batch_size, 0);
    check_non_negative("gradient tolerance", options.gradient_tolerance);
    check_non_negative("loss tolerance", options.loss_tolerance);
    check_at_least("record stride", options.record_stride, 1);
}

/// The order of the samples in one epoch of one start (Fisher and Yates).
std::vector<Eigen::Index> shuffled(Eigen::Index samples, std::uint64_t seed, std::uint64_t start,
                                   std::uint64_t epoch) {
    std::vector<Eigen::Index> order(static_cast<std::size_t>(samples));
    std::iota(order.begin(), order.end(), Eigen::Index{0});
    std::vector<double> uniform(order.size());
    RandomStream(seed, Purpose::minibatch, (start << 32) + epoch).fill_uniform(uniform);
    for (std::size_t i = order.size(); i-- > 1;) {
        const auto j = static_cast<std::size_t>(uniform[i] * static_cast<double>(i + 1));
        std::swap(order[i], order[std::min(i, j)]);
    }
    return order;
}

template <class Scalar>
class Descender final : public GradientDescent {
  public:
    Descender(const data::Dataset& data, const channels::Channel& channel,
              const GradientDescentOptions& options, ThreadPool& pool)
        : options_(options), loss_(data, channel, pool) {}

    Descent start(std::uint64_t index) const override {
        ThreadPool alone(1);
        Descent descent;
        descent.start = index;
        descent.factors = loss_.factors();
        const Eigen::Index columns = options_.width * descent.factors;
        descent.weights = linalg::gaussian_matrix(loss_.dim(), columns,
                                                  RandomStream(options_.seed, Purpose::initial, index), alone)
                              .template cast<Scalar>()
                              .template cast<double>();
        if (options_.optimizer == Optimizer::adam) {
            descent.first_moment = linalg::Matrix::Zero(loss_.dim(), columns);
            descent.second_moment = descent.first_moment;
        }
        return descent;
    }

    void advance(Descent& descent, int steps, ThreadPool* pool) const override {
        const auto begin = std::chrono::steady_clock::now();
        State state{descent.weights.cast<Scalar>(), descent.first_moment.cast<Scalar>(),
                    descent.second_moment.cast<Scalar>()};
        Matrix gradient;
        Epoch epoch;
        for (; !descent.status && steps > 0; --steps) {
            const double loss = with_penalty(evaluate(descent, state.weights, gradient, epoch, pool),
                                             state.weights, gradient);
            const double norm = std::sqrt(squared_norm(gradient));
            if (!std::isfinite(loss) || !std::isfinite(norm)) {
                descent.status = Termination::diverged;
                break;
            }
            if (norm <= options_.gradient_tolerance || loss <= options_.loss_tolerance) {
                // Far out the outputs are saturated, and the gradient is 0.
                const bool worse = !descent.record.empty() && loss > descent.record.front().loss;
                descent.status = worse ? Termination::diverged : Termination::converged;
            } else if (descent.step == options_.max_steps) {
                descent.status = Termination::iteration_limit;
            }
            if (descent.status || descent.step % options_.record_stride == 0)
                record(descent, state.weights, loss, norm);
            if (!descent.status) step(++descent.step, gradient, state);
        }
        descent.weights = state.weights.template cast<double>();
        descent.first_moment = state.first_moment.template cast<double>();
        descent.second_moment = state.second_moment.template cast<double>();
        descent.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }

  private:
    using Matrix = typename AttentionLoss<Scalar>::Matrix;
    struct State {
        Matrix weights, first_moment, second_moment;
    };
    struct Epoch {
        std::size_t number = 0;
        std::vector<Eigen::Index> order;  // of the samples; empty before the first epoch
    };

    double evaluate(const Descent& descent, const Matrix& weights, Matrix& gradient, Epoch& epoch,
                    ThreadPool* pool) const {
        const Eigen::Index samples = loss_.samples(), size = options_.batch_size;
        if (size == 0 || size >= samples) return loss_.evaluate(weights, gradient, pool);
        const auto batches = block_count(static_cast<std::size_t>(samples), static_cast<std::size_t>(size));
        const auto step = static_cast<std::size_t>(descent.step);
        if (epoch.order.empty() || epoch.number != step / batches) {
            epoch.number = step / batches;
            epoch.order = shuffled(samples, options_.seed, descent.start, epoch.number);
        }
        const Range range = block_range(epoch.order.size(), static_cast<std::size_t>(size), step % batches);
        return loss_.subset({epoch.order.data() + range.begin, range.size()})
            .evaluate(weights, gradient, pool);
    }

    /// The loss plus weight_decay ||W||_F^2; adds the derivative to the gradient.
    double with_penalty(double loss, const Matrix& weights, Matrix& gradient) const {
        if (options_.weight_decay == 0) return loss;
        const auto slope = static_cast<Scalar>(2 * options_.weight_decay);
        const Scalar* w = weights.data();
        Scalar* g = gradient.data();
        for (Eigen::Index i = 0; i < gradient.size(); ++i) g[i] += slope * w[i];
        return loss + options_.weight_decay * squared_norm(weights);
    }

    void record(Descent& descent, const Matrix& weights, double loss, double norm) const {
        DescentStep now{descent.step, loss, norm};
        if (options_.measure) {
            descent.weights = weights.template cast<double>();
            now.true_error = options_.measure(descent.estimate());
        }
        descent.record.push_back(now);
    }

    void step(int number, const Matrix& gradient, State& state) const {
        const auto rate = static_cast<Scalar>(options_.learning_rate);
        const Scalar* g = gradient.data();
        Scalar* w = state.weights.data();
        const Eigen::Index size = gradient.size();
        if (options_.optimizer == Optimizer::gradient_descent) {
            for (Eigen::Index i = 0; i < size; ++i) w[i] -= rate * g[i];
            return;
        }
        const auto b1 = static_cast<Scalar>(options_.beta1), b2 = static_cast<Scalar>(options_.beta2);
        const auto c1 = static_cast<Scalar>(1 - options_.beta1), c2 = static_cast<Scalar>(1 - options_.beta2);
        const auto step_size =
            static_cast<Scalar>(options_.learning_rate / (1 - std::pow(options_.beta1, number)));
        const auto root = static_cast<Scalar>(std::sqrt(1 - std::pow(options_.beta2, number)));
        const auto epsilon = static_cast<Scalar>(options_.epsilon);
        Scalar *m = state.first_moment.data(), *v = state.second_moment.data();
        for (Eigen::Index i = 0; i < size; ++i) {
            m[i] = b1 * m[i] + c1 * g[i];
            v[i] = b2 * v[i] + c2 * g[i] * g[i];
            w[i] -= step_size * m[i] / (std::sqrt(v[i]) / root + epsilon);
        }
    }

    GradientDescentOptions options_;
    AttentionLoss<Scalar> loss_;
};

}  // namespace

Eigen::Index student_columns(double width, Eigen::Index dim) {
    check_positive("student width", width);
    const double columns = std::max(1.0, std::round(width * static_cast<double>(dim)));
    if (!(columns <= 1e6)) throw_invalid("student width", "such that W has at most 1000000 columns", width);
    return static_cast<Eigen::Index>(columns);
}

double equivalent_regularization(double weight_decay, Eigen::Index width, Eigen::Index dim, int factors) {
    return 0.5 * factors * weight_decay * std::sqrt(static_cast<double>(width) / static_cast<double>(dim));
}

linalg::Matrix Descent::estimate() const {
    const Eigen::Index width = weights.cols() / factors;
    const double d = static_cast<double>(weights.rows()), r = static_cast<double>(width);
    const double scale = 1 / std::sqrt(r * d);
    if (factors == 1) return linalg::gram(scale, weights);
    linalg::Matrix s(weights.rows(), weights.rows());
    linalg::multiply(scale, weights.leftCols(width), linalg::Transpose::no, weights.rightCols(width),
                     linalg::Transpose::yes, 0, s);
    return s;
}

std::unique_ptr<GradientDescent> make_gradient_descent(const data::Dataset& data,
                                                       const channels::Channel& channel,
                                                       const GradientDescentOptions& options,
                                                       ThreadPool& pool) {
    check(options);
    if (options.batch_size > 0 && pool.ranks().size() > 1)
        throw_unavailable("mini-batches", "for samples that are divided over ranks");
    if (options.precision == data::Precision::float_precision)
        return std::make_unique<Descender<float>>(data, channel, options, pool);
    return std::make_unique<Descender<double>>(data, channel, options, pool);
}

Descent run_gradient_descent(const data::Dataset& data, const channels::Channel& channel,
                             const GradientDescentOptions& options, ThreadPool& pool) {
    const auto problem = make_gradient_descent(data, channel, options, pool);
    Descent descent = problem->start(0);
    problem->advance(descent, std::numeric_limits<int>::max(), &pool);
    return descent;
}

}  // namespace bayesaim::estimators
