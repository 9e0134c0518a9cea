// SPDX-License-Identifier: Apache-2.0
// Efforts that move an arm by an identified model, which may change while it moves: a controller without ROS.
//
// `EffortControl` belongs to two threads. One may allocate: it constructs the controller and offers models, which are
// checked there. The other one runs the control loop: `start` and `update` neither allocate, free, lock nor throw.
#ifndef ROBOT_DYN_ID__EFFORT_CONTROL_HPP_
#define ROBOT_DYN_ID__EFFORT_CONTROL_HPP_

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "robot_dyn_id/runtime_dynamics.hpp"

namespace robot_dyn_id
{

/// Torque that the motors give.
enum class Law
{
  gravity_compensation,   // torque at rest; only the effort of a reference counts
  friction_compensation,  // torque at rest, and friction of the reference velocity; positions do not count
  computed_torque,        // inverse dynamics of the reference motion, with feedback
};

/// Law of a name; throws std::invalid_argument.
inline Law law_from_name(const std::string & name)
{
  if (name == "gravity_compensation") { return Law::gravity_compensation; }
  if (name == "friction_compensation") { return Law::friction_compensation; }
  if (name == "computed_torque") { return Law::computed_torque; }
  throw std::invalid_argument("law is '" + name + "', expected gravity_compensation, friction_compensation or computed_torque");
}

/// Reference motion: joints() numbers each, NaN where there is none, or nullptr.
struct Reference
{
  const double * position = nullptr;      // [rad or m]
  const double * velocity = nullptr;      // [rad/s or m/s]
  const double * acceleration = nullptr;  // [rad/s^2 or m/s^2]
  const double * effort = nullptr;        // added to that of the law [N m or N]
};

/// Settings of an `EffortControl`; lists have one value for all joints or one per joint.
struct EffortSettings
{
  Law law = Law::gravity_compensation;
  std::vector<std::string> joints{};        // names, in the order of all vectors
  std::string robot_description{};          // URDF of the robot that is moved
  std::vector<double> effort_limits{};      // rated efforts that lower those of the URDF or replace missing ones [N m or N]
  std::vector<double> bandwidth{20.0};      // of the feedback: of computed torque, or of what makes the reference effort [rad/s]
  std::vector<double> damping{0.0};         // of the velocity error, in addition [N m s/rad or N s/m]
  double timeout = 0.05;                    // time between two updates above which the states are stale [s]
  double start_time = 0.1;                  // from zero effort to that of the model [s]
  double blend_time = 1.0;                  // from the efforts of one model to those of the next, and to zero at a fault [s]
};

/// Why the efforts are as they are.
enum class Condition : std::uint8_t
{
  running, no_model, waiting, late, not_finite, jump, too_fast, frozen, effort_not_finite, reference_refused, not_holdable
};

/// Condition of the control, as the other thread reads it.
struct Status
{
  Condition condition = Condition::no_model;
  std::size_t joint = 0;     // that caused it, for conditions of a joint
  bool limited = false;      // the latest efforts were limited to the rated ones
  std::uint32_t models = 0;  // number of models that have come into use
};

/// Sentence about a condition; `joint` is a name.
inline std::string describe(Condition condition, const std::string & joint)
{
  switch (condition) {
    case Condition::running: return "efforts follow from the model";
    case Condition::no_model: return "no model: no effort";
    case Condition::waiting: return "waiting for joint states";
    case Condition::late: return "the time between two updates exceeds the timeout: no effort";
    case Condition::not_finite: return "state of joint " + joint + " is not finite: no effort";
    case Condition::jump: return "position of joint " + joint + " jumps: no effort until it is where the arm was last, or the "
      "controller is activated again";
    case Condition::too_fast: return "velocity of joint " + joint + " is more than twice its limit: no effort";
    case Condition::frozen: return "joint states are frozen: the position of joint " + joint + " repeats in motion: no effort";
    case Condition::effort_not_finite: return "effort of joint " + joint + " is not finite: no effort";
    case Condition::reference_refused: return "reference of joint " + joint + " jumps, is too fast or infinite: the arm is held";
    case Condition::not_holdable: return "the new model needs more than the rated effort to hold joint " + joint + " where it is: "
      "it is refused, the one in use stays";
  }
  return "";
}

namespace detail
{
using Joints = std::array<double, Model::capacity>;

constexpr double jump_margin = 0.05;           // change of position that is always plausible [rad or m]
constexpr double jump_factor = 2.0;            // velocity relative to the limit of the URDF that is a fault
constexpr double rest_speed = 0.05;            // below it a joint counts as at rest [rad/s or m/s]
constexpr int timely_states = 5;               // trusted states before an effort, and after which a refused one does not count
constexpr int most_refused = 2;                // refused states with which the efforts begin to end

inline double limited(double value, double limit) { return std::min(std::max(value, -limit), limit); }

/// Command within the rating, so that the motor, which gives it and what the driver adds, is within the rating too.
inline double limit_command(double command, double added, double limit)
{
  return limited(limited(command + added, limit) - added, limit);
}

/// Hands values from one thread to another, which neither allocates, frees nor waits.
///
/// The boxes of realtime_tools copy a value when it is read, or free it there with the last pointer. `Value` has a member
/// `next` of type `Value *`.
template<class Value>
class Handover
{
public:
  Handover() = default;
  Handover(const Handover &) = delete;
  Handover & operator=(const Handover &) = delete;
  ~Handover()
  {
    collect();
    delete offered_.load();
  }

