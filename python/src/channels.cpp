// SPDX-License-Identifier: MIT
// Channels: those of the table, and one's own by subclassing.
#include <cmath>

#include <Eigen/LU>
#include <fmt/format.h>

#include "bayesaim/channels/hardmax.hpp"
#include "bayesaim/channels/linear.hpp"
#include "bayesaim/channels/sampled_channel.hpp"
#include "bayesaim/channels/softmax.hpp"
#include "bayesaim/channels/table.hpp"
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

py::array copy_of(const ConstRowsRef& matrix) { return to_array(Rows(matrix)); }

/// What a method of a Python channel returned, n x columns and finite.
void read_rows(const std::string& what, const py::object& given, RowsRef out) {
    const Rows values = rows(what.c_str(), given, out.cols());
    check_size("rows of the " + what, values.rows(), out.rows());
    out = values;
}

/// A channel written in Python. Arrays come in batches, one sample per row, and are the method's to keep.
class PythonChannel final : public channels::SampledChannel {
  public:
    explicit PythonChannel(int tokens) : tokens_(tokens) { channels::pair_scales(tokens); }

    int tokens() const override { return tokens_; }
    std::string name() const override {
        const py::gil_scoped_acquire lock;
        const py::function own = find("name");
        if (own) return returned<std::string>("name", "a text", own());
        return type_name(py::cast(as_channel()));
    }
    Parameters parameters() const override {
        const py::gil_scoped_acquire lock;
        Parameters result{{"tokens", tokens_}};
        if (const py::function own = find("parameters")) append_parameters(own(), result);
        return result;
    }
    bool logarithmic_outputs() const override {
        const py::gil_scoped_acquire lock;
        const py::function own = find("logarithmic_outputs");
        return own && returned<bool>("logarithmic_outputs", "True or False", own());
    }
    std::optional<int> exact_observations() const override {
        const py::gil_scoped_acquire lock;
        const py::function own = find("exact_observations");
        return own ? returned<std::optional<int>>("exact_observations", "a whole number or None", own())
                   : std::nullopt;
    }
    /// A channel that brings its own score_power is taken to be exact, unless it says otherwise.
    bool sampled() const override {
        const py::gil_scoped_acquire lock;
        const py::function own = find("sampled");
        return own ? returned<bool>("sampled", "True or False", own()) : !find("score_power");
    }
    void draw(const ConstRowsRef& index, std::uint64_t seed, std::uint64_t first_sample,
              RowsRef outputs) const override {
        const py::gil_scoped_acquire lock;
        read_rows("outputs drawn", require("draw")(copy_of(index), seed, first_sample), outputs);
    }
    void score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance, RowsRef g,
               Eigen::Ref<Eigen::VectorXd> log_z) const override {
        const py::gil_scoped_acquire lock;
        const py::object given = require("score")(copy_of(outputs), copy_of(omega), variance(0, 0));
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
        const Rows omega = Rows::Zero(1, pairs());
        Rows outputs(1, tokens_ * tokens_), g(1, pairs());
        Eigen::VectorXd log_z(1);
        draw(omega, 0, 0, outputs);
        score(outputs, omega, linalg::scalar_overlap(1), g, log_z);
        return !std::isnan(log_z[0]);
    }
    void predict(const ConstRowsRef& omega, const Overlap& variance, RowsRef prediction) const override {
        {
            const py::gil_scoped_acquire lock;
            if (const py::function own = find("predict"))
                return read_rows("prediction", own(copy_of(omega), variance(0, 0)), prediction);
        }
        SampledChannel::predict(omega, variance, prediction);
    }
    channels::ScorePower score_power(const OrderParameters& parameters,
                                     const Integration& integration) const override {
        {
            const py::gil_scoped_acquire lock;
            if (const py::function own = find("score_power")) {
                const py::object given = own(parameters.overlap(0, 0), parameters.error(0, 0));
                const bool pair = py::isinstance<py::tuple>(given);
                const py::object value = pair ? py::object(given.cast<py::tuple>()[0]) : given;
                const double power = number("score power", value);
                check_non_negative("score power", power);
                return {linalg::scalar_overlap(power),
                        pair ? number("relative error", given.cast<py::tuple>()[1]) : 0};
            }
        }
        return SampledChannel::score_power(parameters, integration);
    }
    std::optional<double> information(const OrderParameters& parameters,
                                      const Integration& integration) const override {
        {
            const py::gil_scoped_acquire lock;
            if (const py::function own = find("information"))
                return returned<std::optional<double>>("information", "a number or None",
                                                       own(parameters.overlap(0, 0), parameters.error(0, 0)));
        }
        return SampledChannel::information(parameters, integration);
    }
    channels::GeneralizationError generalization(const OrderParameters& parameters,
                                                 const Integration& integration) const override {
        {
            const py::gil_scoped_acquire lock;
            if (const py::function own = find("generalization")) {
                const auto [bayes_optimal, plug_in] = returned<std::pair<double, double>>(
                    "generalization", "(Bayes-optimal, plug-in)",
                    own(parameters.overlap(0, 0), parameters.error(0, 0)));
                return {bayes_optimal, plug_in, 0};
            }
        }
        return SampledChannel::generalization(parameters, integration);
    }

  private:
    const Channel* as_channel() const { return this; }
    py::function find(const char* method) const { return py::get_override(as_channel(), method); }
    py::function require(const char* method) const {
        py::function own = find(method);
        if (!own) throw py::type_error(fmt::format("a channel needs a method {}", method));
        return own;
    }

    int tokens_;
};

