# SPDX-License-Identifier: Apache-2.0
"""Findings about identified actuators: what the data do not determine, and whether simulations can use the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from scipy.sparse.csgraph import connected_components

from robot_dyn_id.actuators.ends import CAUSES
from robot_dyn_id.actuators.identification import OF_TYPES, ActuatorEstimate, KnownDrives
from robot_dyn_id.actuators.spread import CONFOUNDED, LEAST_RECORDINGS
from robot_dyn_id.actuators.validation import RolloutErrors
from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.base_parameters import draw_random_motion
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.identification.diagnosis.diagnosis import EQUAL_WARNED
from robot_dyn_id.identification.thresholds import Thresholds
from robot_dyn_id.kernels.actuators import (
    ARMATURE,
    BREAKAWAY,
    COULOMB,
    DELAY,
    KD,
    KINDS,
    KP,
    LIMIT,
    LOAD_COULOMB,
    OFFSET,
    VISCOUS,
)
from robot_dyn_id.model.robot import STANDARD_GRAVITY, Limits, RobotModel
from robot_dyn_id.uses import LIMITED

USE = "forward_simulation"
"""The use of actuators: simulation under position commands."""

BAD_SHARE = Thresholds.bad_nrmse
"""Error of simulations, as a share of the tracking error, above which they are not usable: that of torques."""

ACTUATOR_SIMULATION_BAD = Definition(
    "actuator_simulation_bad",
    Section.ACTUATORS,
    "error",
    "Simulations of recordings under their position commands miss the measured positions by more than 30 % of the "
    "tracking error, or those of held-out recordings by more than drives and links alone, without armature, friction, "
    "offset and delay. The fit may have ended in a false minimum.",
    "check gains, joint names and masses of the robot, and that the base is fixed as in the description; give the "
    "effort limits if commands exceed them",
)

ACTUATOR_JOINT_ERROR = Definition(
    "actuator_joint_error",
    Section.ACTUATORS,
    "warning",
    "Simulations of a joint under position commands miss the measured positions by more than 30 % of its tracking "
    "error.",
    "check the gains and the effort limit of the joint, and that nothing touches it",
    lowers={USE: LIMITED},
)

ACTUATOR_REFERENCES_EXCHANGED = Definition(
    "actuator_references_exchanged",
    Section.ACTUATORS,
    "error",
    "Measured positions follow the references of other joints: with these exchanged more than half of the squared "
    "tracking error is gone.",
    "correct the order or the names of the commanded positions",
)

ACTUATOR_EFFORT_UNEXPLAINED = Definition(
    "actuator_effort_unexplained",
    Section.ACTUATORS,
    "error",
    "The effort that the model computes from the held-out motion misses the commanded one by more than its RMS: no "
    "model at all would be as good. Commands and positions may belong to different joints.",
    "check the order of the commands, gains, joint names and masses",
)

ACTUATOR_OFFSET_LARGE = Definition(
    "actuator_offset_large",
    Section.ACTUATORS,
    "warning",
    "The offsets of all joints together are larger than the weight of the links could be in any pose: they replace a "
    "weight that the masses, or the gains, of the description do not give. Armature and friction are wrong by the same "
    "factor.",
    "check the gains and their unit, and the masses of the robot",
    lowers={USE: LIMITED},
)

ACTUATOR_GAINS_SCALED = Definition(
    "actuator_gains_scaled",
    Section.ACTUATORS,
    "warning",
    "The efforts of the drives, by the gains that are given, are more than 1.3 times those that the links of the robot "
    "description take, or less than their inverse, with 95 % confidence: all gains have another scale, or all masses. "
    "Armature and friction have the scale of the gains.",
    "check the gains and their unit, and the masses of the robot",
    lowers={USE: LIMITED},
)

POSES = 200
"""Random poses in which the largest weight on each joint is searched for."""

ACTUATOR_END_STOP = Definition(
    "actuator_end_stop",
    Section.ACTUATORS,
    "info",
    "A joint does not move beyond a position, although its drive pushes it further: an end stop, or a contact. "
    "Simulations have it. What the drive pushes there says nothing about armature and friction.",
    "fix the joint in the configuration if the contact is not always there",
)

ACTUATOR_REFERENCE_END = Definition(
    "actuator_reference_end",
    Section.ACTUATORS,
    "info",
    "A drive does not follow references beyond a position, which is not a stop: the joint comes to rest before, or "
    "sticks where its friction holds it. Simulations have this end.",
    "command positions within the range that the drive allows",
)

ACTUATOR_NOT_VALIDATED = Definition(
    "actuator_not_validated",
    Section.ACTUATORS,
    "warning",
    "The actuators were not simulated on recordings that they were not identified from.",
    "give another recording to validate on",
    lowers={USE: LIMITED},
)

ACTUATOR_POORLY_DETERMINED = Definition(
    "actuator_poorly_determined",
    Section.ACTUATORS,
    "info",
    "The 95 % interval of a value is wider than twice the value: the motion determines it poorly.",
    "record a motion that depends on it",
)

ACTUATOR_AT_ZERO = Definition(
    "actuator_at_zero",
    Section.ACTUATORS,
    "info",
    "A value that cannot be negative is not identifiable: 0 fits best, and only the upper end of its 95 % interval is "
    "known. Where another joint with the same motor has a larger value, the model of this joint errs.",
    "record a motion that depends on it, or let joints of one motor type share it",
)

ACTUATOR_CONFOUNDED = Definition(
    "actuator_confounded",
    Section.ACTUATORS,
    "info",
    "Values of a joint have nearly the same effect on the recorded motion: combinations are known better than each.",
    "record a motion that separates them",
)

ACTUATOR_LIMIT_UNKNOWN = Definition(
    "actuator_limit_unknown",
    Section.ACTUATORS,
    "info",
    "No command exceeds the effort limit of a joint, or a limit removes less than 5 % of the errors: it is not known.",
    "give the limit, or record steps of the reference that exceed it",
)

ACTUATOR_OTHER_LINKS = Definition(
    "actuator_other_links",
    Section.ACTUATORS,
    "info",
    "Physically consistent links near those of the robot description predict parts of the data that they were not "
    "fitted to better, and replace them. With a fixed base only combinations of masses and inertias are known, the "
    "rest is that of the description.",
    "use the actuators with these links, which the exported models contain",
)

ACTUATOR_LOAD_FRICTION = Definition(
    "actuator_load_friction",
    Section.ACTUATORS,
    "info",
    "Coulomb friction that grows with the load of the joints, the torque of the links without acceleration, predicts "
    "parts of the data that it was not fitted to better. Simulations have it. It was identified at the loads that the "
    "finding states: at others, such as those of other poses or of a payload, it is extrapolated.",
    "record a motion with the loads of the use, if they are others",
)

ACTUATOR_PRESLIDING = Definition(
    "actuator_presliding",
    Section.ACTUATORS,
    "info",
    "Joints that deflect before they slide predict parts of the data that they were not fitted to better. Simulations "
    "have it.",
)

ACTUATOR_SCALE_OF_LINKS = Definition(
    "actuator_scale_of_links",
    Section.ACTUATORS,
    "info",
    "The gains of a drive are not known: torques, and with them armature and friction, are known as ratios to the gain "
    "or to the masses of the robot description, which give the scale.",
    "give the gains of the drive",
)

ACTUATOR_DAMPING_IN_GAIN = Definition(
    "actuator_damping_in_gain",
    Section.ACTUATORS,
    "info",
    "A gain of velocities that is not known has the same effect as viscous friction while the effort is not at its "
    "limit: the value of the gain is their sum, and viscous friction is 0.",
    "give the gain",
)

ACTUATOR_ONE_TEMPERATURE = Definition(
    "actuator_one_temperature",
    Section.ACTUATORS,
    "info",
    "Fewer than three recordings: the intervals do not contain what changes from one recording to the next, such as "
    "friction with temperature.",
    "give three or more recordings, from cold to warm",
)

ACTUATOR_TYPES_DIFFER = Definition(
    "actuator_types_differ",
    Section.ACTUATORS,
    "info",
    "Values that were to be shared by several joints predict held-out parts of the data worse than single ones: they "
    "are not shared.",
)

REMEDIES = {
    ARMATURE: "faster reversals, at a higher frequency",
    VISCOUS: "a range of speeds",
    COULOMB: "slow motion in both directions",
    LOAD_COULOMB: "slow motion in both directions in poses with much and with little weight",
    BREAKAWAY: "slow reversals",
    OFFSET: "slow motion in both directions",
    DELAY: "fast changes of the reference, such as steps",
    KP: "poses with weight, or steps",
    KD: "a range of speeds",
    LIMIT: "steps of the reference that exceed the limit",
}
"""Motion that determines each kind of parameter."""


def judge(
    estimate: ActuatorEstimate,
    drives: KnownDrives,
    held_out: RolloutErrors | None,
    limits: Limits | None = None,
) -> tuple[Finding, ...]:
    """Findings about identified actuators.

    Args:
        estimate: the actuators.
        drives: known values of the drives.
        held_out: errors on other recordings; None without any.
        limits: position limits of the robot description, which ends are compared with.
    """
    return (
        *_judge_order(estimate),
        *_judge_simulation(estimate, held_out),
        *_judge_offsets(estimate),
        *_judge_scale(estimate),
        *_report_ends(estimate, limits),
        *_report_poor(estimate),
        *_report_confounded(estimate),
        *_report_unknown(estimate, drives),
        *_report_links(estimate),
        *_report_friction(estimate),
        *_report_sharing(estimate),
    )


def _judge_order(estimate: ActuatorEstimate) -> Iterator[Finding]:
    names = estimate.actuators.joint_names
    others = {names[j]: names[k] for j, k in enumerate(estimate.order) if j != k}
    if others:
        listed = ", ".join(f"{joint} that of {other}" for joint, other in others.items())
        yield ACTUATOR_REFERENCES_EXCHANGED.found(f"joints follow references of others: {listed}", list(others))


def _judge_simulation(estimate: ActuatorEstimate, held_out: RolloutErrors | None) -> Iterator[Finding]:
    missed = float(np.linalg.norm(estimate.errors) / np.linalg.norm(estimate.tracking))
    if missed > BAD_SHARE:
        yield ACTUATOR_SIMULATION_BAD.found(
            f"simulations miss the positions that they were fitted to by {missed:.0%} of the tracking error"
        )
    if held_out is None:
        yield ACTUATOR_NOT_VALIDATED.found("no recording was held out")
        return
    names = estimate.actuators.joint_names
    error, rigid = held_out.rms(np.inf), float(np.sqrt(np.mean(held_out.rigid**2)))
    if held_out.share > BAD_SHARE or error > rigid:
        yield ACTUATOR_SIMULATION_BAD.found(
            f"simulations miss the held-out positions by {error:.3g} rad or m, {held_out.share:.0%} of the tracking "
            f"error; drives and links alone by {rigid:.3g}"
        )
    if held_out.all_efforts > 1.0:
        unexplained = [name for name, share in zip(names, held_out.efforts.tolist(), strict=True) if share > 1.0]
        message = (
            f"errors of the held-out effort are {held_out.all_efforts:.0%} of it, most of {', '.join(unexplained)}"
        )
        yield ACTUATOR_EFFORT_UNEXPLAINED.found(message, unexplained)
    bad = [name for name, share in zip(names, held_out.shares, strict=True) if share > BAD_SHARE]
    shares = ", ".join(f"{name} {held_out.shares[names.index(name)]:.0%}" for name in bad)
    if bad:
        yield ACTUATOR_JOINT_ERROR.found(f"error of simulations as a share of the tracking error: {shares}", bad)


def _judge_offsets(estimate: ActuatorEstimate) -> Iterator[Finding]:
    """Offsets of the whole robot against the weight of its links: single joints, such as rolls, carry hardly any."""
    model, offset = estimate.links.robot, np.abs(estimate.actuators.values[OFFSET])
    size = np.linalg.norm(STANDARD_GRAVITY)
    torques = [_compute_weight(replace(model, gravity=size * axis)) for axis in np.eye(3)]
    weight = np.linalg.norm(torques, axis=0).max(axis=1)  # however the base is mounted
    if np.linalg.norm(offset) <= np.linalg.norm(weight):
        return
    names = estimate.actuators.joint_names
    large = np.flatnonzero(offset > weight).tolist()
    listed = ", ".join(f"{names[j]} {offset[j]:.3g} (weight {weight[j]:.3g})" for j in large)
    message = f"offsets are larger than the weight of the links in any pose [N m or N]: {listed}"
    yield ACTUATOR_OFFSET_LARGE.found(message, [names[j] for j in large])


def _compute_weight(model: RobotModel) -> Array:
    """Torque of the weight of the links in `POSES` random poses [N m or N], shape (n, poses)."""
    q = draw_random_motion(model, POSES).q
    return Regressor(model).torque(Motion(q, np.zeros_like(q), np.zeros_like(q)), model.inertial_parameters)


def _judge_scale(estimate: ActuatorEstimate) -> Iterator[Finding]:
    low, high = estimate.links.scale
    if low > EQUAL_WARNED or high < 1.0 / EQUAL_WARNED:
        message = (
            f"the efforts of the drives, by the gains that are given, are {0.5 * (low + high):.3g} ({low:.3g} to "
            f"{high:.3g}) times those of the links of the robot description"
        )
        yield ACTUATOR_GAINS_SCALED.found(message)


def _report_ends(estimate: ActuatorEstimate, limits: Limits | None) -> Iterator[Finding]:
    names, unknown = estimate.actuators.joint_names, np.full(len(estimate.errors), np.nan)
    described = (unknown, unknown) if limits is None else (limits.lower, limits.upper)
    for side, (stop, reference) in enumerate(CAUSES):
        for kind in (stop, reference):
            for j in np.flatnonzero(estimate.uncertainty.estimated[kind]).tolist():
                limit = float(described[side][j])
                stated = f"; the robot description states {limit:.4g}" if np.isfinite(limit) else ""
                position = f"{estimate.actuators.values[kind, j]:.4g} rad or m, for {estimate.ended[j]:.0%} of the time"
                if kind == stop:
                    yield ACTUATOR_END_STOP.found(f"{names[j]} is stopped at {position}{stated}", [names[j]])
                else:
                    beyond = ("below", "above")[side]
                    message = f"{names[j]} follows no reference {beyond} {position}{stated}"
                    yield ACTUATOR_REFERENCE_END.found(message, [names[j]])


def _report_poor(estimate: ActuatorEstimate) -> Iterator[Finding]:
    names, values, uncertainty = estimate.actuators.joint_names, estimate.actuators.values, estimate.uncertainty
    for kind, remedy in REMEDIES.items():
        if kind == OFFSET:  # zero is as good a value as any
            continue
        width, high = uncertainty.high[kind] - uncertainty.low[kind], uncertainty.high[kind]
        least = uncertainty.estimated[kind] & (values[kind] == 0.0)
        if least.any():
            joints = [name for name, flag in zip(names, least, strict=True) if flag]
            ends = ", ".join(f"{name} below {high[names.index(name)]:.2g}" for name in joints)
            action = f"record {remedy}"
            if kind in OF_TYPES:
                action += ", or let joints of one motor type share it"
            yield ACTUATOR_AT_ZERO.found(f"{KINDS[kind]} is not identifiable: {ends}", joints, action=action)
        poor = uncertainty.estimated[kind] & ~least & (width > 2.0 * np.abs(values[kind]))
        if poor.any():
            joints = [name for name, flag in zip(names, poor, strict=True) if flag]
            message = f"{KINDS[kind]} of {', '.join(joints)}: its 95 % interval is wider than twice the value"
            yield ACTUATOR_POORLY_DETERMINED.found(message, joints, action=f"record {remedy}")


def _report_confounded(estimate: ActuatorEstimate) -> Iterator[Finding]:
    """One finding for all joints in which the same values are hardly separated."""
    names, index = estimate.actuators.joint_names, estimate.uncertainty.index
    found: dict[tuple[int, ...], list[str]] = {}
    for j, name in enumerate(names):
        kinds = np.flatnonzero(index[:, j] >= 0)
        own = index[kinds, j]
        linked = np.abs(estimate.uncertainty.correlation[own[:, None], own]) > CONFOUNDED
        count, group = connected_components(linked, directed=False)
        for number in range(count):
            members = tuple(kinds[group == number].tolist())
            if len(members) > 1:
                found.setdefault(members, []).append(name)
    for members, joints in found.items():
        kinds_text = f"{', '.join(KINDS[kind] for kind in members[:-1])} and {KINDS[members[-1]]}"
        message = f"{kinds_text} of {', '.join(joints)} are hardly separated: correlations above {CONFOUNDED:g}"
        remedies = dict.fromkeys(REMEDIES[kind] for kind in members[1:])
        action = f"record {', and '.join(remedies)}" if KP not in members else "give the gains of the drive"
        yield ACTUATOR_CONFOUNDED.found(message, joints, action=action)


def _report_unknown(estimate: ActuatorEstimate, drives: KnownDrives) -> Iterator[Finding]:
    names = estimate.actuators.joint_names
    missing = np.isnan(drives.limit) & ~estimate.uncertainty.estimated[LIMIT]
    if missing.any():
        joints = [name for name, flag in zip(names, missing, strict=True) if flag]
        largest = ", ".join(f"{name} {estimate.largest[names.index(name)]:.3g}" for name in joints)
        yield ACTUATOR_LIMIT_UNKNOWN.found(f"no effort limit is reached; largest commanded effort: {largest}", joints)
    scaled = [name for name, gain in zip(names, drives.kp, strict=True) if np.isnan(gain)]
    if scaled:
        message = f"the scale of torques of {', '.join(scaled)} is that of the masses of the robot description"
        yield ACTUATOR_SCALE_OF_LINKS.found(message, scaled)
    damped = [name for name, known in zip(names, estimate.uncertainty.estimated[VISCOUS], strict=True) if not known]
    if damped:
        yield ACTUATOR_DAMPING_IN_GAIN.found(f"kd of {', '.join(damped)} contains the viscous friction", damped)
    if estimate.recordings < LEAST_RECORDINGS:
        yield ACTUATOR_ONE_TEMPERATURE.found(f"{estimate.recordings} recordings")


def _report_links(estimate: ActuatorEstimate) -> Iterator[Finding]:
    if estimate.links.gain:
        masses = estimate.links.robot.inertial_parameters[::10].tolist()
        named = ", ".join(
            f"{name} {mass:.3g}" for name, mass in zip(estimate.links.robot.body_names, masses, strict=True)
        )
        message = f"other links remove {estimate.links.gain:.0%} of the squared errors of simulations; masses: {named}"
        yield ACTUATOR_OTHER_LINKS.found(message)


def _report_friction(estimate: ActuatorEstimate) -> Iterator[Finding]:
    for test in estimate.friction:
        if test.joints:
            message = (
                f"{test.kind} of {', '.join(test.joints)} removes {test.gain:.0%} of the squared errors of simulations"
            )
            if test.kind == KINDS[LOAD_COULOMB]:
                yield ACTUATOR_LOAD_FRICTION.found(f"{message}; {_list_loads(estimate, test.joints)}", test.joints)
            else:
                yield ACTUATOR_PRESLIDING.found(message, test.joints)


def _list_loads(estimate: ActuatorEstimate, joints: Sequence[str]) -> str:
    """Loads of the recordings, and the weight that the links may have."""
    names, model = estimate.actuators.joint_names, estimate.links.robot
    rows = zip(names, *estimate.loads, np.abs(_compute_weight(model)).max(axis=1), strict=True)
    loads = {name: f"{name} {low:.2f} to {high:.2f} (largest weight {most:.2f})" for name, low, high, most in rows}
    return f"loads of the recordings [N m or N]: {', '.join(loads[name] for name in joints)}"


def _report_sharing(estimate: ActuatorEstimate) -> Iterator[Finding]:
    for test in estimate.shared:
        if not test.agreed:
            message = f"{test.kind} of {', '.join(test.joints)} differs between the joints and is not shared"
            yield ACTUATOR_TYPES_DIFFER.found(message, test.joints)
