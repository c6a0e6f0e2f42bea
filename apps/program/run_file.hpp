// SPDX-License-Identifier: MIT
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bayesaim/data/saved_state.hpp"

#include "program/command.hpp"
#include "program/report.hpp"

namespace bayesaim::program {

/// --checkpoint, --checkpoint-every, --resume
struct CheckpointArguments {
    std::string file{};
    int every = 10;
    bool resume = false;

    /// `steps` names what is counted.
    void add_to(Command& to, const std::string& steps);
    /// Throws InvalidArgument for a wrong option, and for a file that exists without --resume.
    void check() const;
    /// Of an interrupted command.
    const char* remark() const;
};

/// The file, if it has a name. The first rank writes it, all read it.
class CheckpointFile {
  public:
    /// With `resume`, reads the file; throws if it has another command or other settings than the report.
    CheckpointFile(const CheckpointArguments& arguments, const Report& settings);

    data::SavedState take_state() { return std::exchange(state_, {}); }
    bool named() const { return !file_.empty(); }
    bool writes() const;
    void write(data::SavedState state) const;

  private:
    std::string file_, settings_;  // settings: JSON
    data::SavedState state_;
};

/// The finished runs of a command, and the state of the next one.
template <class Run>
class RunFile {
  public:
    RunFile(const CheckpointArguments& arguments, const Report& settings) : file_(arguments, settings) {
        const data::SavedState state = file_.take_state();
        load(state, "finished", finished_);
        next_ = state.below("next.");
    }

    const std::vector<Run>& finished() const { return finished_; }
    /// State of the next run; null before its first step.
    std::shared_ptr<const data::SavedState> take_next() {
        if (next_.empty()) return nullptr;
        return std::make_shared<data::SavedState>(std::exchange(next_, {}));
    }

    /// Lets a solver resume the next run from here, and save it. All ranks do: they save together.
    template <class Options>
    void connect(int every, Options& options) {
        if (!file_.named()) return;
        options.resume = take_next();
        options.save_stride = every;
        options.save = [this](const data::SavedState& state) { save(state); };
    }

    void finish(Run run) {
        finished_.push_back(std::move(run));
        save({});
    }
    /// Saves the state of the next run.
    void save(data::SavedState next) const {
        if (!file_.writes()) return;
        data::SavedState state;
        data::save(state, "finished", finished_);
        state.add_below("next.", std::move(next));
        file_.write(std::move(state));
    }

  private:
    CheckpointFile file_;
    std::vector<Run> finished_;
    data::SavedState next_;
};

}  // namespace bayesaim::program
