// SPDX-License-Identifier: MIT
#pragma once
#include <Eigen/Core>

#include "bayesaim/channels/geometry.hpp"
#include "bayesaim/linalg/overlap.hpp"

namespace bayesaim::channels {

using linalg::Overlap;
using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstRowsRef = Eigen::Ref<const Rows>;
using RowsRef = Eigen::Ref<Rows>;

/// What a pass over the data asks of the outputs: how they pull at the indices. A channel answers with the
/// gradient of log Z, a training loss with its proximal step. See channel.hpp for the conventions.
class Score {
  public:
    virtual ~Score() = default;

    virtual int layers() const { return 1; }  ///< L
    /// Which pairs of tokens are seen.
    virtual Geometry geometry() const = 0;
    /// Size of the order parameters: L, or 2 for the parts of S.
    int components() const { return layers() * geometry().parts(); }
    int pairs() const { return geometry().pairs(); }      ///< K
    int outputs() const { return geometry().outputs(); }  ///< columns of y

    /// g of each sample (row). Fills log_z too unless its size is 0.
    virtual void score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                       RowsRef g, Eigen::Ref<Eigen::VectorXd> log_z) const = 0;

    /// Computes g like score(). Returns the L x L sum over samples and pairs of -dg^l/domega^k.
    virtual Overlap score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega,
                                     const Overlap& variance, RowsRef g) const = 0;
};

}  // namespace bayesaim::channels
