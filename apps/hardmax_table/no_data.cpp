// SPDX-License-Identifier: MIT
#include "hardmax_table/no_data.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <Eigen/Core>

#include "bayesaim/channels/hardmax/recursion.hpp"

namespace bayesaim::hardmax_table {

LabelClasses::LabelClasses(int tokens) {
    const channels::HardmaxRecursion recursion(tokens);
    const auto size = static_cast<std::size_t>(tokens);
    std::map<std::vector<int>, std::size_t> known;
    std::vector<int> labels(size, 0), image(size), permutation(size);
    while (true) {
        if (recursion.possible(labels)) {
            std::vector<int> smallest = labels;
            std::iota(permutation.begin(), permutation.end(), 0);
            do {
                for (std::size_t a = 0; a < size; ++a)
                    image[static_cast<std::size_t>(permutation[a])] =
                        permutation[static_cast<std::size_t>(labels[a])];
                smallest = std::min(smallest, image);
            } while (std::next_permutation(permutation.begin(), permutation.end()));
            const auto [place, added] = known.try_emplace(smallest, representatives.size());
            if (added) {
                representatives.push_back(smallest);
                sizes.push_back(0);
            }
            sizes[place->second] += 1;
        }
        std::size_t digit = 0;
        while (digit < size && ++labels[digit] == tokens) labels[digit++] = 0;
        if (digit == size) return;
    }
}

NoData without_data(int tokens) {
    channels::HardmaxRecursion recursion(tokens);
    const LabelClasses classes(tokens);
    const int pairs = recursion.pairs();
    const auto size = static_cast<std::size_t>(pairs);
    std::vector<double> omega(size, 0), g(size);
    const auto squares = [&] { return std::inner_product(g.begin(), g.end(), g.begin(), 0.0); };
    // sum over labels of Z |g|^2 at omega, exact on average over permutations of omega.
    const auto power = [&] {
        double sum = 0;
        for (std::size_t k = 0; k < classes.sizes.size(); ++k) {
            const double log_z = recursion.evaluate(classes.representatives[k], omega, 1, g);
            sum += classes.sizes[k] * std::exp(log_z) * squares();
        }
        return sum;
    };
    const double phi0 = power();
    double entropy = 0, hessian_power = 0;
    for (std::size_t k = 0; k < classes.sizes.size(); ++k) {
        const auto& labels = classes.representatives[k];
        const double log_z = recursion.evaluate(labels, omega, 1), z = std::exp(log_z);
        entropy -= classes.sizes[k] * z * log_z;
        constexpr double step = 0.05, weights[] = {45, -9, 1};  // sixth order
        for (std::size_t p = 0; p < size; ++p) {
            Eigen::VectorXd row = Eigen::VectorXd::Zero(pairs);
            for (int n = 1; n <= 3; ++n) {
                for (const double side : {1.0, -1.0}) {
                    omega[p] = side * n * step;
                    recursion.evaluate(labels, omega, 1, g);
                    row += side * weights[n - 1] / (60 * step) * Eigen::Map<Eigen::VectorXd>(g.data(), pairs);
                }
            }
            omega[p] = 0;
            hessian_power += classes.sizes[k] * z * row.squaredNorm();
        }
    }
    const double phi1 = 2 * (hessian_power - phi0);
    // phi(s) = E power(omega), omega ~ N(0, 2s), to order s^2 by the symmetric cubature of degree 5.
    const auto cubature = [&](double s) {
        const double K = pairs, far = std::sqrt(2 * s * (K + 2)), near = std::sqrt(s * (K + 2));
        double axes = 0, planes = 0;
        for (std::size_t p = 0; p < size; ++p) {
            for (const double side : {1.0, -1.0}) {
                omega[p] = side * far;
                axes += power();
                omega[p] = side * near;
                for (std::size_t q = 0; q < p; ++q) {
                    for (const double other : {1.0, -1.0}) {
                        omega[q] = other * near;
                        planes += power();
                    }
                    omega[q] = 0;
                }
            }
            omega[p] = 0;
        }
        return 2 / (K + 2) * phi0 + (4 - K) / (2 * (K + 2) * (K + 2)) * axes + planes / ((K + 2) * (K + 2));
    };
    // Richardson: (phi - phi0 - phi1 s)/s^2 is a power series in s.
    double table[3];
    double s = 0.004;
    for (double& entry : table) {
        entry = (cubature(s) - phi0 - phi1 * s) / (s * s);
        s *= 2;
    }
    const double first = 2 * table[0] - table[1], second = 2 * table[1] - table[2];
    const double phi2 = (4 * first - second) / 3;
    return {phi0, -(phi0 + phi1), 2 * (phi0 + 2.5 * phi1 + phi2), entropy};
}

}  // namespace bayesaim::hardmax_table
