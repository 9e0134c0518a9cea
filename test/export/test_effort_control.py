# SPDX-License-Identifier: Apache-2.0
"""The controller without ROS in its control loop of 1 kHz, on a simulated arm: `test/cpp/effort_control.cpp`."""

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from support.altered import altered, scaled
from support.compiled_models import PANDA
from support.given_parameters import parameter_set
from support.processes import HANG_S

from robot_dyn_id.dynamics.terms import Dahl, Offset, RotorInertia, Viscous
from robot_dyn_id.excitation.execution import state_guard
from robot_dyn_id.excitation.limits import REST_SPEED
from robot_dyn_id.files.parameters import write_parameters
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import FitFor

ROOT = Path(__file__).resolve().parents[2]
JOINTS = len(PANDA[1])
PERIOD_S, BLEND_S, STEPS = 1e-3, 0.2, 3000
CONDITIONS = (
    *("running", "no_model", "waiting", "late", "not_finite", "jump", "too_fast", "frozen"),
    *("effort_not_finite", "reference_refused", "not_holdable"),
)
FLAGS = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-pthread"]


class Run(NamedTuple):
    """Motion, efforts and conditions of a run, one row per step."""

    q: np.ndarray
    reference: np.ndarray
    effort: np.ndarray
    conditions: list[str]
    models: np.ndarray
    limited: np.ndarray
    slew: np.ndarray

    @property
    def error(self):
        """RMS tracking error after the motion has swollen [rad]."""
        return np.sqrt(np.mean((self.q - self.reference)[1000:] ** 2))

    @property
    def change(self):
        """Largest change of the efforts of each step over the largest one allowed, rounded, shape (steps - 1,)."""
        return (np.abs(np.diff(self.effort, axis=0)) / (PERIOD_S * self.slew[1:])).max(axis=1).round(12)

    def within(self, begin, end):
        """Conditions from one time to another [s]."""
        return set(self.conditions[round(begin / PERIOD_S) : round(end / PERIOD_S)])


TERM_VALUES = {Viscous(): 2.0, RotorInertia(): 0.1, Dahl(): 1.0, Offset(): 0.5}


def arm(factor=1.0):
    """Parameters of an arm with the bodies of the URDF and their friction, times a factor."""
    bodies = RobotModel.from_urdf(PANDA[0], joints=PANDA[1]).inertial_parameters
    terms = tuple(TERM_VALUES)
    term_values = np.concatenate([np.full(len(term.symbols) * JOINTS, TERM_VALUES[term]) for term in terms])
    return parameter_set(*PANDA, terms=terms, inertial=factor * bodies, values=factor * term_values)


@pytest.fixture(scope="module")
def arms(tmp_path_factory):
    """Files of the true arm, of a model that is wrong by 5 %, and of one that is wrong by 10 %."""
    folder = tmp_path_factory.mktemp("arms")
    for name, parameters in {"truth": arm(), "model": arm(1.05), "next": arm(0.9)}.items():
        write_parameters(folder / f"{name}.yaml", parameters)
    return folder


