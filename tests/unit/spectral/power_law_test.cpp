// SPDX-License-Identifier: MIT
#include "bayesaim/spectral/power_law.hpp"

#include <array>
#include <cmath>
#include <complex>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include <boost/math/quadrature/gauss.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bayesaim/spectral/atomic_law.hpp"
#include "bayesaim/spectral/free_convolution.hpp"
#include "bayesaim/spectral/scaled_law.hpp"

#include "support/expect_invalid.hpp"
#include "support/tolerance.hpp"

namespace bayesaim::spectral {
namespace {

using Real = long double;
using Wide = std::complex<Real>;

struct Parameters {
    double exponent, width, cutoff;
    std::string text() const { return fmt::format("gamma {}, width {}, x0 {}", exponent, width, cutoff); }
};

std::vector<Parameters> all_parameters() {
    std::vector<Parameters> list;
    for (const double exponent : {0.1, 0.5, 0.6, 1.0, 1.5, 3.0}) {
        for (const double cutoff : {1e-6, 1e-3, 1.0}) {
            for (const double width : {1.0, 0.3}) list.push_back({exponent, width, cutoff});
        }
    }
    return list;
}

/// The law by brute force: Gauss's rule in long double on a path of complex q = log(x + x0). For Im z >= 0
/// the pole, where lambda = w, is on the real axis of q or below, so the path goes above: from one end
/// straight up by i/gamma, where Im lambda < 0 stays away from w, across, and down to the other end. Next to
/// the ends the panels shrink, because w may be there.
class Oracle {
  public:
    Oracle(const Parameters& p, double mean)
        : gamma_(p.exponent),
          width_(p.width),
          low_(std::log(Real(p.cutoff))),
          high_(std::log(Real(p.cutoff) + Real(p.width))),
          mean_(mean) {
        const auto power = [&](Real k) {  // int (x + x0)^(-k) dx
            return k == 1 ? high_ - low_ : (std::exp((1 - k) * high_) - std::exp((1 - k) * low_)) / (1 - k);
        };
        factor_ = 1 / std::sqrt(power(2 * gamma_));
        exact_mean_ = factor_ * power(gamma_);
    }
    double exact_mean() const { return static_cast<double>(exact_mean_); }
    Real eigenvalue(Real x, double cutoff) const { return factor_ * std::pow(x + cutoff, -gamma_); }

    /// Integrals over mu, with d = z - x: of 1/d, -1/d^2, 2/d^3, x^2/d and log d.
    using Integrals = std::array<Wide, 5>;
    Integrals at(Complex z) const {
        const Wide w(z.real() + mean_, z.imag()), up(0, 1 / gamma_);
        Integrals sum{};
        const auto add = [&](Wide lambda, Wide weight) {
            const Wide d = w - lambda, inverse = weight / d, x = lambda - mean_;
            sum[0] += inverse;
            sum[1] -= inverse / d;
            sum[2] += Real(2) * inverse / (d * d);
            sum[3] += x * x * inverse;
            sum[4] += weight * std::log(d);
        };
        const auto panel = [&](Wide a, Wide b) {
            using Rule = boost::math::quadrature::gauss<Real, 30>;
            const Wide middle = Real(0.5) * (a + b), half = Real(0.5) * (b - a);
            for (std::size_t i = 0; i < Rule::abscissa().size(); ++i) {
                for (const Real x : {Rule::abscissa()[i], -Rule::abscissa()[i]}) {
                    const Wide q = middle + x * half;
                    add(factor_ * std::exp(-gamma_ * q), Rule::weights()[i] * half * std::exp(q));
                }
            }
        };
        Real far = 1;
        for (int k = 0; k < 60; ++k, far /= 2) {
            panel(low_ + far / 2 * up, low_ + far * up);
            panel(high_ + far * up, high_ + far / 2 * up);
        }
        const int panels = 1 + static_cast<int>((high_ - low_) * std::max<Real>(1, gamma_));
        const Real step = (high_ - low_) / panels;
        for (int k = 0; k < panels; ++k) panel(low_ + k * step + up, low_ + (k + 1) * step + up);
        if (width_ < 1) add(0, 1 - width_);
        return sum;
    }

