// SPDX-License-Identifier: Apache-2.0
// Evaluate an identified model in C++: `identified_dynamics run/parameters.yaml`, or from the message of a topic.
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <robot_dyn_id/msg/parameter_set.hpp>
#include <robot_dyn_id/runtime_dynamics.hpp>

using robot_dyn_id::Model;

std::unique_ptr<Model> from_file(const std::string & path)
{
  std::ifstream file(path);
  if (!file) { throw std::invalid_argument(path + ": cannot be read"); }
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return std::make_unique<Model>(Model::from_yaml(text));
}

// Body of a subscription to identified_parameters (reliable, transient local): the model, or nullptr if the set is refused.
std::unique_ptr<Model> from_message(const robot_dyn_id::msg::ParameterSet & set)
{
  try {
    return std::make_unique<Model>(Model::from_message(set));
  } catch (const std::invalid_argument & error) {
    std::fprintf(stderr, "set refused: %s\n", error.what());
    return nullptr;
  }
}

int main(int count, char ** words)
{
  if (count != 2) {
    std::fputs("usage: identified_dynamics PARAMETERS.yaml\n", stderr);
    return 2;
  }
  try {
    const auto model = from_file(words[1]);
    const std::size_t n = model->joints();
    const std::vector<double> q(n, 0.3), dq(n, 0.2), ddq(n, 0.1);
    std::vector<double> tau(n), gravity(n);
    model->inverse_dynamics(q.data(), dq.data(), ddq.data(), tau.data());
    model->gravity(q.data(), gravity.data());
    std::puts("joint, torque in motion, torque at rest [N m or N]");
    for (std::size_t j = 0; j < n; ++j) {
      std::printf("%s %.9g %.9g\n", model->joint_names()[j].c_str(), tau[j], gravity[j]);
    }
  } catch (const std::exception & error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
  std::fputs("how a message is refused, here one without content: ", stderr);
  return from_message(robot_dyn_id::msg::ParameterSet()) ? 4 : 0;
}
