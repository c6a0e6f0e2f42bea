// SPDX-License-Identifier: MIT
// A program outside the project: prints the version and the Bayes-optimal error of one denoising problem.
#include <cstdio>

#include "bayesaim/core/version.hpp"
#include "bayesaim/spectral/free_convolution.hpp"
#include "bayesaim/spectral/marchenko_pastur_law.hpp"

int main() {
    std::printf("bayesaim %s\n", bayesaim::version().data());
    std::printf("mmse %.9f\n", bayesaim::spectral::mmse(bayesaim::spectral::MarchenkoPasturLaw(0.5), 0.1));
}
