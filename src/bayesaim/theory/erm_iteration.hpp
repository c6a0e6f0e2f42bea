// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/theory/erm.hpp"

namespace bayesaim::theory {

/// State evolution of a trained estimate, for any loss and lambda > 0, iterated from a start: m, q and the response V.
ErmPoint iterate_erm(const spectral::SpectralLaw& teacher, const losses::Loss& loss, double alpha,
                     double lambda, const ErmOptions& options, const losses::Alignment& start,
                     double response);

}  // namespace bayesaim::theory
