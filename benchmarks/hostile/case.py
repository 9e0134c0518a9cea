# SPDX-License-Identifier: Apache-2.0
"""A robot given to the plain command, and to the same package with its true structure."""

from __future__ import annotations

import re
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from scipy.signal import butter, sosfiltfilt

from hostile.recordings import Robot, Take, record
from robot_dyn_id import ParameterSet, Settings, identify, open_recording, predict
from robot_dyn_id.arrays import Array
from robot_dyn_id.data.recording import ArrayRecording, Recording
from robot_dyn_id.dynamics.terms import TERMS, Coupling, Offset, RotorInertia, Spring, Term, Viscous
from robot_dyn_id.dynamics.terms.friction import FRICTION
from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.findings import Finding, list_definitions
from robot_dyn_id.model.robot import RobotModel

CUTOFF_HZ, EDGE_S = 5.0, 0.5
"""Low-pass that predicted and measured efforts pass through, and time that is left out at both ends."""

LEAST_CLAIM_DEG = 1.0
"""Error of a gravity direction that counts as a false claim, if it is also larger than that of the description."""


@dataclass(frozen=True)
class Driving(Term):
    """Viscous friction that a drive subtracts too much of."""

    name: ClassVar[str] = "driving"
    symbols: ClassVar[tuple[str, ...]] = ("fm",)
    powers: ClassVar[tuple[tuple[float, float], ...]] = ((1, 1),)
    not_negative: ClassVar[tuple[str, ...]] = symbols

    def columns(self, y: Array, dy: Array, ddy: Array) -> Array:
        return -dy[None, :]


@dataclass(frozen=True)
class Outcome:
    """Outcome of an identification.

    Attributes:
        error: RMS over the measured joints of the relative errors on the held-out motion; NaN: no model.
        joints: relative error of each measured joint.
        verdict: word of the verdict; empty without a model.
        refusal: message of the error that ended it; empty: there is a model.
        findings: code, severity and message of each finding.
        false_claims: claims about the robot that are not true.
        terms: terms of the model, its gravity vector, and the kind of its efforts.
        seconds: CPU time.
    """

    error: float = float("nan")
    joints: tuple[float, ...] = ()
    verdict: str = ""
    refusal: str = ""
    findings: tuple[tuple[str, str, str], ...] = ()
    false_claims: tuple[str, ...] = ()
    terms: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Trials:
    """Recordings of a robot: one or two to train on, and one of another motion.

    Attributes:
        robot: the robot.
        training: recordings to identify from.
        held_out: recording that the model is judged on.
    """

    robot: Robot
    training: tuple[Take, ...]
    held_out: Take

    @classmethod
    def record(cls, robot: Robot) -> Trials:
        """Record a robot."""
        count = 1 + robot.seed % 2
        return cls(robot, tuple(record(robot, number) for number in range(count)), record(robot, 9))


def run_plain(trials: Trials) -> Outcome:
    """Identify a robot with the plain command from its recordings as they are."""
    recordings = [take.as_recorded(f"day_{number}") for number, take in enumerate(trials.training)]
    return _run(trials, trials.robot.described, recordings, Settings(), trials.robot.drives.gain)


def run_reference(trials: Trials) -> Outcome:
    """Identify a robot whose structure is given, from its recordings without their faults.

    Given are the terms, couplings and gravity, efforts as torques without delay, URDF masses of a careful author.
    """
    robot = trials.robot
    recordings = [take.as_known(f"day_{number}") for number, take in enumerate(trials.training)]
    return _run(trials, robot.credible, recordings, _make_true_settings(robot), np.ones(len(robot.measured)))


def _make_true_settings(robot: Robot) -> Settings:
    friction = FRICTION["presliding_load" if robot.drives.load.any() else "presliding"]
    terms: tuple[Term, ...] = (*(TERMS[name]() for name in friction), Offset(), RotorInertia())
    if "over-compensated" in robot.features:
        terms = (Driving(), *(term for term in terms if not isinstance(term, Viscous)))
    terms += (Spring(),) if "cables" in robot.features else ()
    couplings: tuple[Coupling, ...] = ()
    if "coupled wrist" in robot.features:
        weights = zip(robot.true.joint_names[-2:], robot.drives.coupled[-1, -2:].tolist(), strict=True)
        turning = *(TERMS[name]() for name in FRICTION["presliding"]), RotorInertia()
        couplings = (Coupling("wrist", tuple(weights), turning),)
    ignore = tuple(one.code for one in list_definitions() if one.overrulable)
    return Settings(terms=terms, couplings=couplings, base_tilt=False, effort_kind="torque", ignore=ignore)