  private:
    Real gamma_, width_, low_, high_, mean_, factor_, exact_mean_;
};

double abs(Wide z) { return static_cast<double>(std::abs(z)); }
Complex narrow(Wide z) { return {static_cast<double>(z.real()), static_cast<double>(z.imag())}; }

/// Points above the bulk, from 1e-16 to 1 times the eigenvalue away; outside it on the real axis; far away.
std::vector<Complex> points(const Parameters& p, const PowerLaw& law) {
    std::vector<Complex> list;
    for (const double part : {1e-7, 1e-4, 0.02, 0.2, 0.5, 0.83, 1.0}) {
        const double lambda = law.eigenvalue(part * p.width);
        for (const double height : {1e-16, 1e-12, 1e-6, 0.01, 0.3, 1.0, 4.0}) {
            // At the end itself, a rounding of z can be no larger than its height.
            if (part == 1 && height * lambda < 1e3 * test::epsilon * law.mean()) continue;
            list.emplace_back(lambda - law.mean(), height * lambda);
        }
    }
    const double largest = law.eigenvalue(0), smallest = law.eigenvalue(p.width);
    for (const double beyond : {1e-8, 1e-3, 0.3, 10.0}) {
        list.emplace_back(largest * (1 + beyond) - law.mean(), 0);
        if (beyond * smallest < 100 * test::epsilon * law.mean()) continue;  // not resolved
        list.emplace_back(smallest / (1 + beyond) - law.mean(), 0);
        list.emplace_back(-beyond * smallest - law.mean(), 0);
    }
    for (const double far : {30.0, 1e3, 1e6}) {
        list.emplace_back(far * largest, 0.1 * far);
        list.emplace_back(-far, far);
    }
    return list;
}

/// Relative errors, in units of 1e-13 plus the effect of a rounding of z and of the mean.
TEST(PowerLaw, TransformsAreThoseOfBruteForceQuadrature) {
    test::WorstError value(1), slope(1), moment(1), potential(1);
    for (const Parameters& p : all_parameters()) {
        const PowerLaw law(p.exponent, p.width, p.cutoff);
        const Oracle oracle(p, law.mean());
        for (const Complex z : points(p, law)) {
            const std::string place = fmt::format("{}, z = {} + {} i", p.text(), z.real(), z.imag());
            const auto [g0, g1, g2, m, l] = oracle.at(z);
            const Complex g = narrow(g0);
            const double rounding = 8 * test::epsilon * (std::abs(z) + law.mean());
            const auto error = [&](Complex found, Complex expected, double change) {
                return std::abs(found - expected) / (1e-13 * std::abs(expected) + rounding * change);
            };
            const Transform found = law.stieltjes(z);
            value.add(error(found.value, g, abs(g1)), "G, " + place);
            slope.add(error(found.derivative, narrow(g1), abs(g2)), "G', " + place);
            if (std::abs(z) > law.mean())  // int x^2 dmu/(z - x)/z, which does not cancel
                moment.add(error(law.moment_transform(z).value, narrow(m) / z, std::abs(g + z * narrow(g1))),
                           "M, " + place);
            potential.add(std::abs(law.log_potential(z) - static_cast<double>(l.real())) /
                              (1e-13 * (1 + std::abs(std::log(std::abs(z)))) + rounding * std::abs(g)),
                          "log potential, " + place);
        }
    }
}

TEST(PowerLaw, MomentsHaveTheirClosedForms) {
    for (const Parameters& p : all_parameters()) {
        SCOPED_TRACE(p.text());
        const PowerLaw law(p.exponent, p.width, p.cutoff);
        const Oracle oracle(p, 0);
        EXPECT_LE(test::relative_error(law.mean(), oracle.exact_mean()), 1e-14);
        EXPECT_LE(test::relative_error(law.second_moment(), 1), 1e-14);
        EXPECT_DOUBLE_EQ(law.atomic_concentration(), std::pow(1 - p.width, 2));
        for (const double x : {0.0, 0.1 * p.width, p.width})
            EXPECT_LE(
                test::relative_error(law.eigenvalue(x), static_cast<double>(oracle.eigenvalue(x, p.cutoff))),
                1e-13);
    }
    // gamma = 1/2 and 1, where the integrals are logarithms, next to values where they are powers.
    for (const double exponent : {0.5, 1.0}) {
        EXPECT_NEAR(PowerLaw(exponent, 0.5, 1e-4).mean(), PowerLaw(exponent + 1e-9, 0.5, 1e-4).mean(), 1e-7);
    }
}

TEST(PowerLaw, HasTheKnownDensityAndAtom) {
    for (const Parameters& p : all_parameters()) {
        if (p.exponent > 2) continue;  // the centred z does not resolve the smallest eigenvalues
        const PowerLaw law(p.exponent, p.width, p.cutoff);
        for (const double part : {0.1, 0.5, 0.9}) {
            const double lambda = law.eigenvalue(part * p.width);
            const double density = (part * p.width + p.cutoff) / (p.exponent * lambda);
            const double height = 1e-13 * lambda;
            const double found =
                -law.stieltjes({lambda - law.mean(), height}).value.imag() / std::numbers::pi;
            EXPECT_LE(test::relative_error(found, density), 1e-7) << p.text();  // digits of lambda - mean
        }
        const double height = 1e-8 * law.eigenvalue(p.width);
        const double atom = (Complex(0, height) * law.stieltjes({-law.mean(), height}).value).real();
        EXPECT_NEAR(atom, 1 - p.width, 1e-7) << p.text();
    }
}

TEST(PowerLaw, MassIsOneAtEveryNoise) {
    test::WorstError mass(1e-11), second(1e-11);
    for (const Parameters& p : all_parameters()) {
        const PowerLaw law(p.exponent, p.width, p.cutoff);
        double last = 0;
        const double largest = law.eigenvalue(0);
        for (double noise = 1e-10; noise < 2e10; noise *= 100) {
            const FreeConvolution spectrum(law, noise);
            const std::string place = fmt::format("{}, D = {}", p.text(), noise);
            mass.add(std::abs(spectrum.mass() - 1), place);
            second.add(std::abs(spectrum.second_moment() - 1 - noise) / (largest * largest + noise), place);
            const double error = spectrum.mmse();
            EXPECT_GT(error, last) << place;
            EXPECT_LT(error, std::min(noise, law.variance())) << place;
            last = error;
        }
        EXPECT_LE(test::relative_error(last, law.variance()), 1e-8) << p.text();
    }
}

TEST(PowerLaw, EqualStepsThatOnlyLookConvergedAreNotUsed) {
    // Found by search: 77 nodes in equal steps look converged, and cost 2e-10 of the mass.
    const PowerLaw law(0.6, 0.4, 1e-3);
    EXPECT_NEAR(FreeConvolution(law, 1e-10).mass(), 1, 1e-12);
    EXPECT_NEAR(FreeConvolution(ScaledLaw(std::make_shared<PowerLaw>(law), 3), 9e-10).mass(), 1, 1e-12);
}

/// The law in quantiles, `count` of them.
AtomicLaw in_atoms(const Parameters& p, int count) {
    const PowerLaw law(p.exponent, p.width, p.cutoff);
    std::vector<double> positions, weights;
    for (int i = 0; i < count; ++i) {
        positions.push_back(law.eigenvalue((i + 0.5) / count * p.width));
        weights.push_back(p.width / count);
    }
    if (p.width < 1) {
        positions.push_back(0);
        weights.push_back(1 - p.width);
    }
    return AtomicLaw(positions, weights);
}

/// Noise of these sizes blurs the atoms. They err by const/count^2, which two counts tell.
TEST(PowerLaw, MmseIsThatOfManyAtoms) {
    for (const auto& [p, noise] :
         {std::pair{Parameters{1, 0.5, 0.5}, 0.2}, {{1.5, 1, 0.3}, 0.5}, {{0.6, 0.8, 0.2}, 0.1}}) {
        SCOPED_TRACE(p.text());
        const AtomicLaw few = in_atoms(p, 200), many = in_atoms(p, 400);
        const FreeConvolution of_few(few, noise), of_many(many, noise);
        const auto limit = [&](auto value) { return (4 * value(of_many) - value(of_few)) / 3; };
        const PowerLaw law(p.exponent, p.width, p.cutoff);
        const FreeConvolution found(law, noise);
        const auto mmse_of = [](const FreeConvolution& spectrum) { return spectrum.mmse(); };
        const auto slope_of = [](const FreeConvolution& spectrum) { return spectrum.mmse_derivative(); };
        const auto energy_of = [](const FreeConvolution& spectrum) { return spectrum.log_energy(); };
        EXPECT_LE(test::relative_error(found.mmse(), limit(mmse_of)), 3e-7);
        EXPECT_LE(test::relative_error(found.mmse_derivative(), limit(slope_of)), 1e-6);
        EXPECT_NEAR(found.log_energy(), limit(energy_of), 1e-6);
    }
}

/// Where the noise is far from both ends of the spectrum, mmse(D)/D is the share of the eigenvalues above
/// D^{1/2}, times a number: D^(-1/(2 gamma)).
TEST(PowerLaw, RatioOfMmseAndNoiseIsAPowerBetweenTheEnds) {
    const PowerLaw law(3, 1, 1e-6);
    for (const double noise : {1e-6, 1e-8, 1e-10, 1e-12}) {
        const auto near = error_point(law, noise), far = error_point(law, noise * 1e-2);
        const double growth = std::log(far.error / near.error * 100) / std::log(100.0);
        EXPECT_NEAR(growth, 1. / 6, 2e-3) << noise;  // corrections: the cutoff, the smallest eigenvalue
        EXPECT_NEAR(1 - near.slope * noise / near.error, 1. / 6, 2e-3) << noise;
    }
}

TEST(PowerLaw, RefusesBadParameters) {
    using test::expect_invalid;
    expect_invalid([] { PowerLaw(0, 1, 0.1); }, "exponent must be positive and finite, got 0");
    expect_invalid([] { PowerLaw(20, 1, 0.1); }, "exponent must be between 0.05 and 5, got 20");
    expect_invalid([] { PowerLaw(1, 1.5, 0.1); }, "width must be at most 1 for a power law, got 1.5");
    expect_invalid([] { PowerLaw(1, 0, 0.1); }, "width must be positive and finite, got 0");
    expect_invalid([] { PowerLaw(1, 5e-324, 62); }, "width must be between 1e-10 and 1, got ");  // was NaN
    expect_invalid([] { PowerLaw(1, 1, 0); }, "cutoff must be positive and finite, got 0");
    expect_invalid([] { PowerLaw(1, 1, 1e-7); }, "cutoff must be between 1e-06 and 100, got 1e-07");
    expect_invalid([] { PowerLaw(test::not_a_number, 1, 0.1); }, "exponent must be");
}

}  // namespace
}  // namespace bayesaim::spectral