  /// Offer a value in place of one that has not been taken; values that were given back are freed.
  void offer(std::unique_ptr<Value> value)
  {
    delete offered_.exchange(value.release(), std::memory_order_acq_rel);
    collect();
  }
  bool waiting() const { return offered_.load(std::memory_order_acquire) != nullptr; }

  /// Take the offered value, for the thread that does not free; nullptr if there is none.
  Value * take() { return offered_.exchange(nullptr, std::memory_order_acq_rel); }
  /// Give a value back to be freed.
  void give_back(Value * value)
  {
    value->next = returned_.load(std::memory_order_relaxed);
    // fails only if the other thread has just emptied the list
    while (!returned_.compare_exchange_weak(value->next, value, std::memory_order_release, std::memory_order_relaxed)) {}
  }

private:
  std::atomic<Value *> offered_{nullptr}, returned_{nullptr};

  void collect()
  {
    for (Value * one = returned_.exchange(nullptr, std::memory_order_acquire); one;) {
      Value * const next = one->next;
      delete one;
      one = next;
    }
  }
};

/// Guard of the joint states: `StateGuard` of the nodes, for states without stamps.
class StateGuard
{
public:
  Joints position{};       // latest trusted
  bool known = false;      // whether there is one
  double step = 0.0;       // time for which the efforts may change [s]
  int timely = 0;          // states in a row that came in time
  Condition fault = Condition::running;  // why the efforts have to end
  std::size_t joint = 0;   // that caused the latest refusal

  StateGuard(std::size_t joints, double timeout) : joints_(joints), timeout_(timeout) {}

  void set_limits(const std::vector<Limits> & limits)
  {
    for (std::size_t j = 0; j < joints_; ++j) {
      fastest_[j] = jump_factor * limits[j].velocity;
      continuous_[j] = limits[j].continuous;
    }
  }

  /// Take the next positions for true, wherever the arm is.
  void restart()
  {
    known = false;
    fault = Condition::running;
    refused_ = good_ = timely = 0;
    traveled_.fill(0.0);
  }

  bool ready() const { return timely >= timely_states; }

  /// Difference of two positions, by the shorter way for a joint without end.
  double difference(std::size_t j, double to, double from) const
  {
    constexpr double turn = 6.283185307179586;
    const double moved = to - from;
    return continuous_[j] ? moved - turn * std::round(moved / turn) : moved;
  }

  /// Why a position and a velocity cannot follow a position; running if they can.
  Condition examine(std::size_t j, double from, double q, double dq) const
  {
    if (!std::isfinite(q) || !std::isfinite(dq)) { return Condition::not_finite; }
    if (std::fabs(difference(j, q, from)) > jump_margin + fastest_[j] * step) { return Condition::jump; }
    return std::fabs(dq) > fastest_[j] ? Condition::too_fast : Condition::running;
  }

  /// Check a state that has come after a time; running if it is trusted.
  Condition receive(double passed, const double * q, const double * dq)
  {
    const bool late = !(passed <= timeout_);
    timely = late ? 0 : timely + 1;
    step = late ? timeout_ : std::max(passed, 0.0);
    const Condition why = check(q, dq);
    for (std::size_t j = 0; j < joints_; ++j) { last_[j] = dq[j]; }
    if (why != Condition::running) {
      good_ = 0;
      if (++refused_ >= most_refused && known && fault == Condition::running) { fault = why; }
      return why;
    }
    std::copy(q, q + joints_, position.begin());
    known = true;
    if (++good_ >= timely_states) { restore(); }
    return why;
  }

private:
  std::size_t joints_;
  double timeout_;
  Joints fastest_{}, last_{}, traveled_{};
  std::array<bool, Model::capacity> continuous_{};
  int refused_ = 0, good_ = 0;

