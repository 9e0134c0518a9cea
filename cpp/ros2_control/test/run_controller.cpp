// SPDX-License-Identifier: Apache-2.0
// The controller as a controller manager runs it, on a simulated arm: run_controller LIBRARY MODEL NEXT
//
// It is loaded as a plugin, configured, activated and updated with the classes of ros2_control; models come over DDS from
// another node. The controller manager itself is not part of it.
#include <algorithm>
#include <chrono>
#include <class_loader/class_loader.hpp>
#include <cmath>
#include <controller_interface/chainable_controller_interface.hpp>
#include <cstdio>
#include <memory>
#include <rclcpp/rclcpp.hpp>
#include <robot_dyn_id/effort_control.hpp>
#include <robot_dyn_id/msg/parameter_set.hpp>
#include <string>
#include <vector>

#include "parameter_message.hpp"
#include "program.hpp"

namespace
{
using controller_interface::ChainableControllerInterface;
using hardware_interface::CommandInterface;
using hardware_interface::StateInterface;
using lifecycle_msgs::msg::State;
using robot_dyn_id::Model;
using robot_dyn_id::Parameters;
constexpr double period = 1e-3;

/// Interfaces of a joint, with the handles that a controller manager would lend.
template<class Interface>
std::shared_ptr<Interface> make_interface(const std::string & joint, const char * kind)
{
  hardware_interface::InterfaceInfo info{};
  info.name = kind;
  info.data_type = "double";
  return std::make_shared<Interface>(hardware_interface::InterfaceDescription(joint, info));
}

void run(const char * library, const Parameters & first, const Parameters & second)
{
  const Model truth(first);
  const std::size_t n = truth.joints();
  auto source = std::make_shared<rclcpp::Node>("source");
  const auto publisher = source->create_publisher<robot_dyn_id::msg::ParameterSet>(
    "identified_parameters", rclcpp::QoS(1).reliable().transient_local());

  class_loader::ClassLoader loader(library);
  const auto controller = loader.createInstance<ChainableControllerInterface>("robot_dyn_id::IdentifiedModelController");
  controller_interface::ControllerInterfaceParams given;
  given.controller_name = "model_controller";
  given.robot_description = first.robot.urdf;
  given.update_rate = given.controller_manager_update_rate = 1000;
  given.node_options = controller->define_custom_node_options().parameter_overrides(
    {{"joints", truth.joint_names()}, {"law", "computed_torque"}, {"blend_time", 0.2}});
  require(controller->init(given) == controller_interface::return_type::OK, "init fails");
  require(controller->configure().id() == State::PRIMARY_STATE_INACTIVE, "configuration fails");
  require(controller->command_interface_configuration().names.size() == n, "there is not one command interface for each joint");
  const auto references = controller->export_reference_interfaces();
  require(references.size() == 4 * n, "there are not four reference interfaces for each joint");
  require(controller->get_node()->activate().id() == State::PRIMARY_STATE_INACTIVE, "it is active without a model");

  rclcpp::executors::SingleThreadedExecutor executor;
  executor.add_node(controller->get_node()->get_node_base_interface());
  executor.add_node(source);
  const auto arrives = [&](const Parameters & set) {
    const auto subscribed = [&] { return publisher->get_subscription_count() > 0; };
    for (int k = 0; k < 6000 && !subscribed(); ++k) { executor.spin_once(std::chrono::milliseconds(10)); }
    require(subscribed(), "it does not subscribe to identified_parameters");
    publisher->publish(robot_dyn_id::make_message(set));
    for (int k = 0; k < 50; ++k) { executor.spin_once(std::chrono::milliseconds(20)); }
  };
  Parameters other_robot = first;
  other_robot.judgment.verdict = "bad";
  arrives(other_robot);
  require(controller->get_node()->activate().id() == State::PRIMARY_STATE_INACTIVE, "it is active with a bad model");
  arrives(first);

  std::vector<StateInterface::SharedPtr> states;
  std::vector<CommandInterface::SharedPtr> commands;
  std::vector<hardware_interface::LoanedStateInterface> lent_states;
  std::vector<hardware_interface::LoanedCommandInterface> lent_commands;
  for (const std::string & joint : truth.joint_names()) {
    for (const char * const kind : {"position", "velocity"}) {
      states.push_back(make_interface<StateInterface>(joint, kind));
      lent_states.emplace_back(states.back(), nullptr);
    }
    commands.push_back(make_interface<CommandInterface>(joint, "effort"));
    lent_commands.emplace_back(commands.back(), nullptr);
  }
  std::vector<double> q(n), dq(n, 0.0), ddq(n), effort(n), last(n), start(n), aim(4 * n, 0.0);
  for (std::size_t j = 0; j < n; ++j) { start[j] = q[j] = 0.5 * (truth.limits()[j].lower + truth.limits()[j].upper); }
  truth.gravity(q.data(), last.data());
  for (std::size_t j = 0; j < n; ++j) { (void)commands[j]->set_value(last[j]); }
  controller->assign_interfaces(std::move(lent_commands), std::move(lent_states));
  require(controller->set_chained_mode(true), "it is not chainable");
  require(controller->get_node()->activate().id() == State::PRIMARY_STATE_ACTIVE, "activation fails");

  const std::vector<double> rated = truth.rated_efforts();
  double fastest = 0.0, worst = 0.0;
  for (const auto & one : truth.limits()) { fastest += 2.0 * one.velocity; }
  const robot_dyn_id::EffortSettings usual;
  for (int k = 0; k < 3000; ++k) {
    const double t = k * period, w = 3.0, s = t < 1.0 ? t * t * (3.0 - 2.0 * t) : 1.0, ds = t < 1.0 ? 6.0 * t * (1.0 - t) : 0.0;
    for (std::size_t j = 0; j < n; ++j) {
      (void)states[2 * j]->set_value(q[j]);
      (void)states[2 * j + 1]->set_value(dq[j]);
      aim[j] = start[j] + 0.2 * s * std::sin(w * t);
      aim[n + j] = 0.2 * (s * w * std::cos(w * t) + ds * std::sin(w * t));
    }
    for (std::size_t i = 0; i < 2 * n; ++i) { (void)references[i]->set_value(aim[i]); }
    if (k == 2000) { arrives(second); }
    const rclcpp::Duration passed = rclcpp::Duration::from_seconds(period);
    require(controller->update(rclcpp::Time(0), passed) == controller_interface::return_type::OK, "an update fails");
    for (std::size_t j = 0; j < n; ++j) {
      effort[j] = commands[j]->get_optional().value();
      const double allowed = rated[j] * (fastest + usual.bandwidth[0]) * period;
      require(std::fabs(effort[j] - last[j]) <= allowed * (1.0 + 1e-9), "an effort changes faster than its slew limit");
      if (k > 1000) { worst = std::max(worst, std::fabs(q[j] - aim[j])); }
    }
    last = effort;
    require(truth.forward_dynamics(q.data(), dq.data(), effort.data(), ddq.data()), "the arm is not an arm");
    for (std::size_t j = 0; j < n; ++j) {
      dq[j] += period * ddq[j];
      q[j] += period * dq[j];
    }
  }
  require(worst < 0.05, "the arm does not follow");
  require(controller->get_node()->deactivate().id() == State::PRIMARY_STATE_INACTIVE, "deactivation fails");
  for (const auto & one : commands) { require(one->get_optional().value() == 0.0, "an effort is left at the deactivation"); }
  controller->release_interfaces();
  require(controller->get_node()->cleanup().id() == State::PRIMARY_STATE_UNCONFIGURED, "cleanup fails");
  std::printf("tracking error at most %g rad\n", worst);
}
}  // namespace

int main(int count, char ** given)
{
  return run_program(count, 4, [&] { run(given[1], Parameters::from_yaml(read(given[2])), Parameters::from_yaml(read(given[3]))); });
}
