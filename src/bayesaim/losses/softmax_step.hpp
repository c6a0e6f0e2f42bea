// SPDX-License-Identifier: MIT
#pragma once
#include <optional>

#include <Eigen/Core>

#include "bayesaim/losses/softmax_loss.hpp"

/// The proximal step of a softmax loss at one sample; see SoftmaxLoss.
namespace bayesaim::losses {

/// Sums of one sample.
struct StepSums {
    double curvature = 0, signal = 0, power = 0, loss = 0;
};

/// Two tokens, in u_a = h_aa - h_12.
class TwoTokenStep {
  public:
    static constexpr double small_step = 1e-10;  ///< of Newton, relative: the next would be its square

    TwoTokenStep(SoftmaxLoss::Kind kind, double beta) : kind_(kind), beta_(beta) {}

    /// target: u of the teacher, logit(y)/beta. V >= 0.
    void solve(const double target[2], const double omega[2], double variance);
    const double* slope() const { return slope_; }  ///< l'_a at the step's end; g = -B' l'
    StepSums sums() const;                          ///< at the step's end
    /// Whether the step has one stationary point for any omega and y.
    bool convex(double variance) const;

  private:
    std::optional<double> steepest(int a, double from) const;
    void descend_everywhere();
    void descend(double u[2], double longest) const;
    double value_at(const double u[2]) const;
    double merit(const double u[2]) const;
    void derivatives(double u, double y, double& slope, double& curvature) const;

    SoftmaxLoss::Kind kind_;
    double beta_;
    double variance_ = 0, target_[2] = {}, y_[2] = {}, omega_[2] = {};
    double u_[2] = {}, slope_[2] = {}, curvature_[2] = {};
};

/// Any number of tokens, in htilde.
class TokensStep {
  public:
    TokensStep(SoftmaxLoss::Kind kind, int tokens, double beta);

    /// log_outputs: T x T, row by row; target: any htilde of the teacher with these outputs.
    void solve(const double* log_outputs, const Eigen::VectorXd& target, const Eigen::VectorXd& omega,
               double variance);
    /// htilde of the logits of outputs, up to the direction that they do not show.
    Eigen::VectorXd target_of(const double* log_outputs) const;
    const Eigen::VectorXd& g() const { return g_; }
    StepSums sums(bool with_signal) const;

  private:
    /// ell, minus its gradient and its Hessian at z; the Hessian only if asked for.
    double evaluate(const Eigen::VectorXd& z, Eigen::VectorXd& g, Eigen::MatrixXd* hessian) const;
    void descend(Eigen::VectorXd& z, double& merit);

    SoftmaxLoss::Kind kind_;
    int tokens_;
    double beta_;
    Eigen::VectorXd scale_;  // tau
    Eigen::VectorXd omega_, z_, g_;
    Eigen::MatrixXd y_, log_y_, hessian_;
    double variance_ = 0;
};

}  // namespace bayesaim::losses
