// SPDX-License-Identifier: MIT
#include "bayesaim/spectral/marchenko_pastur_law.hpp"

#include <cmath>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/spectral/marchenko_pastur_curve.hpp"

namespace bayesaim::spectral {
namespace {

double dot(Complex a, Complex b) { return a.real() * b.real() + a.imag() * b.imag(); }

/// Principal square root by the half-angle formulas. The arguments here are finite and do not overflow, so
/// the checks of std::sqrt are not needed. The larger component is computed first, so nothing cancels.
Complex square_root(Complex z) {
    const double modulus = std::sqrt(std::norm(z));
    if (modulus == 0) return 0;
    const double large = std::sqrt(0.5 * (modulus + std::abs(z.real())));
    const double small = 0.5 * z.imag() / large;
    return z.real() >= 0 ? Complex(large, small) : Complex(std::abs(small), std::copysign(large, z.imag()));
}

}  // namespace

struct MarchenkoPasturLaw::Joukowski {
    Complex t;
    Complex pole;        // t + 1/s
    Complex difference;  // t - 1/t
};

MarchenkoPasturLaw::MarchenkoPasturLaw(double width) {
    check_positive("width", width);
    check_between("width", width, 1e-20, 1e20);
    mean_ = std::sqrt(width);
    inverse_root_width_ = 1 / mean_;
    excess_ = (1 - width) / width;
}

MarchenkoPasturLaw MarchenkoPasturLaw::semicircle() { return {0.0, 0.0, -1.0}; }

std::vector<Interval> MarchenkoPasturLaw::centred_support() const {
    const Interval bulk{inverse_root_width_ - 2, inverse_root_width_ + 2};
    if (inverse_root_width_ > 1 && bulk.low > -mean_) return {{-mean_, -mean_}, bulk};
    return {bulk};
}

double MarchenkoPasturLaw::atomic_concentration() const {
    if (inverse_root_width_ <= 1) return 0;
    const double atom = 1 - mean_ * mean_;
    return atom * atom;
}

MarchenkoPasturLaw::Joukowski MarchenkoPasturLaw::joukowski(Complex z) const {
    const Complex y = z - inverse_root_width_;
    Complex root = square_root((y - 2.0) * (y + 2.0));
    if (dot(y, root) < 0) root = -root;
    const Complex t = 0.5 * (y + root);
    // t + 1/s = z - 1/t: next to the atom (z near -s, t near -1/s) the second form keeps the digits.
    const Complex pole = std::norm(z) < std::norm(t) ? z - 1.0 / t : t + inverse_root_width_;
    return {t, pole, root};
}

Transform MarchenkoPasturLaw::stieltjes(Complex z) const {
    const auto [t, pole, difference] = joukowski(z);
    const Complex g = 1.0 / pole;
    return {g, -g * g * t / difference};  // t^2 / (t^2 - 1) = t / (t - 1/t)
}

Transform MarchenkoPasturLaw::moment_transform(Complex z) const {
    const auto [t, pole, difference] = joukowski(z);
    const Complex g = 1.0 / pole;
    return {g / t, -(t + pole) * g * g / (t * difference)};
}

/// int log(z - x) dmu = (1 - s^2) log(t + 1/s) + s^2 log t + s/t: the antiderivative of
/// G dz = (1 - 1/t^2) dt / (t + 1/s) that behaves as log z at infinity. For large s the terms cancel; there
/// the series log(t + 1/s) + (1/2 - x/3 + x^2/4 - ...) / t^2 with x = 1/(s t) replaces them.
double MarchenkoPasturLaw::log_potential(Complex z) const {
    const auto [t, pole, difference] = joukowski(z);
    const Complex x = inverse_root_width_ / t;
    if (std::norm(x) > 0.04) {
        const double width = mean_ * mean_;
        return (1 - width) * std::log(std::abs(pole)) + width * std::log(std::abs(t)) + std::real(mean_ / t);
    }
    Complex series = 0;  // |x| <= 0.2: the omitted terms are below 1e-18
    for (int k = 26; k >= 2; --k) series = 1.0 / k - x * series;
    return std::log(std::abs(pole)) + std::real(series / (t * t));
}

std::optional<ErrorPoint> MarchenkoPasturLaw::known_error(double noise_variance) const {
    if (inverse_root_width_ == 0)
        return ErrorPoint{noise_variance / (1 + noise_variance), 1 / std::pow(1 + noise_variance, 2)};
    constexpr double largest =
        100;  // beyond, the slope 1 - ... loses digits; FreeConvolution has another form
    if (noise_variance > largest) return std::nullopt;
    return MarchenkoPasturCurve(inverse_root_width_, excess_, noise_variance).error();
}

std::vector<CurveBulk> MarchenkoPasturLaw::known_bulks(double noise_variance) const {
    // Below, lambda does not resolve the bulk of the atom, and the engine knows how to go on.
    constexpr double smallest = 1e-12;
    if (inverse_root_width_ == 0 || noise_variance < smallest) return {};
    return MarchenkoPasturCurve(inverse_root_width_, excess_, noise_variance).bulks();
}

}  // namespace bayesaim::spectral
