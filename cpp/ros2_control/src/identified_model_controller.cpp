// SPDX-License-Identifier: Apache-2.0
// Chainable controller of ros2_control: efforts from an identified model, which may change while it is active.
//
// Control and guards are `EffortControl`, without ROS; this class gives it interfaces, parameters and models.
#include <array>
#include <chrono>
#include <controller_interface/chainable_controller_interface.hpp>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <pluginlib/class_list_macros.hpp>
#include <robot_dyn_id/effort_control.hpp>
#include <robot_dyn_id/model_subscription.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace robot_dyn_id
{
using controller_interface::CallbackReturn;
using controller_interface::return_type;

class IdentifiedModelController : public controller_interface::ChainableControllerInterface
{
public:
  CallbackReturn on_init() override
  {
    const EffortSettings usual;
    auto_declare<std::vector<std::string>>("joints", {});
    auto_declare<std::string>("law", "gravity_compensation");
    auto_declare<std::string>("parameters_file", "");
    auto_declare<std::vector<double>>("effort_limits", {});
    auto_declare<std::vector<double>>("bandwidth", usual.bandwidth);
    auto_declare<std::vector<double>>("damping", usual.damping);
    auto_declare<double>("timeout", usual.timeout);
    auto_declare<double>("start_time", usual.start_time);
    auto_declare<double>("blend_time", usual.blend_time);
    return CallbackReturn::SUCCESS;
  }

  CallbackReturn on_configure(const rclcpp_lifecycle::State &) override
  {
    try {
      EffortSettings settings;
      settings.law = law_from_name(get_node()->get_parameter("law").as_string());
      settings.joints = get_node()->get_parameter("joints").as_string_array();
      settings.robot_description = get_robot_description();
      settings.effort_limits = get_node()->get_parameter("effort_limits").as_double_array();
      settings.bandwidth = get_node()->get_parameter("bandwidth").as_double_array();
      settings.damping = get_node()->get_parameter("damping").as_double_array();
      settings.timeout = get_node()->get_parameter("timeout").as_double();
      settings.start_time = get_node()->get_parameter("start_time").as_double();
      settings.blend_time = get_node()->get_parameter("blend_time").as_double();
      control_ = std::make_shared<EffortControl>(std::move(settings));
      const std::string name = get_node()->get_parameter("parameters_file").as_string();
      if (!name.empty()) {
        std::ifstream file(name);
        if (!file) { throw std::invalid_argument("parameters_file " + name + " cannot be read"); }
        control_->offer(Model::from_yaml({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()}));
      }
    } catch (const std::exception & error) {
      RCLCPP_ERROR(get_node()->get_logger(), "%s", error.what());
      return CallbackReturn::FAILURE;
    }
    const std::size_t n = joints().size();
    for (std::vector<double> * one : {&q_, &dq_, &effort_}) { one->assign(n, unknown); }
    arrange_references(n);
    models_ = subscribe_to_models(*get_node(), [control = control_, logger = get_node()->get_logger()](const Model & model) {
      control->offer(model);
      if (model.answer(control->use()) == "limited") {
        RCLCPP_WARN(logger, "the new model is fit for %s with limits: see judgment.fit_for", control->use());
      }
    });
    reporter_ = get_node()->create_wall_timer(std::chrono::milliseconds(500), [this] { report(); });
    return CallbackReturn::SUCCESS;
  }

  CallbackReturn on_activate(const rclcpp_lifecycle::State &) override
  {
    if (!control_->has_model()) {
      RCLCPP_ERROR(get_node()->get_logger(), "no model has come on %s: the controller cannot be activated", models_->get_topic_name());
      return CallbackReturn::FAILURE;
    }
    for (const auto & one : ordered_exported_reference_interfaces_) { (void)one->set_value(unknown); }
    for (std::size_t j = 0; j < effort_.size(); ++j) { effort_[j] = command_interfaces_[j].get_optional().value_or(unknown); }
    control_->start(effort_.data());
    return CallbackReturn::SUCCESS;
  }

  CallbackReturn on_deactivate(const rclcpp_lifecycle::State &) override
  {
    for (auto & one : command_interfaces_) { (void)one.set_value(0.0); }
    return CallbackReturn::SUCCESS;
  }

  CallbackReturn on_cleanup(const rclcpp_lifecycle::State &) override
  {
    models_.reset();
    reporter_.reset();
    control_.reset();
    return CallbackReturn::SUCCESS;
  }

  controller_interface::InterfaceConfiguration command_interface_configuration() const override
  {
    return interfaces({"effort"});
  }

  controller_interface::InterfaceConfiguration state_interface_configuration() const override
  {
    return interfaces({"position", "velocity"});
  }

protected:
  std::vector<hardware_interface::CommandInterface::SharedPtr> on_export_reference_interfaces_list() override
  {
    std::vector<hardware_interface::CommandInterface::SharedPtr> made;
    for (const std::string & kind : reference_kinds_) {
      for (const std::string & joint : joints()) {
        hardware_interface::InterfaceInfo info{};
        info.name = kind;
        info.data_type = "double";
        made.push_back(std::make_shared<hardware_interface::CommandInterface>(
          hardware_interface::InterfaceDescription(get_node()->get_name() + ("/" + joint), info)));
        (void)made.back()->set_value(unknown);
      }
    }
    return made;
  }

  /// Without a preceding controller there is no reference: the arm is held, or its gravity is compensated.
  return_type update_reference_from_subscribers(const rclcpp::Time &, const rclcpp::Duration &) override
  {
    for (const auto & one : ordered_exported_reference_interfaces_) { (void)one->set_value(unknown); }
    return return_type::OK;
  }

  return_type update_and_write_commands(const rclcpp::Time &, const rclcpp::Duration & period) override
  {
    const std::size_t n = q_.size();
    for (std::size_t j = 0; j < n; ++j) {
      q_[j] = state_interfaces_[2 * j].get_optional().value_or(unknown);
      dq_[j] = state_interfaces_[2 * j + 1].get_optional().value_or(unknown);
    }
    for (std::size_t k = 0; k < references_.size(); ++k) {
      references_[k] = ordered_exported_reference_interfaces_[k]->get_optional().value_or(unknown);
    }
    control_->update(period.seconds(), q_.data(), dq_.data(), reference_, effort_.data());
    bool written = true;
    for (std::size_t j = 0; j < n; ++j) { written = command_interfaces_[j].set_value(effort_[j]) && written; }
    return written ? return_type::OK : return_type::ERROR;
  }

private:
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

  std::shared_ptr<EffortControl> control_;
  rclcpp::Subscription<msg::ParameterSet>::SharedPtr models_;
  rclcpp::TimerBase::SharedPtr reporter_;
  std::vector<std::string> reference_kinds_;
  std::vector<double> q_, dq_, effort_, references_;  // references: all joints of a kind, then those of the next
  Reference reference_;
  Status reported_;

  const std::vector<std::string> & joints() const { return control_->settings().joints; }

  /// Choose the reference interfaces of the law.
  void arrange_references(std::size_t n)
  {
    reference_kinds_ = {"effort"};
    reference_ = {};
    switch (control_->settings().law) {
      case Law::computed_torque: reference_kinds_ = {"position", "velocity", "acceleration", "effort"}; break;
      case Law::friction_compensation: reference_kinds_ = {"velocity", "effort"}; break;
      case Law::gravity_compensation: break;
    }
    references_.assign(n * reference_kinds_.size(), unknown);
    for (std::size_t k = 0; k < reference_kinds_.size(); ++k) {
      const std::string & kind = reference_kinds_[k];
      const double *& place = kind == "position" ? reference_.position : kind == "velocity" ? reference_.velocity :
        kind == "acceleration" ? reference_.acceleration : reference_.effort;
      place = references_.data() + n * k;
    }
  }

  /// Interfaces of all joints; none before the configuration.
  controller_interface::InterfaceConfiguration interfaces(const std::vector<std::string> & kinds) const
  {
    controller_interface::InterfaceConfiguration wanted;
    wanted.type = controller_interface::interface_configuration_type::INDIVIDUAL;
    for (const std::string & joint : control_ ? joints() : std::vector<std::string>{}) {
      for (const std::string & kind : kinds) { wanted.names.push_back(joint + "/" + kind); }
    }
    return wanted;
  }

  /// Write changes of the condition into the log, outside of the control loop.
  void report()
  {
    const Status now = control_->status();
    const auto logger = get_node()->get_logger();
    if (now.models != reported_.models) { RCLCPP_INFO(logger, "model %u is in use", now.models); }
    if (now.condition != reported_.condition) {
      const std::string text = describe(now.condition, joints().at(now.joint));
      if (now.condition == Condition::running) { RCLCPP_INFO(logger, "%s", text.c_str()); }
      else { RCLCPP_WARN(logger, "%s", text.c_str()); }
    }
    if (now.limited && !reported_.limited) { RCLCPP_WARN(logger, "efforts are limited to the rated ones"); }
    reported_ = now;
  }
};

}  // namespace robot_dyn_id

PLUGINLIB_EXPORT_CLASS(robot_dyn_id::IdentifiedModelController, controller_interface::ChainableControllerInterface)
