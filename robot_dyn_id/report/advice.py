# SPDX-License-Identifier: Apache-2.0
"""Next steps with an identified model: uses that it is fit for, with their limits, and the motion that adds one."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.export import export_model
from robot_dyn_id.identification.diagnosis.health import JOINT_BARELY_MOVES
from robot_dyn_id.identification.validation.uses import INERTIA_UNCERTAIN
from robot_dyn_id.parameters import PARAMETERS_FILE, ParameterSet
from robot_dyn_id.report.uses import list_joints

PROGRAM = "robot-dyn-id"
"""Program of the command line."""

ABSENT_RECORDING = "RECORDING"
"""Word in place of a recording that has no file."""

LOADED = ("RECORDING_WITH_LOAD", "--link", "LINK")
"""Words in place of the recording with a payload, and of the link that carries it."""


def name_program() -> tuple[str, ...]:
    """Words that call the command line as this process was called: by its name only if the shell finds it by that."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py" and called.parent.name == __name__.partition(".")[0]:
        return sys.executable, "-m", called.parent.name
    found = shutil.which(PROGRAM)
    if called.name != PROGRAM or (found is not None and called.exists() and called.samefile(found)):
        return (PROGRAM,)
    return (sys.argv[0],)


@dataclass(frozen=True)
class RunFiles:
    """Files of an identification, as words of commands that use it.

    Attributes:
        folder: folder of the results.
        robot: file of the robot, with the options that it is read with.
        recording: recording whose efforts are predicted, with the options that it is read with.
        program: words that call the command line.
    """

    folder: Path
    robot: tuple[str, ...]
    recording: tuple[str, ...]
    program: tuple[str, ...] = field(default_factory=name_program)

    @classmethod
    def from_summary(cls, summary: Mapping[str, Any]) -> RunFiles:
        """Files that a report names; the robot is that of its parameters.

        Args:
            summary: content of `report.json`.
        """
        file = Path(summary["parameters_file"] or PARAMETERS_FILE)
        sources = (*summary.get("held_out_sources", ()), *summary.get("sources", ()))
        recording = next((source for source in sources if Path(source).exists()), ABSENT_RECORDING)
        return cls(file if file.is_dir() else file.parent, (str(file),), (recording,))

    @property
    def parameters(self) -> str:
        """File of the parameters."""
        return str(self.folder / PARAMETERS_FILE)

    def format(self, *words: str) -> str:
        """A command as a shell takes it."""
        return shlex.join((*self.program, *words))

    def list_commands(self, step: NextStep) -> tuple[str, ...]:
        """Commands of a step as a shell takes them, each in a terminal of its own."""
        inputs = {
            "recording": self.recording,
            "robot": ("--robot", *self.robot),
            "parameters": ("--parameters", self.parameters),
        }
        if step.needs == "robot":
            publish = ("--ros-args", "-p", f"parameters:={self.parameters}", "-p", "listen:=false")
            return self.format("node", "identifier", *publish), self.format(*step.command)
        other = LOADED if step.needs == "recording" else ()
        words = (word for name in step.inputs for word in inputs[name])
        return (self.format(*step.command, *other, *words, "--out", str(self.folder / step.file)),)


@dataclass(frozen=True)
class NextStep:
    """Step that a model is fit for.

    Attributes:
        use: one of `USES`.
        text: result of the step in words; with the joints that limit it where the answer is `limited`.
        command: command of the package with its options, without files.
        inputs: files of the identification that it reads: `recording`, `robot`, `parameters`.
        file: usual name of the file or folder that it writes.
        needs: whether it needs more than the files of the identification: a `recording` of something else, or a
            running `robot`; empty: it does not.
    """

    use: str
    text: str
    command: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    file: str = ""
    needs: str = ""


MODEL = ("robot", "parameters")
"""Inputs of commands that use the model."""

STEPS = (
    NextStep(
        "gravity_compensation",
        "controller that carries the weight",
        ("node", "computed_torque_controller"),
        needs="robot",
    ),
    NextStep("feed_forward", "torque that the model predicts", ("predict",), ("recording", *MODEL), "torque.npz"),
    NextStep("computed_torque", "model in C++ for a controller", ("export", "--format", "cpp"), MODEL, "model.hpp"),
    NextStep("forward_simulation", "model for a simulator", ("export", "--format", "mjcf"), MODEL, "model.xml"),
    NextStep(
        "collision_detection",
        "external torque of a running arm",
        ("node", "external_torque_estimator"),
        needs="robot",
    ),
    NextStep(
        "payload",
        "load at the last link, from a recording with it",
        ("payload",),
        MODEL,
        "payload",
        needs="recording",
    ),
)
"""Steps by use."""

DESIGN = NextStep(
    "computed_torque",
    "motion that shows the inertias, for computed torque",
    ("design", "--for", "computed_torque"),
    ("robot",),
    "motion",
)
"""Step where the inertias are too uncertain for computed torque, or of joints that hardly moved."""

DESIGNED_FOR = frozenset({INERTIA_UNCERTAIN.code, JOINT_BARELY_MOVES.code})
"""Codes of findings that a designed motion removes."""


def advise(parameters: ParameterSet, summary: Mapping[str, Any]) -> list[NextStep]:
    """Steps that make sense: not for a use with the answer `no`, and without exports that would be refused.

    Args:
        parameters: the model.
        summary: `verdict` and `fit_for` of `report.summary`.
    """
    found = []
    for step in STEPS:
        fit = summary["fit_for"][step.use]
        if summary["verdict"] == "bad" or fit["answer"] == "no" or not _possible(parameters, step):
            continue
        joints = list_joints(fit["joints"], parameters.robot.joint_names) or "all joints"
        limit = f" (limited: {joints})" if fit["answer"] == "limited" else ""
        found.append(replace(step, text=step.text + limit))
    if DESIGNED_FOR & set(summary["fit_for"]["computed_torque"]["because"]) and summary["verdict"] != "bad":
        found.append(DESIGN)
    return found


def _possible(parameters: ParameterSet, step: NextStep) -> bool:
    """Whether the format of an export can carry the model."""
    try:
        if step.command[0] == "export":
            export_model(step.command[-1], parameters)
    except RobotDynIdError:
        return False
    return True