def compile_program(folder, *flags):
    program = folder / "effort_control"
    source = ROOT / "test" / "cpp" / "effort_control.cpp"
    command = ["c++", *FLAGS, "-Wno-mismatched-new-delete", *flags, f"-I{ROOT / 'cpp' / 'include'}", str(source)]
    done = subprocess.run([*command, "-o", str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compile_program(tmp_path_factory.mktemp("program"))


def start(program, arms, law, fault="none", begin=2.0, end=2.5, model="model", steps=STEPS):
    files = [str(arms / f"{name}.yaml") for name in ("truth", model, "next")]
    command = [str(program), *files, law, fault, str(begin), str(end), str(steps)]
    return subprocess.run(command, capture_output=True, check=False, timeout=HANG_S)


def read(stdout, joints=JOINTS):
    rows = np.frombuffer(stdout).reshape(-1, 4 * joints + 3)
    q, reference, effort, rest = np.split(rows, [joints, 2 * joints, 3 * joints], axis=1)
    names = [CONDITIONS[int(number)] for number in rest[:, 0]]
    return Run(q, reference, effort, names, rest[:, 1], rest[:, 2] > 0.0, rest[:, 3:])


@pytest.fixture(scope="module")
def simulate(program, arms):
    """Run the control loop; it neither allocates nor frees, or the program ends with exit code 2."""

    def run(*arguments, **options):
        done = start(program, arms, *arguments, **options)
        assert done.returncode == 0, done.stderr.decode()
        return read(done.stdout)

    return run


def test_the_conditions_are_those_of_the_header():
    text = (ROOT / "cpp" / "include" / "robot_dyn_id" / "effort_control.hpp").read_text(encoding="utf-8")
    (listed,) = re.findall(r"enum class Condition : std::uint8_t\s*\{([^}]*)\}", text)
    assert tuple(name.strip() for name in listed.split(",")) == CONDITIONS


def test_the_guards_have_the_limits_of_the_nodes():
    text = (ROOT / "cpp" / "include" / "robot_dyn_id" / "effort_control.hpp").read_text(encoding="utf-8")
    found = dict(re.findall(r"constexpr (?:double|int) (\w+) = ([\d.]+);", text))
    assert {name: float(value) for name, value in found.items() if name != "turn"} == {
        "jump_margin": state_guard.JUMP_MARGIN,
        "jump_factor": state_guard.JUMP_FACTOR,
        "rest_speed": REST_SPEED,
        "timely_states": state_guard.TIMELY_STATES,
        "most_refused": state_guard.MOST_REFUSED,
    }


@pytest.mark.slow
def test_a_model_tracks_better_than_its_feedback_alone(simulate):
    """Even one that is wrong by 5 %; and one that is right leaves the error of the integration."""
    feedback = simulate("computed_torque", "pd").error
    assert simulate("computed_torque").error < 0.1 * feedback
    assert simulate("computed_torque", model="truth").error < 0.01 * feedback


@pytest.mark.parametrize("law", ["gravity_compensation", "friction_compensation"])
def test_the_arm_is_held_without_feedback(law, simulate):
    """A model of the true arm, and neither a reference nor feedback of the position."""
    run = simulate(law, "no_reference", 0.0, 9.0, model="truth")
    assert run.within(0.1, 3.0) == {"running"}
    assert np.abs(run.q - run.q[0]).max() < 1e-6


def test_friction_of_the_reference_velocity_is_commanded(simulate):
    gravity, friction = (simulate(f"{name}_compensation", model="truth") for name in ("gravity", "friction"))
    assert friction.error < gravity.error


@pytest.mark.parametrize(
    ("law", "parts"),
    [
        ("gravity_compensation", ("gravity",)),
        ("friction_compensation", ("gravity",)),
        ("computed_torque", ("gravity", "coriolis")),
    ],
)
def test_what_the_driver_adds_is_not_commanded(law, parts, program, simulate, tmp_path):
    """The motors give the same torques as without this driver, and the arm moves alike."""
    for name in ("truth", "model", "next"):
        write_parameters(tmp_path / f"{name}.yaml", altered(arm(), effort={"robot_compensates": parts}))
    run, plain = read(start(program, tmp_path, law).stdout), simulate(law, model="truth")
    assert np.abs(run.q - plain.q).max() < 1e-6
    assert np.abs(run.effort - plain.effort)[:, 1].min() > 0.1


def test_a_model_that_changes_in_motion_makes_no_step(simulate):
    plain, changed = simulate("computed_torque"), simulate("computed_torque", "model")
    at = round(2.0 / PERIOD_S)
    assert changed.models[at - 1] == 1 and changed.models[at] == 2
    assert np.array_equal(changed.effort[:at], plain.effort[:at])
    assert changed.within(0.1, 3.0) == {"running"}
    assert changed.change[at - 1 :].max() <= 1.0
    assert (
        np.abs(changed.effort[at] - changed.effort[at - 1]).max() < 1e-9
    )  # the other model begins where this one ends
    assert np.abs(changed.effort[-1] - plain.effort[-1]).max() > 0.1  # and finally the other model acts


def test_efforts_begin_where_the_drives_are(simulate):
    run = simulate("computed_torque")
    assert set(run.conditions[:4]) == {"waiting"} and set(run.conditions[4:]) == {"running"}
    assert np.ptp(run.effort[:4], axis=0).max() == 0.0  # what held the arm before
    assert run.change[:200].max() <= 1.0


def test_efforts_begin_at_zero_where_the_drives_have_none(simulate):
    run = simulate("gravity_compensation", "no_effort", model="truth")
    assert np.abs(run.effort[:5]).max() == 0.0 and run.change.max() <= 1.0
    assert np.allclose(run.effort[110], run.effort[-1], rtol=0.2)  # complete after 0.1 s
    assert set(run.conditions[:4]) == {"waiting"} and set(run.conditions[4:]) == {"running"}


@pytest.mark.parametrize(
    ("fault", "condition"),
    [("nan", "not_finite"), ("jump", "jump"), ("too_fast", "too_fast"), ("frozen", "frozen")],
)
def test_a_fault_of_the_states_ends_the_efforts_gradually(fault, condition, simulate):
    run = simulate("computed_torque", fault)
    found = run.conditions.index(condition)
    assert round(2.0 / PERIOD_S) <= found < round(2.1 / PERIOD_S)
    assert set(run.conditions[4:found]) == {"running"}
    end = found + round(BLEND_S / PERIOD_S) + 2
    assert np.abs(run.effort[end : round(2.5 / PERIOD_S)]).max() == 0.0
    assert run.change[found - 1 :].max() <= 1.0
    assert np.abs(run.effort[found]).max() > 1.0  # no drop to zero


def test_a_single_bad_state_changes_no_effort(simulate):
    run, at = simulate("computed_torque", "single_nan"), round(2.0 / PERIOD_S)
    assert run.conditions[at] == "not_finite" and run.within(2.001, 3.0) == {"running"}
    assert np.array_equal(run.effort[at], run.effort[at - 1])


def test_efforts_come_back_when_the_states_are_good_again(simulate):
    run = simulate("computed_torque", "nan", 2.0, 2.01)
    assert run.within(2.0, 2.01) == {"not_finite"}
    assert run.within(2.02, 3.0) <= {"running", "reference_refused"}
    assert run.change[round(2.0 / PERIOD_S) - 1 :].max() <= 1.0


def test_a_late_update_ends_the_efforts_at_once(simulate):
    run, at = simulate("computed_torque", "late"), round(2.0 / PERIOD_S)
    assert run.conditions[at] == "late" and np.abs(run.effort[at]).max() == 0.0
    assert set(run.conditions[at + 1 : at + 5]) == {"waiting"} and run.within(2.006, 3.0) == {"running"}


@pytest.mark.parametrize("fault", ["reference_jump", "reference_infinite"])
def test_a_reference_that_cannot_be_followed_holds_the_arm(fault, simulate):
    run = simulate("computed_torque", fault)
    assert run.within(2.0, 2.5) == {"reference_refused"}
    assert run.change[round(2.0 / PERIOD_S) - 1 :].max() <= 1.0
    assert np.abs(run.q[2499] - run.q[2400]).max() < 1e-3  # at rest


def test_the_arm_is_held_without_a_reference(simulate):
    run = simulate("computed_torque", "no_reference")
    assert run.within(2.0, 2.5) == {"running"}
    assert np.abs(run.q[2499] - run.q[2400]).max() < 1e-3


def test_an_infinite_effort_is_not_commanded(simulate):
    run, at = simulate("computed_torque", "effort_infinite", 2.0, 2.01), round(2.0 / PERIOD_S)
    assert run.within(2.0, 2.01) == {"effort_not_finite"}
    assert np.abs(run.effort[at : at + 10]).max() == 0.0 and run.within(2.02, 3.0) <= {"running", "reference_refused"}


def test_efforts_are_within_the_rating(simulate):
    rated = RobotModel.from_urdf(PANDA[0], joints=PANDA[1]).limits.effort
    run = simulate("computed_torque", "effort_large")
    assert (np.abs(run.effort) <= rated).all()
    assert np.abs(run.effort[:, 1]).max() == rated[1] and run.limited[2000:2050].any()
    assert run.change[round(2.0 / PERIOD_S) - 1 :].max() <= 1.0


PENDULUM = """<robot name="pendulum"><link name="base"/>
<joint name="hinge" type="revolute"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
<limit lower="-0.2" upper="0.2" effort="2.5" velocity="3"/></joint>
<link name="rod"><inertial><origin xyz="0 0 -1"/><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""


def test_a_model_that_cannot_hold_the_arm_where_it_is_is_refused(program, tmp_path):
    """Within the position limits the rated 2.5 N m hold a rod of 1.2 kg, but not at the 0.3 rad where the arm is."""
    rod = RobotModel.from_urdf(PENDULUM).inertial_parameters
    for name, mass in {"truth": 0.5, "model": 0.5, "next": 1.2}.items():
        write_parameters(tmp_path / f"{name}.yaml", parameter_set(PENDULUM, inertial=mass * rod))
    away = 2.5 * np.pi / 3.0  # where sin(3 t) is 1
    run, at = read(start(program, tmp_path, "computed_torque", "model", away, 3.0).stdout, 1), round(away / PERIOD_S)
    assert run.q[at] > 0.29
    assert run.conditions[at] == "not_holdable" and run.within(0.1, away - 0.01) == {"running"}
    assert (run.models == 1).all()
    held, at = read(start(program, tmp_path, "computed_torque", "model", 2.1, 3.0).stdout, 1), round(2.1 / PERIOD_S)
    assert abs(held.q[at]) < 0.2 and held.models[-1] == 2  # near the middle it is taken


REFUSED = {
    "another robot": (
        lambda p: parameter_set(PANDA[0].replace('mass value="', 'mass value="1', 1), PANDA[1]),
        "another URDF",
    ),
    "other joints": (lambda p: parameter_set(PANDA[0], PANDA[1][:6], {PANDA[1][6]: 0.0}), "its joints are"),
    "not fit": (
        lambda p: altered(p, judgment={"fit_for": (FitFor("computed_torque", "no", 1.0, "", 0.1),)}),
        "not fit for computed_torque",
    ),
    "bad verdict": (lambda p: altered(p, judgment={"verdict": "bad"}), "verdict is bad"),
    "unknown driver": (
        lambda p: altered(p, effort={"robot_compensates": ("unknown",)}),
        "robot_compensates is unknown",
    ),
    "too heavy": (lambda p: scaled(p, 30.0), "above the rated"),
    "negative inertia": (
        lambda p: parameter_set(
            *PANDA, terms=(RotorInertia(),), inertial=0.0 * p.bodies.standard_parameters, values=-np.ones(7)
        ),
        "not positive definite",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_model_that_must_not_move_the_arm_is_refused(case, program, arms):
    change, reason = REFUSED[case]
    write_parameters(arms / "next.yaml", change(arm()))
    done = start(program, arms, "computed_torque", "model")
    assert done.returncode == 0 and re.search(reason, done.stderr.decode()), done.stderr
    assert done.stdout == start(program, arms, "computed_torque").stdout  # the model in use stays


@pytest.mark.slow
def test_models_are_handed_over_without_a_data_race(tmp_path):
    """Models are offered by one thread while another one runs the control loop, under the thread sanitizer."""
    source = tmp_path / "race.cpp"
    source.write_text("int main() {}")
    probe = subprocess.run(
        ["c++", "-fsanitize=thread", str(source), "-o", str(tmp_path / "probe")], capture_output=True, check=False
    )
    if probe.returncode:
        pytest.skip("this compiler has no thread sanitizer")
    write_parameters(tmp_path / "model.yaml", arm())
    race = ROOT / "test" / "cpp" / "model_handover.cpp"
    command = ["c++", *FLAGS, "-g", "-fsanitize=thread", f"-I{ROOT / 'cpp' / 'include'}", str(race)]
    subprocess.run([*command, "-o", str(tmp_path / "race")], check=True)
    done = subprocess.run(
        [str(tmp_path / "race"), str(tmp_path / "model.yaml")],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    assert done.returncode == 0, done.stderr
