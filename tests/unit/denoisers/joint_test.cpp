// SPDX-License-Identifier: MIT
#include "bayesaim/denoisers/joint.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/priors/wigner.hpp"
#include "bayesaim/priors/wishart.hpp"

#include "support/expect_invalid.hpp"
#include "support/layers.hpp"

namespace bayesaim::denoisers {
namespace {

using linalg::Matrix;
using spectral::MarchenkoPasturLaw;
using test::overlap;

/// Reference numbers from an independent computation.
TEST(CavityCovariance, OfTwoCoupledLayersIsThatOfTheReferences) {
    const MarchenkoPasturLaw narrow(0.5), wide(2);
    const spectral::SpectralLaw *laws[] = {&narrow, &narrow}, *others[] = {&wide, &wide};
    const Overlap c = cavity_covariance(laws, linalg::inverse(overlap(0.5, 0.1, 0.5)));
    EXPECT_NEAR(c(0, 0), 0.2455704, 1e-7);
    EXPECT_NEAR(c(1, 1), 0.2455704, 1e-7);
    EXPECT_NEAR(c(0, 1), 0.0247552, 1e-7);
    EXPECT_NEAR(cavity_covariance(laws, linalg::inverse(overlap(1, 0.175, 1)))(0, 0), 0.392432, 1e-6);
    EXPECT_NEAR(cavity_covariance(others, linalg::inverse(overlap(1, 0.175, 1)))(0, 0), 0.466419, 1e-6);
}

/// For equal layers it is symmetric by itself. From layer k alone, C_kl = -C_kk qhat_kl mmse_l, the formula has another value for
/// each k if the layers differ; the result is the mean of both.
TEST(CavityCovariance, OfDifferentLayersIsTheMeanOverBothSides) {
    const MarchenkoPasturLaw narrow(0.2), wide(2);
    const spectral::SpectralLaw* laws[] = {&narrow, &wide};
    const Overlap precision = linalg::inverse(overlap(0.5, 0.3, 1));
    const Overlap c = cavity_covariance(laws, precision);
    const double from_first = -c(0, 0) * precision(0, 1) * spectral::mmse(wide, 1 / precision(1, 1)),
                 from_second = -c(1, 1) * precision(0, 1) * spectral::mmse(narrow, 1 / precision(0, 0));
    EXPECT_GT(std::abs(from_first / from_second - 1), 1e-3);
    EXPECT_NEAR(c(0, 1), 0.5 * (from_first + from_second), 1e-14);
    EXPECT_EQ(c(0, 1), c(1, 0));
}

/// Gaussian priors: C = (1 + qhat)^-1 for any coupling and number of layers.
TEST(CavityCovariance, IsExactForGaussianPriors) {
    const MarchenkoPasturLaw law = MarchenkoPasturLaw::semicircle();
    const spectral::SpectralLaw* laws[] = {&law, &law, &law};
    Overlap precision(3, 3);
    precision << 2, 0.9, -0.7, 0.9, 1.5, 0.6, -0.7, 0.6, 3;
    const Overlap expected = linalg::inverse(Overlap::Identity(3, 3) + precision);
    EXPECT_LT((cavity_covariance(laws, precision) - expected).norm(), 1e-11);
}

/// The general formula at L = 1, where the set of other layers is empty.
TEST(CavityCovariance, OfOneLayerIsTheMmse) {
    const MarchenkoPasturLaw law(0.5);
    const spectral::SpectralLaw* laws[] = {&law};
    for (const double precision : {1e-3, 0.2, 1.0, 7.0, 1e4}) {
        const Overlap c = cavity_covariance(laws, linalg::scalar_overlap(precision));
        ASSERT_EQ(c.rows(), 1);
        EXPECT_NEAR(c(0, 0) / spectral::mmse(law, 1 / precision), 1, 1e-12) << precision;
    }
}

/// Without coupling the layers are independent.
TEST(CavityCovariance, OfUncoupledLayersIsDiagonal) {
    const MarchenkoPasturLaw narrow(0.5), wide(2);
    const spectral::SpectralLaw* laws[] = {&narrow, &wide};
    const Overlap c = cavity_covariance(laws, overlap(2, 0, 10));
    EXPECT_NEAR(c(0, 0), 0.249259331846, 1e-11);
    EXPECT_NEAR(c(1, 1), 0.0865469970099, 1e-11);
    EXPECT_EQ(c(0, 1), 0);
}

/// The estimate is negligible without coupling, a few permille with more noise than signal (as for three
/// layers), and above ten percent if the formula is that far off: 0.0461 instead of 0.0520.
TEST(CavityCovariance, KnowsItsError) {
    const MarchenkoPasturLaw law(0.5);
    const spectral::SpectralLaw* laws[] = {&law, &law};
    EXPECT_EQ(cavity_error(laws, overlap(2, 0, 10)), 0);
    EXPECT_LT(cavity_error(laws, overlap(2.37, 0.27, 16.3)), 1e-4);
    const double noisy = cavity_error(laws, overlap(0.334, 0.148, 0.168));
    EXPECT_GT(noisy, 1e-3);
    EXPECT_LT(noisy, 1e-2);
    EXPECT_GT(cavity_error(laws, linalg::inverse(overlap(0.1, 0.08, 0.1))), 0.1);
}

/// At weak coupling the formula is close to the polynomial of degree 8, an independent upper bound on the
/// true error.
TEST(CavityCovariance, AgreesWithThePolynomialOracle) {
    const MarchenkoPasturLaw narrow(0.5), wide(2);
    const spectral::SpectralLaw* laws[] = {&narrow, &wide};
    const Overlap noise = overlap(1, 0.15, 1.2);
    const Overlap cavity = cavity_covariance(laws, linalg::inverse(noise));
    const Overlap oracle = polynomial_estimator(laws, noise, 7).error();
    EXPECT_NEAR(cavity(0, 0) / oracle(0, 0), 1, 5e-4);  // without coupling 4e-3 away
    EXPECT_NEAR(cavity(1, 1) / oracle(1, 1), 1, 5e-4);
    EXPECT_NEAR(cavity(0, 1) / oracle(0, 1), 1, 0.03);
}

/// Two layers of width 0.5 and their noisy versions.
struct Problem {
    std::vector<Matrix> truth, noisy;
};

Problem make_problem(int dim, std::uint64_t seed, const Overlap& noise, ThreadPool& pool) {
    Problem result;
    const Overlap root = linalg::lower_root(noise);
    std::vector<Matrix> xi;
    for (std::uint64_t l = 0; l < 2; ++l) {
        xi.push_back(linalg::gaussian_orthogonal_ensemble(dim, RandomStream(seed, Purpose::noise, l), pool));
        result.truth.push_back(priors::Wishart(0.5).sample(dim, seed, l, pool));
    }
    result.noisy = {Matrix(result.truth[0] + root(0, 0) * xi[0]),
                    Matrix(result.truth[1] + root(1, 0) * xi[0] + root(1, 1) * xi[1])};
    return result;
}

Overlap measured(const Problem& problem, const std::vector<Matrix>& estimates) {
    Overlap result(2, 2);
    const double d = static_cast<double>(estimates[0].rows());
    for (std::size_t i = 0; i < 2; ++i) {
        for (std::size_t j = 0; j < 2; ++j) {
            result(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) =
                (estimates[i] - problem.truth[i]).cwiseProduct(estimates[j] - problem.truth[j]).sum() / d;
        }
    }
    return result;
}

/// At d = 300 one realisation scatters by 0.5%; coupling gains 6% over separate denoisers. The joint
/// denoisers must beat them on the same matrices.
TEST(JointDenoiser, InnovationUsesTheCoupling) {
    ThreadPool pool(1);
    const MarchenkoPasturLaw law(0.5);
    const spectral::SpectralLaw* laws[] = {&law, &law};
    const Overlap noise = overlap(0.5, 0.2, 0.5);
    const Problem problem = make_problem(300, 7, noise, pool);
    const auto joint = denoise_jointly(laws, problem.noisy, noise, pool, {.method = JointMethod::innovation});
    EXPECT_EQ(joint.method, JointMethod::innovation);
    const Overlap error = measured(problem, joint.estimates);
    std::vector<Matrix> alone;
    for (const Matrix& matrix : problem.noisy) alone.push_back(denoise(law, matrix, 0.5, pool).estimate);
    const Overlap separate = measured(problem, alone);
    EXPECT_NEAR(error.trace() / separate.trace(), 0.2336 / 0.24926, 0.006);
    EXPECT_NEAR(error.trace() / joint.posterior_covariance.trace(), 1, 0.025);  // finite size
    EXPECT_NEAR(error(0, 1), joint.posterior_covariance(0, 1), 0.004);
    const auto polynomial = evaluate(polynomial_estimator(laws, noise, 4), problem.noisy);
    EXPECT_NEAR(measured(problem, polynomial).trace() / error.trace(), 0.23527 / 0.2336, 0.006);
}

/// At correlation 0.8 the cavity covariance is 12% off; the covariance of the combination is right, and
/// `automatic` chooses the combination.
TEST(JointDenoiser, CombinationIsRightForStrongCoupling) {
    ThreadPool pool(1);
    const MarchenkoPasturLaw law(0.5);
    const spectral::SpectralLaw* laws[] = {&law, &law};
    const Overlap noise = overlap(0.1, 0.08, 0.1);
    const Problem problem = make_problem(200, 8, noise, pool);
    const auto joint = denoise_jointly(laws, problem.noisy, noise, pool);
    EXPECT_EQ(joint.method, JointMethod::combination);
    const Overlap error = measured(problem, joint.estimates);
    const auto innovation =
        denoise_jointly(laws, problem.noisy, noise, pool, {.method = JointMethod::innovation});
    EXPECT_LT(error.trace(), 0.995 * measured(problem, innovation.estimates).trace());
    EXPECT_NEAR(error.trace() / 0.1039, 1, 0.03);  // finite size; separate denoisers: 0.1331
    EXPECT_NEAR(joint.posterior_covariance.trace() / error.trace(), 1, 0.04);
    EXPECT_NEAR(joint.posterior_covariance(0, 1), error(0, 1), 0.003);
    EXPECT_GT(std::abs(innovation.posterior_covariance.trace() / error.trace() - 1), 0.06);
}

/// With much noise `automatic` chooses the innovation: the combination's divergences are not exact enough.
TEST(JointDenoiser, InnovationIsTakenWhereThereIsMoreNoiseThanSignal) {
    ThreadPool pool(1);
    const MarchenkoPasturLaw law(0.5);
    const spectral::SpectralLaw* laws[] = {&law, &law};
    const Overlap noise = overlap(6, -5, 12);
    const Problem problem = make_problem(100, 9, noise, pool);
    const auto joint = denoise_jointly(laws, problem.noisy, noise, pool);
    EXPECT_EQ(joint.method, JointMethod::innovation);
    EXPECT_NEAR(measured(problem, joint.estimates).trace() / joint.posterior_covariance.trace(), 1, 0.06);
}

/// Two Gaussian priors: E[S | R] = (1 + Delta)^-1 R, for any coupling; without it the distance would be 0.2.
TEST(JointDenoiser, InnovationIsExactForGaussianPriors) {
    ThreadPool pool(1);
    const MarchenkoPasturLaw law = MarchenkoPasturLaw::semicircle();
    const spectral::SpectralLaw* laws[] = {&law, &law};
    const Overlap noise = overlap(0.6, 0.3, 0.9);
    std::vector<Matrix> noisy;
    for (std::uint64_t l = 0; l < 2; ++l) {
        const RandomStream stream(9, Purpose::noise, l);
        noisy.push_back(1.3 * linalg::gaussian_orthogonal_ensemble(60, stream, pool));
    }
    // The shrinkage is then linear beyond the edges too.
    const auto joint = denoise_jointly(laws, noisy, noise, pool,
                                       {.method = JointMethod::innovation, .linear_outside_support = true});
    const Overlap gain = linalg::inverse(Overlap::Identity(2, 2) + noise);
    const Matrix exact = gain(0, 0) * noisy[0] + gain(0, 1) * noisy[1];
    EXPECT_LT((joint.estimates[0] - exact).norm(), 1e-7 * exact.norm());
}

TEST(JointDenoiser, RejectsWrongArguments) {
    ThreadPool pool(1);
    const MarchenkoPasturLaw law(0.5);
    const spectral::SpectralLaw* laws[] = {&law, &law};
    const Matrix noisy[] = {Matrix::Identity(5, 5)};
    test::expect_invalid([&] { denoise_jointly(laws, noisy, overlap(1, 0, 1), pool); },
                         "number of noisy matrices must be of size 2, got 1");
    test::expect_invalid([&] { cavity_covariance(laws, overlap(1, 2, 1)); },
                         "qhat must be positive definite");
    test::expect_invalid([&] { cavity_covariance(laws, linalg::scalar_overlap(1)); }, "qhat");
    test::expect_invalid([&] { cavity_covariance({}, linalg::scalar_overlap(1)); }, "layers");
}

}  // namespace
}  // namespace bayesaim::denoisers
