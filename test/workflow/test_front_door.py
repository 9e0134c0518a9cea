# SPDX-License-Identifier: Apache-2.0
"""`import robot_dyn_id as rdi`: light, complete, documented by examples that run, and equal to the commands."""

import contextlib
import importlib.util
import inspect
import io
import json
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from support import commanded
from support.altered import altered
from support.processes import run_python
from support.simulated import ARM, Simulated, save_npz

import robot_dyn_id as rdi
from robot_dyn_id.cli import main
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.errors import UsageError

EXAMPLE = re.compile(r"^( *)```python\n(.*?)^ *```$", re.M | re.S)

CONSTANTS = {"ESTIMATORS", "FORMS", "TERMS", "__version__"}
"""Public names that are values: their place in the docstring of the package documents them."""

OPTIONAL = {"Episodes": "gymnasium", "RobotVectorEnv": "gymnasium"}
"""Public names that need an extra, and the library that it installs."""

MOTION = """
joint_names: [shoulder, elbow, wrist]
points:
- {positions: [0.0, 0.0, 0.0], time_from_start: {sec: 0}}
- {positions: [0.1, 0.1, 0.1], time_from_start: {sec: 2}}
"""


def is_missing(name):
    """Whether the extra that a public name needs is not installed."""
    return name in OPTIONAL and importlib.util.find_spec(OPTIONAL[name]) is None


