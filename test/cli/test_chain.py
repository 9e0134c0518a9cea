# SPDX-License-Identifier: Apache-2.0
"""The command `chain` as a user gives it."""

import json

import numpy as np
import pytest
import yaml
from support.commands import messages
from support.recording_files import WRENCH, wrench_messages, write_bag
from support.simulated import ARM, Simulated, changed, save_npz

from robot_dyn_id.cli import main
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.loads.chain import find_centroidal_frames, simulate_chain
from robot_dyn_id.loads.payload import transform_parameters
from robot_dyn_id.loads.wrench import cross
from robot_dyn_id.model.kinematics import Kinematics, find_placement_of

MOUNT = """<link name="sensor"/><joint name="mount" type="fixed"><parent link="base"/><child link="sensor"/>
<origin xyz="0.1 -0.2 -0.3" rpy="0.3 -0.2 1.0"/></joint></robot>"""
ROBOT = Simulated(ARM.replace("</robot>", MOUNT))
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


# --- sensors in frames of links


def sensed(recording, hinge, link, reaction=False, seed=0):
    """Readings of a sensor in a hinge about and along the frame of a link, moments first, shape (6, N)."""
    model = ROBOT.model
    motion = Motion(*draw_random_fourier(model, 3).evaluate(recording.samples.t)[:3])
    body = simulate_chain(model, motion, find_centroidal_frames(model))[hinge]
    at, poses = find_placement_of(model, link), Kinematics(model).poses(motion.q)
    turned = poses.rotation[:, at.body] @ at.rotation
    origin = (poses.position[:, at.body] + poses.rotation[:, at.body] @ at.position).T
    moment, force = body.wrench[:3] + cross(body.hinge - origin, body.wrench[3:]), body.wrench[3:]
    exact = np.concatenate([np.einsum("nji,jn->in", turned, part) for part in (moment, force)])
    noise = SIGMA * np.random.default_rng(seed).normal(size=exact.shape)
    return (1.0 if reaction else -1.0) * exact + noise + np.arange(6.0)[:, None]


def write_sensors(path, recording, **topics):
    """A bag with joint states without efforts, and a topic per sensor: readings and frames."""
    stamps = [int(1e9 * t) + 10**18 for t in recording.samples.t]
    others = [(f"/{name}", WRENCH, list(wrench_messages(stamps, *given))) for name, given in topics.items()]
    blind = changed(recording, tau=lambda tau: np.full_like(tau, np.nan))
    return write_bag(path, messages(blind), others=others)


@pytest.fixture(scope="module")
def motion():
    return ROBOT.record(seed=3, rate=100.0, duration=30.0, noise=0.0, velocity=0.0)


@pytest.fixture(scope="module")
def bags(motion, files):
    """Bags with one sensor under the base, in its mounting frame, and with a second one in a hinge."""
    base, elbow = sensed(motion, 0, "sensor"), sensed(motion, 1, "l1", seed=1)
    write_sensors(files / "one", motion, ft=(base, "sensor"))
    write_sensors(files / "two", motion, ft=(base, "sensor"), elbow_ft=(elbow, "l1"))
    save_npz(files / "sensor.npz", motion, wrench=sensed(motion, 0, "sensor", reaction=True)[[3, 4, 5, 0, 1, 2]].T)
    return files


def errors_of(answer):
    """Errors over the standard deviations of all identifiable entries, in the frames of the centers of mass."""
    found = []
    truth = zip(find_centroidal_frames(ROBOT.model), ROBOT.model.inertial_parameters.reshape(-1, 10), strict=True)
    for body, (frame, standard) in zip(answer["bodies"], truth, strict=True):
        expected = np.linalg.solve(transform_parameters(frame), standard)[[0, 4, 6, 9]]
        entries = zip(body["parameters"].values(), expected, strict=True)
        found += [(entry[0] - value) / entry[1] for entry, value in entries if entry]
    return np.array(found)


