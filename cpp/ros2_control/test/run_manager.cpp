// SPDX-License-Identifier: Apache-2.0
// The controller in a controller manager with mock hardware: run_manager MODEL FOLDER
//
// It is found by its plugin description, loaded, configured, activated at a model from the topic, and commands the torque
// that holds the mock arm, which does not move. FOLDER receives the file of its parameters.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <controller_manager/controller_manager.hpp>
#include <controller_manager_msgs/srv/switch_controller.hpp>
#include <memory>
#include <rclcpp/rclcpp.hpp>
#include <robot_dyn_id/msg/parameter_set.hpp>
#include <robot_dyn_id/runtime_dynamics.hpp>
#include <string>
#include <thread>
#include <vector>

#include "parameter_message.hpp"
#include "program.hpp"

namespace
{
using controller_interface::return_type;
using controller_manager_msgs::srv::SwitchController;
using robot_dyn_id::Model;
using robot_dyn_id::Parameters;
constexpr const char * name = "model_controller";

/// Access to the interfaces of the hardware.
struct Manager : controller_manager::ControllerManager
{
  using ControllerManager::ControllerManager;
  hardware_interface::ResourceManager & hardware() { return *resource_manager_; }
};

/// Robot description with mock hardware, at positions that the limits allow.
std::string describe(const Parameters & set, const Model & model, const std::vector<double> & q)
{
  std::string hardware = "<ros2_control name=\"arm\" type=\"system\"><hardware><plugin>mock_components/GenericSystem</plugin></hardware>";
  for (std::size_t j = 0; j < model.joints(); ++j) {
    hardware += "<joint name=\"" + model.joint_names()[j] + "\"><command_interface name=\"effort\"/>"
      "<state_interface name=\"position\"><param name=\"initial_value\">" + std::to_string(q[j]) + "</param></state_interface>"
      "<state_interface name=\"velocity\"><param name=\"initial_value\">0.0</param></state_interface>"
      "<state_interface name=\"effort\"/></joint>";
  }
  std::string urdf = set.robot.urdf;
  return urdf.insert(urdf.rfind("</robot>"), hardware + "</ros2_control>");
}

void run(const std::string & text, const std::string & folder)
{
  const Parameters set = Parameters::from_yaml(text);
  const Model model(set);
  std::vector<double> q, wanted(model.joints());
  for (const auto & one : model.limits()) { q.push_back(std::round(50.0 * (one.lower + one.upper)) / 100.0); }
  model.gravity(q.data(), wanted.data());

  const std::string file = folder + "/controllers.yaml";
  std::ofstream parameters(file);
  parameters << name << ":\n  ros__parameters:\n    blend_time: 0.1\n    joints: [";
  for (std::size_t j = 0; j < model.joints(); ++j) { parameters << (j ? ", " : "") << model.joint_names()[j]; }
  parameters << "]\n";
  parameters.close();

  const auto executor = std::make_shared<rclcpp::executors::MultiThreadedExecutor>();
  const auto manager = std::make_shared<Manager>(executor, describe(set, model, q), true, "controller_manager");
  executor->add_node(manager);
  std::atomic<bool> ends{false};
  std::thread spinner([&] { executor->spin(); });
  std::thread loop([&] {
    const rclcpp::Duration period = rclcpp::Duration::from_seconds(1e-3);
    rclcpp::Time time(0, 0, manager->get_trigger_clock()->get_clock_type());
    while (!ends) {
      time += period;
      manager->read(time, period);
      manager->update(time, period);
      manager->write(time, period);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  const auto finish = [&] {
    ends = true;
    loop.join();
    executor->cancel();
    spinner.join();
  };
  try {
    manager->set_parameter({std::string(name) + ".params_file", file});
    require(manager->load_controller(name, "robot_dyn_id/IdentifiedModelController") != nullptr, "it is not found or loaded");
    require(manager->configure_controller(name) == return_type::OK, "configuration fails");
    const auto activate = [&] {
      return manager->switch_controller({name}, {}, SwitchController::Request::STRICT, true, rclcpp::Duration::from_seconds(60.0));
    };
    require(activate() != return_type::OK, "it is active without a model");
    const auto source = std::make_shared<rclcpp::Node>("source");
    const auto publisher = source->create_publisher<robot_dyn_id::msg::ParameterSet>(
      "identified_parameters", rclcpp::QoS(1).reliable().transient_local());
    publisher->publish(robot_dyn_id::make_message(set));
    bool active = false;
    for (int k = 0; k < 300 && !active; ++k) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      active = activate() == return_type::OK;
    }
    require(active, "activation fails with a model");
    std::this_thread::sleep_for(std::chrono::seconds(1));
    for (std::size_t j = 0; j < model.joints(); ++j) {
      const auto effort = manager->hardware().claim_state_interface(model.joint_names()[j] + "/effort").get_optional();
      require(effort && std::fabs(*effort - wanted[j]) < 1e-6 * (1.0 + std::fabs(wanted[j])), "an effort is not that of gravity");
    }
    require(manager->switch_controller({}, {name}, SwitchController::Request::STRICT, true, rclcpp::Duration::from_seconds(60.0)) ==
      return_type::OK, "deactivation fails");
  } catch (...) {
    finish();
    throw;
  }
  finish();
}
}  // namespace

int main(int count, char ** given)
{
  return run_program(count, 3, [&] { run(read(given[1]), given[2]); });
}
