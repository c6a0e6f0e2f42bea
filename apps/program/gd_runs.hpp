// SPDX-License-Identifier: MIT
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "bayesaim/estimators/gradient_descent.hpp"

#include "program/report.hpp"

namespace bayesaim::program {

/// A finished run of gradient descent: one seed at one alpha.
struct GdRun {
    std::vector<double> errors,
        averaged;  ///< of each start, and of the mean of the first ones; NaN: diverged
    std::vector<std::vector<estimators::DescentStep>> records{};
    std::vector<int> steps{};
    std::vector<Termination> ends{};
    double seconds_per_step = 0;
    std::optional<double> amp_error{};
    std::optional<double> training_objective{};  ///< mean over starts; with weight decay only
    Termination status = Termination::stopped;
};

/// The finished runs of `gd` and the state of the next one. Kept in a checkpoint file if it has a name.
class GdRuns {
  public:
    /// With `resume`, reads the file; throws if the file has other settings.
    GdRuns(const std::string& file, bool resume, Record settings);

    const std::vector<GdRun>& finished() const { return finished_; }
    /// State of the next run; empty before its first step.
    std::vector<estimators::Descent> take_descents();

    void finish(GdRun run);
    /// Saves the state of the next run.
    void save(const std::vector<estimators::Descent>& descents) const;

  private:
    std::string file_;
    std::string settings_;  ///< JSON
    std::vector<GdRun> finished_;
    std::vector<estimators::Descent> descents_;
};

}  // namespace bayesaim::program
