# SPDX-License-Identifier: Apache-2.0
"""The command `chain` as a user gives it."""

import json

import numpy as np
import pytest
import yaml
from support.simulated import Simulated, save_npz

from robot_dyn_id.cli import main
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.loads.chain import find_centroidal_frames, simulate_chain
from robot_dyn_id.loads.payload import transform_parameters

ROBOT = Simulated()
SIGMA = 1e-3


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A recording with the wrenches of all hinges along the axes of their bodies, forces first."""
    folder = tmp_path_factory.mktemp("chain")
    (folder / "arm.urdf").write_text(ROBOT.model.urdf)
    recording = ROBOT.record(seed=3, rate=100.0, duration=30.0, noise=0.0, velocity=0.0)
    motion = Motion(*draw_random_fourier(ROBOT.model, 3).evaluate(recording.samples.t)[:3])
    frames = find_centroidal_frames(ROBOT.model)
    rng, wrenches = np.random.default_rng(0), []
    for body, frame in zip(simulate_chain(ROBOT.model, motion, frames), frames, strict=True):
        rotation = np.einsum("ijn,kj->ikn", body.rotation, frame.rotation)  # of the joint's frame
        own = [np.einsum("jin,jn->in", rotation, part) for part in (body.wrench[3:], body.wrench[:3])]
        wrenches.append(np.concatenate(own).T + SIGMA * rng.normal(size=(len(recording.samples.t), 6)) + 0.5)
    every = np.stack(wrenches, axis=1)
    save_npz(folder / "all.npz", recording, wrenches=every)
    base = every.copy()
    base[:, 1:] = np.nan
    save_npz(folder / "base.npz", recording, wrenches=base)
    save_npz(folder / "none.npz", recording)
    return folder


@pytest.fixture
def chain(files, tmp_path, capfd):
    """Run the command: exit code and answer."""

    def run(data, *more):
        capfd.readouterr()
        words = ["chain", files / data, "--robot", files / "arm.urdf", "--out", tmp_path, "--force", "--json", *more]
        code = main([str(word) for word in words])
        return code, json.loads(capfd.readouterr().out)

    return run


def test_all_bodies_from_the_wrenches_of_their_hinges(chain, tmp_path):
    code, answer = chain("all.npz")
    assert code == 0 and len(answer["bodies"]) == len(ROBOT.model.body_names)
    errors = []
    for body, truth in zip(answer["bodies"], ROBOT.model.inertial_parameters.reshape(-1, 10), strict=True):
        shown = [(entry, value) for entry, value in zip(body["parameters"].values(), truth, strict=True) if entry]
        errors += [abs(entry[0] - value) / entry[1] for entry, value in shown]
    assert len(errors) == 10 * len(answer["bodies"]) - len(answer["not_identifiable"]) > 20
    assert np.sqrt(np.mean(np.square(errors))) < 2.0, "standard deviations are what the errors are"
    stored = yaml.safe_load((tmp_path / "chain.yaml").read_text())
    assert stored["bodies"] == answer["bodies"]


def test_centers_and_principal_axes_of_the_urdf(chain):
    code, answer = chain("all.npz", "--principal")
    assert code == 0
    for body, frame, truth in zip(
        answer["bodies"],
        find_centroidal_frames(ROBOT.model),
        ROBOT.model.inertial_parameters.reshape(-1, 10),
        strict=True,
    ):
        mass, *moments = body["parameters"].values()
        expected = np.linalg.solve(transform_parameters(frame), truth)[[0, 4, 6, 9]]
        for entry, value in zip((mass, *moments), expected, strict=True):
            assert entry is None or abs(entry[0] - value) < 5.0 * entry[1]


@pytest.mark.slow
def test_one_sensor_under_the_base(chain):
    """With known centers of mass every body of this arm is identifiable, less well; otherwise combinations only."""
    _, every = chain("all.npz", "--principal")
    code, answer = chain("base.npz", "--principal")
    assert code == 0 and answer["sensors"] == [ROBOT.model.body_names[0]]
    assert answer["not_identifiable"] == every["not_identifiable"]
    sigmas = [
        [entry[1] for body in one["bodies"] for entry in body["parameters"].values() if entry]
        for one in (every, answer)
    ]
    assert np.median(np.divide(*reversed(sigmas))) > 1.5
    _, combined = chain("base.npz")
    assert combined["independent"] < 10 * len(ROBOT.model.body_names)
    assert len(combined["not_identifiable"]) > len(answer["not_identifiable"])


def test_files_without_wrenches_are_refused(chain):
    code, answer = chain("none.npz")
    assert code == 3 and "no key wrenches" in answer["error"]["message"]
    code, answer = chain("all.npz", "--precision", "1")
    assert code == 2 and "--precision" in answer["error"]["message"]


def test_unused_entries_of_the_configuration_are_reported(chain, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("cutoff: 8.0\nterms: [viscous]\nestimator: ols\nbootstrap: 20\nperiod: 5.0\n")
    code, answer = chain("all.npz", "--config", config)
    assert code == 0
    (finding,) = [one for one in answer["findings"] if one["code"] == "configuration_unused"]
    assert finding["message"] == (
        "the configuration's terms, estimator, period, bootstrap: not used for the bodies of a chain"
    )
