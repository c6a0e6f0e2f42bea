// SPDX-License-Identifier: MIT
// Provenance files, which `rerun` reads.
#include "bayesaim/experiments/results.hpp"

#include "fuzz.hpp"

FUZZ_TARGET(provenance) {
    using namespace bayesaim;
    using namespace bayesaim::experiments;
    Provenance first;
    if (!fuzz::accepts([&] { first = read_provenance(fuzz::memory_file(fuzz::text_of(input))); })) return;
    results_csv(first.points);
    summary_csv(first.points);
    varying_settings(first.points);
    // Written again it is the same study.
    const Provenance second = read_provenance(fuzz::memory_file(provenance_json(first)));
    if (second.points.size() != first.points.size()) fuzz::fail("another number of points");
    for (std::size_t i = 0; i < first.points.size(); ++i) {
        if (canonical(first.points[i].task) != canonical(second.points[i].task))
            fuzz::fail("a task that changes");
    }
    const Comparison same = compare(first.points, second.points);
    if (same.same != same.compared) fuzz::fail("an outcome that changes");
}
