// SPDX-License-Identifier: Apache-2.0
// Example of a ros2_control controller: gravity compensation with an identified model, without what the driver adds.
//
// Untested in this repository, whose tests have no ros2_control: see README.md.
#include <algorithm>
#include <cmath>
#include <controller_interface/controller_interface.hpp>
#include <fstream>
#include <iterator>
#include <memory>
#include <pluginlib/class_list_macros.hpp>
#include <robot_dyn_id/runtime_dynamics.hpp>
#include <string>
#include <vector>

namespace robot_dyn_id
{

/// Parameters: `parameters_file` (a parameters.yaml), `effort_limits` (one for each of its joints), `damping`.
class IdentifiedGravityController : public controller_interface::ControllerInterface
{
public:
  controller_interface::CallbackReturn on_init() override
  {
    auto_declare<std::string>("parameters_file", "");
    auto_declare<std::vector<double>>("effort_limits", {});
    auto_declare<double>("damping", 0.0);
    return controller_interface::CallbackReturn::SUCCESS;
  }

  controller_interface::CallbackReturn on_configure(const rclcpp_lifecycle::State &) override
  {
    try {
      const std::string name = get_node()->get_parameter("parameters_file").as_string();
      std::ifstream file(name);
      if (!file) { throw std::invalid_argument("parameters_file " + name + " cannot be read"); }
      const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
      model_ = std::make_unique<Dynamics<>>(Parameters::from_yaml(text));
      if (!model_->driver_known()) {
        throw std::invalid_argument(name + ": robot_compensates is unknown, a second gravity torque would lift the arm");
      }
      model_->check_robot(get_robot_description());
      model_->check_efforts(get_node()->get_parameter("effort_limits").as_double_array());
    } catch (const std::invalid_argument & error) {
      RCLCPP_ERROR(get_node()->get_logger(), "%s", error.what());
      return controller_interface::CallbackReturn::ERROR;
    }
    limits_ = get_node()->get_parameter("effort_limits").as_double_array();
    damping_ = get_node()->get_parameter("damping").as_double();
    const auto wrong = [](double limit) { return !(limit > 0.0 && std::isfinite(limit)); };
    if (limits_.size() != model_->joints() || std::any_of(limits_.begin(), limits_.end(), wrong)) {
      RCLCPP_ERROR(get_node()->get_logger(), "effort_limits needs a positive effort for each of %zu joints", model_->joints());
      return controller_interface::CallbackReturn::ERROR;
    }
    for (std::vector<double> * one : {&q_, &dq_, &still_, &motor_, &effort_}) { one->assign(model_->joints(), 0.0); }
    return controller_interface::CallbackReturn::SUCCESS;
  }

  controller_interface::InterfaceConfiguration command_interface_configuration() const override
  {
    return interfaces({"effort"});
  }

  controller_interface::InterfaceConfiguration state_interface_configuration() const override
  {
    return interfaces({"position", "velocity"});
  }

  controller_interface::CallbackReturn on_deactivate(const rclcpp_lifecycle::State &) override
  {
    for (auto & interface : command_interfaces_) { (void)interface.set_value(0.0); }
    return controller_interface::CallbackReturn::SUCCESS;
  }

  controller_interface::return_type update(const rclcpp::Time &, const rclcpp::Duration &) override
  {
    for (std::size_t j = 0; j < q_.size(); ++j) {
      q_[j] = state_interfaces_[2 * j].get_value();
      dq_[j] = state_interfaces_[2 * j + 1].get_value();
    }
    bool finite = model_->command(q_.data(), still_.data(), nullptr, effort_.data());
    model_->gravity(q_.data(), motor_.data());
    for (std::size_t j = 0; j < q_.size(); ++j) {
      const double added = motor_[j] - effort_[j];  // by the driver; the motor gives the command and this
      const double motor = std::clamp(motor_[j] - damping_ * dq_[j], -limits_[j], limits_[j]);
      effort_[j] = std::clamp(motor - added, -limits_[j], limits_[j]);
      finite = finite && std::isfinite(effort_[j]);
    }
    for (std::size_t j = 0; j < q_.size(); ++j) {
      (void)command_interfaces_[j].set_value(finite ? effort_[j] : 0.0);
    }
    return finite ? controller_interface::return_type::OK : controller_interface::return_type::ERROR;
  }

private:
  std::unique_ptr<Dynamics<>> model_;
  std::vector<double> limits_, q_, dq_, still_, motor_, effort_;
  double damping_ = 0.0;

  /// Interfaces of all joints, in the order of the parameter set.
  controller_interface::InterfaceConfiguration interfaces(const std::vector<std::string> & kinds) const
  {
    controller_interface::InterfaceConfiguration wanted;
    wanted.type = controller_interface::interface_configuration_type::INDIVIDUAL;
    for (const std::string & joint : model_ ? model_->joint_names() : std::vector<std::string>{}) {
      for (const std::string & kind : kinds) { wanted.names.push_back(joint + "/" + kind); }
    }
    return wanted;
  }
};

}  // namespace robot_dyn_id

PLUGINLIB_EXPORT_CLASS(robot_dyn_id::IdentifiedGravityController, controller_interface::ControllerInterface)
