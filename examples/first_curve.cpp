// SPDX-License-Identifier: MIT
// The Bayes-optimal error of learning softmax attention of two tokens and width 0.5, at four alpha = n/d^2. Strong
// recovery is at 0.1875. Prints:
//   alpha 0.05  error 0.7236774222
//   alpha 0.10  error 0.3921960173
//   alpha 0.15  error 0.1281308963
//   alpha 0.20  error 0.0000000000
#include <cstdio>

#include "bayesaim/channels/softmax.hpp"
#include "bayesaim/priors/wishart.hpp"
#include "bayesaim/theory/state_evolution.hpp"

int main() {
    using namespace bayesaim;
    const priors::Wishart prior(0.5);
    const channels::Softmax channel(2);
    const theory::SpectralCurve curve(prior.law());
    for (const double alpha : {0.05, 0.1, 0.15, 0.2}) {
        std::printf("alpha %.2f  error %.10f\n", alpha,
                    theory::solve_state_evolution(curve, channel, alpha).error());
    }
}
