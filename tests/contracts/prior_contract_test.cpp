// SPDX-License-Identifier: MIT
// What every row of the table of priors promises (testing/prior_contract).
#include "bayesaim/testing/prior_contract.hpp"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "bayesaim/priors/table.hpp"
#include "bayesaim/priors/wishart.hpp"
#include "bayesaim/spectral/free_convolution.hpp"

#include "support/temporary_file.hpp"
#include "support/tolerance.hpp"

namespace bayesaim::priors {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class PriorContract : public ::testing::TestWithParam<std::string> {
  protected:
    PriorContract() : prior_(make_prior(GetParam(), {.width = 0.5, .spectrum_file = file_.path()})) {}

    const test::TemporaryFile file_{"-2 0.1\n-0.5 0.3\n0.5 0.4\n3 0.2\n"};
    const std::unique_ptr<Prior> prior_;
};

TEST_P(PriorContract, NameIsThatOfTheTable) { EXPECT_EQ(prior_->name(), GetParam()); }

TEST_P(PriorContract, Holds) { EXPECT_THAT(bayesaim::testing::check_prior(*prior_), IsEmpty()); }

TEST_P(PriorContract, MmseGoesFromTheRecoveryRatioToThePriorVariance) {
    const spectral::SpectralLaw& law = prior_->law();
    EXPECT_LE(test::relative_error(mmse(law, 1e-10) / 1e-10, 1 - law.atomic_concentration()), 1e-4);
    EXPECT_LE(test::relative_error(mmse(law, 1e10), law.variance()), 1e-8);
}

INSTANTIATE_TEST_SUITE_P(Table, PriorContract, ::testing::ValuesIn(prior_names()),
                         [](const auto& row) { return row.param; });

/// Samples of one width under the law of another.
class WrongWidth final : public Prior {
  public:
    std::string name() const override { return "wrong"; }
    std::vector<std::pair<std::string, double>> parameters() const override { return {}; }
    const spectral::SpectralLaw& law() const override { return claimed_.law(); }
    linalg::Matrix sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t,
                          ThreadPool& pool) const override {
        linalg::Matrix s = real_.sample(dim, seed, 0, pool);  // and the index is ignored
        s(0, 1) += 1e-3;
        return s;
    }

  private:
    Wishart claimed_{0.5}, real_{0.6};
};

TEST(PriorContractChecks, SeeEachMistake) {
    const auto lines = bayesaim::testing::check_prior(WrongWidth());
    for (const char* check : {"samples_are_symmetric", "samples_differ", "moments", "spectrum_under_noise"}) {
        EXPECT_THAT(lines, Contains(StartsWith(check)));
    }
}

}  // namespace
}  // namespace bayesaim::priors
