// SPDX-License-Identifier: MIT
// Channels: the classes of the library, and the base class of the user's own.
#include <cmath>

#include <fmt/format.h>

#include "bayesaim/channels/deep_attention.hpp"
#include "bayesaim/channels/deep_sequence.hpp"
#include "bayesaim/channels/hardmax.hpp"
#include "bayesaim/channels/linear.hpp"
#include "bayesaim/channels/softmax.hpp"
#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/random.hpp"
#include "bayesaim/numerics/gaussian.hpp"

#include "binding.hpp"

namespace bayesaim::python {
namespace {

using channels::Channel;
using channels::ConstRowsRef;
using channels::Integration;
using channels::OrderParameters;
using channels::Overlap;
using channels::Rows;
using channels::RowsRef;

/// The array that a method of a Python channel returned; throws unless it is n x columns and finite.
void read_rows(const std::string& what, const py::object& given, RowsRef out) {
    const Rows values = rows(what.c_str(), given, out.cols());
    check_size("rows of the " + what, values.rows(), out.rows());
    out = values;
}

/// A channel written in Python. Arrays come in batches, one sample per row. Matrices between layers are
/// numbers for one layer.
class PythonChannel final : public PythonSubclass<Channel> {
  public:
    PythonChannel(int tokens, int layers) : PythonSubclass("channel"), tokens_(tokens), layers_(layers) {
        channels::pair_scales(tokens);
        check_between("layers", layers, 1, linalg::max_layers);
    }

    int tokens() const override { return tokens_; }
    int layers() const override { return layers_; }
    std::string name() const override { return own_name(); }
    Parameters parameters() const override {
        Parameters result{{"tokens", tokens_}};
        if (layers_ > 1) result.emplace_back("layers", layers_);
        return with_own(std::move(result));
    }
    bool logarithmic_outputs() const override {
        return ask<bool>("logarithmic_outputs", "True or False").value_or(false);
    }
    std::optional<int> exact_observations() const override {
        return ask<std::optional<int>>("exact_observations", "a whole number or None").value_or(std::nullopt);
    }
    std::optional<int> observed_combinations() const override {
        const auto own = ask<std::optional<int>>("observed_combinations", "a whole number or None");
        return own ? *own : Channel::observed_combinations();
    }
    /// A channel that defines score_power counts as exact unless it defines sampled.
    bool sampled() const override {
        const py::gil_scoped_acquire lock;
        const py::object own = call("sampled");
        return own ? returned<bool>("sampled", "True or False", own) : !find("score_power");
    }
    void check_outputs(const ConstRowsRef& outputs) const override {
        {
            const py::gil_scoped_acquire lock;
            if (call("check_outputs", outputs)) return;
        }
        Channel::check_outputs(outputs);
    }
    void draw(const ConstRowsRef& index, std::uint64_t seed, std::uint64_t first_sample,
              RowsRef outputs) const override {
        const py::gil_scoped_acquire lock;
        read_rows("outputs drawn", require("draw", index, seed, first_sample), outputs);
    }
    void score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance, RowsRef g,
               Eigen::Ref<Eigen::VectorXd> log_z) const override {
        const py::gil_scoped_acquire lock;
        const py::object given = require("score", outputs, omega, variance);
        if (!py::isinstance<py::tuple>(given)) {
            read_rows("score", given, g);
            log_z.setConstant(not_known);
            return;
        }
        const auto pair = given.cast<py::tuple>();
        if (pair.size() != 2) throw py::type_error("score must return g or (g, log_z)");
        read_rows("score", pair[0], g);
        if (log_z.size() == 0) return;
        const Array values = numbers("log Z of the score", pair[1], 1);
        check_size("log Z of the score", values.size(), log_z.size());
        log_z = Eigen::Map<const Eigen::VectorXd>(values.data(), values.size());
    }
    bool knows_log_z() const override {
        const Rows omega = Rows::Zero(1, layers_ * pairs());
        Rows outputs(1, tokens_ * tokens_), g = omega;
        Eigen::VectorXd log_z(1);
        draw(omega, 0, 0, outputs);
        score(outputs, omega, Overlap::Identity(layers_, layers_), g, log_z);
        return !std::isnan(log_z[0]);
    }
    void predict(const ConstRowsRef& omega, const Overlap& variance, RowsRef prediction) const override {
        {
            const py::gil_scoped_acquire lock;
            if (const py::object own = call("predict", omega, variance))
                return read_rows("prediction", own, prediction);
        }
        Channel::predict(omega, variance, prediction);
    }
    Overlap score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                             RowsRef g) const override {
        {
            const py::gil_scoped_acquire lock;
            if (const py::object own = call("score_with_slope", outputs, omega, variance)) {
                const auto [score, slope] =
                    returned<std::pair<py::object, py::object>>("score_with_slope", "(g, slope)", own);
                read_rows("score", score, g);
                return between_layers("slope", slope);
            }
        }
        return Channel::score_with_slope(outputs, omega, variance, g);
    }
    bool fast_slope() const override {
        const py::gil_scoped_acquire lock;
        return static_cast<bool>(find("score_with_slope"));
    }
    channels::ScorePower score_power(const OrderParameters& parameters,
                                     const Integration& integration) const override {
        {
            const py::gil_scoped_acquire lock;
            if (const py::object own = call("score_power", parameters.overlap, parameters.error)) {
                const bool pair = py::isinstance<py::tuple>(own);
                const Overlap power =
                    between_layers("score power", pair ? py::object(own[py::int_(0)]) : own);
                for (int l = 0; l < layers_; ++l) check_non_negative("score power", power(l, l));
                return {power, pair ? number("relative error", own[py::int_(1)]) : 0};
            }
        }
        return Channel::score_power(parameters, integration);
    }
    std::optional<double> information(const OrderParameters& parameters,
                                      const Integration& integration) const override {
        const auto own = ask<std::optional<double>>("information", "a number or None", parameters.overlap,
                                                    parameters.error);
        return own ? *own : Channel::information(parameters, integration);
    }
    channels::GeneralizationError generalization(const OrderParameters& parameters,
                                                 const Integration& integration) const override {
        const auto own = ask<std::pair<double, double>>("generalization", "(Bayes-optimal, plug-in)",
                                                        parameters.overlap, parameters.error);
        if (!own) return Channel::generalization(parameters, integration);
        return {own->first, own->second, 0};
    }

