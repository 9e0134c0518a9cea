# SPDX-License-Identifier: Apache-2.0
"""The controller of `effort_control.hpp`: CPU time of an update of 7 axes, and tracking errors on a simulated arm."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from measuring import Goal, at_most, interleaved, one_thread, script

if __name__ == "__main__":
    one_thread()

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "test"))

from support.compiled_models import PANDA
from support.given_parameters import parameter_set

from robot_dyn_id.dynamics.terms import Dahl, Offset, RotorInertia, Viscous
from robot_dyn_id.files.parameters import write_parameters
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import ParameterSet

ROOT = Path(__file__).resolve().parents[1]
UPDATES = 20_000
MAX_US = 5.0
"""Most CPU time of an update [us]."""

LAWS = ("gravity_compensation", "friction_compensation", "computed_torque")
TERM_VALUES = {Viscous(): 2.0, RotorInertia(): 0.1, Dahl(): 1.0, Offset(): 0.5}
MODELS = {"of the true arm": 1.0, "wrong by 5 %": 1.05, "wrong by 20 %": 1.2}
MAX_SHARE = 0.25
"""Largest tracking error of a model that is wrong by 5 %, over that of its feedback alone."""

LOOP = """
#include <fstream>
#include <iterator>
#include <robot_dyn_id/effort_control.hpp>

extern "C" void * make(const char * path, const char * law)
{
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto model = robot_dyn_id::Model::from_yaml(text);
  robot_dyn_id::EffortSettings settings;
  settings.law = robot_dyn_id::law_from_name(law);
  settings.joints = model.joint_names();
  settings.robot_description = robot_dyn_id::Parameters::from_yaml(text).robot.urdf;
  auto * const control = new robot_dyn_id::EffortControl(settings);
  control->offer(model);
  return control;
}

extern "C" void run(void * control, long updates, const double * q, const double * dq, double * effort)
{
  auto & one = *static_cast<robot_dyn_id::EffortControl *>(control);
  one.start(effort);
  for (long k = 0; k < JOINTS * updates; k += JOINTS) {
    one.update(1e-3, q + k, dq + k, {q + k, dq + k, nullptr, nullptr}, effort + k);
  }
}
"""


def measure() -> list[Goal]:
    """Updates along a motion that is followed exactly, then the arm of the controller's test."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for title, factor in MODELS.items():
            write_parameters(folder / f"{title}.yaml", _arm(factor))
        return [*_updates(folder), *_tracking(folder)]


def _updates(folder: Path) -> list[Goal]:
    library = _compile(folder, LOOP.replace("JOINTS", str(len(PANDA[1]))), "-shared", "-fPIC")
    loop = ctypes.CDLL(str(library))
    loop.make.restype = ctypes.c_void_p
    model = RobotModel.from_urdf(PANDA[0], joints=PANDA[1])
    middle = 0.5 * (model.limits.lower + model.limits.upper)
    t = 1e-3 * np.arange(UPDATES)[:, None] + np.zeros(len(middle))
    q, dq = np.ascontiguousarray(middle + 0.3 * np.sin(t)), np.ascontiguousarray(0.3 * np.cos(t))
    goals = []
    for law in LAWS:
        control, out = loop.make(str(folder / f"{next(iter(MODELS))}.yaml").encode(), law.encode()), np.zeros(q.shape)

        def ours(control: int = control, out: np.ndarray = out) -> None:
            arrays = (ctypes.c_void_p(x.ctypes.data) for x in (q, dq, out))
            loop.run(ctypes.c_void_p(control), ctypes.c_long(UPDATES), *arrays)

        seconds = interleaved({"ours": ours})["ours"]
        assert out[-1].any()
        goals.append(at_most(f"update, {law} [us]", 1e6 * seconds / UPDATES, MAX_US))
    return goals


def _tracking(folder: Path) -> list[Goal]:
    """RMS tracking errors of computed torque at 20 rad/s, over that of the same feedback without the model."""
    program = _compile(
        folder, (ROOT / "test/cpp/effort_control.cpp").read_text(encoding="utf-8"), "-Wno-mismatched-new-delete"
    )
    joints = len(PANDA[1])

    def error(model: str, fault: str) -> float:
        files = [str(folder / f"{name}.yaml") for name in (next(iter(MODELS)), model, model)]
        command = [str(program), *files, "computed_torque", fault, "0", "0", "4000"]
        rows = np.frombuffer(subprocess.run(command, check=True, capture_output=True).stdout).reshape(4000, -1)[1000:]
        return float(np.sqrt(np.mean((rows[:, :joints] - rows[:, joints : 2 * joints]) ** 2)))

    alone = error(next(iter(MODELS)), "pd")
    shares = {title: error(title, "none") / alone for title in MODELS}
    print(f"tracking error of the feedback alone: {1e3 * alone:.3g} mrad RMS")
    for title, share in shares.items():
        print(f"tracking error with a model {title}: {share:.3g} of that")
    return [at_most("tracking error, model wrong by 5 %, over the feedback alone", shares["wrong by 5 %"], MAX_SHARE)]


def _arm(factor: float) -> ParameterSet:
    """Bodies of the URDF and friction, times a factor; the driver adds nothing."""
    bodies = RobotModel.from_urdf(PANDA[0], joints=PANDA[1]).inertial_parameters
    each = [np.full(len(term.symbols) * len(PANDA[1]), value) for term, value in TERM_VALUES.items()]
    made = parameter_set(
        *PANDA, terms=tuple(TERM_VALUES), inertial=factor * bodies, values=factor * np.concatenate(each)
    )
    return replace(made, effort=replace(made.effort, robot_compensates=("none",)))


def _compile(folder: Path, text: str, *flags: str) -> Path:
    source, made = folder / "program.cpp", folder / f"program{len(flags)}"
    source.write_text(text)
    command = [
        "c++",
        "-O2",
        "-std=c++17",
        "-pthread",
        f"-I{ROOT / 'cpp/include'}",
        *flags,
        str(source),
        "-o",
        str(made),
    ]
    subprocess.run(command, check=True)
    return made


if __name__ == "__main__":
    script(measure)
