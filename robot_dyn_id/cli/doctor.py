# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id doctor`: checks of the installation, each with its result and what to do about it."""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import os
import platform
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import robot_dyn_id
from robot_dyn_id.cli import show
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.faults import explain_setup_error

OK, WARN, PROBLEM = "ok", "warn", "problem"

MIN_PYTHON = (3, 10)

REQUIRED = {
    **{"numpy": "numpy", "scipy": "scipy", "pinocchio": "pin", "yaml": "PyYAML", "xacro": "xacro"},
    **{"jinja2": "jinja2", "rich": "rich", "argcomplete": "argcomplete"},
}
"""Packages that are needed: name of the import, and of the distribution."""

OPTIONAL = {
    "mcap": ("mcap", "files ending in .mcap, which recorder and recover write; without it bags of sqlite3 are read"),
    "zstandard": ("zstandard", "compressed bags"),
    "lz4": ("lz4", "compressed .mcap files"),
    "rosbags": ("rosbags", "bags of ROS 1"),
    "numba": ("numba", "compiled functions; without it identification takes many times as long"),
    "pymoo": ("pymoo", "design --optimizer cma_es, genetic and particle_swarm (extra `search`)"),
    "sklearn": ("scikit-learn", "comparison with neural networks in Python (extra `network`)"),
    "matplotlib": ("matplotlib", "result.plot() in Python, reproduce --plots (extra `plot`)"),
    "pyarrow": ("pyarrow", "data sets of LeRobot (extra `lerobot`)"),
    "gymnasium": ("gymnasium", "RobotVectorEnv (extra `gym`)"),
    "distributed": ("distributed", "fleet with several processes or computers (extra `fleet`)"),
    "fsspec": ("fsspec", "fleet with recordings on remote storage (extra `fleet`)"),
    "control_msgs": ("control-msgs", "excitation by the action FollowJointTrajectory"),
}
"""Packages that open a feature: name of the import, of the distribution, and the feature."""

SETTINGS = (
    *("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT", "NUMBA_NUM_THREADS"),
    *("NO_COLOR", "FORCE_COLOR", "COLUMNS"),
)
"""Environment variables that this package or its libraries read, in addition to ROBOT_DYN_ID_*."""

DISCOVERY = ("ROS_STATIC_PEERS", "ROS_DISCOVERY_SERVER", "FASTDDS_DEFAULT_PROFILES_FILE", "CYCLONEDDS_URI")
"""Environment variables that replace or extend the discovery of participants."""

MULTICAST_GROUP = "239.255.0.1"
"""Group by which DDS discovers participants."""

MAX_DDS_DOMAIN = 101
"""Domain above which the ports of DDS overlap those that Linux assigns to others."""

EXCHANGE_TIMEOUT_S = 1.0
"""Longest time of the message of the self-test [s]."""

MAX_CLOCK_STEP_S = 1e-3
"""Change of the system clock against the steady one during the checks that is reported [s]."""

MIN_SHARED_MEMORY_BYTES = 16 * 2**20
"""Free shared memory below which Fast DDS may not deliver large messages."""

UNSYNCHRONIZED = 0x40
"""Status bit of the kernel clock: not synchronized (STA_UNSYNC of adjtimex(2))."""


