// SPDX-License-Identifier: MIT
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "bayesaim/estimators/gradient_descent.hpp"
#include "program/report.hpp"

namespace bayesaim::program {

/// Gradient descent on one problem, a seed at one alpha, done.
struct GdRun {
    std::vector<double> errors,
        averaged;  ///< of each start, and of the mean of the first ones; NaN: diverged
    std::vector<std::vector<estimators::DescentStep>> records{};
    std::vector<int> steps{};
    std::vector<Termination> ends{};
    double seconds_per_step = 0;
    std::optional<double> amp_error{};
    Termination status = Termination::stopped;
};

/// The runs of `gd` that are done, and where the next one stands; kept in a checkpoint file when it has a
/// name.
class GdRuns {
  public:
    /// Reads the file when asked to resume, and refuses one of other settings.
    GdRuns(const std::string& file, bool resume, const Json& settings);

    const std::vector<GdRun>& finished() const { return finished_; }
    /// Where the next run stands; empty before its first step.
    std::vector<estimators::Descent> take_descents();

    void finish(GdRun run);
    /// Keeps the next run as it stands.
    void save(const std::vector<estimators::Descent>& descents) const;

  private:
    std::string file_;
    Json settings_;
    std::vector<GdRun> finished_;
    std::vector<estimators::Descent> descents_;
};

}  // namespace bayesaim::program
