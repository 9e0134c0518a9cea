# SPDX-License-Identifier: Apache-2.0
"""The faults, and the codes that must name them.

A fault of the data that has a size is applied at 2, 5 and 20 times the smallest size at which it changes the torque of
some joint by more than the RMS of that joint's effort noise. A fault that has no such size (a unit, a swapped column, a
file given twice) has three forms instead, from the least to the most conspicuous.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from mutation.case import Case, cut
from mutation.clean import ARMS, DURATION_S, Bench, Trial, arm_model, urdf_path
from robot_dyn_id.arrays import Array
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.model.robot import RobotModel

RATIOS = (2.0, 5.0, 20.0)
"""Strengths: RMS of the change of the torque over the RMS of the noise."""

SLOW_S = 50.0
"""Length of recordings of faults that take time: gaps, and changes along a recording [s]."""

GRAVITY = 9.81
"""Standard gravity [m/s^2]."""

Apply = Callable[[Bench, int, np.random.Generator], Case]
"""Makes the case of an arm at a strength (0, 1 or 2)."""


@dataclass(frozen=True)
class Fault:
    """Fault of the suite.

    Attributes:
        name: the fault in words, for the table.
        codes: codes that name it; one of them must be found.
        apply: makes the case.
        sized: whether it has a size that is measured in noise.
    """

    name: str
    codes: tuple[str, ...]
    apply: Apply
    sized: bool


FAULTS: dict[str, Fault] = {}
"""All faults by key."""


def _fault(name: str, *codes: str, sized: bool = False) -> Callable[[Apply], Apply]:
    """Add a function to `FAULTS` under its own name."""

    def add(apply: Apply) -> Apply:
        key = apply.__name__.lstrip("_")
        FAULTS[key] = Fault(name, codes, apply, sized)
        return apply

    return add


def clean_case(bench: Bench) -> Case:
    """Recordings without a fault: of every five seeds three have one recording, one has two, one has held-out data.

    Held-out data repeat the motion: another one may leave the trained ranges, which is reported truly.
    """
    first, kind = bench.record().recording(bench.robot), bench.seed % 5
    if kind < 3:
        return _case(bench, first)
    if kind == 3:
        return _case(bench, first, bench.record(1).recording(bench.robot))
    return Case(bench.robot, (first,), (bench.record(take=1).recording(bench.robot),))


def _case(
    bench: Bench,
    *recordings: ArrayRecording,
    size: str = "",
    robot: RobotModel | None = None,
    joints: Sequence[int] = (),
) -> Case:
    names = tuple(bench.robot.joint_names[joint] for joint in joints)
    return Case(bench.robot if robot is None else robot, recordings, size=size, joints=names)


def _rms(values: Array) -> Array:
    """Root mean square of each row."""
    return np.asarray(np.sqrt(np.mean(np.square(values), axis=-1)))


def _swing(values: Array) -> Array:
    """RMS of each row about its mean."""
    return np.asarray(values.std(axis=-1))


def _size(effect: Array, trial: Trial, strength: int, joints: Sequence[int] | None = None) -> float:
    """Size of a fault whose effect per unit is known, such that it is `RATIOS` times the noise on its clearest joint.

    Args:
        effect: change of the efforts per unit of size, shape (n, N).
        trial: the recording.
        strength: 0, 1 or 2.
        joints: joints that the fault changes; default: all.
    """
    ratio = _rms(effect) / _rms(trial.noise)
    ratio = ratio if joints is None else ratio[list(joints)]
    return RATIOS[strength] / float(ratio.max())


def _grow(effect: Callable[[float], Array], trial: Trial, strength: int, most: float) -> float:
    """Size of a fault whose effect is not proportional to it: bisection of the effect on the clearest joint.

    Args:
        effect: change of the efforts at a size, shape (n, N).
        trial: the recording.
        strength: 0, 1 or 2.
        most: largest size.
    """
    noise, low, high = _rms(trial.noise), 0.0, most
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if (_rms(effect(middle)) / noise).max() > RATIOS[strength] else (middle, high)
    return high


def _measured(trial: Trial) -> Array:
    return trial.effort + trial.noise


def _weighted(trial: Trial) -> list[int]:
    """Joints that carry weight, in ascending order of the variation of their gravity torque over the noise.

    The last one is among them in any case: motions of some draws change the weight of none by much.
    """
    ratio = _swing(trial.gravity) / _rms(trial.noise)
    order = np.argsort(ratio).tolist()
    return [j for j in order if ratio[j] > 10.0 or j == order[-1]]


def _pick(joints: Sequence[int], strength: int) -> int:
    """The least, the middle or the most conspicuous of some joints."""
    return joints[(0, len(joints) // 2, len(joints) - 1)[strength]]


def _some(count: int, strength: int, rng: np.random.Generator) -> list[int]:
    """One, half or all of the joints."""
    return [int(j) for j in rng.permutation(count)[: (1, -(-count // 2), count)[strength]]]


def _along(values: Array, times: Array, shifted: Array) -> Array:
    """Channels at other times, shape (n, N)."""
    return np.array([np.interp(shifted, times, row) for row in values])


# The meaning of the effort


@_fault("efforts are currents of all motors", "effort_in_amperes")
def _current(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial = bench.record()
    gain = (8.0, 20.0, 100.0)[strength] * rng.uniform(0.7, 1.4, len(bench.noise))
    return _case(bench, trial.recording(bench.robot, tau=_measured(trial) / gain[:, None]), size=f"{gain.mean():.0f}")


@_fault("efforts are torques of the motors, before the gears", "effort_in_amperes")
def _motor_torque(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial, gear = bench.record(), (30.0, 100.0, 160.0)[strength]
    return _case(bench, trial.recording(bench.robot, tau=_measured(trial) / gear), size=f"1:{gear:.0f}")


@_fault("the driver subtracts gravity", "effort_gravity_compensated")
def _gravity_compensated(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial, error = bench.record(), (0.1, 0.05, 0.0)[strength]
    tau = _measured(trial) - (1 - error) * trial.gravity
    return _case(bench, trial.recording(bench.robot, tau=tau), size=f"{1 - error:.0%}")


@_fault("the driver subtracts gravity and friction", "effort_gravity_compensated")
def _gravity_and_friction_compensated(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial, error = bench.record(), (0.1, 0.05, 0.0)[strength]
    tau = _measured(trial) - (1 - error) * (trial.gravity + trial.friction)
    return _case(bench, trial.recording(bench.robot, tau=tau), size=f"{1 - error:.0%}")


@_fault("efforts are external torques only", "effort_external", "effort_in_amperes")
def _external(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial, error = bench.record(), (0.05, 0.02, 0.0)[strength]
    return _case(bench, trial.recording(bench.robot, tau=_measured(trial) - (1 - error) * trial.effort))


@_fault("sign of a joint with weight", "effort_sign")
def _sign(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial = bench.record()
    tau, joint = _measured(trial), _pick(_weighted(trial), strength)
    tau[joint] *= -1
    return _case(bench, trial.recording(bench.robot, tau=tau), joints=[joint], size=bench.robot.joint_names[joint])


@_fault("sign of a joint without weight", "effort_sign", "gain_unverifiable")
def _sign_without_weight(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial = bench.record()
    order = [int(j) for j in np.argsort(_swing(trial.gravity) / _rms(trial.effort))[:3]]
    tau, joint = _measured(trial), _pick(order[::-1], strength)
    tau[joint] *= -1
    return _case(bench, trial.recording(bench.robot, tau=tau), joints=[joint], size=bench.robot.joint_names[joint])


@_fault("efforts in N mm", "effort_units", "gain_inconsistent", "effort_too_large")
def _millinewton(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial, joints = bench.record(), _weighted(bench.record())
    tau, chosen = _measured(trial), [joints[-1:], joints[-2:], list(range(len(bench.noise)))][strength]
    tau[chosen] *= 1000.0
    return _case(bench, trial.recording(bench.robot, tau=tau), joints=chosen, size=f"{len(chosen)} joints")


@_fault("one gain wrong, joint with weight", "gain_inconsistent", sized=True)
def _gain(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial = bench.record()
    joint = int(rng.choice(_weighted(trial)))
    size = _size(trial.effort, trial, strength, [joint])
    tau = _measured(trial)
    tau[joint] *= 1 + size if size > 0.5 or rng.random() < 0.5 else 1 - size
    return _case(bench, trial.recording(bench.robot, tau=tau), joints=[joint], size=f"{size:.0%}")


@_fault("one gain wrong, joint without weight (not to be known)", "gain_unverifiable", "gain_inconsistent")
def _gain_without_weight(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial = bench.record()
    joint, size = int(np.argmin(_swing(trial.gravity) / _rms(trial.effort))), (1.5, 3.0, 10.0)[strength]
    tau = _measured(trial)
    tau[joint] *= size
    return _case(bench, trial.recording(bench.robot, tau=tau), joints=[joint], size=f"x {size:g}")


# Units and order of columns


@_fault("positions in degrees", "positions_in_degrees")
def _degrees(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial, joints = bench.record(), _some(len(bench.noise), strength, rng)
    q = trial.reading.copy()
    q[joints] *= 180 / np.pi
    return _case(bench, trial.recording(bench.robot, q=q), joints=joints, size=f"{len(joints)} joints")


@_fault("velocities in degrees per second", "velocities_in_other_unit")
def _velocity_degrees(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial, joints = bench.record(), _some(len(bench.noise), strength, rng)
    dq = trial.motion.dq + 3e-3 * rng.normal(size=trial.motion.dq.shape)
    dq[joints] *= 180 / np.pi
    return _case(bench, trial.recording(bench.robot, dq=dq), size=f"{len(joints)} joints")


@_fault("effort columns of two joints swapped", "joints_swapped")
def _swapped_efforts(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial = bench.record()
    tau, (a, b) = _measured(trial), _pair(trial.effort, trial, strength)
    tau[[a, b]] = tau[[b, a]]
    return _case(bench, trial.recording(bench.robot, tau=tau), joints=[a, b], size=f"{a + 1} and {b + 1}")


@_fault("position columns of two joints swapped", "joints_swapped")
def _swapped_positions(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial = bench.record()
    q, (a, b) = trial.reading.copy(), _pair(trial.effort, trial, strength)
    q[[a, b]] = q[[b, a]]
    dq = None if trial.velocity is None else trial.velocity.copy()
    if dq is not None:
        dq[[a, b]] = dq[[b, a]]
    return _case(bench, trial.recording(bench.robot, q=q, dq=dq), joints=[a, b], size=f"{a + 1} and {b + 1}")


@_fault("zero of a joint off by a quarter or half turn", "position_convention", "position_zero")
def _turned_zero(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    return _turned(bench, strength, (np.pi, 0.5 * np.pi, -0.5 * np.pi)[strength])


@_fault("zero of a joint off by 0.05, 0.1 or 0.3 rad", "position_zero")
def _shifted_zero(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    return _turned(bench, strength, (0.05, 0.1, 0.3)[strength])


def _turned(bench: Bench, strength: int, angle: float) -> Case:
    """A recording in which an angle is added to the positions of a joint that turns."""
    trial = bench.record()
    turning = np.flatnonzero(~bench.robot.slides).tolist()
    joint = _pick([joint for joint in _weighted(trial) if joint in turning] or turning, strength)
    q = trial.reading.copy()
    q[joint] += angle
    return _case(bench, trial.recording(bench.robot, q=q), joints=[joint], size=bench.robot.joint_names[joint])


@_fault("a joint that counts in the other direction", "position_convention", "effort_sign")
def _reversed(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial = bench.record()
    joint = _pick(_weighted(trial), strength)
    q, tau = trial.reading.copy(), _measured(trial)
    q[joint], tau[joint] = -q[joint], -tau[joint]
    dq = None if trial.velocity is None else trial.velocity * np.where(np.arange(len(q)) == joint, -1.0, 1.0)[:, None]
    recording = trial.recording(bench.robot, q=q, dq=dq, tau=tau)
    return _case(bench, recording, joints=[joint], size=bench.robot.joint_names[joint])


@_fault("two publishers of joint states in turn", "samples_alternate")
def _alternating(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial, share = bench.record(), (0.8, 0.5, 0.0)[strength]
    tau = _measured(trial)
    tau[:, ::2] *= share
    return _case(bench, trial.recording(bench.robot, tau=tau), size=f"the other one with {share:g} of the effort")


def _pair(effort: Array, trial: Trial, strength: int) -> tuple[int, int]:
    """Two joints whose swapped efforts change the torque least, more, or most; at least by twice the noise."""
    noise = _rms(trial.noise)
    change = {
        (a, b): float(_rms(effort[a] - effort[b]) / max(noise[a], noise[b]))
        for a, b in permutations(range(len(noise)), 2)
        if a < b
    }
    pairs = sorted((pair for pair in change if change[pair] > RATIOS[0]), key=lambda pair: change[pair])
    return pairs[(0, len(pairs) // 2, len(pairs) - 1)[strength]]


@_fault("time stamps in nanoseconds of the epoch", "stamps_not_in_seconds")
def _nanoseconds(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial, unit = bench.record(), (1e3, 1e6, 1e9)[strength]
    stamps = unit * (trial.stamps + (0.0 if strength < 2 else 1.7e9))
    return _case(bench, trial.recording(bench.robot, t=stamps), size=("ms", "us", "ns")[strength])


@_fault("time stamps of another rate", "time_scale")
def _stretched(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial, factor = bench.record(), (2.0, 0.5, 5.0)[strength]
    recording = trial.recording(bench.robot, t=factor * trial.stamps, dq=None)
    return _case(bench, recording, size=f"{factor:g} times as long")


# The description of the robot


def _changed(bench: Bench, change: Callable[[ElementTree.Element], None]) -> RobotModel:
    """The robot with an edited URDF."""
    tree = ElementTree.fromstring(bench.robot.urdf)
    change(tree)
    return RobotModel.from_urdf(ElementTree.tostring(tree, encoding="unicode"), bench.robot.joint_names)


@_fault("URDF in millimeters", "urdf_in_millimeters")
def _millimeters(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial = bench.record()

    def scale(tree: ElementTree.Element) -> None:
        tags = [".//joint/origin", ".//inertial/origin"][: 2 if strength else 1]
        for origin in (item for tag in tags for item in tree.iterfind(tag)):
            numbers = [1000.0 * float(number) for number in origin.get("xyz", "0 0 0").split()]
            origin.set("xyz", " ".join(map(repr, numbers)))
        for inertia in tree.iterfind(".//inertial/inertia") if strength == 2 else ():
            for key in inertia.attrib:
                inertia.set(key, repr(1e6 * float(inertia.get(key, "0"))))

    size = ("joints", "joints and centers", "all")[strength]
    return _case(bench, trial.recording(bench.robot), robot=_changed(bench, scale), size=size)


@_fault("URDF of another arm", "urdf_contradicted", "position_convention")
def _other_arm(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial, joints = bench.record(), ARMS[bench.name].joints
    others = [name for name, arm in ARMS.items() if arm.joints == joints and name != bench.name]
    other = others[strength % len(others)]
    text = urdf_path(other).read_text(encoding="utf-8")
    for number, theirs in enumerate(arm_model(other).joint_names):
        text = re.sub(rf'(["\'])(?:{re.escape(theirs)})\1', f'"joint-{number}"', text)
    for number, ours in enumerate(bench.robot.joint_names):
        text = text.replace(f'"joint-{number}"', f'"{ours}"')
    robot = RobotModel.from_urdf(text, bench.robot.joint_names)
    return _case(bench, trial.recording(bench.robot), robot=robot, size=other)


@_fault("base tilted", "gravity_direction", "base_tilted", sized=True)
def _tilted(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    heading = rng.uniform(0, 2 * np.pi)
    trial = bench.record()

    def gravity(angle: float) -> tuple[float, float, float]:
        side = GRAVITY * np.sin(angle)
        return float(side * np.cos(heading)), float(side * np.sin(heading)), float(-GRAVITY * np.cos(angle))

    tilted = Regressor(replace(bench.robot, gravity=np.array(gravity(0.1))), ())
    still = Motion(trial.motion.q, np.zeros_like(trial.motion.q), np.zeros_like(trial.motion.q))
    effect = 10 * (tilted.torque(still, bench.parameters) - trial.gravity)
    angle = min(_size(effect, trial, strength), np.pi / 2)
    case = _mounted(bench, gravity(angle))
    return replace(case, size=f"{np.degrees(angle):.1f} deg")


@_fault("base mounted sideways, or at the ceiling", "gravity_direction")
def _sideways(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    vectors = ((GRAVITY * 0.5**0.5, 0.0, -GRAVITY * 0.5**0.5), (0.0, GRAVITY, 0.0), (0.0, 0.0, GRAVITY))
    return replace(_mounted(bench, vectors[strength]), size=("45 deg", "90 deg", "180 deg")[strength])


def _mounted(bench: Bench, gravity: tuple[float, float, float]) -> Case:
    """A recording of an arm whose base is mounted otherwise than the given gravity states."""
    robot = replace(bench.robot, gravity=np.array(gravity))
    mounted = replace(bench, robot=robot, regressor=Regressor(robot, ()))
    return _case(bench, mounted.record().recording(robot))


# The motion


@_fault("joints that move one way only", "one_way_motion")
def _one_way(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    joints = [int(j) for j in rng.permutation(len(bench.noise))[: strength + 1]]
    trial = bench.record(one_way=joints, rest=0.0)
    return _case(bench, trial.recording(bench.robot), joints=joints, size=f"{len(joints)} joints")


@_fault("a joint that hardly moves", "joint_barely_moves")
def _still(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    joint, reach = int(rng.integers(len(bench.noise))), (0.008, 0.004, 0.0)[strength]

    def held(motion: Motion) -> Motion:
        scale = np.ones((len(bench.noise), 1))
        scale[joint] = reach / max(float(np.abs(motion.q[joint] - motion.q[joint, :1]).max()), 1e-9)
        return Motion(motion.q[:, :1] + scale * (motion.q - motion.q[:, :1]), scale * motion.dq, scale * motion.ddq)

    trial = bench.record(change=held)
    return _case(bench, trial.recording(bench.robot), joints=[joint], size=f"{1e3 * reach:.0f} mrad")


@_fault("too short", "too_little_motion")
def _short(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    seconds = (8.0, 5.0, 3.0)[strength]
    trial = bench.record(duration=60.0, kind="periodic")
    whole = trial.recording(bench.robot)
    start = 15.0 / 62.0
    return _case(bench, cut(whole, start, start + seconds / 62.0), size=f"{seconds:.0f} s")


# Channels


@_fault("brakes: effort exactly 0 at rest", "effort_zero_at_rest")
def _brakes(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    seconds = (4.0, 10.0, 25.0)[strength]
    trial = bench.record(rest=seconds)
    tau = _measured(trial)
    tau[:, np.abs(trial.motion.dq).max(axis=0) == 0.0] = 0.0
    return _case(bench, trial.recording(bench.robot, tau=tau), size=f"2 x {seconds:.0f} s")


@_fault("effort of a joint dead", "effort_constant", "effort_frozen")
def _dead(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial, joint, share = bench.record(), int(rng.integers(len(bench.noise))), (0.1, 0.4, 1.0)[strength]
    tau = _measured(trial)
    start = int((1 - share) * rng.uniform(0.2, 0.8) * tau.shape[1])
    tau[joint, start : start + int(share * tau.shape[1])] = 0.0 if rng.random() < 0.5 else tau[joint, start]
    return _case(bench, trial.recording(bench.robot, tau=tau), joints=[joint], size=f"{share:.0%}")


@_fault("effort clipped", "effort_saturated", sized=True)
def _clipped(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial = bench.record()
    joint = int(rng.choice(_weighted(trial)))
    tau, largest = _measured(trial), float(np.abs(trial.effort[joint]).max())

    def effect(size: float) -> Array:
        clipped = np.zeros_like(tau)
        limit = (1 - size) * largest
        clipped[joint] = np.clip(tau[joint], -limit, limit) - tau[joint]
        return clipped

    size = _grow(effect, trial, strength, 0.95)
    return _case(bench, trial.recording(bench.robot, tau=tau + effect(size)), joints=[joint], size=f"at {1 - size:.0%}")


# Of the coarsest resolution an effort has one value all the time.
@_fault("effort of coarse resolution", "effort_coarse", "effort_constant", sized=True)
def _coarse_effort(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial = bench.record()
    joint = int(rng.integers(len(bench.noise)))
    step = RATIOS[strength] * float(_rms(trial.noise)[joint]) * 12**0.5
    tau = _measured(trial)
    tau[joint] = step * np.round(tau[joint] / step)
    return _case(bench, trial.recording(bench.robot, tau=tau), joints=[joint], size=f"{step:.2g} N m")


@_fault("encoder of coarse resolution", "position_coarse")
def _coarse_position(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial, bits = bench.record(), (10, 9, 8)[strength]
    step = 2 * np.pi / 2**bits
    q, joint = trial.reading.copy(), int(rng.integers(len(bench.noise)))
    q[joint] = step * np.round(q[joint] / step)
    return _case(bench, trial.recording(bench.robot, q=q, dq=None), joints=[joint], size=f"{bits} bit")


@_fault("encoder frozen for a time", "encoder_frozen")
def _frozen_encoder(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial, joint, seconds = (
        bench.record(kind="periodic"),
        int(rng.integers(len(bench.noise))),
        (1.0, 3.0, 8.0)[strength],
    )
    q, count = trial.reading.copy(), round(seconds * bench.rate)
    fast = np.convolve(np.abs(trial.motion.dq[joint]), np.ones(count), "valid")
    start = int(np.argmax(fast))
    q[joint, start : start + count] = q[joint, start]
    dq = None if trial.velocity is None else trial.velocity.copy()
    if dq is not None:
        dq[joint, start : start + count] = 0.0
    return _case(bench, trial.recording(bench.robot, q=q, dq=dq), joints=[joint], size=f"{seconds:.0f} s")


@_fault("samples missing for a time", "clock_gaps")
def _gaps(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial, seconds = bench.record(duration=SLOW_S), (1.0, 2.0, 4.0)[strength]
    keep = np.ones(len(trial.t), dtype=bool)
    for start in (0.2, 0.4, 0.8):
        first = round(start * len(keep))
        keep[first : first + round(seconds * bench.rate)] = False
    whole = trial.recording(bench.robot)
    return _case(bench, replace(whole, samples=whole.samples.take(keep)), size=f"3 x {seconds:g} s")


@_fault("spikes of the effort", "effort_outliers", sized=True)
def _spikes(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial, joint = bench.record(), int(rng.integers(len(bench.noise)))
    hit = rng.random(len(trial.t)) < 0.005
    effect = np.zeros_like(trial.noise)
    effect[joint, hit] = rng.choice([-1.0, 1.0], int(hit.sum()))
    size = _size(effect, trial, strength)
    return _case(
        bench,
        trial.recording(bench.robot, tau=_measured(trial) + size * effect),
        joints=[joint],
        size=f"{size:.1f} N m",
    )


@_fault("missing efforts of a joint", "values_missing")
def _missing(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial, joint, share = bench.record(), int(rng.integers(len(bench.noise))), (0.02, 0.05, 0.15)[strength]
    tau = _measured(trial)
    tau[joint, rng.random(tau.shape[1]) < share] = np.nan
    return _case(bench, trial.recording(bench.robot, tau=tau), joints=[joint], size=f"{share:.0%}")


# Clocks


@_fault("effort late", "effort_delayed", sized=True)
def _late(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial = bench.record()
    late = _size(np.gradient(trial.gravity + trial.inertial, trial.t, axis=1), trial, strength)
    tau = _along(trial.effort, trial.t, trial.t - late) + trial.noise
    return _case(bench, trial.recording(bench.robot, tau=tau), size=f"{1e3 * late:.0f} ms")


@_fault("effort low-passed by the driver", "effort_delayed", sized=True)
def _low_passed(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial = bench.record()
    constant = _size(np.gradient(trial.gravity + trial.inertial, trial.t, axis=1), trial, strength)
    keep, tau = np.exp(-1.0 / (bench.rate * constant)), trial.effort.copy()
    for k in range(1, tau.shape[1]):
        tau[:, k] = keep * tau[:, k - 1] + (1 - keep) * tau[:, k]
    return _case(bench, trial.recording(bench.robot, tau=tau + trial.noise), size=f"{1e3 * constant:.0f} ms")


@_fault("clock of the efforts drifts", "clock_drift", sized=True)
def _drift(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial = bench.record()
    rate = np.gradient(trial.gravity + trial.inertial, trial.t, axis=1)
    drift = _size(rate * (trial.t / trial.t[-1]), trial, strength)
    tau = _along(trial.effort, trial.t, trial.t - drift * trial.t / trial.t[-1]) + trial.noise
    return _case(bench, trial.recording(bench.robot, tau=tau), size=f"{1e3 * drift:.0f} ms")


@_fault("stamps of arrival that jitter", "clock_jitter")
def _jitter(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial, sigma = bench.record(), (0.2, 0.5, 1.5)[strength] / bench.rate
    late = rng.exponential(sigma, len(trial.t))
    stamps = np.maximum.accumulate(trial.t + late) + 1e-5 * np.arange(len(trial.t)) / bench.rate
    return _case(bench, trial.recording(bench.robot, t=stamps), size=f"{1e3 * sigma:.0f} ms")


@_fault("velocities late", "velocity_mismatch")
def _late_velocity(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial, late = bench.record(), (2.0, 5.0, 20.0)[strength] / bench.rate
    dq = _along(trial.motion.dq, trial.t, trial.t - late) + 3e-3 * rng.normal(size=trial.motion.dq.shape)
    return _case(bench, trial.recording(bench.robot, dq=dq), size=f"{1e3 * late:.0f} ms")


# Changes while it is recorded


@_fault("friction falls while it warms up", "friction_drifts", sized=True)
def _warm_up(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial = bench.record(warming=0.0, duration=SLOW_S)
    size = min(_size(trial.friction, trial, strength) * 3**0.5, 0.8)
    return _case(bench, bench.record(warming=size, duration=SLOW_S).recording(bench.robot), size=f"{size:.0%}")


@_fault("zero of an effort drifts along the recording", "effort_offset_drifts", sized=True)
def _offset_drift(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial, joint = bench.record(duration=SLOW_S), int(rng.integers(len(bench.noise)))
    effect = np.zeros_like(trial.noise)
    effect[joint] = trial.t / trial.t[-1] - 0.5
    size = _size(effect, trial, strength)
    return _case(
        bench,
        trial.recording(bench.robot, tau=_measured(trial) + size * effect),
        joints=[joint],
        size=f"{size:.2g} N m",
    )


@_fault("zero of an effort differs between recordings", "effort_offset_drifts", sized=True)
def _offset_jump(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    joint = int(rng.integers(len(bench.noise)))
    recordings = []
    for number in range(3):
        trial = bench.record(number, duration=DURATION_S)
        tau = _measured(trial)
        size = RATIOS[strength] * float(_rms(trial.noise)[joint])
        tau[joint] += (-1.0, 1.0, 0.0)[number] * size
        recordings.append(trial.recording(bench.robot, tau=tau))
    return _case(bench, *recordings, joints=[joint], size=f"{size:.2g} N m")


@_fault("contacts while it is recorded", "contact", sized=True)
def _contact(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial = bench.record()
    pushed = np.zeros_like(trial.noise)
    for start in rng.uniform(0.15, 0.85, 3):
        inside = np.abs(trial.t - start * trial.t[-1]) < 0.25
        direction = rng.normal(size=len(bench.noise)) * _rms(trial.noise)
        pushed[:, inside] += direction[:, None] * np.cos(np.pi * (trial.t[inside] - start * trial.t[-1]) / 0.5)
    touched = np.abs(pushed).max(axis=0) > 0
    size = RATIOS[strength] / float((_rms(pushed[:, touched]) / _rms(trial.noise)).max())
    return _case(bench, trial.recording(bench.robot, tau=_measured(trial) + size * pushed), size="3 x 0.5 s")


def _payload(bench: Bench, trial: Trial, strength: int) -> tuple[Array, float]:
    """Inertial parameters with a payload at the last link, and its mass."""
    distance = 0.1

    def loaded(mass: float) -> Array:
        parameters = bench.parameters.copy()
        body = np.zeros(10)
        body[[0, 3]] = mass, mass * distance
        body[[4, 6]] = mass * distance**2
        parameters[-10:] += body
        return parameters

    rigid = bench.regressor.torque(trial.motion, bench.parameters)
    mass = _size(bench.regressor.torque(trial.motion, loaded(1.0)) - rigid, trial, strength)
    return loaded(mass), mass


@_fault("other tool in one of three recordings", "load_changed", sized=True)
def _tool_among(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trials = [bench.record(number, duration=DURATION_S) for number in range(2)]
    load, mass = _payload(bench, trials[0], strength)
    trials.append(bench.record(2, duration=DURATION_S, load=load))
    return _case(bench, *(trial.recording(bench.robot) for trial in trials), size=f"{mass:.2g} kg")


@_fault("other tool in the held-out recording", "load_changed", sized=True)
def _tool_held_out(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial = bench.record()
    load, mass = _payload(bench, trial, strength)
    other = bench.record(1, duration=DURATION_S, load=load)
    return Case(bench.robot, (trial.recording(bench.robot),), (other.recording(bench.robot),), size=f"{mass:.2g} kg")


@_fault("load picked up while it is recorded", "load_changed", sized=True)
def _load_picked_up(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    trial = bench.record(duration=SLOW_S)
    load, mass = _payload(bench, trial, strength)
    carried = bench.regressor.torque(trial.motion, load) - bench.regressor.torque(trial.motion, bench.parameters)
    carried[:, trial.t < rng.uniform(0.3, 0.7) * trial.t[-1]] = 0.0
    return _case(bench, trial.recording(bench.robot, tau=_measured(trial) + carried), size=f"{mass:.2g} kg")


# Training data as held-out data


@_fault("training data as held-out data", "held_out_in_training")
def _held_out_trained(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    whole = bench.record().recording(bench.robot)
    start, stop = ((0.3, 0.6), (0.2, 0.9), (0.0, 1.0))[strength]
    return Case(bench.robot, (whole,), (cut(whole, start, stop),), size=f"{stop - start:.0%}")


@_fault("validated on the training data", "held_out_in_training")
def _validated_trained(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    whole = bench.record().recording(bench.robot)
    start, stop = ((0.3, 0.6), (0.2, 0.9), (0.0, 1.0))[strength]
    return Case(bench.robot, (whole,), (), (cut(whole, start, stop),), size=f"{stop - start:.0%}")


@_fault("the same recording twice", "recording_repeated")
def _twice(bench: Bench, strength: int, rng: np.random.Generator) -> Case:
    whole = bench.record().recording(bench.robot)
    start, stop = ((0.3, 0.6), (0.2, 0.9), (0.0, 1.0))[strength]
    return _case(bench, whole, cut(whole, start, stop), size=f"{stop - start:.0%}")