def _run(
    trials: Trials, model: RobotModel, recordings: Sequence[ArrayRecording], settings: Settings, gain: Array
) -> Outcome:
    """Identify a robot; `gain` are the torques per recorded effort, shape (n,)."""
    start = time.process_time()
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        try:
            result = identify(model, [_write(Path(folder), one) for one in recordings], settings)
            joints = _compare(trials, result.parameters, gain)
        except RobotDynIdError as error:
            findings = _list_findings(getattr(error, "findings", ()))
            return Outcome(refusal=str(error), findings=findings, seconds=time.process_time() - start)
        except Exception as error:  # a fault of the package, which a user would meet as well
            lines = traceback.format_exc().splitlines()[-3:]
            return Outcome(refusal=f"CRASH {error}: {' '.join(lines)}", seconds=time.process_time() - start)
    parameters, findings = result.parameters, _list_findings(result.evaluation.findings)
    return Outcome(
        error=float(np.sqrt(np.mean(joints**2))),
        joints=tuple(joints.tolist()),
        verdict=result.evaluation.verdict.word,
        findings=findings,
        false_claims=_list_false_claims(trials.robot, parameters, findings),
        terms=_describe(parameters),
        seconds=time.process_time() - start,
    )


def _list_findings(findings: Sequence[Finding]) -> tuple[tuple[str, str, str], ...]:
    return tuple((one.code, one.severity, one.message) for one in findings)


def _write(folder: Path, recording: ArrayRecording) -> Recording:
    """Write a recording as `.npz` and open it."""
    samples, path = recording.samples, folder / f"{recording.source}.npz"
    channels = {key: getattr(samples, key) for key in ("t", "q", "dq", "tau", "current")}
    given = {key: values for key, values in channels.items() if values is not None}
    np.savez(path, joint_names=np.array(recording.joint_names), **given)
    return open_recording(str(path))


def _compare(trials: Trials, parameters: ParameterSet, gain: Array) -> Array:
    """Relative error of each measured joint on the held-out motion, recorded without faults.

    Efforts are compared as torques: those of a model in amperes, or with gains of its own, are converted by the true
    gains.
    """
    robot, take = trials.robot, trials.held_out
    names, known_names = robot.true.joint_names, list(parameters.robot.joint_names)
    prediction = predict(parameters, take.as_known("held_out"))
    order = [known_names.index(name) for name, has in zip(names, robot.measured, strict=True) if has]
    claimed, signs = parameters.effort.drive_gains, parameters.effort.drive_signs
    claimed = claimed * signs if len(claimed) else np.zeros(len(known_names))
    factors = gain[robot.measured] / np.where(claimed == 0.0, 1.0, claimed)[order]
    tau = factors[:, None] * np.asarray(prediction.tau)[:, order].T
    torque = take.torque[robot.measured]
    known = np.isfinite(tau).all(axis=0)
    inside = known & (take.t > take.t[0] + EDGE_S) & (take.t < take.t[-1] - EDGE_S)
    if not known.mean() > 0.95:
        return np.full(len(torque), np.nan)
    tau = np.array([np.interp(take.t, take.t[known], row[known]) for row in tau])
    sections = butter(4, CUTOFF_HZ / (robot.rate / 2), output="sos")
    error, torque = (sosfiltfilt(sections, values, axis=1)[:, inside] for values in (tau - torque, torque))
    return np.asarray(np.linalg.norm(error, axis=1) / np.linalg.norm(torque, axis=1))


def _list_false_claims(
    robot: Robot, parameters: ParameterSet, findings: Sequence[tuple[str, str, str]]
) -> tuple[str, ...]:
    """Claims about gains, and about the direction of gravity, that are not true."""
    claims = []
    true, described, claimed = robot.true.gravity, robot.described.gravity, np.asarray(parameters.robot.gravity)
    wrong = _angle(true, claimed)
    if not claimed.any():
        claims.append("efforts without weight")
    elif wrong > max(LEAST_CLAIM_DEG, _angle(true, described) + 0.1):
        claims.append(f"gravity {wrong:.1f} deg from the truth, {_angle(true, described):.1f} as described")
    for code, severity, message in findings:
        if code != "gains_from_masses" or severity == "info":
            continue
        for name, low, high in re.findall(r"(\w+) \S+ \((\S+) to (\S+)\)", message):
            gain = robot.drives.gain[robot.true.joint_names.index(name)]
            if not float(low) <= gain <= float(high):
                claims.append(f"gain of {name} {low} to {high}, true {gain:.3g}")
    return tuple(claims)


def _angle(one: Array, other: Array) -> float:
    cosine = one @ other / max(float(np.linalg.norm(one) * np.linalg.norm(other)), 1e-12)
    return float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))


def _describe(parameters: ParameterSet) -> str:
    """Terms, gravity and kind of the efforts of a model, for the details."""
    terms = sorted({name.rstrip("0123456789") for name in parameters.base.names})
    gravity = ", ".join(f"{value:.3f}" for value in parameters.robot.gravity)
    return f"columns {' '.join(terms)[:200]}; gravity [{gravity}]; efforts {parameters.effort.kind}"