@dataclass(frozen=True)
class Check:
    """Result of a check.

    Attributes:
        name: name of the check.
        status: `ok`, `warn` or `problem`.
        text: what was found.
        action: what to do; empty: nothing.
    """

    name: str
    status: str
    text: str
    action: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = (
        "Each line is ok, warn or problem. The exit code is 0 with warnings, and 3 with a problem, which makes a part "
        "of the package unusable."
    )


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Run all checks, and print each as it ends."""
    checks: list[Check] = []
    for check in _checks():
        checks.append(check)
        if not arguments.json:
            show(f"{check.status:<8}  {check.name:<18}  {check.text}")
            if check.action:
                show(f"{'':<8}  {'':<18}  -> {check.action}")
    worst = PROBLEM if any(check.status == PROBLEM for check in checks) else OK
    code = InputError.exit_code if worst == PROBLEM else 0
    counts = {status: sum(check.status == status for check in checks) for status in (OK, WARN, PROBLEM)}
    if not arguments.json:
        show(", ".join(f"{count} {status}" for status, count in counts.items()))
    return code, {"checks": [asdict(check) for check in checks], "counts": counts, "usable": worst != PROBLEM}


def _checks() -> Iterator[Check]:
    """All checks, each computed when it is requested."""
    offset = time.time() - time.monotonic()
    for check in (_python, _computer):
        yield check()
    yield from _packages()
    for check in (_kernels, _distribution, _middleware, _multicast, _shared_memory, _self_test):
        yield from _guarded(check)
    yield from _guarded(_time_synchronization)
    yield _clock_step(time.time() - time.monotonic() - offset)
    yield _settings()
    yield _terminal_check()


def _guarded(check: Callable[[], Check]) -> Iterator[Check]:
    """A check whose unexpected failure is a warning: others must still run."""
    try:
        yield check()
    except Exception as fault:
        yield Check(check.__name__.strip("_").replace("_", " "), WARN, f"cannot be checked: {fault}")


def _python() -> Check:
    from robot_dyn_id.version import __version__

    text = f"robot_dyn_id {__version__}, Python {platform.python_version()} ({sys.executable})"
    if sys.version_info < MIN_PYTHON:
        return Check("Python", PROBLEM, text, "use Python 3.10 or newer")
    return Check("Python", OK, text)


def _computer() -> Check:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0))
    return Check("computer", OK, f"{platform.system()} {platform.machine()}, {cores} cores, {memory:.1f} GiB")


def _packages() -> Iterator[Check]:
    found = [pair for pair in REQUIRED.items() if _is_there(pair[0])]
    missing = [pair for pair in REQUIRED.items() if pair not in found]
    yield Check("packages", OK, ", ".join(f"{name} {_version(module, name)}" for module, name in found))
    for _, name in missing:
        yield Check("packages", PROBLEM, f"{name} is not installed", f"pip install {name}")
    for module, (name, feature) in OPTIONAL.items():
        if _is_there(module):
            yield Check("optional packages", OK, f"{name} {_version(module, name)}: {feature}")
        elif module == "numba":
            yield Check("optional packages", WARN, f"{name} is not installed: {feature}", "pip install numba")
        else:
            yield Check("optional packages", OK, f"{name} is not installed; it opens: {feature}")


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _version(module: str, name: str) -> str:
    for candidate in (name, module, f"ros-{name}"):
        try:
            return metadata.version(candidate)
        except metadata.PackageNotFoundError:
            continue
    return str(getattr(importlib.import_module(module), "__version__", "(version unknown)"))


def _kernels() -> Check:
    from robot_dyn_id.kernels.compiled import COMPILED
    from robot_dyn_id.kernels.stored import find_stored_kernels

    name = "compiled functions"
    if not COMPILED:
        return Check(name, WARN, "numba is not installed: functions run as NumPy operations", "pip install numba")
    stored = find_stored_kernels()
    if stored.folder is None:
        return Check(name, WARN, "numba does not compile (NUMBA_DISABLE_JIT)", "unset NUMBA_DISABLE_JIT")
    text = f"{stored.compiled} of {stored.count} functions are compiled in {stored.folder}"
    if not os.access(_nearest(stored.folder), os.W_OK):
        action = "set NUMBA_CACHE_DIR to a folder that can be written to; every run compiles for up to a minute"
        return Check(name, OK if stored.compiled == stored.count else WARN, f"{text}, which is read-only", action)
    if not stored.compiled:
        return Check(name, WARN, text, "nothing: the first identification compiles them, which takes half a minute")
    return Check(name, OK, text)


def _nearest(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next(path for path in (folder, *folder.parents) if path.exists())


def _distribution() -> Check:
    if not _is_there("rclpy"):
        return Check(
            "ROS 2",
            WARN,
            "rclpy is not installed or not on the path: files can be identified, nodes cannot run",
            "source the setup script of ROS 2 and of the workspace of this package (docs/installation.md)",
        )
    running = robot_dyn_id._running_distribution() or "unknown"
    version = _version("rclpy", "ros-rclpy")
    try:
        from robot_dyn_id._built_for import DISTRIBUTION as built_for
    except ImportError:
        built_for = ""
    text = f"rclpy {version}, distribution {running}, messages built for {built_for or 'no distribution'}"
    if not _is_there("robot_dyn_id.msg"):
        return Check("ROS 2", PROBLEM, f"{text}: robot_dyn_id.msg is missing", "install the package with pip or colcon")
    if built_for and running != built_for:
        return Check("ROS 2", PROBLEM, text, f"install the package again with ROS_DISTRO={running}")
    return Check("ROS 2", OK, text)


def _middleware() -> Check:
    domain = os.environ.get("ROS_DOMAIN_ID") or "0"
    reach = os.environ.get("ROS_AUTOMATIC_DISCOVERY_RANGE") or "SUBNET"
    middleware = os.environ.get("RMW_IMPLEMENTATION") or "the default of the distribution"
    others = [f"{name}={os.environ[name]}" for name in DISCOVERY if os.environ.get(name)]
    text = f"{middleware}; ROS_DOMAIN_ID {domain}, discovery {reach}{''.join(f', {one}' for one in others)}"
    refusal = _refusal()
    if refusal:
        return Check("middleware", PROBLEM, text, refusal)
    if not domain.isdigit() or int(domain) > MAX_DDS_DOMAIN:
        return Check("middleware", WARN, text, f"set ROS_DOMAIN_ID to 0 to {MAX_DDS_DOMAIN}")
    if os.environ.get("ROS_LOCALHOST_ONLY", "0") != "0":
        action = "ROS_LOCALHOST_ONLY is deprecated: set ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST"
        return Check("middleware", WARN, f"{text}, ROS_LOCALHOST_ONLY", action)
    return Check("middleware", OK, text)


def _refusal() -> str:
    """Reason for which ROS 2 would end this process, with what to do; empty if it would not."""
    from robot_dyn_id.nodes.runtime.middleware import check_domain, check_middleware

    try:
        check_middleware()
        check_domain()
    except UsageError as error:
        return str(error)
    return ""


def _multicast() -> Check:
    """Send a datagram to the group of DDS, and receive it on this computer."""
    group = socket.inet_aton(MULTICAST_GROUP)
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        try:
            receiver.bind(("", 0))
            receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group + socket.inet_aton("0.0.0.0"))
            receiver.settimeout(EXCHANGE_TIMEOUT_S)
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
            sender.sendto(b"robot_dyn_id", (MULTICAST_GROUP, receiver.getsockname()[1]))
            receiver.recv(64)
        except OSError as error:
            action = (
                "allow UDP multicast in the firewall and on the interface, or set ROS_STATIC_PEERS; "
                "nodes on this computer may still find one another"
            )
            return Check("multicast", WARN, f"no datagram from {MULTICAST_GROUP}: {error}", action)
    return Check("multicast", OK, f"a datagram to {MULTICAST_GROUP} was received on this computer")


def _shared_memory() -> Check:
    folder = Path("/dev/shm")
    if not folder.is_dir():
        return Check("shared memory", OK, "no /dev/shm: messages go through sockets")
    free = shutil.disk_usage(folder).free
    text = f"{free / 2**20:.0f} MiB are free in {folder}"
    if free < MIN_SHARED_MEMORY_BYTES:
        return Check("shared memory", WARN, text, f"remove old files in {folder}, or run the container with --shm-size")
    return Check("shared memory", OK, text)


def _self_test() -> Check:
    name = "self-test"
    if not _is_there("rclpy"):
        return Check(name, WARN, "not run: rclpy is missing")
    if _refusal():
        return Check(name, WARN, "not run: see the middleware above")
    from robot_dyn_id.nodes.runtime.loopback import exchange_message

    try:
        found = exchange_message(EXCHANGE_TIMEOUT_S)
    except Exception as fault:  # the middleware raises many kinds
        error = explain_setup_error(fault) or InputError(f"nodes cannot be made: {fault}", "check the variables above")
        return Check(name, PROBLEM, str(error).removesuffix(f"; {error.action}"), error.action)
    others = f"; {len(found.others)} other nodes in the domain" if found.others else "; no other node in the domain"
    if found.seconds is None:
        return Check(
            name,
            PROBLEM,
            f"{found.middleware}: no message within {EXCHANGE_TIMEOUT_S:g} s{others}",
            "check the firewall and the discovery settings above; on a busy computer run the command again",
        )
    text = f"{found.middleware}: a message between two participants arrived after {1e3 * found.seconds:.0f} ms"
    return Check(name, OK, text + others)


def _time_synchronization() -> Check:
    """Whether the kernel clock is synchronized, as chrony and NTP daemons report to the kernel (adjtimex)."""
    name = "time sync"
    status, error = _kernel_clock()
    text = f"the system clock is synchronized, largest error {1e-3 * error:.1f} ms"
    if status & UNSYNCHRONIZED:
        return Check(
            name,
            WARN,
            "the system clock is not synchronized",
            "run chrony or another time service where a robot and this computer both stamp messages; on one computer "
            "nothing is needed",
        )
    return Check(name, OK, text)


def _kernel_clock() -> tuple[int, int]:
    """Status bits and largest error [us] of the kernel clock.

    Raises:
        OSError: the kernel does not answer.
    """
    library = ctypes.CDLL(None, use_errno=True)
    content = (ctypes.c_long * 64)()  # struct timex: modes, offset, frequency, largest error, error, status
    if library.adjtimex(ctypes.byref(content)) < 0:
        raise OSError(ctypes.get_errno(), "adjtimex")
    return int(ctypes.cast(content, ctypes.POINTER(ctypes.c_int))[10]), int(content[3])


def _clock_step(step: float) -> Check:
    if abs(step) > MAX_CLOCK_STEP_S:
        text = f"the system clock moved by {1e3 * step:.1f} ms against the steady one during these checks"
        return Check("clocks", WARN, text, "wait until the time service has settled before recording")
    return Check("clocks", OK, "the system clock ran evenly with the steady one during these checks")


def _settings() -> Check:
    names = [name for name in sorted(os.environ) if name.startswith("ROBOT_DYN_ID") or name in SETTINGS]
    text = ", ".join(f"{name}={os.environ[name]}" for name in names) or "none are set"
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return Check("settings", WARN, text, "unset NUMBA_DISABLE_JIT: identification takes many times as long")
    return Check("settings", OK, text)


def _terminal_check() -> Check:
    from robot_dyn_id.cli.terminal import can_draw_on

    columns = shutil.get_terminal_size().columns
    drawn = "colors and tables" if can_draw_on(sys.stdout) else "plain text"
    encoding = (sys.stdout.encoding or "unknown").upper()
    text = f"{drawn}, {columns} columns, {encoding}, TERM {os.environ.get('TERM', 'not set')}"
    if encoding.replace("-", "") != "UTF8":
        return Check("terminal", WARN, text, "set LANG to a UTF-8 locale, such as C.UTF-8")
    return Check("terminal", OK, text)
