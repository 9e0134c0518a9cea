# SPDX-License-Identifier: Apache-2.0
"""Exported C and C++ source code: compiled without warnings, it gives the torques of `Dynamics`."""

import re

import numpy as np
import pytest
from support.altered import altered
from support.compiled_models import ROBOTS, STATES, expected, path, run
from support.given_parameters import parameter_set
from support.robots import OBLIQUE

from robot_dyn_id.cli import main
from robot_dyn_id.dynamics.compensation import DriverCompensation
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.terms import (
    TERMS,
    AbsoluteVelocity,
    Dahl,
    LoadDahl,
    Offset,
    RotorInertia,
    SaturatingViscous,
    Viscous,
)
from robot_dyn_id.export import FORMATS
from robot_dyn_id.files.parameters import write_parameters

C_PROGRAM = """
#include "model.h"
#include <stdio.h>
int main(void)
{
  enum { n = NAME(joints) };
  double in[5][n], state[NAME(states) + 1], out[5 * n + 1 + n * n];
  NAME(start)(state);
  while (fread(in, sizeof in, 1, stdin) == 1) {
    NAME(inverse_dynamics)(0, in[0], in[1], in[2], out);
    NAME(inverse_dynamics)(state, in[0], in[1], in[2], out + n);
    NAME(gravity)(in[0], out + 2 * n);
    NAME(friction)(state, in[0], in[1], out + 3 * n);
    out[5 * n] = NAME(forward_dynamics)(state, in[0], in[1], in[3], out + 4 * n);
    NAME(mass_matrix)(in[0], out + 5 * n + 1);
    NAME(advance)(state, in[0], in[4]);
    fwrite(out, sizeof out, 1, stdout);
  }
  return 0;
}
"""

CPP_PROGRAM = """
#include "model.hpp"
#include <cstdio>
int main()
{
  using namespace NAMESPACE;
  Vector in[5];
  State state;
  while (std::fread(in, sizeof in, 1, stdin) == 1) {
    Vector ddq;
    const bool moves = forward_dynamics(in[0], in[1], in[3], ddq, &state);
    const Vector torques[] = {inverse_dynamics(in[0], in[1], in[2]), inverse_dynamics(in[0], in[1], in[2], &state),
      gravity(in[0]), friction(in[0], in[1], &state), ddq};
    const double status = moves ? 0.0 : -1.0;
    const Matrix mass = mass_matrix(in[0]);
    std::fwrite(torques, sizeof torques, 1, stdout);
    std::fwrite(&status, sizeof status, 1, stdout);
    std::fwrite(&mass, sizeof mass, 1, stdout);
    state.advance(in[0], in[4]);
  }
}
"""


LANGUAGES = {
    "c": ("cc", "c99", "model.h", C_PROGRAM),
    "cpp": ("c++", "c++17", "model.hpp", CPP_PROGRAM),
}