  void restore()
  {
    refused_ = 0;
    good_ = timely_states;
    fault = Condition::running;
  }

  Condition check(const double * q, const double * dq)
  {
    bool repeated = known;
    for (std::size_t j = 0; j < joints_; ++j) { repeated = repeated && q[j] == position[j] && dq[j] == last_[j]; }
    if (!repeated) { traveled_.fill(0.0); }
    for (joint = 0; joint < joints_; ++joint) {
      const Condition why = examine(joint, known ? position[joint] : q[joint], q[joint], dq[joint]);
      if (why != Condition::running) { return why; }
      if (std::fabs(dq[joint]) > rest_speed) { traveled_[joint] += repeated ? std::fabs(dq[joint]) * step : 0.0; }
      if (traveled_[joint] > jump_margin) { return Condition::frozen; }
    }
    joint = 0;
    return Condition::running;
  }
};

/// Commanded efforts: finite, within the rating, continuous when the law or the model changes; as those of the nodes.
class CommandedEfforts
{
public:
  Joints last{};               // latest efforts [N m or N]
  Joints rated{}, slew{};      // rated efforts [N m or N], and largest changes of efforts [N m/s or N/s]
  bool limited_to_rated = false;

  CommandedEfforts(std::size_t joints, double start_time, double blend_time)
  : joints_(joints), start_time_(start_time), blend_time_(blend_time) {}

  /// Begin to go over to the efforts of another law or model.
  void change()
  {
    const auto end = last.begin() + static_cast<std::ptrdiff_t>(joints_);
    const bool moved = std::any_of(last.begin(), end, [](double effort) { return effort != 0.0; });
    changed_ = true;
    duration_ = moved ? blend_time_ : start_time_;
    unrelieved_ = moved ? unrelieved_ * share_ : 1.0;
  }

  /// Begin at the efforts that the drives have.
  void begin_at(const double * present)
  {
    for (std::size_t j = 0; j < joints_; ++j) { last[j] = std::isfinite(present[j]) ? present[j] : 0.0; }
    change();
  }

  /// Zero effort at once, from which the next law is blended in.
  void rest()
  {
    last.fill(0.0);
    share_ = unrelieved_ = 0.0;
    limited_to_rated = false;
    change();
  }

  /// Compute `last`; joints_ if all is finite, else the joint that is not, and zero for all.
  std::size_t command(const Joints & wanted, const Joints & added, double step)
  {
    for (std::size_t j = 0; j < joints_; ++j) {
      if (!std::isfinite(wanted[j] + added[j])) {
        rest();
        return j;
      }
    }
    left_ = changed_ ? 1.0 : duration_ > 0.0 ? std::max(0.0, left_ - step / duration_) : 0.0;
    share_ = left_ * left_ * (3.0 - 2.0 * left_);
    limited_to_rated = false;
    for (std::size_t j = 0; j < joints_; ++j) {
      const double possible = limit_command(wanted[j], added[j], rated[j]);
      if (changed_) { gap_[j] = last[j] - possible; }
      limited_to_rated = limited_to_rated || std::max(std::fabs(wanted[j]), std::fabs(wanted[j] + added[j])) > rated[j];
      const double excess = added[j] - limited(added[j], rated[j]);  // of the driver alone
      const double relieved = added[j] - unrelieved_ * share_ * excess;
      const double ceiling = std::max(rated[j], std::fabs(last[j])), change = slew[j] * step;
      double effort = limit_command(possible + share_ * gap_[j], relieved, ceiling);
      if (std::isfinite(change)) {
        effort = limit_command(std::min(std::max(effort, last[j] - change), last[j] + change), relieved, ceiling);
      }
      last[j] = effort;
    }
    changed_ = false;
    return joints_;
  }

private:
  std::size_t joints_;
  double start_time_, blend_time_;
  Joints gap_{};
  double duration_ = 0.0, left_ = 0.0, share_ = 0.0, unrelieved_ = 1.0;
  bool changed_ = true;
};

/// Setpoint of a joint: follows a reference, or comes to rest.
struct Setpoint
{
  double q = 0.0, dq = 0.0, ddq = 0.0;

