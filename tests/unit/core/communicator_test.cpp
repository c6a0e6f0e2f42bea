// SPDX-License-Identifier: MIT
#include "bayesaim/core/communicator.hpp"

#include <cstdlib>

#include <gtest/gtest.h>

namespace bayesaim {
namespace {

/// Messages to nobody would wait for ever: they are mistakes of the program.
TEST(OneProcess, HasNobodyToTalkTo) {
    Communicator& alone = one_process();
    EXPECT_EQ(alone.rank(), 0);
    EXPECT_EQ(alone.size(), 1);
    double number = 3;
    EXPECT_THROW(alone.send(bytes_of(number), 0), std::logic_error);
    EXPECT_THROW(alone.receive(bytes_of(number), 0), std::logic_error);
    EXPECT_THROW(alone.post("text", 0), std::logic_error);
    EXPECT_FALSE(alone.poll());
    alone.broadcast(bytes_of(number));
    EXPECT_EQ(number, 3);
    EXPECT_EQ(alone.bytes_moved(), 0);
}

/// The variables of mpirun and srun, put back at the end.
class LauncherVariables : public ::testing::Test {
  protected:
    LauncherVariables() {
        for (const char* name : names_) {
            const char* value = std::getenv(name);
            before_.emplace_back(value != nullptr ? value : "");
            unsetenv(name);
        }
    }
    ~LauncherVariables() override {
        for (std::size_t i = 0; i < before_.size(); ++i) {
            if (before_[i].empty()) {
                unsetenv(names_[i]);
            } else {
                setenv(names_[i], before_[i].c_str(), 1);
            }
        }
    }

  private:
    static constexpr const char* names_[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK",
                                             "OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_STEP_TASKS_PER_NODE"};
    std::vector<std::string> before_;
};

TEST_F(LauncherVariables, TellWhetherThereIsALauncher) {
    EXPECT_FALSE(started_by_launcher());
    setenv("PMIX_RANK", "0", 1);
    EXPECT_TRUE(started_by_launcher());
    unsetenv("PMIX_RANK");
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    EXPECT_TRUE(started_by_launcher());
}

/// Threads are divided over the processes of one machine, of which there is at least this one.
TEST_F(LauncherVariables, TellTheProcessesOfThisMachine) {
    EXPECT_EQ(processes_here(), 1U);
    for (const auto& [text, count] : {std::pair("3", 3U), {"2(x3),1", 2U}, {"0", 1U}, {"none", 1U}}) {
        setenv("SLURM_STEP_TASKS_PER_NODE", text, 1);
        EXPECT_EQ(processes_here(), count) << text;
    }
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "5", 1);
    EXPECT_EQ(processes_here(), 5U);
}

}  // namespace
}  // namespace bayesaim
