// SPDX-License-Identifier: MIT
#pragma once
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include <boost/math/constants/constants.hpp>
#include <boost/math/quadrature/tanh_sinh.hpp>
#include <boost/multiprecision/cpp_bin_float.hpp>

/// The law of S + sqrt(D) Xi in 50 digits, for two laws of S for which the Stieltjes transform g(z) with
/// noise solves a cubic equation. It shares nothing with the library. Slow and obvious.
///   Inside the bulk g is the root with Im g > 0 (at z - i0): density Im g / pi, Hilbert transform Re g.
///   Outside, g is the real root on the branch that contains z = infinity, where dz/dg < 0.
namespace bayesaim::test {

using Real =
    boost::multiprecision::number<boost::multiprecision::cpp_bin_float<50>, boost::multiprecision::et_off>;

inline Real square(const Real& x) { return x * x; }
inline Real cube(const Real& x) { return x * x * x; }

/// Roots of a x^3 + b x^2 + c x + e: three real ones, or one real and re +- i im.
struct CubicRoots {
    std::vector<Real> real;
    Real re = 0, im = 0;  // im > 0 when there is a pair
};

inline CubicRoots solve_cubic(const Real& a, const Real& b, const Real& c, const Real& e) {
    // x = t - b/(3a): t^3 + p t + q = 0.
    const Real shift = b / (3 * a);
    const Real p = c / a - 3 * square(shift);
    const Real q = 2 * cube(shift) - shift * c / a + e / a;
    const Real discriminant = square(q) / 4 + cube(p) / 27;  // > 0: one real root
    CubicRoots roots;
    if (discriminant > 0) {
        const Real h = -q / 2, root = sqrt(discriminant);
        const Real larger = h < 0 ? h - root : h + root;
        const Real u = larger < 0 ? -Real(cbrt(-larger)) : Real(cbrt(larger));
        const Real v = -p / (3 * u);
        roots.real = {u + v - shift};
        roots.re = -(u + v) / 2 - shift;
        roots.im = abs(u - v) * sqrt(Real(3)) / 2;
    } else {
        const Real radius = 2 * sqrt(-p / 3);
        Real cosine = 3 * q / (p * radius);
        cosine = std::clamp(cosine, Real(-1), Real(1));
        const Real angle = acos(cosine) / 3, third = 2 * boost::math::constants::pi<Real>() / 3;
        for (int k = 0; k < 3; ++k) roots.real.push_back(radius * cos(angle - k * third) - shift);
    }
    return roots;
}

struct OraclePoint {
    double density, hilbert, denoised;
};
struct OracleInterval {
    Real low, high;
};

class CubicOracle {
  public:
    virtual ~CubicOracle() = default;
    explicit CubicOracle(double noise_variance) : noise_(noise_variance) {}

    virtual CubicRoots roots(const Real& z) const = 0;
    virtual Real z_slope(const Real& g) const = 0;  // dz/dg on the real branches
    virtual std::vector<OracleInterval> bulks() const = 0;
    /// The point where bulks merge or have merged, otherwise some point inside: integrals are cut there.
    virtual Real neck() const = 0;

    OraclePoint at(const Real& z) const {
        const CubicRoots r = roots(z);
        Real re = r.re, im = r.im;
        if (im == 0) {
            const auto physical = [&](const Real& g) { return z_slope(g) < 0; };
            const auto found = std::find_if(r.real.begin(), r.real.end(), physical);
            if (found == r.real.end()) throw std::logic_error("cubic oracle: no physical root");
            re = *found;
        }
        return {static_cast<double>(im / boost::math::constants::pi<Real>()), static_cast<double>(re),
                static_cast<double>(z - 2 * noise_ * re)};
    }

    /// int mu^power by tanh-sinh, which handles both square roots at the edges and cusps.
    double integral_of_density_power(int power) const {
        boost::math::quadrature::tanh_sinh<double> rule;
        double sum = 0;
        for (const OracleInterval& bulk : bulks()) {
            std::vector<Real> cuts{bulk.low, bulk.high};
            if (bulk.low < neck() && neck() < bulk.high) cuts.insert(cuts.begin() + 1, neck());
            for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
                const Real half = (cuts[i + 1] - cuts[i]) / 2;
                // `from_end` is the distance to the nearer end of [-1, 1], negative at the left one.
                const auto f = [&](double x, double from_end) {
                    const Real z = x < 0 ? cuts[i] - half * from_end : cuts[i + 1] - half * from_end;
                    const Real im = roots(z).im / boost::math::constants::pi<Real>();
                    return static_cast<double>(pow(im, power) * half);
                };
                sum += rule.integrate(f, 1e-14);
            }
        }
        return sum;
    }