def answers(folder, parameters, language, motion):
    """Results of the compiled code at the states (q, dq, ddq, tau, next q) of a motion, shape (N, 5 n + 1 + n^2)."""
    compiler, standard, header, program = LANGUAGES[language]
    text = FORMATS[language](parameters).text
    name = re.search(r"(\w+)_DYNAMICS_H", text)[1].lower()
    (folder / header).write_text(text)
    source = folder / f"main.{language}"
    source.write_text(f"#define NAME(x) {name}_##x\n#define NAMESPACE {name}_dynamics\n{program}")
    # No contraction: a fused multiply-add is rounded once.
    flags = ["-O1", "-ffp-contract=off", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    run([compiler, f"-std={standard}", *flags, str(source), "-o", str(folder / "main"), "-lm"])
    return np.frombuffer(run([str(folder / "main")], np.ascontiguousarray(np.stack(motion, axis=1)).tobytes()))


def check(folder, parameters, language):
    """Check that compiled code and `Dynamics` agree at a thousand states."""
    motion = path(len(parameters.robot.joint_names), np.random.default_rng(0))
    wanted = expected(parameters, motion)
    got = answers(folder, parameters, language, motion).reshape(STATES, -1)
    ends = np.cumsum([block.shape[1] for block in wanted])
    for block, values in zip(wanted, np.split(got, ends[:-1], axis=1), strict=True):
        assert np.abs(values - block).max() <= 1e-12 * np.abs(block).max()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", ROBOTS)
def test_compiled_code_gives_the_torques_of_dynamics(name, language, tmp_path):
    text, joints = ROBOTS[name]
    terms = (Viscous(), RotorInertia(), Dahl(), LoadDahl(), SaturatingViscous(), AbsoluteVelocity(), Offset())
    check(tmp_path, parameter_set(text, joints, terms=terms), language)


@pytest.mark.parametrize("name", [name for name in TERMS if name != "temperature_coulomb"])
def test_every_term_can_be_written(name, tmp_path):
    check(tmp_path, parameter_set(OBLIQUE, terms=(TERMS[name](),)), "c")


def test_a_temperature_is_reported_as_left_out():
    exported = FORMATS["c"](parameter_set(OBLIQUE, terms=(TERMS["temperature_coulomb"](),)))
    assert [finding.code for finding in exported.findings] == ["term_not_exported"]


@pytest.mark.slow
def test_a_robot_without_a_positive_mass_matrix_is_not_accelerated(tmp_path):
    parameters = parameter_set(OBLIQUE)
    parameters = altered(
        parameters,
        estimate={"values": -parameters.estimate.values},
        bodies={"standard_parameters": -parameters.bodies.standard_parameters},
    )
    motion = path(len(parameters.robot.joint_names), np.random.default_rng(0))
    n = len(parameters.robot.joint_names)
    for language in LANGUAGES:
        got = answers(tmp_path, parameters, language, motion).reshape(STATES, -1)
        assert (got[:, 5 * n] == -1.0).all()
        assert not got[:, 4 * n : 5 * n].any()


def test_the_command_writes_a_header(tmp_path, capsys):
    parameters = parameter_set(OBLIQUE, terms=(Viscous(),))
    robot, file, out = tmp_path / "robot.urdf", tmp_path / "parameters.yaml", tmp_path / "model.hpp"
    robot.write_text(OBLIQUE)
    write_parameters(file, parameters)
    given = ["export", "--robot", str(robot), "--parameters", str(file), "--format", "cpp", "--out", str(out)]
    assert main(given) == 0
    assert out.read_text() == FORMATS["cpp"](parameters).text
    assert parameters.robot.urdf_sha256 in out.read_text()


COMMANDS = {
    "c": """
#include "model.h"
#include <stdio.h>
int main(void)
{
  enum { n = NAME(joints) };
  double in[3][n], out[n];
  while (fread(in, sizeof in, 1, stdin) == 1) {
    NAME(command)(0, in[0], in[1], in[2], out);
    fwrite(out, sizeof out, 1, stdout);
  }
  return 0;
}
""",
    "cpp": """
#include "model.hpp"
#include <cstdio>
int main()
{
  NAMESPACE::Vector in[3];
  while (std::fread(in, sizeof in, 1, stdin) == 1) {
    const NAMESPACE::Vector out = NAMESPACE::command(in[0], in[1], in[2]);
    std::fwrite(&out, sizeof out, 1, stdout);
  }
}
""",
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("parts", [(), ("gravity",), ("gravity", "friction", "coriolis")], ids=str)
def test_a_command_does_not_contain_what_the_driver_adds(parts, language, tmp_path, monkeypatch):
    monkeypatch.setitem(LANGUAGES, language, (*LANGUAGES[language][:3], COMMANDS[language]))
    parameters = parameter_set(*ROBOTS["mimics"], terms=(Viscous(), RotorInertia(), Offset()))
    parameters = altered(parameters, effort={"robot_compensates": parts or ("none",)})
    motion = path(len(parameters.robot.joint_names), np.random.default_rng(0))[:3]
    got = answers(tmp_path, parameters, language, motion).reshape(STATES, -1)
    dynamics = Dynamics.from_parameters(parameters)
    expected = dynamics.inverse_dynamics(*motion) - DriverCompensation(dynamics, parts).torque(*motion[:2])
    assert np.abs(got - expected).max() <= 1e-12 * np.abs(dynamics.inverse_dynamics(*motion)).max()


def test_without_knowledge_of_the_driver_there_is_no_command():
    for language in LANGUAGES:
        exported = FORMATS[language](altered(parameter_set(OBLIQUE), effort={"robot_compensates": ("unknown",)}))
        assert "command" not in exported.text.split("*/", 1)[1]
        assert [finding.code for finding in exported.findings] == ["driver_unknown"]