  private:
    /// A number for one layer, L x L and symmetric for several.
    Overlap between_layers(const char* name, const py::object& given) const {
        if (layers_ == 1) return linalg::scalar_overlap(number(name, given));
        const linalg::Matrix matrix = symmetric_matrix(name, given);
        check_size(fmt::format("rows of the {}", name), matrix.rows(), layers_);
        return matrix;
    }

    int tokens_, layers_;
};

/// A method of order parameters, called without the lock.
template <auto method>
auto at_order_parameters(const Channel& channel, const py::object& overlap, const py::object& error) {
    const OrderParameters at{covariance("overlap", overlap, channel.components()),
                             covariance("error", error, channel.components())};
    return without_lock([&] { return (channel.*method)(at, {}); });
}

/// Columns of htilde.
Eigen::Index columns(const Channel& channel) { return channel.components() * channel.pairs(); }

py::array draw(const Channel& channel, const py::object& index, const py::object& seed,
               const py::object& first_sample) {
    const std::uint64_t stream = seed_number("seed", seed), first = seed_number("first_sample", first_sample);
    const Rows given = rows("index", index, columns(channel));
    Rows outputs(given.rows(), channel.outputs());
    without_lock([&] { channel.draw(given, stream, first, outputs); });
    return to_array(std::move(outputs));
}

/// Outputs, omega and variance of the same samples.
struct Samples {
    Rows outputs, omega;
    Overlap variance;

    Samples(const Channel& channel, const py::object& y, const py::object& centre, const py::object& v)
        : outputs(output_rows(y, channel.geometry().queries, channel.geometry().keys)),
          omega(rows("omega", centre, columns(channel))),
          variance(covariance("variance", v, channel.components())) {
        check_size("rows of omega", omega.rows(), outputs.rows());
        if (!(linalg::determinant(variance) > 0))
            throw_invalid("variance", "positive", linalg::determinant(variance));
    }
};

py::tuple score(const Channel& channel, const py::object& outputs, const py::object& omega,
                const py::object& variance) {
    const Samples at(channel, outputs, omega, variance);
    Rows g(at.omega.rows(), at.omega.cols());
    Eigen::VectorXd log_z(g.rows());
    without_lock([&] { channel.score(at.outputs, at.omega, at.variance, g, log_z); });
    return py::make_tuple(to_array(std::move(g)), to_array(log_z));
}

py::tuple score_with_slope(const Channel& channel, const py::object& outputs, const py::object& omega,
                           const py::object& variance) {
    const Samples at(channel, outputs, omega, variance);
    Rows g(at.omega.rows(), at.omega.cols());
    const Overlap slope =
        without_lock([&] { return channel.score_with_slope(at.outputs, at.omega, at.variance, g); });
    return py::make_tuple(to_array(std::move(g)), layer_matrix(slope));
}

py::array predict(const Channel& channel, const py::object& omega, const py::object& variance) {
    const Rows centre = rows("omega", omega, columns(channel));
    const Overlap v = covariance("variance", variance, channel.components());
    Rows prediction(centre.rows(), channel.outputs());
    without_lock([&] { channel.predict(centre, v, prediction); });
    return to_array(std::move(prediction));
}

