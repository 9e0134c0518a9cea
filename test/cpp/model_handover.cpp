// SPDX-License-Identifier: Apache-2.0
// Models are offered by one thread while another one runs the control loop: model_handover MODEL
#include <cstdio>
#include <fstream>
#include <iterator>
#include <robot_dyn_id/effort_control.hpp>
#include <thread>

int main(int, char ** given)
{
  std::ifstream file(given[1]);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto model = robot_dyn_id::Model::from_yaml(text);
  robot_dyn_id::EffortSettings settings;
  settings.joints = model.joint_names();
  settings.robot_description = robot_dyn_id::Parameters::from_yaml(text).robot.urdf;
  robot_dyn_id::EffortControl control(settings);
  control.offer(model);
  const std::vector<double> still(model.joints(), 0.0);
  std::vector<double> effort(still);
  control.start(still.data());
  std::atomic<bool> done{false};
  std::thread other([&] {
    for (int k = 0; k < 30; ++k) { control.offer(model); }
    done = true;
  });
  unsigned updates = 0;
  while (!done) {
    control.update(1e-3, still.data(), still.data(), {}, effort.data());
    ++updates;
  }
  other.join();
  control.update(1e-3, still.data(), still.data(), {}, effort.data());
  const unsigned models = control.status().models;
  std::fprintf(stderr, "%u updates, %u models\n", updates, models);
  return models > 1 && models <= 31 && updates > 5 ? 0 : 1;
}
