# SPDX-License-Identifier: Apache-2.0
"""Fleets from files: in this process, in local Dask processes, from object storage, and started again."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import yaml
from support.fleets import SimulatedFleet
from support.processes import child

from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.estimators import WeightedLeastSquares
from robot_dyn_id.files.factor import encode_factor
from robot_dyn_id.files.manifest import read_manifest
from robot_dyn_id.files.parameters import read_parameters
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.recordings import open_recording
from robot_dyn_id.signals.trials import FilteredTrials
from robot_dyn_id.workflow import fleet_tasks
from robot_dyn_id.workflow.fleet import _of_equal_choices, _Reduced, identify_fleet
from robot_dyn_id.workflow.fleet_results import format_probability
from robot_dyn_id.workflow.fleet_store import FactorStore
from robot_dyn_id.workflow.fleet_tasks import (
    MapTask,
    VersionError,
    _local,
    digest_recording,
    map_recording,
    summarize_robot,
)
from robot_dyn_id.workflow.scheduler import (
    Certificates,
    InProcess,
    LostTaskError,
    OnDask,
    check_address,
    open_executor,
)

FLEET = SimulatedFleet(9, 2, payload=(3,), duration=6.0)
SIGNALS = {"config": "config.yaml"}


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fleet")
    path = FLEET.write(folder, 2, broken=((5, 1),), manifest=SIGNALS)
    (folder / "config.yaml").write_text("cutoff: 5.0\nvelocity: derivative\nsample_rate: 100.0\n")
    return path


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def result(manifest, store):
    return identify_fleet(read_manifest(manifest), InProcess(), store)


@pytest.mark.slow
def test_the_robot_with_a_payload_is_named_and_the_broken_recording_left_out(result):
    assert [one.robot for one in result.differing] == ["R0003"]
    assert [one.entry.recording.rpartition("/")[2] for one in result.left_out] == ["R0005_1.npz"]
    codes = {finding.code for finding in result.findings}
    assert {"robot_differs", "recording_left_out"} <= codes
    assert result.recordings == 17 and result.restored == 0


@pytest.mark.slow
def test_pooled_parameters_equal_those_of_one_problem(result, manifest):
    left = {one.entry.recording for one in result.left_out}
    entries = [e for e in read_manifest(manifest).recordings if e.robot != "R0003" and e.recording not in left]
    settings = Settings(estimator=WeightedLeastSquares(), cutoff=5.0, velocity="derivative", sample_rate=100.0)
    recordings = [open_recording(entry.recording) for entry in entries]
    trials = FilteredTrials.from_recordings(recordings, FLEET.arm.joints, {}, settings.signals).decimated()
    whole = WeightedLeastSquares().fit(trials.problem(FLEET.arm.regressor, FLEET.arm.base.independent))
    pooled = result.configurations[0].pooled.estimate.values
    assert np.abs(pooled - whole.values).max() <= 1e-9 * np.abs(whole.values).max()


@pytest.mark.slow
def test_results_are_files(result, tmp_path):
    summary = result.save(tmp_path / "out")
    stored = json.loads((tmp_path / "out" / "fleet.json").read_text())
    assert stored["differing"] == summary["differing"] == ["R0003"]
    assert stored["left_out"][0]["robot"] == "R0005"
    robot = next(one for one in stored["robots"] if one["robot"] == "R0001")
    parameters = read_parameters(tmp_path / "out" / robot["parameters_file"])
    assert parameters.provenance.estimator == "fleet" and parameters.judgment.verdict == "suspect"
    assert parameters.judgment.held_out_all_joints_nrmse < 0.3
    assert len(robot["drift"]) == len(parameters.base.names)
    page = (tmp_path / "out" / "fleet.html").read_text()
    assert "R0003" in page and "R0005_1.npz" in page
    assert (tmp_path / "out" / "factors" / "R0001.npz").stat().st_size < 100_000
    assert read_parameters(tmp_path / "out" / "pooled.yaml").provenance.estimator == "weighted"


@pytest.mark.slow
def test_a_run_that_is_started_again_reads_the_store(result, manifest, store):
    again = identify_fleet(read_manifest(manifest), InProcess(), store)
    assert again.restored == 17
    assert np.array_equal(
        again.configurations[0].pooled.estimate.values, result.configurations[0].pooled.estimate.values
    )


@pytest.mark.slow
def test_an_interrupted_reduction_continues(result, manifest, store, tmp_path, monkeypatch):
    class Interrupted(Exception):
        pass

    def interrupt(recordings):
        raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr("robot_dyn_id.workflow.fleet.summarize_robot", interrupt)
        with pytest.raises(Interrupted):
            identify_fleet(read_manifest(manifest), InProcess(), store)
    assert identify_fleet(read_manifest(manifest), InProcess(), store).restored == 17


@pytest.mark.slow
def test_factors_do_not_gather_in_memory(result, manifest, store):
    """Between the first recording and the reduction of the first robot: the memory could not hold those of all."""
    held = {}

    class Measured(InProcess):
        def run(self, function, tasks):
            held.setdefault(function, tracemalloc.get_traced_memory()[0])
            return super().run(function, tasks)

    tracemalloc.start()
    try:
        found = identify_fleet(read_manifest(manifest), Measured(), store)
    finally:
        tracemalloc.stop()
    assert found.restored == 17
    # what does not grow with the recordings, such as caches of a first use, takes up to 0.4 of this here
    assert held[summarize_robot] - held[map_recording] < 0.7 * sum(found.factor_bytes)


@pytest.mark.slow
def test_a_factor_that_is_removed_during_the_run_is_named(result, manifest, store, tmp_path):
    kept = shutil.copytree(store, tmp_path / "store")

    class Removing(InProcess):
        def run(self, function, tasks):
            if function is summarize_robot:
                next(kept.glob("*.npz")).unlink()
            return super().run(function, tasks)

    with pytest.raises(InputError, match="removed during the run"):
        identify_fleet(read_manifest(manifest), Removing(), kept)


@pytest.mark.slow
def test_a_damaged_file_of_the_store_is_made_again(result, manifest, store):
    damaged = sorted(store.glob("*.npz"))[0]
    damaged.write_bytes(damaged.read_bytes()[:100])
    assert identify_fleet(read_manifest(manifest), InProcess(), store).restored == 16


@pytest.mark.slow
def test_a_lost_worker_costs_time_only(result, manifest, tmp_path):
    with open_executor(workers=2) as executor:
        assert isinstance(executor, OnDask)
        pids = list(executor.client.run(os.getpid).values())

        ended, killed_at = threading.Event(), []

        def kill():
            while not ended.wait(0.02):
                reduced = len(list(tmp_path.glob("*.npz")))
                if reduced >= 1:
                    os.kill(pids[0], signal.SIGKILL)
                    killed_at.append(reduced)
                    return

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            found = identify_fleet(read_manifest(manifest), executor, tmp_path)
        finally:
            ended.set()
            killer.join()
    assert killed_at and killed_at[0] < 17  # before the last recording was reduced
    assert np.array_equal(
        found.configurations[0].pooled.estimate.values, result.configurations[0].pooled.estimate.values
    )
    assert [one.robot for one in found.differing] == ["R0003"]


@pytest.mark.slow
def test_recordings_of_object_storage(manifest, tmp_path):
    fsspec = pytest.importorskip("fsspec")
    content = yaml.safe_load(manifest.read_text())
    system = fsspec.filesystem("memory")
    entries = content["recordings"][:4]
    for entry in entries:
        system.pipe(f"/fleet/{entry['recording']}", (manifest.parent / entry["recording"]).read_bytes())
        entry["recording"] = f"memory://fleet/{entry['recording']}"
    missing = {**entries[0], "recording": "memory://fleet/none.npz"}
    here = manifest.parent / "memory.yaml"
    here.write_text(yaml.safe_dump({**content, "recordings": [*entries, missing]}))
    found = identify_fleet(read_manifest(here), InProcess(), tmp_path)
    assert found.recordings == 4
    assert "none.npz" in found.left_out[0].reason
    assert {"fleet_small", "recording_left_out"} <= {finding.code for finding in found.findings}
    summary = found.save(tmp_path / "out")
    assert all(one["differs"] is None and one["probability"] is None for one in summary["robots"])
    assert not summary["configurations"][0]["compared"]
    assert np.isfinite(found.configurations[0].pooled.estimate.values).all()


@pytest.mark.slow
def test_two_robots_under_one_serial_number(manifest, tmp_path):
    content = yaml.safe_load(manifest.read_text())
    for entry in content["recordings"]:
        if entry["recording"] == "R0003_1.npz":  # of the robot with the payload
            entry["robot"] = "R0001"
    here = manifest.parent / "mixed.yaml"
    here.write_text(yaml.safe_dump(content))
    found = identify_fleet(read_manifest(here), InProcess(), tmp_path)
    messages = [one.message for one in found.findings if one.code == "robot_recordings_disagree"]
    assert len(messages) == 1 and "R0001" in messages[0]
    for entry in content["recordings"]:
        if entry["robot"] == "R0001":
            entry["robot_description"] = "other.urdf"
    (manifest.parent / "other.urdf").write_text(FLEET.arm.text.replace('name="l3"', 'name="l3" '))
    here.write_text(yaml.safe_dump(content))
    with pytest.raises(InputError, match="robot R0001"):
        identify_fleet(read_manifest(here), InProcess(), tmp_path)


@pytest.mark.slow
def test_recordings_in_other_units_are_found(manifest, tmp_path):
    content = yaml.safe_load(manifest.read_text())
    for entry in content["recordings"]:
        if entry["robot"] == "R0007":
            path = manifest.parent / entry["recording"]
            with np.load(path) as archive:
                values = dict(archive)
            other = manifest.parent / f"scaled_{entry['recording']}"
            np.savez(other, **{**values, "tau": 8.851 * values["tau"]})  # pound-force inches
            entry["recording"] = other.name
    here = manifest.parent / "units.yaml"
    here.write_text(yaml.safe_dump(content))
    found = identify_fleet(read_manifest(here), InProcess(), tmp_path)
    left = {one.entry.robot for one in found.left_out}
    assert "R0007" in {one.robot for one in found.differing} | left


@pytest.mark.slow
def test_a_recording_whose_workers_die_is_left_out(manifest, tmp_path):
    class Dying(InProcess):
        def run(self, function, tasks):
            for number, one in super().run(function, tasks):
                lost = function is map_recording and tasks[number].recording.endswith("R0002_0.npz")
                yield number, LostTaskError("its workers died") if lost else one

    found = identify_fleet(read_manifest(manifest), Dying(), tmp_path)
    assert {one.entry.recording.rpartition("/")[2] for one in found.left_out} == {"R0002_0.npz", "R0005_1.npz"}


def test_a_worker_of_another_version_is_refused(manifest, monkeypatch):
    task = MapTask("none.npz", FLEET, None)
    with pytest.raises(VersionError, match="expected 9"):
        map_recording(replace(task, version="9.9.9"))
    monkeypatch.setattr(fleet_tasks, "__version__", "0.0.1")
    with pytest.raises(VersionError, match=r"runs robot_dyn_id 0\.0\.1"):
        map_recording(task)


def test_a_recording_listed_twice_is_used_once(manifest, tmp_path):
    content = yaml.safe_load(manifest.read_text())
    (manifest.parent / "copy.npz").write_bytes((manifest.parent / "R0000_0.npz").read_bytes())
    entries = [content["recordings"][0], {**content["recordings"][0], "recording": "copy.npz"}]
    here = manifest.parent / "twice.yaml"
    here.write_text(yaml.safe_dump({**content, "recordings": entries}))
    found = identify_fleet(read_manifest(here), InProcess(), tmp_path)
    assert found.recordings == 1 and "content" in found.left_out[0].reason
    assert digest_recording(str(manifest.parent / "none.npz")) == ""


def test_a_recording_that_was_saved_again_is_used_once(manifest, tmp_path):
    content = yaml.safe_load(manifest.read_text())
    with np.load(manifest.parent / "R0000_0.npz") as archive:
        np.savez_compressed(manifest.parent / "again.npz", **archive)
    entries = [*content["recordings"][:2], {**content["recordings"][0], "recording": "again.npz"}]
    here = manifest.parent / "again.yaml"
    here.write_text(yaml.safe_dump({**content, "recordings": entries}))
    found = identify_fleet(read_manifest(here), InProcess(), tmp_path)
    assert found.recordings == 2 and "samples" in found.left_out[0].reason


def test_nothing_that_can_be_used_is_an_error(manifest, tmp_path):
    content = yaml.safe_load(manifest.read_text())
    entries = [one for one in content["recordings"] if one["recording"] == "R0005_1.npz"]
    here = manifest.parent / "nothing.yaml"
    here.write_text(yaml.safe_dump({**content, "recordings": entries}))
    with pytest.raises(InputError, match="none of the 1 recordings"):
        identify_fleet(read_manifest(here), InProcess(), tmp_path)


def few(manifest, name, config=None, count=2):
    """The manifest of the first recordings."""
    content = yaml.safe_load(manifest.read_text())
    here = manifest.parent / f"{name}.yaml"
    if config is not None:
        (manifest.parent / f"{name}_config.yaml").write_text(config)
        content["config"] = f"{name}_config.yaml"
    here.write_text(yaml.safe_dump({**content, "recordings": content["recordings"][:count]}))
    return read_manifest(here)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_command_that_is_interrupted_or_killed_is_continued(manifest, tmp_path, how):
    entries = few(manifest, "stopped", count=6)
    store, command = tmp_path / "store", ["fleet", "identify", str(manifest.parent / "stopped.yaml"), "--workers", "0"]
    options = ["--out", str(tmp_path / "out"), "--store", str(store)]
    # tests that run in the background ignore interrupts, and so would the command
    begin = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    begin += "from robot_dyn_id.cli import main; sys.exit(main(sys.argv[1:]))"
    with child([sys.executable, "-c", begin, *command, *options], stderr=subprocess.DEVNULL) as process:
        while len(list(store.glob("*.npz"))) < 2:
            assert process.poll() is None, "it ended before it was stopped"
            time.sleep(0.005)
        process.send_signal(how)
        assert process.wait() != 0
    complete = len(list(store.glob("*.npz")))
    assert 2 <= complete < 6
    assert identify_fleet(entries, InProcess(), store).restored == complete


@pytest.mark.slow
def test_thresholds_of_the_configuration_judge_the_sets(manifest, tmp_path):
    signals = (manifest.parent / "config.yaml").read_text()
    found = identify_fleet(few(manifest, "judged", count=4), InProcess(), tmp_path)
    assert found.configurations[0].pooled.judgment.verdict == "suspect"
    strict = few(manifest, "strict", f"{signals}thresholds: {{bad_nrmse: 0.0001}}\n", 4)
    (group,) = identify_fleet(strict, InProcess(), tmp_path).configurations
    assert [group.pooled.judgment.verdict, group.robots[0].parameters.judgment.verdict] == ["bad", "bad"]


def test_thresholds_that_follow_from_each_recording_are_refused(manifest, tmp_path):
    with pytest.raises(UsageError, match="reversal_speed"):
        identify_fleet(few(manifest, "auto", "cutoff: 5.0\nreversal_speed: auto\n"), InProcess(), tmp_path)


@pytest.mark.slow
def test_a_fleet_that_is_mostly_processed_otherwise_is_refused(result, manifest, tmp_path):
    entries = read_manifest(manifest).recordings[:5]
    factor = result.configurations[0].robots[0].factor
    kept, digests = FactorStore(tmp_path, ""), list("abcde")
    for n, digest in enumerate(digests):
        kept.put(digest, encode_factor(replace(factor, choices={**factor.choices, "cutoff": 5.0 + n // 2})))
    with pytest.raises(InputError, match="only 2 of 5"):
        _of_equal_choices(_Reduced(list(entries), digests, kept, [], 0, []))


def test_a_recording_without_a_digest_is_left_out(manifest, tmp_path):
    class Failing(InProcess):
        def run(self, function, tasks):
            for number, one in super().run(function, tasks):
                yield number, "" if function is digest_recording and number == 0 else one

    found = identify_fleet(few(manifest, "failing"), Failing(), tmp_path)
    assert found.recordings == 1 and "first pass" in found.left_out[0].reason
    assert len(list(tmp_path.glob("*.npz"))) == 1


@pytest.mark.parametrize("address", ["memory://fleet/..", "memory://", "memory://fleet/./"])
def test_addresses_without_a_name_are_refused(address, monkeypatch):
    fsspec = pytest.importorskip("fsspec")
    monkeypatch.setattr(fsspec.core, "url_to_fs", lambda url: (None, url.removeprefix("memory://")))
    with pytest.raises(InputError, match="no name"), _local(address):
        pass


CERTIFICATES = Certificates("a", "b", "c")


@pytest.mark.parametrize(
    ("address", "certificates", "insecure", "error"),
    [
        ("tcp://10.0.0.1:8786", None, False, InputError),
        ("tcp://10.0.0.1:8786", None, True, None),
        ("tcp://127.0.0.1:8786", None, False, None),
        ("tls://10.0.0.1:8786", None, False, UsageError),
        ("tls://10.0.0.1:8786", CERTIFICATES, False, None),
        ("10.0.0.1:8786", None, False, UsageError),
        ("http://10.0.0.1:8786", None, False, UsageError),
        ("tcp://10.0.0.1:port", None, True, UsageError),
    ],
)
def test_addresses_of_schedulers(address, certificates, insecure, error):
    if error is None:
        check_address(address, certificates, insecure)
        return
    with pytest.raises(error):
        check_address(address, certificates, insecure)


class Wearing(SimulatedFleet):
    """A fleet whose first robot wears: viscous friction of its first joint grows with every recording."""

    def record(self, robot, number, seed=None):
        grown = 1.0 + 0.5 * number if robot == 0 else 1.0
        self.arm.parameters[30] *= grown
        try:
            return super().record(robot, number, seed)
        finally:
            self.arm.parameters[30] /= grown


@pytest.mark.slow
def test_drift_is_reported(tmp_path):
    path = Wearing(4, 6, duration=6.0).write(tmp_path / "data", 3)
    found = identify_fleet(read_manifest(path), InProcess(), tmp_path / "store")
    messages = [one.message for one in found.findings if one.code == "robot_drifts"]
    assert len(messages) == 1 and "R0000" in messages[0] and "fv1" in messages[0]


def test_a_probability_is_never_zero():
    assert format_probability(1.2e-5) == "p 1.2e-05"
    assert format_probability(0.0) == "p < 2e-308"
