# SPDX-License-Identifier: Apache-2.0
"""A robot with one joint goes through every verb: what is a matrix for others must not become a vector."""

import json

import numpy as np
import pytest
from support.robots import joint, urdf
from support.simulated import Simulated, changed, save_npz

from robot_dyn_id.cli import main
from robot_dyn_id.dynamics.crosscheck import cross_check
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.model.robot import RobotModel

AXIS = {"revolute": "0 1 0", "continuous": "0 1 0", "prismatic": "0 0 1"}


def text_of(kind):
    text = urdf(joint("only", "base", "l1", kind=kind, axis=AXIS[kind], rpy="0 0 0"), links=1)
    return text.replace('effort="5"', 'effort="50"')  # the drive carries the arm


@pytest.mark.parametrize("kind", AXIS)
def test_pinocchio_agrees_on_one_joint(kind):
    model = RobotModel.from_urdf(text_of(kind))
    motion = Motion(*draw_random_fourier(model, 1).evaluate(np.linspace(0.0, 5.0, 50))[:3])
    check = cross_check(Regressor(model), motion)
    assert check.passed
    assert check.rank_ours == check.rank_pinocchio > 0


class Files:
    """A robot of one joint, recordings of it with and without a load, and what was identified from one of them."""

    def __init__(self, folder, kind):
        self.folder, self.kind, self.number = folder, kind, 0
        (folder / "one.urdf").write_text(text_of(kind))
        for name, seed, load in (("data", 1, 0.0), ("other", 2, 0.0), ("loaded", 3, 1.5)):
            robot = Simulated(text_of(kind))
            # A point mass at the origin of the link moves with a prismatic joint; off the axis it loads a revolute one.
            robot.parameters[:10] += load * np.array([1.0, 0.3, 0, 0, 0, 0, 0.09, 0, 0, 0.09])
            recording = robot.record(seed=seed, duration=20.0, rate=50.0, noise=0.02)
            save_npz(folder / f"{name}.npz", recording)
            amperes = changed(recording, tau=lambda tau: tau / 10.0).samples.tau
            save_npz(folder / f"{name}_current.npz", recording, current=amperes)

    def run(self, verb, *words, robot=True, code=0, capfd=None):
        self.number += 1
        given = ["--robot", self.folder / "one.urdf"] if robot else []
        found = main([verb, *map(str, (*words, *given)), "--json"])
        out, err = capfd.readouterr()
        assert found == code, err
        return json.loads(out)


@pytest.fixture(scope="module", params=["revolute", "prismatic"])
def files(request, tmp_path_factory):
    return Files(tmp_path_factory.mktemp(request.param), request.param)


@pytest.fixture
def run(files, capfd):
    """Run a verb in the folder of the files; its answer."""
    return lambda verb, *words, **options: files.run(verb, *words, capfd=capfd, **options)


@pytest.fixture
def parameters(files, run):
    """The identified parameters: made once."""
    file = files.folder / "run" / "parameters.yaml"
    if not file.exists():
        answer = run("identify", files.folder / "data.npz", "--out", file.parent)
        assert answer["verdict"] == "good"
        assert answer["cross_check"]["max_difference"] < 1e-10
    return file


@pytest.mark.slow
def test_models_of_one_joint_are_validated_and_predict(files, run, parameters, tmp_path):
    answer = run("validate", files.folder / "other.npz", "--parameters", parameters, "--out", tmp_path / "report")
    assert answer["verdict"] == "good"
    run("predict", files.folder / "other.npz", "--parameters", parameters, "--out", tmp_path / "tau.npz")
    ours, theirs = np.load(tmp_path / "tau.npz")["tau"], np.load(files.folder / "other.npz")["tau"]
    inside = slice(50, -50)
    assert ours.shape == theirs.shape
    assert np.linalg.norm((ours - theirs)[inside]) < 0.05 * np.linalg.norm(theirs[inside])


@pytest.mark.slow
def test_models_of_one_joint_are_designed_for_and_simulated(files, run, parameters, tmp_path):
    (tmp_path / "quick.yaml").write_text(
        "search: {draws: 10, starts: 1, finished: 1}\neffort_scale: 0.0\nground: false\n"
    )
    design = ("design", "--acceleration", 5, "--design", tmp_path / "quick.yaml")
    assert run(*design, "--out", tmp_path / "design")["feasible"]
    assert run(*design, "--after", parameters.parent, "--out", tmp_path / "after")["feasible"]
    trajectory = tmp_path / "design" / "trajectory.yaml"
    given = ("--parameters", parameters)
    run("simulate", *given, "--trajectory", trajectory, "--rate", 200, "--out", tmp_path / "a.npz")
    run("simulate", files.folder / "other.npz", *given, "--restart", 1, "--out", tmp_path / "bag")
    assert np.load(tmp_path / "a.npz")["q"].shape[1] == 1
    assert (tmp_path / "bag" / "metadata.yaml").exists()


@pytest.mark.parametrize("form", ["urdf", "mjcf"])
def test_models_of_one_joint_are_exported(form, files, run, parameters, tmp_path):
    run("export", "--parameters", parameters, "--format", form, "--out", tmp_path / "model")
    if form == "urdf":
        model = RobotModel.from_file(tmp_path / "model")
        truth = Simulated(files.folder.joinpath("one.urdf").read_text())
        ours, theirs = (truth.base.mapping[:, :10] @ v for v in (model.inertial_parameters, truth.parameters[:10]))
        inertial = truth.base.independent < 10
        np.testing.assert_allclose(ours[inertial], theirs[inertial], rtol=0.05, atol=0.02)


def test_the_base_parameters_of_one_joint(files, run):
    answer = run("base")
    assert answer["count"] == {"revolute": 3, "prismatic": 1}[files.kind]
    assert answer["joints"] == ["only"]


def test_loads_on_one_joint(files, run, parameters, tmp_path):
    """A prismatic joint identifies the mass it carries; one revolute joint cannot, which is bad input, not a fault."""
    words = (files.folder / "loaded.npz", "--link", "l1", "--parameters", parameters, "--out", tmp_path)
    if files.kind == "prismatic":
        answer = run("payload", *words)
        assert answer["mass"] == pytest.approx(1.5, rel=0.02)
    else:
        error = run("payload", *words, code=3)["error"]
        assert "mass on link l1" in error["message"]


def test_drive_gain_of_one_joint(files, run, tmp_path):
    known = tmp_path / "known.yaml"
    known.write_text(
        "link: l1\nmass: 1.5\ncenter_of_mass: [0.3, 0, 0]\ninertia: {ixx: 0.001, ixy: 0, iyy: 0.001, ixz: 0, iyz: 0, izz: 0.001}\n"
    )
    answer = run(
        "gains",
        "--bare",
        files.folder / "data_current.npz",
        "--loaded",
        files.folder / "loaded_current.npz",
        "--payload",
        known,
        "--out",
        tmp_path / "gains.yaml",
    )
    assert answer["gains"][0]["gain"] == pytest.approx(10.0, rel=0.05)


@pytest.mark.parametrize("verb", ["design", "demo"])
def test_a_negative_seed_is_wrong_usage(verb, tmp_path, capfd):
    (tmp_path / "one.urdf").write_text(text_of("revolute"))
    robot = ["--robot", str(tmp_path / "one.urdf")] if verb == "design" else []
    assert main([verb, *robot, "--out", str(tmp_path / "run"), "--seed", "-5"]) == 2
    assert "-5" in capfd.readouterr().err
    assert not (tmp_path / "run").exists()
