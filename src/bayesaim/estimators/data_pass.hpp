// SPDX-License-Identifier: MIT
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/data/dataset.hpp"
#include "bayesaim/data/linear_terms.hpp"

namespace bayesaim::estimators {

/// Sums over some of the samples; see core/tree_sum.hpp.
struct ScoreSums {
    std::vector<linalg::Matrix> pulled;  ///< sum X G X', tied attention: the lower triangle
    std::vector<double> trace;           ///< sum Tr G
    linalg::Overlap power, slope;
    linalg::Vector terms;  ///< sum F' g
    double log_z = 0;

    void add(const ScoreSums& other);
    void for_parts(const std::function<void(std::span<std::byte>)>& use);
};

/// The state that AMP keeps between iterations.
struct Messages {
    channels::Rows omega, g;       ///< n x L K, rows of this rank; empty before the first iteration
    linalg::Overlap variance;      ///< V
    std::vector<ScoreSums> spare;  ///< scratch: memory that is given back and taken again costs page faults
};

/// What must be kept of them.
template <class Archive>
void visit(Archive& archive, Messages& messages) {
    archive("omega", messages.omega);
    archive("g", messages.g);
    archive("variance", messages.variance);
}

/// The first rank gets the messages of all samples.
void gather(Messages& messages, const Shares& shares, Communicator& ranks);

/// The input of one pass.
struct PassInput {
    const std::vector<linalg::Matrix>& estimates;
    linalg::Overlap variance;  ///< V = 2 C of the estimates
    linalg::Overlap onsager;   ///< O: omega = htilde(Shat) - O g
    double damping = 0;        ///< weight of the previous omega and V
    bool slope = false;        ///< whether to sum -dg/domega
    /// Linear terms of the indices, F b, and where they stand; null: none
    const data::TermLayout* layout = nullptr;
    const data::LinearTerms* terms = nullptr;
    bool log_z = false;  ///< whether to sum log Z; not together with slope
};

/// The result of one pass: sums over all samples and pairs.
struct Pass {
    std::vector<linalg::Matrix> pulled;  ///< sum g^l_ab Z_ab of each layer
    linalg::Overlap power;               ///< sum g^l g^k
    linalg::Overlap slope;               ///< sum -dg^l/domega^k, if PassInput asks for it
    linalg::Vector terms;                ///< sum F' g, if there are linear terms
    double log_z = 0;                    ///< sum log Z, if PassInput asks for it
};

/// One pass over the tokens: forward through the estimates of all layers, score, and back. The score is that of a
/// channel, or the proximal step of a loss. Products have the
/// precision of the tokens. Results have the same bits for any number of threads and ranks and any token storage.
Pass pass_over_data(const data::Dataset& data, const channels::Score& score, const PassInput& input,
                    Messages& messages, ThreadPool& pool);

}  // namespace bayesaim::estimators
