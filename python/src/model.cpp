// SPDX-License-Identifier: MIT
// Models: a channel with a prior for each of its layers; channels and priors by name.
#include "bayesaim/model/model.hpp"

#include <fmt/format.h>

#include "bayesaim/core/table.hpp"

#include "binding.hpp"

namespace bayesaim::python {
namespace {

using channels::Channel;
using priors::Prior;

/// Sets a given option. Throws InvalidArgument if this row of a table does not take it.
template <class Row, class Convert, class Member>
void set_option(const char* kind, const Row& row, const char* name, const py::object& value, Convert convert,
                Member& member) {
    if (value.is_none()) return;
    if (!takes(row, name))
        throw_inapplicable(name, model::owners_of_option(name), fmt::format("{} is {}", kind, row.name));
    member = convert(name, value);
}

std::shared_ptr<Channel> make_channel(const py::object& name, const py::object& tokens,
                                      const py::object& beta, const py::object& label_noise,
                                      const py::object& layers, const py::object& residual,
                                      const py::object& attention, const py::object& key_tokens) {
    const auto& row = find_row(channels::channel_table(), "channel", text("channel", name));
    channels::ChannelOptions options;
    set_option("channel", row, "tokens", tokens, whole_number, options.tokens);
    set_option("channel", row, "beta", beta, number, options.beta);
    set_option("channel", row, "label_noise", label_noise, number, options.label_noise);
    set_option("channel", row, "layers", layers, whole_number, options.layers);
    set_option("channel", row, "residual", residual, number, options.residual);
    set_option(
        "channel", row, "attention", attention,
        [](const char* argument, const py::object& value) {
            return channels::parse_attention(argument, text(argument, value));
        },
        options.attention);
    set_option("channel", row, "key_tokens", key_tokens, whole_number, options.key_tokens);
    return row.make(options);
}

std::shared_ptr<Prior> make_prior(const py::object& name, const py::object& width, const py::object& spectrum,
                                  const py::object& heads, const py::object& aspect, const py::object& scale,
                                  const py::object& exponent, const py::object& cutoff) {
    const auto& row = find_row(priors::prior_table(), "prior", text("prior", name));
    priors::PriorOptions options;
    set_option("prior", row, "width", width, number, options.width);
    set_option("prior", row, "spectrum", spectrum, text, options.spectrum);
    set_option("prior", row, "heads", heads, whole_number, options.heads);
    set_option("prior", row, "aspect", aspect, number, options.aspect);
    set_option("prior", row, "scale", scale, number, options.scale);
    set_option("prior", row, "exponent", exponent, number, options.exponent);
    set_option("prior", row, "cutoff", cutoff, number, options.cutoff);
    return row.make(options);
}

}  // namespace

void bind_model(py::module_& module) {
    // Gets the laws of priors written in Python while the lock is held, and keeps priors and channel alive.
    py::class_<model::Model>(module, "Model")
        .def(py::init([](const std::vector<std::shared_ptr<Prior>>& priors,
                         const std::shared_ptr<Channel>& channel) {
                 return std::make_unique<model::Model>(
                     channel, std::vector<std::shared_ptr<const Prior>>(priors.begin(), priors.end()));
             }),
             "priors"_a, "channel"_a, py::keep_alive<1, 2>(), py::keep_alive<1, 3>());
    module.def("channel_names", [] { return names_of(channels::channel_table()); });
    module.def("prior_names", [] { return names_of(priors::prior_table()); });
    const py::none none;
    module.def(
        "make_channel", &make_channel, "name"_a, "tokens"_a = none, "beta"_a = none, "label_noise"_a = none,
        "layers"_a = none, "residual"_a = none, "attention"_a = none, "key_tokens"_a = none,
        "A channel by its name on the command line, with the same defaults. attention is 'tied', 'cross', "
        "'masked', 'self' or 'causal'.\n\n"
        ">>> make_channel('softmax', tokens=3, attention='masked')");
    module.def("make_prior", &make_prior, "name"_a, "width"_a = none, "spectrum"_a = none, "heads"_a = none,
               "aspect"_a = none, "scale"_a = none, "exponent"_a = none, "cutoff"_a = none,
               "A prior by its name on the command line, with the same defaults.\n\n"
               ">>> make_prior('wishart', width=0.5)");
}

}  // namespace bayesaim::python
