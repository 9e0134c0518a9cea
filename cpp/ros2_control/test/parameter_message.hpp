// SPDX-License-Identifier: Apache-2.0
// Message of a parameter set, as an identifier publishes it.
#ifndef PARAMETER_MESSAGE_HPP_
#define PARAMETER_MESSAGE_HPP_

#include <algorithm>
#include <array>
#include <robot_dyn_id/msg/parameter_set.hpp>
#include <robot_dyn_id/runtime_dynamics.hpp>
#include <type_traits>
#include <vector>

namespace robot_dyn_id
{

/// Message with the fields of a set that C++ reads.
inline msg::ParameterSet make_message(const Parameters & set)
{
  msg::ParameterSet made;
  made.format_version = set.format_version;
  Parameters::each(made, set, [](const auto &, auto & to, const auto & from) {
    if constexpr (std::is_same_v<std::decay_t<decltype(from)>, std::vector<FitFor>>) {
      for (const auto & one : from) {
        to.emplace_back();
        to.back().use = one.use;
        to.back().answer = one.answer;
      }
    } else if constexpr (std::is_same_v<std::decay_t<decltype(to)>, std::array<double, 3>>) {
      std::copy(from.begin(), from.end(), to.begin());
    } else {
      to = from;
    }
  });
  return made;
}

}  // namespace robot_dyn_id

#endif  // PARAMETER_MESSAGE_HPP_
