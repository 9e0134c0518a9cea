// SPDX-License-Identifier: Apache-2.0
// Plugin of inverse_dynamics_solver: dynamics of the parameters.yaml that the parameter `parameters_file` names.
#include <fstream>
#include <inverse_dynamics_solver/inverse_dynamics_solver.hpp>
#include <iterator>
#include <memory>
#include <pluginlib/class_list_macros.hpp>
#include <rclcpp/parameter.hpp>
#include <robot_dyn_id/runtime_dynamics.hpp>
#include <stdexcept>
#include <string>
#include <utility>

namespace robot_dyn_id
{

/// Torques of the motors: what the driver adds to a command is not subtracted, as the interface has no place for it.
class IdentifiedDynamicsSolver : public inverse_dynamics_solver::InverseDynamicsSolver
{
public:
  /// Read the file; throws std::invalid_argument if it cannot be used, or is that of another robot than the description's.
  void initialize(
    rclcpp::node_interfaces::NodeParametersInterface::ConstSharedPtr parameters_interface = nullptr,
    const std::string & param_namespace = "", const std::string & robot_description = "") override
  {
    const std::string name = param_namespace.empty() ? "parameters_file" : param_namespace + ".parameters_file";
    rclcpp::Parameter value;
    if (!parameters_interface || !parameters_interface->get_parameter(name, value)) {
      throw std::invalid_argument("the parameter " + name + " must name a parameters.yaml");
    }
    std::ifstream file(value.as_string());
    if (!file) { throw std::invalid_argument(value.as_string() + " cannot be read"); }
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    auto model = std::make_unique<Model>(Model::from_yaml(text));
    if (robot_description.empty()) { throw std::invalid_argument("robot_description is empty: the robot is not known"); }
    model->check_robot(robot_description);
    model_ = std::move(model);
  }

  Eigen::MatrixXd getInertiaMatrix(const Eigen::VectorXd & q) const override
  {
    Eigen::MatrixXd mass(size(), size());
    model(q).mass_matrix(q.data(), mass.data());  // symmetric: rows are columns
    return mass;
  }

  Eigen::VectorXd getCoriolisVector(const Eigen::VectorXd & q, const Eigen::VectorXd & dq) const override
  {
    Eigen::VectorXd torque(size());
    check(dq);
    model(q).coriolis(q.data(), dq.data(), torque.data());
    return torque;
  }

  /// Torque at rest: offsets and springs are part of it.
  Eigen::VectorXd getGravityVector(const Eigen::VectorXd & q) const override
  {
    Eigen::VectorXd torque(size());
    model(q).gravity(q.data(), torque.data());
    return torque;
  }

  /// Friction in sliding at the zero position: the interface has no position for load-dependent friction.
  Eigen::VectorXd getFrictionVector(const Eigen::VectorXd & dq) const override
  {
    const Eigen::VectorXd zero = Eigen::VectorXd::Zero(size());
    Eigen::VectorXd torque(size()), rest(size());
    model(dq).friction(zero.data(), dq.data(), torque.data());
    model(dq).friction(zero.data(), zero.data(), rest.data());
    return torque - rest;
  }

private:
  std::unique_ptr<Model> model_;

  Eigen::Index size() const { return model_ ? static_cast<Eigen::Index>(model_->joints()) : 0; }

  void check(const Eigen::VectorXd & vector) const
  {
    if (!model_) { throw std::logic_error("initialize must be called before any other method"); }
    if (vector.size() != size()) { throw std::invalid_argument("a vector does not have one number for each joint"); }
  }

  const Model & model(const Eigen::VectorXd & vector) const
  {
    check(vector);
    return *model_;
  }
};

}  // namespace robot_dyn_id

PLUGINLIB_EXPORT_CLASS(robot_dyn_id::IdentifiedDynamicsSolver, inverse_dynamics_solver::InverseDynamicsSolver)