  /// Setpoint after a time in which the velocity decays with a bandwidth [rad/s].
  Setpoint braked(double bandwidth, double step) const
  {
    const double decay = std::exp(-bandwidth * step);
    return {q + dq * (1.0 - decay) / bandwidth, dq * decay, -bandwidth * dq * decay};
  }
};
}  // namespace detail

/// Efforts of an arm with an identified model.
class EffortControl
{
public:
  /// Throws std::invalid_argument if the settings cannot be used.
  explicit EffortControl(EffortSettings settings)
  : settings_(checked(std::move(settings))), joints_(settings_.joints.size()), guard_(joints_, settings_.timeout),
    efforts_(joints_, settings_.start_time, settings_.blend_time)
  {
  }

  ~EffortControl() { delete used_; }
  EffortControl(const EffortControl &) = delete;
  EffortControl & operator=(const EffortControl &) = delete;

  /// Use a model from the next update on.
  ///
  /// Throws std::invalid_argument if it must not move this robot: another robot or other joints, a use that it is not fit
  /// for, a driver of which it is not known what it adds, or more than the rated efforts to hold the arm. The model in
  /// use stays.
  void offer(const Model & model)
  {
    if (model.joint_names() != settings_.joints) {
      detail::refuse("its joints are " + list(model.joint_names()) + ", those of the controller " + list(settings_.joints));
    }
    model.check_robot(settings_.robot_description);
    model.check_use(use());
    if (!model.driver_known()) {
      detail::refuse("robot_compensates is unknown, and a second gravity torque would drive the arm upward: state what the driver "
        "adds to a command");
    }
    const std::vector<double> given = settings_.effort_limits.empty() ? std::vector<double>{} : per_joint(settings_.effort_limits);
    const std::vector<double> rated = model.rated_efforts(given);
    model.check_efforts(given);
    if (settings_.law == Law::computed_torque) { model.check_mass_matrix(); }
    auto made = std::make_unique<Used>(model);
    const std::vector<double> bandwidth = per_joint(settings_.bandwidth), damping = per_joint(settings_.damping);
    double fastest = 0.0;  // see slew_rates of the nodes
    for (const Limits & one : model.limits()) { fastest += one.prismatic ? 0.0 : detail::jump_factor * one.velocity; }
    for (std::size_t j = 0; j < joints_; ++j) {
      made->rated[j] = rated[j];
      made->slew[j] = rated[j] * (fastest + bandwidth[j]);
      made->bandwidth[j] = bandwidth[j];
      made->damping[j] = damping[j];
    }
    handover_.offer(std::move(made));
    offered_.store(true);
  }

  /// Whether a model has been offered that was not refused.
  bool has_model() const { return offered_.load(); }
  const EffortSettings & settings() const { return settings_; }
  /// Use of a model for the law, as in judgment.fit_for.
  const char * use() const
  {
    constexpr const char * uses[] = {"gravity_compensation", "feed_forward", "computed_torque"};
    return uses[static_cast<std::size_t>(settings_.law)];
  }

  /// Condition after the latest update, for any thread.
  Status status() const
  {
    const std::uint32_t word = status_.load(std::memory_order_relaxed);
    return {static_cast<Condition>(word & 0xff), word >> 8 & 0xff, (word >> 16 & 1) != 0, models_.load(std::memory_order_relaxed)};
  }

  // --- thread of the control loop

  /// Begin at the efforts that the drives have, when enough joint states have come; NaN: at zero.
  void start(const double * present)
  {
    guard_.restart();
    take_model();
    begun_ = faulted_ = aimed_ = false;
    reported_ = 0;
    efforts_.rest();
    efforts_.begin_at(present);
    report(Condition::waiting, 0);
  }

  /// Efforts in response to a joint state [N m or N].
  ///
  /// passed: time since the previous update [s]; q, dq: measured positions and velocities [rad or m, per s].
  Condition update(double passed, const double * q, const double * dq, const Reference & reference, double * effort)
  {
    const Condition condition = respond(passed, q, dq, reference);
    std::copy(efforts_.last.begin(), efforts_.last.begin() + static_cast<std::ptrdiff_t>(joints_), effort);
    report(condition, joint_);
    return condition;
  }

private:
  using Joints = detail::Joints;

  struct Used
  {
    Model model;
    Joints rated{}, slew{}, bandwidth{}, damping{};
    std::vector<double> state;  // of the presliding friction
    Used * next = nullptr;

