// SPDX-License-Identifier: MIT
#include "bayesaim/channels/hardmax/universal.hpp"

#include <array>
#include <cmath>
#include <numbers>
#include <span>
#include <vector>

namespace bayesaim::channels::hardmax_universal {
namespace {

// From apps/hardmax_table; docs/theory.md says how each was checked.
// clang-format off
constexpr double power_2[] = {1.3571374203573452, -0.10112285331238964, -0.016685198588938271,
    0.00017526822051475155, -9.4415563593158724e-05, 1.5531871722623825e-05, 5.1121818725324841e-06,
    7.8560891550449874e-07, 1.9237066693766902e-07, 4.4843938118432902e-08, 5.9488157455600543e-09,
    3.8274240721225539e-10, -1.3942125232091485e-10, -1.1483612671892018e-10, -5.2631884961407138e-11,
    -2.0872178985165135e-11, -8.1507856020124336e-12, -3.173045159954313e-12, -1.2173387298197724e-12,
    -4.4959869160976496e-13, -1.5199994041203979e-13, -4.949513021657026e-14, -1.1175088632242591e-14,
    -1.6358442378461291e-15};
constexpr double power_3[] = {3.08124389725, -0.198645140435, -0.0335788032089, 0.00247430432615,
    -0.000852207345717, 9.38353046389e-05, 1.65236853626e-05, -5.06611483832e-06, 9.83903302526e-07,
    1.64591907333e-07, -3.37983270537e-08};
constexpr double power_4[] = {5.05276013666, -0.254150336031, -0.0478988517615, 0.0066146720039,
    -0.00244126165991, 0.000298021651798, 3.08569717073e-05, -1.94235944743e-05};
constexpr double power_5[] = {7.20902428816, -0.26750757046, -0.0559074906645, 0.012286401195,
    -0.00458598905574, 0.000483177292187};
constexpr double power_6[] = {9.5138284764, -0.240656174389, -0.0565325092708, 0.0191676156868,
    -0.00737723088074, 0.000810917405297};
constexpr double power_errors[] = {1e-12, 3e-8, 5e-6, 6e-5, 3e-4};  // relative
constexpr double angle_2[] = {std::numbers::inv_pi};
constexpr double angle_3[] = {0.45151601458532897, -0.026825477181400725, -0.0010769849243012061,
    -0.00021249325827329968, -1.3816614822716375e-05, -1.7263819967591345e-06, -8.5501741964311151e-08,
    -4.3717825629460296e-09, 6.6853085369165747e-10, 1.5300711094948634e-10, 2.5161884480746314e-11,
    3.2636988349971878e-12, 3.8726165131817779e-13, 4.4706302152316567e-14, 5.2339085446614518e-15,
    5.6700675900499062e-16, 7.5336562385278471e-17};
constexpr double angle_4[] = {0.52921837704856334, -0.051794836739023922, -0.0016528259703576123,
    -0.0003489191905324738, -1.1569067996042293e-05, -1.1506419440667135e-06, 1.9963973337176556e-07,
    3.7388424856121816e-08, 7.0965936381308021e-09, 8.5757968980106266e-10, 9.3423344457324977e-11,
    7.0824021250867217e-12, 2.4941160248204142e-13, -4.7057595915183418e-14, -1.2862726756728598e-14,
    -2.1332142401726219e-15, -3.0531133177191805e-16};
constexpr double angle_5[] = {0.58220727966687091, -0.073257789117149807, -0.0018841799473058782,
    -0.0004243402904539062, -3.5579375611589317e-07, 5.8234456033558395e-07, 6.1389621855026786e-07,
    8.617516327508971e-08, 1.2713881764841212e-08, 1.1294450137049645e-09, 6.3317644778087305e-11,
    -7.0525886717933059e-12, -2.5903802912198767e-12, -4.8991366519146595e-13, -6.7957544353751984e-14,
    -7.5574467319126725e-15, -6.0269249908222777e-16};
constexpr double angle_6[] = {0.62161588298260839, -0.091729022238636812, -0.0019007822142636758,
    -0.00045950510687107837, 1.5370254090485425e-05, 2.7863597919984351e-06, 1.0395254360243529e-06,
    1.2584307247059151e-07, 1.5352253016473076e-08, 7.5449211164472068e-10, -7.6742255407578695e-11,
    -3.6729643136469898e-11, -7.1172512328132598e-12, -1.0351402275026494e-12, -1.1129985821867194e-13,
    -7.3195417980644251e-15, 3.8857805861880479e-16};
// clang-format on

constexpr std::array<std::span<const double>, 5> power_series{power_2, power_3, power_4, power_5, power_6};
constexpr std::array<std::span<const double>, 5> angle_series{angle_2, angle_3, angle_4, angle_5, angle_6};

std::size_t row(int tokens) { return static_cast<std::size_t>(tokens - 2); }

/// sum_k c_k T_k(x) by Clenshaw's recursion.
double chebyshev(std::span<const double> c, double x) {
    double next = 0, after = 0;
    for (std::size_t k = c.size(); k-- > 1;) {
        const double current = c[k] + 2 * x * next - after;
        after = next;
        next = current;
    }
    return c[0] + x * next - after;
}

/// The series of int_0^r, which is half of int_{-1}^x: T_k is the derivative of
/// (T_{k+1}/(k+1) - T_{k-1}/(k-1))/2.
std::vector<double> integral(std::span<const double> c) {
    std::vector<double> result(c.size() + 1, 0);
    const auto at = [&](std::size_t k) { return k < c.size() ? c[k] : 0; };
    for (std::size_t k = 1; k < result.size(); ++k)
        result[k] = ((k == 1 ? 2 : 1) * at(k - 1) - at(k + 1)) / (4 * static_cast<double>(k));
    for (std::size_t k = 1; k < result.size(); ++k) result[0] += k % 2 == 0 ? -result[k] : result[k];
    return result;
}

}  // namespace

double power(int tokens, double r) { return chebyshev(power_series[row(tokens)], 2 * r - 1); }

double information(int tokens, double r) {
    static const auto series = [] {
        std::array<std::vector<double>, power_series.size()> all;
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = integral(power_series[i]);
        return all;
    }();
    return -chebyshev(series[row(tokens)], 2 * r - 1);
}

double relative_error(int tokens) { return power_errors[row(tokens)]; }

double disagreement(int tokens, double angle) {
    return angle * chebyshev(angle_series[row(tokens)], 4 / std::numbers::pi * angle - 1);
}

}  // namespace bayesaim::channels::hardmax_universal
