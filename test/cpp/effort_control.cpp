// SPDX-License-Identifier: Apache-2.0
// Control loop of 1 kHz on a simulated arm: effort_control TRUTH MODEL NEXT LAW FAULT BEGIN END STEPS
//
// TRUTH, MODEL and NEXT are parameters.yaml of the arm, of the controller, and of the model that is offered at BEGIN with
// the fault `model`. The fault acts from BEGIN to END [s]. Each step is a row of doubles on standard output: positions,
// reference positions and efforts of the joints, condition, number of models, whether an effort is limited, slew limits.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <new>
#include <robot_dyn_id/effort_control.hpp>
#include <thread>

static thread_local bool in_loop = false;
static thread_local int calls = 0;  // of the allocator in the control loop
void * operator new(std::size_t size)
{
  calls += in_loop ? 1 : 0;
  if (void * const memory = std::malloc(size)) { return memory; }
  throw std::bad_alloc();
}
void operator delete(void * memory) noexcept
{
  calls += in_loop && memory ? 1 : 0;
  std::free(memory);
}
void operator delete(void * memory, std::size_t) noexcept { operator delete(memory); }

namespace
{
using robot_dyn_id::Model;
constexpr double period = 1e-3, unknown = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
constexpr int substeps = 4;

std::string read(const char * name)
{
  std::ifstream file(name);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Arm whose motors give the commanded effort and what its driver adds.
struct Arm
{
  const Model & truth;
  std::vector<double> q, dq, deflection;

  void step(const double * effort)
  {
    const std::size_t n = q.size();
    std::vector<double> ddq(n), motor(n);
    if (!truth.added(q.data(), dq.data(), motor.data())) { std::exit(4); }  // once a period, as the command
    for (std::size_t j = 0; j < n; ++j) { motor[j] += effort[j]; }
    for (int k = 0; k < substeps; ++k) {
      if (!truth.forward_dynamics(q.data(), dq.data(), motor.data(), ddq.data(), deflection.data())) { std::exit(4); }
      const std::vector<double> before = q;
      for (std::size_t j = 0; j < n; ++j) {
        dq[j] += period / substeps * ddq[j];
        q[j] += period / substeps * dq[j];
      }
      truth.advance(deflection.data(), before.data(), q.data());
    }
  }
};
}  // namespace

int main(int count, char ** given)
{
  if (count < 9) { return 3; }
  const auto is = [&](const char * fault) { return std::strcmp(given[5], fault) == 0; };
  const double begin = std::atof(given[6]), end = std::atof(given[7]);
  const int steps = std::atoi(given[8]);
  try {
    const std::string set = read(given[2]);
    const Model truth = Model::from_yaml(read(given[1])), model = Model::from_yaml(set);
    robot_dyn_id::EffortSettings settings;
    settings.law = robot_dyn_id::law_from_name(is("pd") ? "computed_torque" : given[4]);
    settings.joints = model.joint_names();
    settings.robot_description = robot_dyn_id::Parameters::from_yaml(set).robot.urdf;
    settings.blend_time = 0.2;
    if (settings.law != robot_dyn_id::Law::computed_torque) { settings.damping = {20.0}; }
    robot_dyn_id::EffortControl control(settings);
    control.offer(model);

    const std::size_t n = truth.joints();
    Arm arm{truth, std::vector<double>(n), std::vector<double>(n, 0.0), std::vector<double>(truth.state_size(), 0.0)};
    for (std::size_t j = 0; j < n; ++j) { arm.q[j] = 0.5 * (truth.limits()[j].lower + truth.limits()[j].upper); }
    const std::vector<double> start = arm.q, rated = model.rated_efforts();
    std::vector<double> q(n), dq(n), aim(n), speed(n), acceleration(n), feed(n), effort(n), mass(n * n), row, frozen, moving;
    row.reserve(4 * n + 3);
    model.mass_matrix(start.data(), mass.data());
    if (!model.command(start.data(), dq.data(), nullptr, effort.data())) { return 4; }  // what has held the arm
    if (is("no_effort")) { std::fill(effort.begin(), effort.end(), unknown); }
    control.start(effort.data());
    double fastest = 0.0;
    for (const auto & one : model.limits()) { fastest += 2.0 * one.velocity; }
    std::thread other;

    for (int k = 0; k < steps; ++k) {
      const double t = k * period, swell = std::min(t, 1.0), w = 3.0;
      const bool acts = t >= begin - 0.5 * period && t < end - 0.5 * period;
      double passed = period;
      q = arm.q;
      dq = arm.dq;
      for (std::size_t j = 0; j < n; ++j) {  // a motion that begins smoothly
        const double phase = w * t + static_cast<double>(j), rate = t < 1.0 ? 1.0 : 0.0;
        const double s = swell * swell * (3.0 - 2.0 * swell), ds = rate * 6.0 * swell * (1.0 - swell), dds = rate * (6.0 - 12.0 * swell);
        const double x = std::sin(phase), v = w * std::cos(phase), a = -w * w * x;
        aim[j] = start[j] + 0.3 * s * x;
        speed[j] = 0.3 * (s * v + ds * x);
        acceleration[j] = 0.3 * (s * a + 2.0 * ds * v + dds * x);
        feed[j] = 0.0;
      }
      const bool once = acts && t < begin + 0.5 * period;
      if (once) {
        frozen = q;
        moving = dq;
      }
      if (acts) {
        if (is("nan")) { q[1] = unknown; }
        if (is("single_nan") && once) { q[1] = unknown; }
        if (is("jump")) { q[1] += 1.0; }
        if (is("too_fast")) { dq[1] = 1000.0; }
        if (is("frozen")) {
          q = frozen;
          dq = moving;
        }
        if (is("late") && once) { passed = 0.1; }
        if (is("reference_jump")) { aim[1] += 1.0; }
        if (is("reference_infinite")) { aim[1] = infinity; }
        if (is("no_reference")) {
          std::fill(aim.begin(), aim.end(), unknown);
          std::fill(speed.begin(), speed.end(), unknown);
        }
        if (is("effort_infinite")) { feed[1] = infinity; }
        if (is("effort_large")) { feed[1] = 1e6; }
        if (is("model") && once) {
          other = std::thread([&] {
            try {
              control.offer(Model::from_yaml(read(given[3])));
            } catch (const std::invalid_argument & error) {
              std::fprintf(stderr, "%s\n", error.what());
            }
          });
          other.join();
        }
      }
      if (is("pd")) {  // the feedback alone, with the inertia of the start
        for (std::size_t j = 0; j < n; ++j) {
          const double b = settings.bandwidth[0];
          const double e = b * b * (aim[j] - q[j]) + 2.0 * b * (speed[j] - dq[j]);
          effort[j] = std::min(std::max(mass[j * n + j] * e, -rated[j]), rated[j]);
        }
      } else {
        in_loop = true;
        control.update(passed, q.data(), dq.data(), {aim.data(), speed.data(), acceleration.data(), feed.data()}, effort.data());
        in_loop = false;
      }
      const robot_dyn_id::Status status = control.status();
      row.assign(arm.q.begin(), arm.q.end());
      row.insert(row.end(), aim.begin(), aim.end());
      row.insert(row.end(), effort.begin(), effort.end());
      row.push_back(static_cast<double>(status.condition));
      row.push_back(status.models);
      row.push_back(status.limited);
      for (std::size_t j = 0; j < n; ++j) { row.push_back(rated[j] * (fastest + settings.bandwidth[0])); }
      std::fwrite(row.data(), sizeof(double), row.size(), stdout);
      arm.step(effort.data());
    }
    return calls ? 2 : 0;
  } catch (const std::invalid_argument & error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
