// SPDX-License-Identifier: MIT
// Stores of runs. A line "0REST" becomes a record of the first task with this payload, and the right checksum; "@REST" behind the
// digit stands for the outcome alone. Other lines are written as they are.
#include <sstream>

#include "bayesaim/core/files.hpp"
#include "bayesaim/experiments/results.hpp"
#include "bayesaim/experiments/task_json.hpp"

#include "fuzz.hpp"

namespace {

using namespace bayesaim;
using namespace bayesaim::experiments;

const Experiment& study() {
    static const Experiment result =
        parse_experiment("estimator = \"amp\"\nalpha = 0.1\ndim = 10\nseeds = 2\n", "study.toml");
    return result;
}

const std::vector<std::string>& keys() {
    static const std::vector<std::string> result = {key(study().tasks[0]), key(study().tasks[1])};
    return result;
}

std::string store_of(std::string_view description) {
    std::string text(store_format);
    text += '\n';
    std::istringstream lines{std::string(description)};
    for (std::string line; std::getline(lines, line);) {
        const auto task = static_cast<std::size_t>(line.empty() ? -1 : line[0] - '0');
        if (task >= study().tasks.size()) {
            text += line + (lines.eof() ? "" : "\n");
            continue;
        }
        std::string payload = line.substr(1);
        if (payload.starts_with('@'))
            payload = "{\"task\":" + to_json(study().tasks[task], false).dump() +
                      ",\"outcome\":" + payload.substr(1) + "}";
        const std::string content = keys()[task] + ' ' + payload;
        text += content + ' ' + fingerprint(content) + '\n';
    }
    return text;
}

}  // namespace

FUZZ_TARGET(store) {
    const std::string_view text = fuzz::text_of(input);
    // With '=' in front, the bytes are the file.
    const std::string file =
        fuzz::memory_file(text.starts_with('=') ? std::string(text.substr(1)) : store_of(text));
    StoredRecords records;
    if (!fuzz::accepts([&] { records = read_records(file); })) return;
    fuzz::accepts([&] {
        const auto points = points_of(study(), records);
        if (!points[0].outcome && !points[1].outcome) return;
        results_csv(points);
        summary_csv(points);
        provenance_json({"", "", study(), {}, points});
    });
    const RunStore store(file);  // repairs it
    if (store.records().payloads != records.payloads) fuzz::fail("a store that changes");
}
