// SPDX-License-Identifier: Apache-2.0
// The peer of benchmarks/regressor.py: a C++ loop over Pinocchio's torque regressor.
// Whole modules: single headers moved from Pinocchio 3 to 4.
#if __has_include(<pinocchio/multibody.hpp>)
#include <pinocchio/multibody.hpp>
#include <pinocchio/serialization.hpp>
#else
#include <pinocchio/multibody/data.hpp>
#include <pinocchio/multibody/model.hpp>
#include <pinocchio/serialization/model.hpp>
#endif
#include <pinocchio/algorithm/regressor.hpp>

namespace {
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
pinocchio::Model model;
pinocchio::Data data;
}  // namespace

// The model as `Model.saveToText` of Pinocchio's Python package writes it: no parser of URDFs is needed.
extern "C" void load(const char * file)
{
  model.loadFromText(file);
  data = pinocchio::Data(model);
}

// q, dq, ddq: (samples, n); out: (samples, n, 10 n); all row-major.
extern "C" void regressors(long samples, const double * q, const double * dq, const double * ddq, double * out)
{
  const auto n = model.nv;
  for (long k = 0; k < samples; ++k) {
    pinocchio::computeJointTorqueRegressor(
      model, data, Eigen::Map<const Eigen::VectorXd>(q + k * n, n), Eigen::Map<const Eigen::VectorXd>(dq + k * n, n),
      Eigen::Map<const Eigen::VectorXd>(ddq + k * n, n));
    Eigen::Map<Matrix>(out + k * n * 10 * n, n, 10 * n) = data.jointTorqueRegressor;
  }
}
