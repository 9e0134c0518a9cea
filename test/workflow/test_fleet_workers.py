# SPDX-License-Identifier: Apache-2.0
"""Fleets on real schedulers and workers: TLS, workers of another version, and what killed workers leave."""

import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from support.commands import run_here
from support.fleets import SimulatedFleet
from support.processes import child

from robot_dyn_id.workflow import fleet_tasks
from robot_dyn_id.workflow.fleet_tasks import COPY_PREFIX, _local
from robot_dyn_id.workflow.scheduler import open_executor

distributed = pytest.importorskip("distributed")

FLEET = SimulatedFleet(2, 4, duration=6.0)
OTHER_VERSION = "import robot_dyn_id.workflow.fleet_tasks as tasks; tasks.__version__ = '0.0.9'"


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    return FLEET.write(tmp_path_factory.mktemp("fleet"), 1)


def cluster(**options):
    return distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=None,
        silence_logs=50,
        **options,
    )


def certificate(folder, name, authority=None):
    """A key and a certificate, signed by an authority, or self-signed."""
    key, request, signed = (folder / f"{name}.{kind}" for kind in ("key", "csr", "pem"))
    openssl = functools.partial(subprocess.run, check=True, capture_output=True)
    new = ["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key]
    if authority is None:
        openssl([*new, "-x509", "-days", "2", "-out", signed, "-subj", f"/CN={name}"])
    else:
        openssl([*new, "-out", request, "-subj", f"/CN={name}"])
        by = ["-CA", authority.with_suffix(".pem"), "-CAkey", authority.with_suffix(".key"), "-CAcreateserial"]
        openssl(["openssl", "x509", "-req", "-in", request, *by, "-days", "2", "-out", signed])
    return signed


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")
def test_a_scheduler_with_tls_runs_a_fleet_and_refuses_strangers(manifest, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("robot_dyn_id.workflow.scheduler.CONNECT_S", 4.0)
    authority = certificate(tmp_path, "authority")
    own = certificate(tmp_path, "fleet", authority)
    stranger = certificate(tmp_path, "stranger")
    files = {"cert": str(own), "key": str(own.with_suffix(".key"))}
    roles = {f"tls_{role}_{kind}": files[kind] for role in ("scheduler", "worker", "client") for kind in files}
    security = distributed.Security(tls_ca_file=str(authority), require_encryption=True, **roles)
    with cluster(security=security, protocol="tls://") as running:
        command = ["fleet", "identify", manifest, "--scheduler", running.scheduler_address, "--tls-ca", authority]
        owner = ["--tls-cert", own, "--tls-key", own.with_suffix(".key")]
        assert running.scheduler_address.startswith("tls://")
        code, found = run_here(capsys, *command, *owner, "--out", tmp_path / "out")
        assert code == 0, found
        assert found["left_out"] == []
        assert (tmp_path / "out" / "robots" / "R0001.yaml").is_file()
        other = ["--tls-cert", stranger, "--tls-key", stranger.with_suffix(".key")]
        code, found = run_here(capsys, *command, *other, "--out", tmp_path / "refused")
        assert code == 3 and running.scheduler_address in found["error"]["message"]


@pytest.mark.slow
def test_a_live_worker_of_another_version_is_refused_and_named(manifest, tmp_path, capsys):
    with cluster() as running, distributed.Client(running) as client:
        (worker,) = client.run(functools.partial(exec, OTHER_VERSION))
        command = ["fleet", "identify", manifest, "--scheduler", running.scheduler_address]
        code, found = run_here(capsys, *command, "--out", tmp_path / "out")
    assert code == 3
    assert found["error"]["code"] == "worker_version"
    assert worker in found["error"]["message"] and "0.0.9" in found["error"]["message"]


COPIES = """
import sys, time
import fsspec
from robot_dyn_id.workflow.fleet_tasks import _local
with _local(sys.argv[1]) as path:
    print(path, flush=True)
    time.sleep(60)
"""


@pytest.mark.slow
def test_copies_of_a_killed_worker_are_removed_by_the_next_one(manifest, tmp_path, monkeypatch):
    folder, recording = tmp_path / "tmp", f"file://{manifest.parent / 'R0000_0.npz'}"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": str(Path(fleet_tasks.__file__).parents[2])}
    command = [sys.executable, "-c", COPIES, recording]
    with (
        child(command, stdout=subprocess.PIPE, text=True, env=environment) as killed,
        child(command, stdout=subprocess.PIPE, text=True, env=environment) as living,
    ):
        left, used = (Path(process.stdout.readline().strip()) for process in (killed, living))
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert left.is_file() and used.is_file()
        with _local(recording):
            assert left.is_file(), "that of a process that has just begun may not be locked yet"
        monkeypatch.setattr(fleet_tasks, "LEFT_OVER_S", -1.0)
        with _local(recording) as own:
            assert own.is_file() and used.is_file(), "that of a process that runs is kept"
            assert not left.exists()
            assert len(list(folder.glob(f"{COPY_PREFIX}*"))) == 2
        assert not own.exists()


def test_a_copy_does_not_need_locks_and_begins_again_if_its_folder_is_removed(manifest, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    removed = []

    def refuse(lock, operation):
        if not removed:  # as by another process, between the creation of the folder and its lock
            removed.append(Path(lock.name).parent)
            shutil.rmtree(removed[0])
        raise OSError("locks are not supported")

    monkeypatch.setattr(fleet_tasks.fcntl, "flock", refuse)
    with _local(f"file://{manifest.parent / 'R0000_0.npz'}") as own:
        assert own.is_file()
        assert removed and removed[0] not in own.parents
    assert not own.exists()


@pytest.mark.slow
def test_the_local_processes_do_not_receive_an_interruption():
    """Ctrl-C reaches all processes of a terminal; their tracebacks would bury the line of the command."""
    with open_executor(workers=1) as executor:
        ((_, blocked),) = executor.run(functools.partial(signal.pthread_sigmask, signal.SIG_BLOCK), [()])
    assert signal.SIGINT in blocked
