// SPDX-License-Identifier: MIT
// The contract of every prior of the table (testing/prior_contract).
#include "bayesaim/testing/prior_contract.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "bayesaim/core/table.hpp"
#include "bayesaim/priors/bilinear.hpp"
#include "bayesaim/priors/ginibre.hpp"
#include "bayesaim/priors/table.hpp"
#include "bayesaim/priors/wishart.hpp"
#include "bayesaim/spectral/free_convolution.hpp"

#include "support/temporary_file.hpp"
#include "support/tolerance.hpp"
#include "support/without_curve.hpp"

namespace bayesaim::priors {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class PriorContract : public ::testing::TestWithParam<std::string> {
  protected:
    // The eigenvalues of a power law at finite d follow the law if d is large against 1/cutoff.
    PriorContract()
        : prior_(make_prior(GetParam(), {.width = 0.5, .spectrum = file_.path(), .cutoff = 0.1})) {}

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

INSTANTIATE_TEST_SUITE_P(Table, PriorContract, ::testing::ValuesIn(names_of(prior_table())),
                         [](const auto& row) {
                             std::string name = row.param;
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name;
                         });

/// Another law with one wrong number.
class WrongLaw final : public test::WithoutCurve {
  public:
    WrongLaw(const SpectralLaw& exact, double variance, double atomic_concentration)
        : WithoutCurve(exact), variance_(variance), atomic_concentration_(atomic_concentration) {}
    double variance() const override { return variance_; }
    double atomic_concentration() const override { return atomic_concentration_; }

  private:
    double variance_, atomic_concentration_;
};

/// Wishart with one error.
class WrongWishart final : public Prior {
  public:
    enum class Wrong { nothing, symmetry, threads, index, width, variance, atoms };
    explicit WrongWishart(Wrong wrong) : wrong_(wrong) {}
    std::string name() const override { return "wrong"; }
    std::vector<std::pair<std::string, double>> parameters() const override { return {}; }
    const spectral::SpectralLaw& law() const override { return law_; }
    linalg::Matrix sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                          ThreadPool& pool) const override {
        linalg::Matrix s = (wrong_ == Wrong::width ? wider_ : exact_)
                               .sample(dim, seed, wrong_ == Wrong::index ? 0 : index, pool);
        if (wrong_ == Wrong::symmetry) s(0, 1) += 1e-3;
        if (wrong_ == Wrong::threads && pool.threads() == 3) s(0, 0) = std::nextafter(s(0, 0), 9);
        return s;
    }

  private:
    Wrong wrong_;
    Wishart exact_{0.5}, wider_{0.6};
    WrongLaw law_{exact_.law(), (wrong_ == Wrong::variance ? 0.9 : 1) * exact_.law().variance(),
                  (wrong_ == Wrong::atoms ? 2 : 1) * exact_.law().atomic_concentration()};
};

TEST(PriorContractChecks, HoldForRectangularWeights) {
    using bayesaim::testing::check_prior;
    for (const double aspect : {2.0, 0.6}) {
        EXPECT_THAT(check_prior(Bilinear(0.4, aspect)), IsEmpty()) << aspect;
        EXPECT_THAT(check_prior(Ginibre(aspect)), IsEmpty()) << aspect;
    }
}

TEST(PriorContractChecks, HoldForScaledWeights) {
    using bayesaim::testing::check_prior;
    for (const double scale : {0.3, 2.0}) {
        EXPECT_THAT(check_prior(Wishart(0.5, scale)), IsEmpty()) << scale;
        EXPECT_THAT(check_prior(Bilinear(0.4, 1, scale)), IsEmpty()) << scale;
    }
}

TEST(PriorContractChecks, SeeEachMistake) {
    using Wrong = WrongWishart::Wrong;
    using bayesaim::testing::check_prior;
    EXPECT_THAT(check_prior(WrongWishart(Wrong::nothing)), IsEmpty());
    for (const auto& [wrong, line] :
         {std::pair{Wrong::symmetry, "samples_have_their_shape: sample is not symmetric"},
          {Wrong::threads, "samples_repeat: the same seed and index give another sample on 3 thread(s)"},
          {Wrong::index, "samples_differ: draws (7, 3) and (7, 4)"},
          {Wrong::width, "moments: tr S of"},
          {Wrong::width, "moments: tr S^2 of"},
          {Wrong::width, "spectrum_under_noise"},
          {Wrong::variance, "moments: tr S^2 of"},
          {Wrong::variance, "mmse: mmse is above noise or prior variance"},
          {Wrong::atoms, "mmse: mmse grows faster than the noise"}}) {
        EXPECT_THAT(check_prior(WrongWishart(wrong)), Contains(StartsWith(line)));
    }
}

}  // namespace
}  // namespace bayesaim::priors
