# SPDX-License-Identifier: Apache-2.0
"""The header that evaluates any parameter set at run time: compiled, it gives the torques of `Dynamics`."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.altered import altered, scaled
from support.compiled_models import ROBOTS, STATES, expected, path, run
from support.given_parameters import parameter_set
from support.processes import HANG_S, run_program
from support.robots import MIMICS, OBLIQUE, URDFS

from robot_dyn_id.dynamics.compensation import DriverCompensation
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Regressor
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
from robot_dyn_id.dynamics.terms.improved_stribeck import ImprovedStribeck
from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.export.runtime import make_runtime_header
from robot_dyn_id.files.parameters import read_parameters, write_parameters
from robot_dyn_id.simulation.controllers import find_rated_efforts, make_usable_dynamics, refuse_unsafe

HEADER = Path(__file__).resolve().parents[2] / "cpp" / "include" / "robot_dyn_id" / "runtime_dynamics.hpp"

PROGRAM = """
#include "robot_dyn_id/runtime_dynamics.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <new>

static std::size_t allocations = 0;
void * operator new(std::size_t size)
{
  ++allocations;
  if (void * const memory = std::malloc(size)) { return memory; }
  throw std::bad_alloc();
}
void operator delete(void * memory) noexcept { std::free(memory); }
void operator delete(void * memory, std::size_t) noexcept { std::free(memory); }

int main(int, char ** given)
{
  std::ifstream file(given[1]);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  try {
    // through the fields of the message, which are those of the file
    const auto parameters = robot_dyn_id::Parameters::from_message(robot_dyn_id::Parameters::from_yaml(text));
    const robot_dyn_id::Dynamics<> model(parameters);
    if (given[2]) {
      std::ifstream robot(given[2]);
      model.check_robot({std::istreambuf_iterator<char>(robot), std::istreambuf_iterator<char>()});
      model.check_efforts();
    }
    const std::size_t n = model.joints();
    std::vector<double> in(5 * n), out(6 * n + 1 + n * n), state(model.state_size());
    const double * const q = in.data(), * const dq = q + n, * const ddq = dq + n, * const tau = ddq + n;
    const std::size_t before = allocations;
    while (std::fread(in.data(), sizeof(double), in.size(), stdin) == in.size()) {
      model.inverse_dynamics(q, dq, ddq, &out[0]);
      model.inverse_dynamics(q, dq, ddq, &out[n], state.data());
      model.gravity(q, &out[2 * n]);
      model.friction(q, dq, &out[3 * n], state.data());
      out[5 * n] = model.forward_dynamics(q, dq, tau, &out[4 * n], state.data()) ? 0.0 : -1.0;
      model.mass_matrix(q, &out[5 * n + 1]);
      if (model.driver_known() != model.command(q, dq, ddq, &out[5 * n + 1 + n * n])) { return 3; }
      model.advance(state.data(), q, q + 4 * n);
      std::fwrite(out.data(), sizeof(double), out.size(), stdout);
    }
    return allocations == before ? 0 : 2;
  } catch (const std::invalid_argument & error) {
    std::fprintf(stderr, "%s\\n", error.what());
    return 1;
  }
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runtime")
    (folder / "main.cpp").write_text(PROGRAM)
    flags = ["-std=c++17", "-O1", "-ffp-contract=off", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    flags.append("-Wno-mismatched-new-delete")  # of the operators that count, once they are inlined
    run(["c++", *flags, f"-I{HEADER.parents[1]}", str(folder / "main.cpp"), "-o", str(folder / "main")])
    return folder / "main"


def check(program, folder, parameters):
    """Check that the program and `Dynamics` agree at a thousand states, and that it allocates nothing meanwhile."""
    write_parameters(folder / "parameters.yaml", parameters)
    motion = path(len(parameters.robot.joint_names), np.random.default_rng(0))
    states = np.ascontiguousarray(np.stack(motion, axis=1)).tobytes()
    got = np.frombuffer(run([str(program), str(folder / "parameters.yaml")], states)).reshape(STATES, -1)
    dynamics, parts = Dynamics.from_parameters(parameters), parameters.effort.robot_compensates
    driver = DriverCompensation(dynamics, parts).torque(*motion[:2])
    command = dynamics.inverse_dynamics(*motion[:3]) - driver if "unknown" not in parts else 0.0 * driver
    wanted = (*expected(parameters, motion), command)
    ends = np.cumsum([block.shape[1] for block in wanted])
    for block, values in zip(wanted, np.split(got, ends[:-1], axis=1), strict=True):
        assert np.abs(values - block).max() <= 1e-12 * np.abs(block).max()


def loaded(parameters):
    """The set with parameters of the load, which the header does not compute from the URDF."""
    return altered(parameters, bodies={"load_parameters": 1.1 * parameters.bodies.standard_parameters})


def test_the_header_is_the_generated_one():
    assert HEADER.read_text(encoding="utf-8") == make_runtime_header(), (
        "python -m robot_dyn_id.export.runtime > cpp/include/robot_dyn_id/runtime_dynamics.hpp"
    )


@pytest.mark.parametrize("name", ROBOTS)
def test_it_gives_the_torques_of_dynamics(name, program, tmp_path):
    text, joints = ROBOTS[name]
    terms = (Viscous(), RotorInertia(), Dahl(), LoadDahl(), SaturatingViscous(), AbsoluteVelocity(), Offset())
    check(program, tmp_path, loaded(parameter_set(text, joints, terms=terms)))


@pytest.mark.parametrize("name", [name for name in TERMS if name != "temperature_coulomb"])
def test_every_term_is_known(name, program, tmp_path):
    check(program, tmp_path, loaded(parameter_set(OBLIQUE, terms=(TERMS[name](),))))


def test_constants_of_terms_are_those_of_the_set(program, tmp_path):
    for signed in (0.0, 1.0):
        term = ImprovedStribeck().with_constants(
            {"stribeck_velocity": 0.3, "smoothing_width": 0.07, "signed_square": signed}
        )
        check(program, tmp_path, parameter_set(MIMICS, terms=(term,)))


def test_locked_joints_are_part_of_the_bodies_that_carry_them(program, tmp_path):
    joints = tuple(f"panda_joint{i}" for i in (1, 3, 4, 6))
    held = {"panda_joint2": 0.4, "panda_joint5": -0.3, "panda_joint7": 0.9}
    check(program, tmp_path, parameter_set(URDFS["panda"].read_text(), joints, held, terms=(Viscous(),)))


@pytest.mark.parametrize("parts", [("none",), ("gravity",), ("gravity", "friction", "coriolis"), ("unknown",)], ids=str)
def test_a_command_does_not_contain_what_the_driver_adds(parts, program, tmp_path):
    parameters = parameter_set(*ROBOTS["mimics"], terms=(Viscous(), Dahl(), Offset()))
    check(program, tmp_path, altered(parameters, effort={"robot_compensates": parts}))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("format_version: 3", "format_version: 1", "format_version is 1"),
        ("\n  urdf:", "\n  other:", "robot.urdf is missing"),
        ("verdict: good", "verdict: bad", "its verdict is bad"),
        ("kind: unknown", "kind: current", "the drive gain of"),
        ("names: [viscous", "names: [velvet", "term velvet on .* is not known"),
        ("\n  values: [", "\n  values: [.nan, ", "values has shape"),
        ("<joint", "<jo", "the hash differs"),
    ],
)
def test_a_set_that_it_cannot_evaluate_is_refused(old, new, reason, program, tmp_path):
    file = tmp_path / "parameters.yaml"
    write_parameters(file, parameter_set(OBLIQUE, terms=(Viscous(),)))
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(AssertionError, match=reason):
        run([str(program), str(file)])