py::array noise(const py::object& seed, const py::object& first_sample, const py::object& row_count,
                const py::object& column_count, bool uniform) {
    const std::uint64_t stream_seed = seed_number("seed", seed),
                        first = seed_number("first_sample", first_sample);
    const int n = whole_number("rows", row_count), columns = whole_number("columns", column_count);
    check_at_least("rows", n, 0);
    check_at_least("columns", columns, 0);
    Rows values(n, columns);
    for (int i = 0; i < n; ++i) {
        const RandomStream stream(stream_seed, Purpose::label_noise, first + static_cast<std::uint64_t>(i));
        const std::span<double> row(values.row(i).data(), static_cast<std::size_t>(columns));
        uniform ? stream.fill_uniform(row) : stream.fill_normal(row);
    }
    return to_array(std::move(values));
}

constexpr const char* deep_attention_doc = R"(
Attention of the last of L layers with residual connections; outputs are its logarithms.

    y = softmax(beta H_L),  H_l = B_(l-1) h_l B_(l-1)^T,  B_l = (residual + softmax(beta H_l)) B_(l-1),  B_0 = 1

The score is an integral over the other layers: a quadrature for two layers of two tokens, else importance sampling
with `points` points. One layer is Softmax.

>>> DeepAttention(layers=2, tokens=2))";

constexpr const char* deep_sequence_doc = R"(
Read-out of a seq2seq model of L layers and two tokens, X_L = Y X_0: y = softmax(beta H_L) B_(L-1) is observed.

The score is a quadrature for two layers, where it is accurate; else importance sampling with `points` points.

>>> DeepSequence(layers=2))";

}  // namespace