OrderParameters order_parameters(const Channel& channel, const py::object& overlap, const py::object& error) {
    return {covariance("overlap", overlap, channel.layers()), covariance("error", error, channel.layers())};
}

/// Columns of htilde.
Eigen::Index columns(const Channel& channel) { return channel.layers() * channel.pairs(); }

py::array draw(const Channel& channel, const py::object& index, const py::object& seed,
               const py::object& first_sample) {
    const std::uint64_t stream = seed_number("seed", seed), first = seed_number("first_sample", first_sample);
    const Rows given = rows("index", index, columns(channel));
    Rows outputs(given.rows(), channel.tokens() * channel.tokens());
    {
        const py::gil_scoped_release unlock;
        channel.draw(given, stream, first, outputs);
    }
    return to_array(std::move(outputs));
}

py::tuple score(const Channel& channel, const py::object& outputs, const py::object& omega,
                const py::object& variance) {
    const Rows y = rows("outputs", outputs, channel.tokens() * channel.tokens()),
               centre = rows("omega", omega, columns(channel));
    check_size("rows of omega", centre.rows(), y.rows());
    const Overlap v = covariance("variance", variance, channel.layers());
    if (!(v.determinant() > 0)) throw_invalid("variance", "positive", v.determinant());
    Rows g(y.rows(), columns(channel));
    Eigen::VectorXd log_z(y.rows());
    {
        const py::gil_scoped_release unlock;
        channel.score(y, centre, v, g, log_z);
    }
    return py::make_tuple(to_array(std::move(g)), to_array(log_z));
}

py::array predict(const Channel& channel, const py::object& omega, const py::object& variance) {
    const Rows centre = rows("omega", omega, columns(channel));
    const Overlap v = covariance("variance", variance, channel.layers());
    Rows prediction(centre.rows(), channel.tokens() * channel.tokens());
    {
        const py::gil_scoped_release unlock;
        channel.predict(centre, v, prediction);
    }
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

}  // namespace