    explicit Used(const Model & given) : model(given), state(given.state_size(), 0.0) {}
  };

  EffortSettings settings_;
  std::size_t joints_;
  detail::Handover<Used> handover_{};
  std::atomic<bool> offered_{false};
  std::atomic<std::uint32_t> status_{static_cast<std::uint32_t>(Condition::no_model)}, models_{0};

  // of the control loop
  Used * used_ = nullptr;
  detail::StateGuard guard_;
  detail::CommandedEfforts efforts_;
  std::array<detail::Setpoint, Model::capacity> setpoints_{};
  Joints wanted_{}, added_{};
  bool begun_ = false, faulted_ = false, aimed_ = false;
  std::size_t joint_ = 0;
  int reported_ = 0;  // updates for which the refusal of a model is still reported

  static std::string list(const std::vector<std::string> & names)
  {
    std::string all;
    for (const std::string & name : names) { all += (all.empty() ? "" : ", ") + name; }
    return all;
  }

  std::vector<double> per_joint(const std::vector<double> & values) const
  {
    return values.size() == 1 ? std::vector<double>(joints_, values[0]) : values;
  }

  static EffortSettings checked(EffortSettings settings)
  {
    const std::size_t n = settings.joints.size();
    if (!n || n > Model::capacity) {
      throw std::invalid_argument("joints has " + std::to_string(n) + " names, expected 1 to " + std::to_string(Model::capacity));
    }
    const auto check = [n](const char * name, const std::vector<double> & values, bool may_be_empty, bool may_be_zero) {
      if (may_be_empty && values.empty()) { return; }
      if (values.size() != 1 && values.size() != n) {
        throw std::invalid_argument(std::string(name) + " needs one value for all joints or one per joint");
      }
      for (const double one : values) {
        if (!std::isfinite(one) || one < 0.0 || (one == 0.0 && !may_be_zero)) {
          throw std::invalid_argument(std::string(name) + " must be finite and " + (may_be_zero ? "not negative" : "positive"));
        }
      }
    };
    check("effort_limits", settings.effort_limits, true, false);
    check("bandwidth", settings.bandwidth, false, false);
    check("damping", settings.damping, false, true);
    if (!(settings.timeout > 0.0 && std::isfinite(settings.timeout))) { throw std::invalid_argument("timeout must be positive"); }
    for (const double time : {settings.start_time, settings.blend_time}) {
      if (!(time >= 0.0 && std::isfinite(time))) { throw std::invalid_argument("start_time and blend_time must not be negative"); }
    }
    if (settings.robot_description.empty()) { throw std::invalid_argument("robot_description is empty: the robot is not known"); }
    return settings;
  }

  void report(Condition condition, std::size_t joint)
  {
    const auto word = static_cast<std::uint32_t>(condition) | static_cast<std::uint32_t>(joint) << 8 |
      static_cast<std::uint32_t>(efforts_.limited_to_rated) << 16;
    status_.store(word, std::memory_order_relaxed);
  }

  /// Go over to the offered model, unless it cannot hold the arm where it is.
  void take_model()
  {
    Used * const offered = handover_.take();
    if (!offered) { return; }
    Joints needed{};
    offered->model.gravity(guard_.position.data(), needed.data());
    for (std::size_t j = 0; j < joints_ && guard_.known; ++j) {
      if (!(std::fabs(needed[j]) <= offered->rated[j])) {
        joint_ = j;
        reported_ = 1000;
        handover_.give_back(offered);
        return;
      }
    }
    if (used_) { handover_.give_back(used_); }
    used_ = offered;
    guard_.set_limits(used_->model.limits());
    efforts_.rated = used_->rated;
    efforts_.slew = used_->slew;
    efforts_.change();
    models_.fetch_add(1, std::memory_order_relaxed);
  }

