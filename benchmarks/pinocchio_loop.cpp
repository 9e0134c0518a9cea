// SPDX-License-Identifier: Apache-2.0
// The peer of benchmarks/regressor.py: a C++ loop over Pinocchio's torque regressor.
#include <pinocchio/algorithm/regressor.hpp>
#include <pinocchio/multibody/data.hpp>
#include <pinocchio/multibody/model.hpp>
#include <pinocchio/parsers/urdf.hpp>
#include <pinocchio/algorithm/model.hpp>

#include <string>
#include <vector>

namespace {
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
pinocchio::Model model;
pinocchio::Data data;
}  // namespace

extern "C" void load(const char * urdf, int held, const char ** names)
{
  pinocchio::Model whole;
  pinocchio::urdf::buildModel(urdf, whole);
  std::vector<pinocchio::JointIndex> joints;
  for (int i = 0; i < held; ++i) joints.push_back(whole.getJointId(names[i]));
  model = pinocchio::buildReducedModel(whole, joints, Eigen::VectorXd::Zero(whole.nq));
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