    /// D - (4 pi^2 D^2 / 3) int mu^3
    double mmse() const {
        const Real pi = boost::math::constants::pi<Real>();
        return static_cast<double>(noise_ - 4 * square(pi * noise_) / 3 * integral_of_density_power(3));
    }

  protected:
    /// Bisection in full precision; f(low) and f(high) differ in sign.
    template <class Function>
    static Real bisect(Function f, Real low, Real high) {
        const bool low_sign = f(low) > 0;
        for (int i = 0; i < 220; ++i) {
            const Real middle = (low + high) / 2;
            ((f(middle) > 0) == low_sign ? low : high) = middle;
        }
        return (low + high) / 2;
    }

    Real noise_;
};

/// Marchenko-Pastur, s = sqrt(rho):  z = D g + s^2/(s - g) + 1/g, that is
///   (D/s) g^3 - (z/s + D) g^2 + (z + 1/s - s) g - 1 = 0.
/// The edges are the zeros of the discriminant in z, i.e. z(g) where dz/dg = D + s^2/(s-g)^2 - 1/g^2 = 0: one
/// with g < 0, one with g in (0, s), and two with g > s if D < merging_noise, the D of the double root.
class WishartOracle final : public CubicOracle {
  public:
    WishartOracle(double width, double noise_variance) : CubicOracle(noise_variance), s_(sqrt(Real(width))) {}

    CubicRoots roots(const Real& z) const override {
        return solve_cubic(noise_ / s_, -(z / s_ + noise_), z + 1 / s_ - s_, -1);
    }
    Real z_slope(const Real& g) const override { return noise_ + square(s_ / (s_ - g)) - 1 / square(g); }
    Real z_of(const Real& g) const { return noise_ * g + square(s_) / (s_ - g) + 1 / g; }

    /// (1 - rho^{1/3})^3 / rho for rho < 1.
    static double merging_noise(double width) { return std::pow(1 - std::cbrt(width), 3) / width; }
    Real neck() const override {
        if (s_ >= 1) return z_of(s_ / 2);  // there is no neck: any point will do
        return z_of(s_ / (1 - cbrt(square(s_))));
    }

    std::vector<OracleInterval> bulks() const override {
        // Zeros of dz/dg times g^2 (s-g)^2, a polynomial.
        const auto h = [&](const Real& g) {
            return noise_ * square(g * (s_ - g)) + square(s_ * g) - square(s_ - g);
        };
        const Real far = 2 / sqrt(noise_) + 2;  // dz/dg > 0 beyond
        const Real left = z_of(bisect(h, -far, 0)), right = z_of(bisect(h, 0, s_));
        if (s_ < 1) {
            const Real g = s_ / (1 - cbrt(square(s_)));
            if (h(g) < 0) {
                // z decreases with g between the two zeros: the larger g is the end of the left bulk.
                return {{left, z_of(bisect(h, g, far + g))}, {z_of(bisect(h, s_, g)), right}};
            }
        }
        return {{left, right}};
    }

  private:
    Real s_;
};

/// Two atoms of weight 1/2 at +-1: g = w/(w^2 - 1) with w = z - D g, that is
///   D^2 g^3 - 2 D z g^2 + (z^2 - 1 + D) g - z = 0.
/// Edges at z = w + D w/(w^2-1), w^2 = (2 + D +- sqrt(D^2 + 8 D))/2: the bulks merge at D = 1, at z = 0.
class TwoAtomsOracle final : public CubicOracle {
  public:
    using CubicOracle::CubicOracle;
    CubicRoots roots(const Real& z) const override {
        last_z_ = z;
        return solve_cubic(square(noise_), -2 * noise_ * z, square(z) - 1 + noise_, -z);
    }
    /// dz/dg has the sign of -(1 + D G'(w)) at w = z - D g, with G' = -(w^2 + 1)/(w^2 - 1)^2.
    Real z_slope(const Real& g) const override {
        const Real w2 = square(last_z_ - noise_ * g);
        return noise_ * (w2 + 1) / square(w2 - 1) - 1;
    }
    Real neck() const override { return 0; }
    std::vector<OracleInterval> bulks() const override {
        const Real root = sqrt(square(noise_) + 8 * noise_);
        const auto edge = [&](const Real& w2) -> Real { return sqrt(w2) * (1 + noise_ / (w2 - 1)); };
        const Real outer = edge((2 + noise_ + root) / 2), inner2 = (2 + noise_ - root) / 2;
        if (inner2 <= 0) return {{-outer, outer}};
        const Real inner = edge(inner2);
        return {{-outer, -inner}, {inner, outer}};
    }

  private:
    mutable Real last_z_ = 0;
};

}  // namespace bayesaim::test