void bind_channels(py::module_& module) {
    py::class_<Channel, PythonChannel, std::shared_ptr<Channel>>(module, "Channel", R"(
How the outputs y depend on the attention indices.

A sample is a row: htilde has K = T (T + 1) / 2 columns, the pairs a <= b row by row, htilde_ab = tau_ab h_ab with
tau = sqrt(2) off the diagonal (pair_scales); y has T^2. For a channel of your own call super().__init__(tokens) and
define
    draw(self, index, seed, first_sample)   y, n x T^2, from htilde, n x K; noise from self.noise(seed, first_sample, ...)
    score(self, outputs, omega, variance)   g = d log Z / d omega, n x K, or (g, log Z), where
                                            Z = E[P(y | htilde)], htilde ~ N(omega, variance)
That is enough for state evolution and AMP: the expectations are quasi-Monte Carlo over draw and score. Where you
know better, define predict(omega, variance), score_power(overlap, error), information(overlap, error),
generalization(overlap, error) -> (Bayes-optimal, plug-in), exact_observations(), logarithmic_outputs(), sampled(),
name(), parameters(). bayesaim.testing.check_channel tells whether they fit together.

>>> bayesaim.Softmax(2).score_power(overlap=0.9, error=0.35))")
        .def(py::init([](const py::object& tokens) {
                 return std::make_shared<PythonChannel>(whole_number("tokens", tokens));
             }),
             py::arg("tokens") = 2)
        .def("name", &Channel::name)
        .def("parameters", [](const Channel& channel) { return to_dict(channel.parameters()); })
        .def_property_readonly("tokens", &Channel::tokens, "T")
        .def_property_readonly("pairs", &Channel::pairs, "K = T (T + 1) / 2")
        .def_property_readonly("layers", &Channel::layers,
                               "L; with several, htilde, omega and g have L K columns, layer by layer, and "
                               "variance, overlap and error are L x L")
        .def("logarithmic_outputs", &Channel::logarithmic_outputs,
             "Whether outputs are logarithms of what predict gives.")
        .def("exact_observations", &Channel::exact_observations,
             "m: how many combinations of htilde y fixes exactly, while it tells nothing of the others.")
        .def("sampled", &Channel::sampled,
             "Whether score_power and information are sampled rather than exact; of your own channels those "
             "without a score_power of theirs.")
        .def("draw", &draw, py::arg("index"), py::arg("seed") = 0, py::arg("first_sample") = 0,
             "y ~ P(y | htilde).\n\n>>> Hardmax(2).draw([[0.1, 0.5, -0.2]])")
        .def("score", &score, py::arg("outputs"), py::arg("omega"), py::arg("variance"),
             "g = d log Z / d omega, and log Z = log E[P(y | htilde)], htilde ~ N(omega, variance).")
        .def("predict", &predict, py::arg("omega"), py::arg("variance") = 0,
             "E[y] over htilde ~ N(omega, variance); variance 0 gives the plug-in rule.")
        .def(
            "score_power",
            [](const Channel& channel, const py::object& overlap, const py::object& error) {
                const OrderParameters at = order_parameters(channel, overlap, error);
                const auto power = without_lock([&] { return channel.score_power(at, {}); });
                const py::object value =
                    channel.layers() == 1 ? py::object(py::float_(power.value(0, 0))) : to_array(power.value);
                return py::make_tuple(value, power.relative_error);
            },
            py::arg("overlap"), py::arg("error"), "F = E sum g^2, and its relative standard error.")
        .def(
            "information",
            [](const Channel& channel, const py::object& overlap, const py::object& error) {
                const OrderParameters at = order_parameters(channel, overlap, error);
                return without_lock([&] { return channel.information(at, {}); });
            },
            py::arg("overlap"), py::arg("error"),
            "I_out = E log Z, dI_out/dq = F; None where it is not known.")
        .def(
            "generalization",
            [](const Channel& channel, const py::object& overlap, const py::object& error) {
                const OrderParameters at = order_parameters(channel, overlap, error);
                const auto result = without_lock([&] { return channel.generalization(at, {}); });
                return py::make_tuple(result.bayes_optimal, result.plug_in);
            },
            py::arg("overlap"), py::arg("error"),
            "Errors of the Bayes-optimal and of the plug-in prediction.")
        .def_static(
            "noise", &noise, py::arg("seed"), py::arg("first_sample"), py::arg("rows"), py::arg("columns"),
            py::arg("uniform") = false,
            "Normal (or uniform) noise of samples first_sample, ...: the same for a sample in any batch.")
        .def("__repr__", [](const py::object& self) {
            return call_text(self, self.cast<const Channel&>().parameters());
        });
    py::class_<channels::Linear, Channel, std::shared_ptr<channels::Linear>>(
        module, "Linear", "y_ab = h_ab + sqrt(label_noise) z_ab.\n\n>>> Linear(2, label_noise=0.1)")
        .def(py::init([](const py::object& tokens, const py::object& label_noise) {
                 return std::make_shared<channels::Linear>(whole_number("tokens", tokens),
                                                           number("label_noise", label_noise));
             }),
             py::arg("tokens") = 2, py::arg("label_noise") = 0);
    py::class_<channels::Softmax, Channel, std::shared_ptr<channels::Softmax>>(
        module, "Softmax",
        "y = softmax(beta h) row by row; outputs are log y.\n\n>>> Softmax(tokens=2, beta=1)")
        .def(py::init([](const py::object& tokens, const py::object& beta) {
                 return std::make_shared<channels::Softmax>(whole_number("tokens", tokens),
                                                            number("beta", beta));
             }),
             py::arg("tokens") = 2, py::arg("beta") = 1);
    py::class_<channels::Hardmax, Channel, std::shared_ptr<channels::Hardmax>>(
        module, "Hardmax",
        "y_ab = 1 where h_ab is the largest of row a, else 0; 2 to 6 tokens.\n\n>>> Hardmax(2)")
        .def(py::init([](const py::object& tokens) {
                 return std::make_shared<channels::Hardmax>(whole_number("tokens", tokens));
             }),
             py::arg("tokens") = 2);
    py::class_<channels::HardmaxAsPrinted, Channel, std::shared_ptr<channels::HardmaxAsPrinted>>(
        module, "HardmaxAsPrinted",
        "Hardmax with the score that the paper prints, only to reproduce its curve.\n\n>>> "
        "HardmaxAsPrinted()")
        .def(py::init([](const py::object& tokens) {
                 return std::make_shared<channels::HardmaxAsPrinted>(whole_number("tokens", tokens));
             }),
             py::arg("tokens") = 2);
    module.def(
        "log_normal_cdf", [](const Array& x) { return map(x, numerics::log_normal_cdf); }, py::arg("x"));
    module.def(
        "inverse_mills_ratio", [](const Array& x) { return map(x, numerics::inverse_mills_ratio); },
        py::arg("x"));
    module.def("channel_names", &channels::channel_names);
    module.def(
        "make_channel",
        [](const py::object& name, const py::object& tokens, const py::object& beta,
           const py::object& label_noise) {
            return std::shared_ptr<Channel>(channels::make_channel(
                text("channel", name),
                {whole_number("tokens", tokens), number("beta", beta), number("label_noise", label_noise)}));
        },
        py::arg("name"), py::arg("tokens") = 2, py::arg("beta") = 1, py::arg("label_noise") = 0,
        "A channel by its name on the command line.\n\n>>> make_channel('softmax', tokens=3)");
    module.def(
        "pair_scales",
        [](const py::object& tokens) {
            return to_array(channels::pair_scales(whole_number("tokens", tokens)));
        },
        py::arg("tokens"), "tau_ab = sqrt(2 - delta_ab) over the pairs a <= b.\n\n>>> pair_scales(2)");
}

}  // namespace bayesaim::python
