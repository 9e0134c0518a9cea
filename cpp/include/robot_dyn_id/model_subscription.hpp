// SPDX-License-Identifier: Apache-2.0
// Identified models for any node of rclcpp or rclcpp_lifecycle, from the latched topic `identified_parameters`:
//
//   #include <robot_dyn_id/model_subscription.hpp>
//
//   models_ = robot_dyn_id::subscribe_to_models(*node, [this, robot_description](const robot_dyn_id::Model & model) {
//     model.check_robot(robot_description);       // throws std::invalid_argument for another robot,
//     model.check_efforts();                      // for more than the rated efforts to hold the arm,
//     model.check_use("gravity_compensation");    // and for a use that the model is not fit for
//     model_ = std::make_shared<robot_dyn_id::Model>(model);
//   });
//
// An `EffortControl` (effort_control.hpp) makes these checks in `offer`, and takes a model over in a running control loop.
#ifndef ROBOT_DYN_ID__MODEL_SUBSCRIPTION_HPP_
#define ROBOT_DYN_ID__MODEL_SUBSCRIPTION_HPP_

#include <exception>
#include <functional>
#include <rclcpp/create_subscription.hpp>
#include <rclcpp/logging.hpp>
#include <rclcpp/qos.hpp>
#include <rclcpp/subscription.hpp>
#include <robot_dyn_id/msg/parameter_set.hpp>
#include <string>

#include "robot_dyn_id/runtime_dynamics.hpp"

namespace robot_dyn_id
{

/// Subscribe to identified models; the latest one that was published before arrives as well.
///
/// A set that cannot be used is refused with an error in the log of the node, as is one for which `use` throws.
///
/// node: rclcpp::Node, or rclcpp_lifecycle::LifecycleNode, whose executor is not the thread of a control loop.
/// use: called with each checked model.
/// topic: name of the topic.
template<class Node>
rclcpp::Subscription<msg::ParameterSet>::SharedPtr subscribe_to_models(
  Node & node, std::function<void(const Model &)> use, const std::string & topic = "identified_parameters")
{
  const auto receive = [logger = node.get_logger(), use = std::move(use)](const msg::ParameterSet & message) {
    try {
      use(Model::from_message(message));
    } catch (const std::exception & error) {
      RCLCPP_ERROR(logger, "identified model is refused: %s", error.what());
    }
  };
  return rclcpp::create_subscription<msg::ParameterSet>(node, topic, rclcpp::QoS(1).reliable().transient_local(), receive);
}

}  // namespace robot_dyn_id

#endif  // ROBOT_DYN_ID__MODEL_SUBSCRIPTION_HPP_
