// SPDX-License-Identifier: Apache-2.0
// The plugin of inverse_dynamics_solver, loaded as a plugin: run_solver LIBRARY MODEL
#include <class_loader/class_loader.hpp>
#include <inverse_dynamics_solver/inverse_dynamics_solver.hpp>
#include <memory>
#include <rclcpp/rclcpp.hpp>
#include <robot_dyn_id/runtime_dynamics.hpp>
#include <string>
#include <vector>

#include "program.hpp"

namespace
{
void run(const char * library, const char * file)
{
  const auto set = robot_dyn_id::Parameters::from_yaml(read(file));
  const robot_dyn_id::Model model(set);
  const auto n = static_cast<Eigen::Index>(model.joints());
  const auto node = std::make_shared<rclcpp::Node>("solver", rclcpp::NodeOptions()
    .parameter_overrides({{"dynamics.parameters_file", file}}).automatically_declare_parameters_from_overrides(true));
  class_loader::ClassLoader loader(library);
  const auto solver =
    loader.createInstance<inverse_dynamics_solver::InverseDynamicsSolver>("robot_dyn_id::IdentifiedDynamicsSolver");
  const auto refuses = [&](const std::string & robot, const char * names) {
    try {
      solver->initialize(node->get_node_parameters_interface(), names, robot);
    } catch (const std::invalid_argument &) {
      return true;
    }
    return false;
  };
  std::string other = set.robot.urdf;
  other.replace(other.find("<mass value=\""), 13, "<mass value=\"1");
  require(refuses(set.robot.urdf, "nowhere"), "a missing parameter is not refused");
  require(refuses("", "dynamics"), "a robot that is not known is not refused");
  require(refuses(other, "dynamics"), "another robot is not refused");
  require(!refuses(set.robot.urdf, "dynamics"), "its own robot is refused");
  Eigen::VectorXd q(n), dq(n), ddq(n), wanted(n), rest(n);
  for (Eigen::Index j = 0; j < n; ++j) {
    q[j] = 0.1 * static_cast<double>(j + 1);
    dq[j] = 0.3 - 0.1 * static_cast<double>(j);
    ddq[j] = 0.2;
  }
  model.inverse_dynamics(q.data(), dq.data(), ddq.data(), wanted.data());
  const Eigen::VectorXd got = solver->getTorques(q, dq, ddq) + solver->getFrictionVector(dq);
  require((got - wanted).cwiseAbs().maxCoeff() <= 1e-9 * wanted.cwiseAbs().maxCoeff(), "the torques differ");
}
}  // namespace

int main(int count, char ** given)
{
  return run_program(count, 3, [&] { run(given[1], given[2]); });
}