@pytest.mark.parametrize(
    ("data", "words", "sensors"),
    [
        ("one", ["--wrench", "base"], ["base"]),
        ("two", ["--wrench", "base=/ft", "--wrench", "elbow=elbow_ft"], ["base", "elbow"]),
        ("sensor.npz", ["--wrench", "base", "--frame", "sensor", "--reaction"], ["base"]),
    ],
)
def test_bodies_from_sensors_in_the_frames_of_links(chain, bags, data, words, sensors):
    """No joint torques are in the bags."""
    code, answer = chain(data, "--principal", *words)
    assert code == 0 and answer["sensors"] == sensors
    errors = errors_of(answer)
    assert len(errors) == 12 - len(answer["not_identifiable"]) >= 9
    assert np.sqrt(np.mean(np.square(errors))) < 2.0


@pytest.mark.parametrize(
    ("data", "words", "code", "message"),
    [
        ("one", [], 2, "a bag has no map of its sensors"),
        ("one", ["--wrench", "hip"], 2, "a sensor cannot be at hip; the places of"),
        ("one", ["--wrench", "base", "--wrench", "base=/ft"], 2, "--wrench base: given twice"),
        ("all.npz", ["--frame", "base"], 2, "--frame and --reaction are for the sensors of --wrench"),
        ("sensor.npz", ["--wrench", "base=/ft"], 2, "a .npz has one sensor"),
        ("two", ["--wrench", "base=/ft", "--wrench", "elbow=/elbow_ft", "--frame", "base"], 2, "--frame: the frames"),
        ("one", ["--wrench", "base=/other"], 3, "/other"),
        ("two", ["--wrench", "base"], 3, "/elbow_ft"),
        ("one", ["--wrench", "base", "--frame", "l2"], 3, "its frame l2 moves with elbow; the frame must be fixed to"),
        ("one", ["--wrench", "wrist"], 3, "its frame sensor is fixed to the base; the frame must be fixed to a body"),
        ("one", ["--wrench", "base", "--frame", "flange"], 3, "no link is called flange"),
        ("sensor.npz", ["--wrench", "base"], 3, "it states no frame (header.frame_id)"),
        ("one", ["--wrench", "base", "--reaction"], 3, "every mass would be negative"),
    ],
)
def test_wrong_places_topics_and_frames_are_refused(chain, bags, data, words, code, message):
    found, answer = chain(data, "--principal", *words)
    assert found == code and message in answer["error"]["message"]


@pytest.mark.slow
def test_readings_that_are_not_measurements_are_refused(chain, bags, motion):
    base = sensed(motion, 0, "sensor")
    at_rest = changed(motion, q=lambda q: np.repeat(q[:1], len(q), axis=0), dq=np.zeros_like)
    limit = float(np.quantile(base[5], 0.97))
    saturated = np.vstack([base[:5], np.minimum(base[5], limit)])
    cases = {
        "saturated": (motion, (saturated, "sensor")),
        "constant": (motion, (np.repeat(base[:, :1], base.shape[1], axis=1), "sensor")),
        "still": (at_rest, (base, "sensor")),
        "frames": (motion, (base, ["sensor", "l1"] * (base.shape[1] // 2))),
        "nameless": (motion, (base, "")),
    }
    words = {
        "saturated": f"the sensor saturates: force z is at {limit:g} N in 0.03 of the samples",
        "constant": "the wrench is constant; is the sensor connected?",
        "still": "no joint moves: wrenches at rest do not identify the bodies",
        "frames": "its messages are in several frames (l1, sensor)",
        "nameless": "it states no frame (header.frame_id)",
    }
    for name, (recording, given) in cases.items():
        write_sensors(bags / name, recording, ft=given)
        code, answer = chain(name, "--principal", "--wrench", "base")
        assert code == 3 and words[name] in answer["error"]["message"], name
