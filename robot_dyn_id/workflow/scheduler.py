# SPDX-License-Identifier: Apache-2.0
"""Where the tasks of a fleet run: in this process, in local processes, or on the workers of a Dask scheduler.

Dask sends functions and values by pickle: a scheduler without authentication runs whatever it is sent, and so do its
workers and this process. Schedulers on other computers are therefore used by TLS, unless that is declined explicitly.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

from robot_dyn_id.errors import InputError, RobotDynIdError, UsageError
from robot_dyn_id.termination import TERMINAL_SIGNALS
from robot_dyn_id.version import __version__
from robot_dyn_id.workflow.fleet_tasks import VersionError, report_version

Task = TypeVar("Task")
Result = TypeVar("Result")

CONNECT_S = 10.0
"""Time after which a scheduler that does not answer, or has no worker, is given up [s]."""

AHEAD = 4
"""Tasks per worker that are submitted at a time: results and arguments of no more are in memory."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Hosts that are this computer."""

INSTALL = "pip install '.[fleet]'"


class LostTaskError(RobotDynIdError):
    """A task whose workers died, again and again."""

    code = "worker_lost"
    advice = "give the workers more memory, or leave the recording out"


class Executor(Protocol):
    """Runs a function on many values."""

    def run(
        self, function: Callable[[Task], Result], tasks: Iterable[Task]
    ) -> Iterator[tuple[int, Result | LostTaskError]]:
        """Run a function on each task.

        Args:
            function: a function of a module, which all processes can import.
            tasks: its arguments.

        Yields:
            Number and result of each task, in the order in which they end. The result of a task whose workers died
            again and again is an error.

        Raises:
            RobotDynIdError: the function raises it.
        """
        ...


@dataclass(frozen=True)
class InProcess:
    """Runs the tasks in this process, one after the other."""

    def run(
        self, function: Callable[[Task], Result], tasks: Iterable[Task]
    ) -> Iterator[tuple[int, Result | LostTaskError]]:
        """See `Executor.run`."""
        for number, task in enumerate(tasks):
            yield number, function(task)


@dataclass(frozen=True)
class OnDask:
    """Runs the tasks on the workers of a Dask client; those of a worker that is lost run again elsewhere.

    Attributes:
        client: a connected `distributed.Client`.
    """

    client: Any

    def run(
        self, function: Callable[[Task], Result], tasks: Iterable[Task]
    ) -> Iterator[tuple[int, Result | LostTaskError]]:
        """See `Executor.run`.

        Raises:
            InputError: the connection is lost.
        """
        from distributed import as_completed

        waiting = iter(enumerate(tasks))
        numbers: dict[Any, int] = {}
        pool = as_completed(loop=self.client.loop)  # without it, one of the default client, which need not exist

        def submit() -> None:
            for number, task in waiting:
                future = self.client.submit(function, task, pure=False, retries=0)
                numbers[future] = number
                pool.add(future)
                return

        for _ in range(AHEAD * max(1, len(self.client.scheduler_info()["workers"]))):
            submit()
        for future in pool:
            number = numbers.pop(future)
            submit()
            yield number, self._result(future)
            future.release()

    def _result(self, future: Any) -> Any:
        """Result of a task that has ended.

        Raises:
            InputError: the connection is lost.
            RobotDynIdError: the task raised it.
        """
        from distributed.client import FutureCancelledError
        from distributed.scheduler import KilledWorker

        try:
            return future.result()
        except KilledWorker:
            return LostTaskError("its workers died, as often as it was tried: it may need more memory than they have")
        except (FutureCancelledError, TimeoutError, OSError) as error:
            raise InputError(
                f"the connection to the scheduler is lost ({error}); start it and run again: what is done is kept"
            ) from None


@dataclass(frozen=True)
class Certificates:
    """Files of a TLS connection.

    Attributes:
        authority: certificate of the authority that has signed those of scheduler and workers.
        certificate: certificate of this client.
        key: its private key.
    """

    authority: str
    certificate: str
    key: str


def check_address(address: str, certificates: Certificates | None, insecure: bool) -> None:
    """Check the address of a scheduler.

    Args:
        address: `tcp://HOST:PORT` or `tls://HOST:PORT`.
        certificates: files of a TLS connection.
        insecure: whether a scheduler on another computer may be used without TLS.

    Raises:
        UsageError: not such an address, or without the certificates that it needs.
        InputError: an unprotected scheduler on another computer.
    """
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if parts.scheme not in ("tcp", "tls") or not host or not port:
        raise UsageError(f"scheduler {address!r}: must be tcp://HOST:PORT or tls://HOST:PORT")
    if parts.scheme == "tls" and certificates is None:
        raise UsageError(f"scheduler {address}: TLS needs the certificates of authority and client, and its key")
    if parts.scheme == "tcp" and host not in LOOPBACK and not insecure:
        raise InputError(
            f"scheduler {address}: unprotected, it runs whatever any computer of the network sends; start it with TLS "
            "(tls://), or accept that explicitly"
        )