@pytest.mark.slow
def test_hostile_sets_are_refused_as_in_python(program, tmp_path):
    """One table for the message, the file and this header: each refuses for the same cause."""
    pytest.importorskip("rclpy", reason="rclpy is not installed: no ROS 2 here")
    from support.hostile_sets import HOSTILE, hostile_file

    file, differences = tmp_path / "parameters.yaml", []
    for name, (_, reason) in HOSTILE.items():
        hostile_file(file, name)
        with pytest.raises(RobotDynIdError) as python:
            Regressor.from_parameters(read_parameters(file))
        done = run_program(program, file)
        for reader, reported in (("Python", str(python.value)), ("C++", done.stderr if done.returncode == 1 else "")):
            if not reported or not re.search(reason, reported):
                differences.append(f"{name}: {reader} reports {reported[:200]!r}, not {reason!r}")
    assert not differences, "\n".join(differences)


ARM_OF_PANDA = tuple(f"panda_joint{number}" for number in range(1, 8))

ROBOTS_TO_COMMAND = {
    "the robot itself": (0.3, lambda urdf: urdf, ""),
    "written by another tool": (
        0.3,
        lambda urdf: urdf.replace("<link", "<!-- a comment -->\n  <link").replace('"0 0 0"', '"0.0  0 0"'),
        "",
    ),
    "another mass": (0.3, lambda urdf: re.sub(r'<mass value="', '<mass value="1', urdf, count=1), "another URDF"),
    "another limit": (0.3, lambda urdf: re.sub(r'effort="', 'effort="2', urdf, count=1), "another URDF"),
    "another axis": (0.3, lambda urdf: re.sub(r'<axis xyz="', '<axis xyz="1', urdf, count=1), "another URDF"),
    "a set times 100": (30.0, lambda urdf: urdf, "above the rated"),
}
"""Factor of the set, robot that is moved, and the reason for which it is refused; empty: it may be commanded."""


@pytest.mark.parametrize("case", ROBOTS_TO_COMMAND)
def test_a_robot_is_commanded_as_in_python(case, program, tmp_path):
    factor, change, reason = ROBOTS_TO_COMMAND[case]
    parameters = scaled(parameter_set(URDFS["panda"].read_text(), ARM_OF_PANDA, terms=(Viscous(), Offset())), factor)
    robot = change(parameters.robot.urdf)
    (tmp_path / "robot.urdf").write_text(robot)
    write_parameters(tmp_path / "parameters.yaml", parameters)
    words = [str(program), str(tmp_path / "parameters.yaml"), str(tmp_path / "robot.urdf")]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=HANG_S)
    reported = ""
    try:
        dynamics = make_usable_dynamics(parameters, robot, parameters.robot.joint_names, False)
        refuse_unsafe(parameters, dynamics, find_rated_efforts(dynamics.regressor.model))
    except RobotDynIdError as error:
        reported = str(error)
    assert bool(reported) == bool(reason) == (done.returncode == 1)
    assert re.search(reason, reported) and re.search(reason, done.stderr)