void bind_channels(py::module_& module) {
    py::class_<Channel, PythonChannel, std::shared_ptr<Channel>>(module, "Channel", R"(
How the outputs y depend on the attention indices.

A sample is a row: htilde has K = T (T + 1) / 2 columns, the pairs a <= b row by row, htilde_ab = tau_ab h_ab
with tau = sqrt(2) off the diagonal (pair_scales); y has T^2. With L layers htilde, omega and g have L K
columns, layer by layer, and variance, overlap and error are L x L arrays; they are numbers for one layer.

For a channel of your own call super().__init__(tokens, layers) and define
    draw(self, index, seed, first_sample)   y, n x T^2, from htilde, n x L K; noise from
                                            self.noise(seed, first_sample, ...)
    score(self, outputs, omega, variance)   g = d log Z / d omega, n x L K, or (g, log Z), where
                                            Z = E[P(y | htilde)], htilde ~ N(omega, variance)
That is enough for state evolution and AMP: the expectations are quasi-Monte Carlo over draw and score. If you
know more, define predict(omega, variance), score_power(overlap, error), information(overlap, error),
generalization(overlap, error) -> (Bayes-optimal, plug-in), score_with_slope(outputs, omega, variance) ->
(g, sum of -dg/domega over samples and pairs; AMP of several layers is ten times faster with it),
exact_observations(), observed_combinations(), check_outputs(outputs), logarithmic_outputs(), sampled(),
name(), parameters(). bayesaim.testing.check_channel checks that they agree.

>>> bayesaim.Softmax(2).score_power(overlap=0.9, error=0.35))")
        .def(py::init([](const py::object& tokens, const py::object& layers) {
                 return std::make_shared<PythonChannel>(whole_number("tokens", tokens),
                                                        whole_number("layers", layers));
             }),
             "tokens"_a = 2, "layers"_a = 1)
        .def("name", &Channel::name, "As on the command line.")
        .def(
            "parameters", [](const Channel& channel) { return to_dict(channel.parameters()); },
            "Its numbers by name.")
        .def_property_readonly("tokens", &Channel::tokens, "T")
        .def_property_readonly("pairs", &Channel::pairs,
                               "K: the pairs of tokens whose index is seen, T (T + 1) / 2 in tied attention")
        .def_property_readonly("layers", &Channel::layers, "L")
        .def("logarithmic_outputs", &Channel::logarithmic_outputs,
             "Whether outputs are logarithms of the values that predict returns.")
        .def("exact_observations", &Channel::exact_observations,
             "m: the number of combinations of htilde that y fixes exactly, if y depends on nothing else; "
             "None for other channels.")
        .def("observed_combinations", &Channel::observed_combinations,
             "m: the number of combinations of all htilde that y fixes once the error is small; None if "
             "there is "
             "no strong recovery.")
        .def(
            "check_outputs",
            [](const Channel& channel, const py::object& outputs) {
                channel.check_outputs(
                    output_rows(outputs, channel.geometry().queries, channel.geometry().keys));
            },
            "outputs"_a, "Raises a ValueError unless these can be outputs of the channel.")
        .def(
            "sampled", &Channel::sampled,
            "Whether score_power and information are sampled. They are in your own channel unless it defines "
            "score_power.")
        .def("draw", &draw, "index"_a, "seed"_a = 0, "first_sample"_a = 0,
             "y ~ P(y | htilde).\n\n>>> Hardmax(2).draw([[0.1, 0.5, -0.2]])")
        .def("score", &score, "outputs"_a, "omega"_a, "variance"_a,
             "g = d log Z / d omega, and log Z = log E[P(y | htilde)], htilde ~ N(omega, variance).")
        .def("score_with_slope", &score_with_slope, "outputs"_a, "omega"_a, "variance"_a,
             "g, and the sum of -dg/domega over samples and pairs. On data from the model its mean is the "
             "mean of g g^T.")
        .def("predict", &predict, "omega"_a, "variance"_a = 0,
             "E[y] over htilde ~ N(omega, variance); variance 0 gives the plug-in rule.")
        .def(
            "score_power",
            [](const Channel& channel, const py::object& overlap, const py::object& error) {
                const auto power = at_order_parameters<&Channel::score_power>(channel, overlap, error);
                return py::make_tuple(layer_matrix(power.value), power.relative_error);
            },
            "overlap"_a, "error"_a, "F = E sum g g^T, and its relative standard error.")
        .def("information", &at_order_parameters<&Channel::information>, "overlap"_a, "error"_a,
             "I_out = E log Z, dI_out/dq = F; None if it is not known.")
        .def(
            "generalization",
            [](const Channel& channel, const py::object& overlap, const py::object& error) {
                const auto result = at_order_parameters<&Channel::generalization>(channel, overlap, error);
                return py::make_tuple(result.bayes_optimal, result.plug_in);
            },
            "overlap"_a, "error"_a, "Errors of the Bayes-optimal and of the plug-in prediction.")
        .def_static(
            "noise", &noise, "seed"_a, "first_sample"_a, "rows"_a, "columns"_a, "uniform"_a = false,
            "Normal (or uniform) noise of samples first_sample, ...: the same for a sample in any batch.")
        .def("__repr__", [](const py::object& self) {
            return call_text(self, self.cast<const Channel&>().parameters());
        });
    const std::pair tokens(&whole_number, "tokens"_a = 2), layers(&whole_number, "layers"_a = 2);
    const std::pair beta(&number, "beta"_a = 1), residual(&number, "residual"_a = 1);
    const std::pair points(&whole_number, "points"_a = 1024);
    bind_class<channels::Linear, Channel>(
        module, "Linear", "y_ab = h_ab + sqrt(label_noise) z_ab.\n\n>>> Linear(2, label_noise=0.1)", tokens,
        std::pair(&number, "label_noise"_a = 0));
    bind_class<channels::Softmax, Channel>(
        module, "Softmax",
        "y = softmax(beta h) row by row; outputs are log y.\n\n>>> Softmax(tokens=2, beta=1)", tokens, beta);
    bind_class<channels::Hardmax, Channel>(
        module, "Hardmax",
        "y_ab = 1 where h_ab is the largest of row a, else 0; 2 to 6 tokens.\n\n>>> Hardmax(2)", tokens);
    bind_class<channels::HardmaxSampled, Channel>(
        module, "HardmaxSampled",
        "Hardmax with averages computed anew instead of stored ones, as a check; slow.\n\n"
        ">>> HardmaxSampled(3)",
        tokens);
    bind_class<channels::HardmaxAsPrinted, Channel>(
        module, "HardmaxAsPrinted",
        "Hardmax with the score that the paper prints, only to reproduce its curve.\n\n"
        ">>> HardmaxAsPrinted()",
        tokens);
    bind_class<channels::DeepAttention, Channel, channels::DeepAttentionOptions>(
        module, "DeepAttention", deep_attention_doc, layers, tokens, beta, residual, points);
    bind_class<channels::DeepSequence, Channel, channels::DeepSequenceOptions>(
        module, "DeepSequence", deep_sequence_doc, layers, beta, residual, points);
    module.def(
        "log_normal_cdf", [](const Array& x) { return map(x, numerics::log_normal_cdf); }, "x"_a);
    module.def(
        "inverse_mills_ratio", [](const Array& x) { return map(x, numerics::inverse_mills_ratio); }, "x"_a);
    module.def(
        "pair_scales",
        [](const py::object& count) {
            return to_array(channels::pair_scales(whole_number("tokens", count)));
        },
        "tokens"_a, "tau_ab = sqrt(2 - delta_ab) over the pairs a <= b.\n\n>>> pair_scales(2)");
}

}  // namespace bayesaim::python