@contextmanager
def open_executor(
    scheduler: str | None = None,
    workers: int | None = None,
    certificates: Certificates | None = None,
    insecure: bool = False,
) -> Iterator[Executor]:
    """Connect to a scheduler, or start local processes.

    Args:
        scheduler: address of a Dask scheduler; None: local processes.
        workers: number of local processes; 0: this process, without Dask; None: one per processor, or this process if
            Dask is not installed.
        certificates: files of a TLS connection.
        insecure: whether a scheduler on another computer may be used without TLS.

    Raises:
        InputError: Dask is not installed, no scheduler answers, it has no worker, or a worker has another version.
        UsageError: see `check_address`.
    """
    if scheduler is not None:
        check_address(scheduler, certificates, insecure)
    elif workers == 0:
        yield InProcess()
        return
    try:
        from distributed import Client
    except ImportError:
        if scheduler is None and workers is None:
            yield InProcess()
            return
        raise InputError(f"identification of a fleet in several processes needs Dask: {INSTALL}") from None
    if scheduler is None:
        with _local_cluster(workers) as cluster, Client(cluster) as client:
            yield OnDask(client)
        return
    with _connected(scheduler, certificates) as client:
        _check_workers(client, scheduler)
        yield OnDask(client)


@contextmanager
def _local_cluster(workers: int | None) -> Iterator[Any]:
    """Local processes of one thread each, which only this computer can reach.

    Ctrl-C in a terminal reaches all processes. Those of the cluster inherit that it is blocked: this process ends them.
    """
    from multiprocessing import resource_tracker

    import dask
    from distributed import LocalCluster

    quiet = {"distributed.worker.daemon": True, "distributed.comm.retry.count": 2}
    try:
        with dask.config.set(quiet):
            resource_tracker.ensure_running()  # its start unblocks the signal
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, TERMINAL_SIGNALS)
            try:
                cluster = LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    processes=True,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    silence_logs=logging.CRITICAL,
                )
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            with cluster:
                try:
                    yield cluster
                except KeyboardInterrupt:
                    _silence()
                    raise
    except KeyboardInterrupt:
        _silence()
        raise


def _silence() -> None:
    """Discard what the libraries log about tasks and processes that an interruption has ended."""
    for name in ("asyncio", "tornado", "distributed"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [logging.NullHandler()], False


@contextmanager
def _connected(scheduler: str, certificates: Certificates | None) -> Iterator[Any]:
    """A client of a scheduler.

    Raises:
        InputError: no scheduler answers, or the certificates cannot be used.
    """
    from distributed import Client
    from distributed.security import Security

    try:
        security = None
        if certificates is not None:
            security = Security(
                tls_ca_file=certificates.authority,
                tls_client_cert=certificates.certificate,
                tls_client_key=certificates.key,
                require_encryption=True,
            )
        client = Client(scheduler, timeout=CONNECT_S, security=security, set_as_default=False)
    except (OSError, TimeoutError, ValueError, TypeError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"scheduler {scheduler}: no answer within {CONNECT_S:g} s ({reason}); start it with `dask scheduler`, and "
            "check the address"
        ) from None
    try:
        yield client
    finally:
        client.close()


def _check_workers(client: Any, scheduler: str) -> None:
    """Check that there are workers, with this version of the package.

    Raises:
        InputError: no worker.
        VersionError: a worker with another version, or without this package.
    """
    try:
        client.wait_for_workers(1, timeout=CONNECT_S)
    except TimeoutError:
        raise InputError(
            f"scheduler {scheduler}: no worker within {CONNECT_S:g} s; start some with `dask worker {scheduler}`"
        ) from None
    try:
        versions = client.run(report_version)
    except Exception as error:
        raise VersionError(
            f"scheduler {scheduler}: a worker cannot import robot_dyn_id {__version__} ({error}); install it there"
        ) from None
    for worker, version in versions.items():
        if version != __version__:
            raise VersionError(
                f"worker {worker} runs robot_dyn_id {version}, expected {__version__}; install {__version__} on it"
            )