  Condition respond(double passed, const double * q, const double * dq, const Reference & reference)
  {
    take_model();
    if (!used_) {
      efforts_.rest();
      return Condition::no_model;
    }
    const Condition trusted = guard_.receive(passed, q, dq);
    const std::size_t joint = guard_.joint;
    if (!guard_.timely) {
      begun_ = faulted_ = aimed_ = false;
      efforts_.rest();
      return Condition::late;
    }
    if (!guard_.ready() || (guard_.fault != Condition::running && !begun_)) {
      joint_ = joint;
      return trusted == Condition::running ? Condition::waiting : trusted;
    }
    if ((guard_.fault != Condition::running) != faulted_) {
      faulted_ = !faulted_;
      efforts_.change();
      aimed_ = false;
    }
    if (faulted_) {
      joint_ = joint;
      wanted_.fill(0.0);
      const Joints still{};
      (void)used_->model.added(guard_.position.data(), still.data(), added_.data());
      (void)efforts_.command(wanted_, added_, guard_.step);
      return guard_.fault;
    }
    if (trusted != Condition::running) {  // a single one: the last effort stays
      joint_ = joint;
      return trusted;
    }
    begun_ = true;
    const Condition followed = follow(reference, q);
    compute(reference, q, dq);
    const std::size_t invalid = efforts_.command(wanted_, added_, guard_.step);
    if (invalid < joints_) {
      joint_ = invalid;
      aimed_ = false;
      return Condition::effort_not_finite;
    }
    if (followed == Condition::running && reported_ > 0) {
      --reported_;
      return Condition::not_holdable;
    }
    return followed;
  }

  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

  static double entry(const double * values, std::size_t j, double otherwise)
  {
    return values && !std::isnan(values[j]) ? values[j] : otherwise;
  }

  /// Take over the reference; joints without one, and all joints at one that is refused, come to rest.
  Condition follow(const Reference & reference, const double * q)
  {
    const bool positions = settings_.law == Law::computed_torque;
    std::array<detail::Setpoint, Model::capacity> next{};
    Joints before{}, after{};
    Condition condition = Condition::running;
    for (std::size_t j = 0; j < joints_; ++j) {
      if (!aimed_) { setpoints_[j] = {q[j], 0.0, 0.0}; }
      const detail::Setpoint & last = setpoints_[j];
      const double velocity = settings_.law == Law::gravity_compensation ? 0.0 : entry(reference.velocity, j, 0.0);
      next[j] = {positions ? entry(reference.position, j, unknown) : last.q + velocity * guard_.step, velocity,
        entry(reference.acceleration, j, 0.0)};
      before[j] = last.q;
      if (std::isnan(next[j].q)) {
        next[j] = last.braked(used_->bandwidth[j], guard_.step);
      } else if (guard_.examine(j, last.q, next[j].q, velocity) != Condition::running && condition == Condition::running) {
        condition = Condition::reference_refused;
        joint_ = j;
      }
    }
    aimed_ = true;
    for (std::size_t j = 0; j < joints_; ++j) {
      setpoints_[j] = condition == Condition::running ? next[j] : setpoints_[j].braked(used_->bandwidth[j], guard_.step);
      after[j] = setpoints_[j].q;
    }
    used_->model.advance(used_->state.data(), before.data(), after.data());
    return condition;
  }

  /// Effort of the law, and what the driver adds to it.
  void compute(const Reference & reference, const double * q, const double * dq)
  {
    const Model & model = used_->model;
    const double * const state = used_->state.data();
    const Joints still{};
    Joints motor{}, subtracted{}, speed{};
    for (std::size_t j = 0; j < joints_; ++j) { speed[j] = setpoints_[j].dq; }
    if (settings_.law == Law::computed_torque) {
      Joints acceleration{};
      for (std::size_t j = 0; j < joints_; ++j) {
        const double w = used_->bandwidth[j];  // both poles of the error are at -w
        acceleration[j] = setpoints_[j].ddq + 2.0 * w * (speed[j] - dq[j]) + w * w * guard_.difference(j, setpoints_[j].q, q[j]);
      }
      model.inverse_dynamics(q, dq, acceleration.data(), motor.data(), state, speed.data());
      (void)model.added(q, dq, added_.data(), state, speed.data());
      subtracted = added_;
    } else if (settings_.law == Law::friction_compensation) {
      model.inverse_dynamics(q, still.data(), nullptr, motor.data(), state, speed.data());
      (void)model.added(q, still.data(), subtracted.data(), state, speed.data());
      (void)model.added(q, dq, added_.data());
    } else {
      model.gravity(q, motor.data());
      (void)model.added(q, still.data(), subtracted.data());
      (void)model.added(q, dq, added_.data());
    }
    for (std::size_t j = 0; j < joints_; ++j) {
      wanted_[j] = motor[j] - subtracted[j] + entry(reference.effort, j, 0.0) + used_->damping[j] * (speed[j] - dq[j]);
    }
  }
};

}  // namespace robot_dyn_id

#endif  // ROBOT_DYN_ID__EFFORT_CONTROL_HPP_
