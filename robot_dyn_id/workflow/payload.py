# SPDX-License-Identifier: Apache-2.0
"""Identification of a payload from the recording of a wrist motion in two halves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.special import chdtrc

from robot_dyn_id.data.recording import Recording
from robot_dyn_id.errors import InputError, RobotDynIdError, UsageError
from robot_dyn_id.files.parameters import write_parameters
from robot_dyn_id.files.payload import summarize_declared, write_payload
from robot_dyn_id.files.trajectory import StoredExcitation, write_trajectory
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.loads.declared import DeclaredPayload, DeclaredTest, compare_declared
from robot_dyn_id.loads.identification import PayloadOptions, add_payload, estimate_payload
from robot_dyn_id.loads.payload import NEGATIVE_MASS_SIGMAS, Payload, PayloadEstimate, move_parameters, move_payload
from robot_dyn_id.loads.payload_accuracy import PayloadAccuracy
from robot_dyn_id.model.kinematics import find_placement_of
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.workflow.payload_motion import PayloadMotion, check_configuration, design_payload_motion

PAYLOAD_CHANGED = Definition(
    "payload_changed",
    Section.LOADS,
    "error",
    "The two halves of the measurement show different payloads: it has moved in the gripper or has fallen off, or "
    "the friction has changed.",
    "secure the payload, warm the joints up for longer, and measure again",
)

CHANGE_SIGNIFICANCE = 1e-3
"""Probability of finding a change of a payload that has not changed; their common errors make it smaller still."""


@dataclass(frozen=True)
class PayloadRun:
    """A wrist motion with what was recorded and identified from it.

    Attributes:
        motion: demands on the motion.
        accuracy: accuracy that was expected before the motion.
        trajectory: the designed motion.
        settings: drives, source of the velocities, findings to overrule.
        reference: recordings of the empty arm on the same motion; empty: none.
        recordings: recordings of the two halves of the measurement.
        estimate: estimate of the payload; None before the identification.
        payload: physically possible body; None if there is none, see `problem`.
        problem: reason why there is no payload.
        absent: whether the mass is not significantly above zero, or is declared to be zero and the recording agrees.
        test: test of the declared payload; None if none is declared.
        findings: findings about recordings and payload.
    """

    motion: PayloadMotion
    accuracy: PayloadAccuracy
    trajectory: StoredExcitation
    settings: Settings
    reference: tuple[Recording, ...] = ()
    recordings: tuple[Recording, ...] = ()
    estimate: PayloadEstimate | None = None
    payload: Payload | None = None
    problem: str = ""
    absent: bool = False
    test: DeclaredTest | None = None
    findings: tuple[Finding, ...] = ()

    def save_motion(self, folder: Path) -> None:
        """Write `trajectory.yaml`, and `slow_test.yaml` with a single period of it.

        Raises:
            InputError: a file cannot be written.
        """
        write_trajectory(folder / "trajectory.yaml", self.trajectory)
        write_trajectory(folder / "slow_test.yaml", replace(self.trajectory, periods=1))

    def save_result(self, folder: Path) -> ParameterSet:
        """Write `payload.yaml` and `parameters.yaml`.

        Returns:
            The arm with the identified payload.

        Raises:
            InputError: a file cannot be written.
        """
        assert self.payload is not None
        loaded = add_payload(self.motion.arm, self.payload)
        more = {} if self.test is None else {"declared": summarize_declared(self.test)}
        write_payload(folder / "payload.yaml", self.payload, **more)
        write_parameters(folder / "parameters.yaml", loaded)
        return loaded

    def describe(self) -> str:
        """Mass and center of mass with their standard deviations, and the test of the declared payload."""
        assert self.payload is not None
        sigma = self.payload.central_standard_deviations
        center = ", ".join(
            f"{value:.4f} +- {error:.2g}" for value, error in zip(self.payload.center_of_mass, sigma[1:4], strict=True)
        )
        text = f"{self.payload.mass:.4g} +- {sigma[0]:.2g} kg at ({center}) m in the frame of {self.payload.link}"
        return text if self.test is None else f"{text}; {self.test.describe()}"


SAME_CONFIGURATION = 0.02
"""Largest distance from the configuration of a reference with which its motion and data are used [rad or m]."""


def prepare_run(motion: PayloadMotion, settings: Settings, reference: PayloadRun | None = None) -> PayloadRun:
    """Check the configuration and design the motion, or take that of a reference.

    Args:
        motion: demands on the motion.
        settings: settings of the identification.
        reference: run of the empty arm; it is used in the same configuration only.

    Raises:
        MotionError: the configuration is not suited, or no motion was found.
    """
    if reference is not None and np.abs(reference.motion.position - motion.position).max() <= SAME_CONFIGURATION:
        accuracy = motion.accuracy(reference.trajectory.cycle)
        return replace(reference, motion=motion, accuracy=accuracy, reference=reference.recordings, recordings=())
    check_configuration(motion)
    designed, accuracy = design_payload_motion(motion)
    return PayloadRun(motion, accuracy, designed.stored, settings)


@dataclass(frozen=True)
class DriverFrame:
    """Frame of a link in which a driver takes payloads.

    Attributes:
        model: robot model.
        link: link that carries the payload.
        name: name of the link of the driver.
    """

    model: RobotModel
    link: str
    name: str

    def __post_init__(self) -> None:
        """Check the links.

        Raises:
            UsageError: the robot has no such link, or a joint separates it from the payload.
        """
        try:
            at = find_placement_of(self.model, self.name)
        except RobotDynIdError as error:
            raise UsageError(f"driver_frame: {error}") from None
        if at.body != find_placement_of(self.model, self.link).body:
            raise UsageError(f"driver_frame: a joint separates {self.name} from {self.link}")

    def express(self, payload: Payload, tool: Payload | None, link: str) -> Payload:
        """A payload in this frame, with the tool that the driver takes for a part of it.

        Args:
            payload: identified payload.
            tool: tool that the arm was identified with, which is taken as known; None: none.
            link: name of the link that the result states.
        """
        here = find_placement_of(self.model, self.name)
        bodies = (payload,) if tool is None else (payload, tool)
        moved = [move_parameters(one.parameters, find_placement_of(self.model, one.link), here) for one in bodies]
        whole = move_payload(payload, link, find_placement_of(self.model, payload.link), here)
        return replace(whole, parameters=moved[0] if tool is None else moved[0] + moved[1])


def identify_from_halves(run: PayloadRun, declared: DeclaredPayload | None = None) -> PayloadRun:
    """Identify the payload of a run, test a declared one, and compare the two halves of the measurement.

    Args:
        run: a run with its recordings.
        declared: declared payload, in the frame of the same link; None: none is declared.

    Raises:
        InputError: the recordings cannot be used.
        UnsafeDataError: the health gate refuses.
    """
    motion = run.motion
    options = PayloadOptions(run.reference, motion.friction_change)

    def estimate_from(recordings: tuple[Recording, ...]) -> tuple[PayloadEstimate, tuple[Finding, ...]]:
        return estimate_payload(recordings, motion.arm, motion.link, run.settings, options)

    estimate, findings = estimate_from(run.recordings)
    test = None if declared is None else compare_declared(estimate, declared)
    found = replace(
        run,
        estimate=estimate,
        test=test,
        findings=(*findings, *(() if test is None else test.findings())),
    )
    halves = [estimate_from((recording,))[0] for recording in run.recordings]
    changed = _change(*halves) if len(halves) == 2 else ""
    if changed:
        change = PAYLOAD_CHANGED.found(changed)
        return replace(found, findings=(*found.findings, change), problem=changed)
    mass, sigma = estimate.values[0], np.sqrt(estimate.covariance[0, 0])
    if test is not None and test.accepted and test.declared.mass == 0.0:
        words = (
            f"the mass on link {motion.link} is {mass:.3g} +- {sigma:.2g} kg: it is declared that there is no payload, "
            "and the recording agrees"
        )
        return replace(found, problem=words, absent=True)
    if mass < NEGATIVE_MASS_SIGMAS * sigma and not estimate.unexcited[0]:
        words = f"the mass on link {motion.link} is {mass:.3g} +- {sigma:.2g} kg: there may be no payload"
        return replace(found, problem=words, absent=mass > -NEGATIVE_MASS_SIGMAS * sigma)
    try:
        payload = estimate.payload()
    except InputError as error:
        return replace(found, problem=str(error))
    return replace(found, payload=payload, findings=(*found.findings, *payload.findings))


def _change(first: PayloadEstimate, second: PayloadEstimate) -> str:
    """Change of mass or first moments between two estimates, one sentence; empty if there is none.

    The errors of the arm are common to both, so that the sum of the covariances is too large for the difference.
    """
    compared = (np.arange(10) < 4) & ~first.unexcited & ~second.unexcited
    if not compared.any():
        return ""
    difference = (second.values - first.values)[compared]
    covariance = (first.covariance + second.covariance)[np.ix_(compared, compared)]
    statistic = float(difference @ np.linalg.solve(covariance, difference))
    if chdtrc(compared.sum(), max(statistic, 0.0)) >= CHANGE_SIGNIFICANCE:
        return ""
    masses = [f"{one.values[0]:.3g} +- {np.sqrt(one.covariance[0, 0]):.2g} kg" for one in (first, second)]
    return f"the payload changed during the measurement: {masses[0]} in its first half, {masses[1]} in its second"
