// SPDX-License-Identifier: MIT
#include "bayesaim/denoisers/polynomial.hpp"

#include <gtest/gtest.h>

#include "bayesaim/spectral/free_convolution.hpp"
#include "bayesaim/spectral/marchenko_pastur_law.hpp"

namespace bayesaim::denoisers {
namespace {

using spectral::MarchenkoPasturLaw;

Overlap overlap(double a, double b, double c) {
    Overlap result(2, 2);
    result << a, b, b, c;
    return result;
}

/// The table to its printed digits: a wrong cumulant moves degree 3 by 1e-3 or more.
TEST(PolynomialEstimator, ErrorsOfOneLayerAreThoseOfTheTable) {
    struct Row {
        double width, noise_variance, errors[8];
    };
    const Row table[] = {
        {0.5, 0.1, {0.090909, 0.079033, 0.070424, 0.067654, 0.067507, 0.067321, 0.066911, 0.066754}},
        {0.5, 0.5, {0.333333, 0.257143, 0.251789, 0.250648, 0.249551, 0.249548, 0.249337, 0.249319}},
        {0.5, 2.0, {0.666667, 0.580645, 0.576395, 0.575983, 0.575643, 0.575643, 0.575619, 0.575616}},
        {1.0, 0.1, {0.090909, 0.084556, 0.081542, 0.080687, 0.080590, 0.080589, 0.080567, 0.080551}},
        {1.0, 0.5, {0.333333, 0.290323, 0.288198, 0.287992, 0.287821, 0.287821, 0.287809, 0.287808}},
        {1.0, 2.0, {0.666667, 0.620690, 0.619312, 0.619251, 0.619216, 0.619216, 0.619215, 0.619215}},
        {2.0, 0.1, {0.090909, 0.087618, 0.086729, 0.086564, 0.086548, 0.086548, 0.086547, 0.086547}},
        {2.0, 0.5, {0.333333, 0.310345, 0.309656, 0.309626, 0.309608, 0.309608, 0.309607, 0.309607}},
        {2.0, 2.0, {0.666667, 0.642857, 0.642462, 0.642453, 0.642451, 0.642451, 0.642451, 0.642451}}};
    for (const Row& row : table) {
        const MarchenkoPasturLaw law(row.width);
        const spectral::SpectralLaw* laws[] = {&law};
        const Polynomial polynomial =
            polynomial_estimator(laws, linalg::scalar_overlap(row.noise_variance), 8);
        ASSERT_EQ(polynomial.errors.size(), 9U);
        for (std::size_t degree = 1; degree <= 8; ++degree) {
            EXPECT_NEAR(polynomial.errors[degree](0, 0), row.errors[degree - 1], 6e-7)
                << row.width << " " << row.noise_variance << " degree " << degree;
        }
        EXPECT_GE(polynomial.error()(0, 0), spectral::mmse(law, row.noise_variance) - 1e-9);
    }
}

TEST(PolynomialEstimator, ErrorsOfTwoLayersAreThoseOfTheTable) {
    const MarchenkoPasturLaw law(0.5);
    const spectral::SpectralLaw* laws[] = {&law, &law};
    const double c11[] = {0.32127, 0.24398, 0.23632, 0.23527, 0.23396, 0.233888, 0.233674, 0.233617},
                 c12[] = {0.09050, 0.05308, 0.04931, 0.04905, 0.04858, 0.048557, 0.048492, 0.048471};
    const Polynomial coupled = polynomial_estimator(laws, overlap(0.5, 0.2, 0.5), 8);
    for (std::size_t degree = 1; degree <= 8; ++degree) {
        const double rounding = degree < 6 ? 6e-6 : 6e-7;
        EXPECT_NEAR(coupled.errors[degree](0, 0), c11[degree - 1], rounding) << degree;
        EXPECT_NEAR(coupled.errors[degree](1, 1), c11[degree - 1], rounding) << degree;
        EXPECT_NEAR(coupled.errors[degree](0, 1), c12[degree - 1], rounding) << degree;
    }
    // The sign of the coupling matters: a third-cumulant effect.
    const Polynomial opposite = polynomial_estimator(laws, overlap(0.5, -0.2, 0.5), 8);
    EXPECT_NEAR(opposite.error()(0, 0), 0.234942, 6e-7);
    EXPECT_NEAR(opposite.error()(0, 1), -0.051704, 6e-7);
    const double strong[] = {0.08608, 0.07021, 0.05915, 0.05452, 0.05344, 0.05311, 0.05260, 0.05218};
    const Polynomial strongly = polynomial_estimator(laws, overlap(0.1, 0.08, 0.1), 8);
    for (std::size_t degree = 1; degree <= 8; ++degree) {
        EXPECT_NEAR(strongly.errors[degree](0, 0), strong[degree - 1], 6e-6) << degree;
    }
}

TEST(PolynomialEstimator, CoefficientsOfTwoLayersAreThoseOfTheTable) {
    const MarchenkoPasturLaw law(0.5);
    const spectral::SpectralLaw* laws[] = {&law, &law};
    const Overlap noise = overlap(0.5, 0.2, 0.5);
    const Polynomial polynomial = polynomial_estimator(laws, noise, 2);
    const std::vector<spectral::Word> words{{}, {0}, {1}, {0, 0}, {0, 1}, {1, 1}};
    ASSERT_EQ(polynomial.words, words);
    const double expected[] = {-2.85141291660919005e-01, 6.49550054347551642e-01,  -1.29800986762558329e-01,
                               2.39352090032540238e-01,  -7.74139253378060693e-02, 5.61110583400862353e-02};
    const int mirrored[] = {0, 2, 1, 5, 4, 3};  // exchanging the layers
    for (int i = 0; i < 6; ++i) {
        EXPECT_NEAR(polynomial.coefficients(i, 0), expected[i], 1e-11) << i;
        EXPECT_NEAR(polynomial.coefficients(i, 1), expected[mirrored[i]], 1e-11) << i;
    }
    EXPECT_NEAR(polynomial.errors[1](0, 0), 0.3212669683, 1e-10);
    EXPECT_NEAR(polynomial.errors[1](0, 1), 0.0904977376, 1e-10);
    EXPECT_NEAR(polynomial.error()(0, 0), 0.2439812869, 1e-10);
    EXPECT_NEAR(polynomial.error()(0, 1), 0.0530800488, 1e-10);
    EXPECT_NEAR(polynomial.divergence(0, 0), 0.53035540, 1e-8);
    EXPECT_NEAR(polynomial.divergence(0, 1), -0.10598206, 1e-8);
}

/// C_lk = sum_m Delta_km div_m Shat_l at every degree, for different widths and for three layers.
TEST(PolynomialEstimator, ErrorIsTheSteinFormula) {
    const MarchenkoPasturLaw narrow(0.5), wide(2), semicircle = MarchenkoPasturLaw::semicircle();
    const spectral::SpectralLaw* laws[] = {&narrow, &wide, &semicircle};
    Overlap noise(3, 3);
    noise << 0.5, 0.1, -0.05, 0.1, 0.3, 0.08, -0.05, 0.08, 0.7;
    for (const int degree : {1, 2, 3}) {
        const Polynomial polynomial = polynomial_estimator(laws, noise, degree);
        const Overlap stein = noise * polynomial.divergence.transpose();
        EXPECT_LT((stein - polynomial.error()).norm(), 1e-10) << degree;
    }
}

}  // namespace
}  // namespace bayesaim::denoisers
