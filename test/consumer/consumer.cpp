// SPDX-License-Identifier: Apache-2.0
// Fill a message as a C++ controller would find it, check its shapes, and ask the type support that a publisher needs.
#include <cstdio>
#include <robot_dyn_id/msg/parameter_set.hpp>
#include <robot_dyn_id/runtime_dynamics.hpp>
#include <rosidl_typesupport_cpp/message_type_support.hpp>

int main()
{
  robot_dyn_id::msg::ParameterSet set;
  set.joint_names = {"shoulder", "elbow"};
  set.body_names = set.joint_names;
  set.gravity = {0.0, 0.0, -9.81};
  set.names = {"Izz1", "mx2", "Izz2"};
  set.independent_columns = {9, 11, 19};
  set.mapping.resize(set.names.size() * 10 * set.body_names.size());
  set.covariance.resize(set.names.size() * set.names.size());

  const auto * support =
    rosidl_typesupport_cpp::get_message_type_support_handle<robot_dyn_id::msg::ParameterSet>();
  if (support == nullptr || set.mapping.size() != 60 || set.covariance.size() != 9) {
    return 1;
  }
  try {  // a set without a URDF is refused
    const robot_dyn_id::Dynamics<> dynamics(robot_dyn_id::Parameters::from_message(set));
    return 1;
  } catch (const std::invalid_argument &) {
  }
  std::puts("ok");
  return 0;
}