PUBLIC = [name for name in rdi.__all__ if name not in CONSTANTS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A robot, two recordings, and what the command writes from the first; `command.txt` is what it prints."""
    folder, arm = tmp_path_factory.mktemp("front"), Simulated()
    (folder / "arm.urdf").write_text(ARM.replace('effort="5', 'effort="50'))  # what gravity needs
    save_npz(folder / "recording.npz", arm.record(duration=20.0, rate=50.0, noise=0.1))
    save_npz(folder / "other.npz", arm.record(seed=2, duration=10.0, rate=50.0, noise=0.1))
    (folder / "motion.yaml").write_text(MOTION)
    gains = {"kp": commanded.TRUTH.kp, "kd": commanded.TRUTH.kd}
    for seed, name in enumerate(("commanded.npz", "commanded_other.npz")):
        commanded.save(folder / name, commanded.record(seed=seed, duration=5.0, rate=50.0), **gains)
    words = ["identify", "recording.npz", "--robot", "arm.urdf", "--out", "command"]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main([word if word in ("identify", "--robot", "--out") else str(folder / word) for word in words]) == 0
    (folder / "command.txt").write_text(printed.getvalue())
    return folder


@pytest.fixture(scope="module")
def result(folder):
    """The same identification by the front door, saved."""
    result = rdi.identify(rdi.load_robot(folder / "arm.urdf"), rdi.open_recording(folder / "recording.npz"))
    result.save(folder / "run")
    return result


@pytest.fixture
def names(folder, result, monkeypatch):
    """The names that examples use, in a folder with their files."""
    monkeypatch.chdir(folder)
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 3))
    robot, recording = rdi.load_robot("arm.urdf"), rdi.open_recording("recording.npz")
    return {
        "rdi": rdi,
        "np": np,
        "robot": robot,
        "recording": recording,
        "result": result,
        "q": q,
        "dq": dq,
        "ddq": ddq,
    }


def test_the_import_loads_no_library():
    code = "import sys, robot_dyn_id; print(*sys.modules)"
    loaded = run_python(code, check=True).stdout.split()
    assert not {"numpy", "scipy", "pinocchio", "yaml", "numba", "matplotlib", "rclpy"} & set(loaded)


def test_every_public_name_is_loaded_documented_and_listed():
    assert set(rdi.__all__) <= set(dir(rdi))
    for name in rdi.__all__:
        assert is_missing(name) or getattr(rdi, name) is not None
        if name != "__version__":
            assert re.search(rf"^ *{name} {{2,}}\w", rdi.__doc__, re.M), name
    with pytest.raises(AttributeError, match="no attribute 'identfy'"):
        _ = rdi.identfy


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLIC)
def test_the_example_of_every_public_name_runs(name, names, capsys):
    if is_missing(name):
        pytest.skip(f"{OPTIONAL[name]} is not installed")
    examples = EXAMPLE.findall(inspect.getdoc(getattr(rdi, name)))
    assert examples, f"{name} has no example"
    for indent, code in examples:
        exec(inspect.cleandoc(indent + code), dict(names))


@pytest.mark.slow
def test_the_examples_of_many_robots_run(names, capsys):
    gymnasium = pytest.importorskip("gymnasium")
    page = (Path(__file__).resolve().parents[2] / "docs" / "simulation.md").read_text(encoding="utf-8")
    section = page.partition("## Many robots at once")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```python\n(.*?)^```$", section, re.M | re.S)
    assert len(blocks) == 2
    shared = dict(names, gymnasium=gymnasium)
    for block in blocks:
        exec(block, shared)
    assert shared["applied"].shape == (1000, 3)
    assert shared["observations"].shape == (256, 6)


@pytest.mark.slow
def test_identify_equals_the_command_to_the_last_bit(folder, result, tmp_path):
    result.save(tmp_path)
    assert (tmp_path / "parameters.yaml").read_bytes() == (folder / "command" / "parameters.yaml").read_bytes()
    ours, theirs = (json.loads((place / "report.json").read_text()) for place in (tmp_path, folder / "command"))
    assert ours.pop("parameters_file") != theirs.pop("parameters_file")
    assert ours == theirs
    assert (tmp_path / "report.html").exists()


@pytest.mark.slow
def test_a_result_prints_the_table_of_the_command(folder, names):
    assert (folder / "command.txt").read_text().startswith(str(names["result"]))


@pytest.mark.slow
def test_a_result_at_the_end_of_a_cell_is_one_line(names):
    result = names["result"]
    text = repr(result)
    assert len(text.splitlines()) == 1 and len(text) < 200
    assert result.parameters.robot.name in text and result.evaluation.verdict.word in text


@pytest.mark.slow
def test_joints_that_are_not_recorded_are_fixed_as_by_the_command(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    arrays = dict(np.load("recording.npz"))
    two = {**arrays, **{name: arrays[name][:, :2] for name in ("q", "dq", "tau")}}
    np.savez(tmp_path / "two.npz", **{**two, "joint_names": arrays["joint_names"][:2]})
    recording = rdi.open_recording(tmp_path / "two.npz")
    main(["identify", str(tmp_path / "two.npz"), "--robot", "arm.urdf", "--out", str(tmp_path)])
    result = rdi.identify(rdi.load_robot("arm.urdf"), recording)
    stored = rdi.load_parameters(tmp_path / "parameters.yaml")
    np.testing.assert_array_equal(result.parameters.estimate.values, stored.estimate.values)
    assert "assumed fixed at 0: wrist" in "\n".join(result.evaluation.warnings)
    known = rdi.identify(rdi.load_robot("arm.urdf", fixed={"wrist": 0.0}), recording)
    np.testing.assert_array_equal(known.parameters.estimate.values, stored.estimate.values)
    assert "assumed" not in "\n".join(known.evaluation.warnings)


@pytest.mark.slow
def test_held_out_recordings_and_ranges(folder, monkeypatch):
    monkeypatch.chdir(folder)
    robot, recording, other = rdi.load_robot("arm.urdf"), *map(rdi.open_recording, ("recording.npz", "other.npz"))
    assert rdi.identify(robot, recording, held_out=other).identification.held_out_sources == ("other.npz",)
    both = rdi.identify(robot, [recording, other])
    assert both.identification.held_out_sources == both.parameters.provenance.sources == ("recording.npz", "other.npz")
    assert both.parameters.judgment.held_out_method == "cross_validation"
    result = rdi.identify(robot, recording, train_range=(0.0, 12.0))
    assert result.parameters.judgment.held_out_method == "range"
    assert result.evaluation.held_out.samples < 500
    with pytest.raises(rdi.RobotDynIdError, match=r"trained on and validated on.*hold another"):
        rdi.identify(robot, recording, held_out=recording)


@pytest.mark.slow
def test_paths_in_place_of_what_they_hold_are_named(folder, monkeypatch):
    monkeypatch.chdir(folder)
    robot, recording = rdi.load_robot("arm.urdf"), rdi.open_recording("recording.npz")
    with pytest.raises(UsageError, match=r"^arm.urdf: is a path: give load_robot\(path\)"):
        rdi.identify("arm.urdf", recording)
    with pytest.raises(UsageError, match=r"^recording.npz: is a path: give open_recording\(path\)"):
        rdi.identify(robot, "recording.npz")


@pytest.mark.slow
def test_a_held_out_recording_without_a_joint_is_refused_by_its_name(folder, monkeypatch):
    monkeypatch.chdir(folder)
    robot, recording, other = rdi.load_robot("arm.urdf"), *map(rdi.open_recording, ("recording.npz", "other.npz"))
    samples = other.samples if hasattr(other, "samples") else next(iter(other.chunks(other.joint_names)))
    lacking = ArrayRecording("lacking", other.joint_names[:-1], Chunk(samples.t, *(samples.q[:, :-1],) * 3))
    with pytest.raises(rdi.RobotDynIdError, match=f"lacking.*{other.joint_names[-1]}"):
        rdi.identify(robot, recording, held_out=lacking)


@pytest.mark.slow
def test_the_plot_has_two_axes_per_joint(names, tmp_path):
    figure = names["result"].plot()
    assert len(figure.axes) == 2 * 3
    figure.savefig(tmp_path / "torque.png")
    assert (tmp_path / "torque.png").stat().st_size > 10_000


@pytest.mark.slow
def test_a_plot_without_matplotlib_says_what_to_install(names, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UsageError, match=r"robot-dyn-id\[plot\]"):
        names["result"].plot()


@pytest.mark.slow
def test_parameters_make_the_dynamics_that_were_identified(names):
    dynamics = rdi.make_dynamics(rdi.load_parameters("run/parameters.yaml"))
    states = names["q"], names["dq"], names["ddq"]
    np.testing.assert_array_equal(
        dynamics.inverse_dynamics(*states), names["result"].dynamics().inverse_dynamics(*states)
    )


@pytest.mark.slow
def test_dynamics_of_a_bad_model_warn(names):
    result = names["result"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result.dynamics()
    bad = altered(result.parameters, judgment={"verdict": "bad", "reasons": ("it fails",)})
    with pytest.warns(UserWarning, match="is bad: do not control a robot with it"):
        rdi.make_dynamics(bad)


@pytest.mark.slow
def test_parameters_load_from_the_folder_of_an_identification(names):
    folder, file = (rdi.load_parameters(path) for path in ("run", "run/parameters.yaml"))
    np.testing.assert_array_equal(folder.estimate.values, file.estimate.values)


@pytest.mark.slow
def test_a_design_keeps_its_options_and_refuses_unknown_ones(names, tmp_path):
    quick = {"draws": 4, "starts": 2, "finished": 1, "steps": 5}
    designed = rdi.design(names["robot"], period=5.0, clearance=0.0, acceleration={"all": 5.0}, search=quick)
    designed.save(tmp_path / "trajectory.yaml")
    assert designed.trajectory.duration == 5.0
    assert "objective" in str(designed)
    with pytest.raises(rdi.RobotDynIdError, match=r"did you mean .harmonics"):
        rdi.design(names["robot"], harmonic=3)
