// SPDX-License-Identifier: MIT
// Values of options: grids, shards, names of methods.
#include <cmath>

#include "bayesaim/channels/geometry.hpp"
#include "bayesaim/data/tokens.hpp"
#include "bayesaim/estimators/amp.hpp"
#include "bayesaim/estimators/erm.hpp"
#include "bayesaim/experiments/grid.hpp"
#include "bayesaim/experiments/results.hpp"
#include "bayesaim/losses/penalty.hpp"
#include "bayesaim/theory/state_evolution.hpp"

#include "fuzz.hpp"

namespace {

using namespace bayesaim;

void read_grid(std::string_view text, experiments::Grid::Zero zero) {
    const experiments::Grid grid("--alpha", text, zero);
    const auto values = grid.values(0.25);
    if (values.empty() || values.size() != grid.size()) fuzz::fail("an empty grid");
    for (const double value : values) {
        if (!std::isfinite(value) || value < 0) fuzz::fail("a grid with a bad number");
    }
    if (!grid.relative()) return;
    fuzz::accepts([&] {
        grid.values();
        fuzz::fail("a relative grid without a unit");
    });
}

void read_shard(std::string_view text) {
    const experiments::Shard shard = experiments::parse_shard("--shard", text);
    if (shard.index < 1 || shard.index > shard.count) fuzz::fail("a shard that is not among its own");
    const experiments::Shard again = experiments::parse_shard("--shard", shard.text());
    if (again.index != shard.index || again.count != shard.count) fuzz::fail("a shard that changes");
}

}  // namespace

FUZZ_TARGET(values) {
    using experiments::Grid;
    fuzz::Description description(input);
    const unsigned parser = description.byte();
    const std::string_view text = fuzz::text_of(input.subspan(std::min<std::size_t>(input.size(), 1)));
    // Ten million points are allowed, but would take all the time.
    const std::string_view count = text.substr(std::min(text.rfind(':'), text.size()));
    if (count.size() > 5) return;
    fuzz::accepts([&] {
        switch (parser % 10) {
            case 0:
                return read_grid(text, Grid::Zero::refused);
            case 1:
                return read_grid(text, Grid::Zero::allowed);
            case 2:
                return read_shard(text);
            case 3:
                return (void)channels::parse_attention("--attention", text);
            case 4:
                return (void)losses::parse_penalty("--penalty", text);
            case 5:
                return (void)data::parse_token_storage("--token-storage", text);
            case 6:
                return (void)data::parse_precision("--precision", text);
            case 7:
                return (void)theory::parse_method("--method", text);
            case 8:
                return (void)estimators::parse_response("--response", text);
            default:
                return (void)estimators::parse_solver("--solver", text);
        }
    });
}
