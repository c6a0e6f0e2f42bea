// SPDX-License-Identifier: MIT
// Studies in TOML.
#include "bayesaim/experiments/experiment_file.hpp"
#include "bayesaim/experiments/task_json.hpp"

#include "fuzz.hpp"

FUZZ_TARGET(study) {
    using namespace bayesaim;
    using namespace bayesaim::experiments;
    const std::string_view text = fuzz::text_of(input);
    int digits = 0;  // of a grid with many points
    for (const char c : text) {
        digits = c >= '0' && c <= '9' ? digits + 1 : 0;
        if (digits > 4) return;
        // toml++ 3.3 reaches its "unreachable" at other letters outside texts, and goes on to the right message.
        if (static_cast<unsigned char>(c) >= 0x80) return;
    }
    constexpr std::size_t most_points = 8;
    Experiment study;
    if (!fuzz::accepts([&] { study = parse_experiment(text, "study.toml", "/nowhere", most_points); }))
        return;
    for (const Task& task : study.tasks) {
        // What the store keeps is the task.
        if (canonical(task_from_json(to_json(task, true))) != canonical(task))
            fuzz::fail("a task that changes");
    }
}
