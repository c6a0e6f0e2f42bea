// SPDX-License-Identifier: MIT
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "bayesaim/experiments/task.hpp"

namespace bayesaim::experiments {

/// A study: its tasks in a fixed order, without repetitions.
struct Experiment {
    std::string name;
    std::vector<Task> tasks;
};

/// Reads a study from TOML. Each [[run]] gives values to the settings of setting_table() and to `seeds`. A
/// list means one point per combination. Settings above the first [[run]] hold for all runs:
///
///   width = [0.5, 1]
///   [[run]]
///   estimator = "theory"
///   alpha = "0.1x:1.1x:11"
///   [[run]]
///   estimator = "amp"
///   alpha = "0.3x,0.6x"
///   dim = 100
///   seeds = 4
///
/// A value may be a number, a list of numbers or the text of a Grid, in which `x` is the strong-recovery
/// threshold of each point. `seeds` is a count, from `seed` on, or a list.
/// Throws InvalidArgument: "study.toml:3:9: width must be ...". File names in it are relative to `directory`. A study of more
/// points than `most_points` is refused; a million take about a gigabyte.
Experiment parse_experiment(std::string_view text, const std::string& source,
                            const std::filesystem::path& directory = {}, std::size_t most_points = 1'000'000);

/// The same from a file. Without `name` in it, the study is named after the file, without extension.
Experiment read_experiment(const std::filesystem::path& file);

}  // namespace bayesaim::experiments
