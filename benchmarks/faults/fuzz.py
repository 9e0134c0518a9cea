# SPDX-License-Identifier: Apache-2.0
"""Fuzzing: mutated files and messages may cause declared errors only, no hang, and no large memory.

Cases run in forked children of one process that has loaded all libraries, as an import takes a hundred times as long as
a case. A child runs one case after the other under a limit of its address space; it is killed when a case takes too
long, and the next child goes on behind it. A case is made from the name of its target and its number alone:
`python -m faults.fuzz TARGET --only NUMBER` repeats it with its traceback, `--keep FOLDER` keeps its file.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import os
import random
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults import ROOT
from faults import mutations as mutate
from faults.results import Result

HANG_S = 5.0
"""Longest time of one case."""

MEMORY_B = 2**30
"""Largest memory of one case, in addition to that of the loaded libraries."""

LONGEST_MESSAGE = 2100
"""Longest error message, in characters: content of hostile files must not flood a log."""

JOINTS = ("shoulder", "elbow", "wrist")

Case = Callable[[Path, random.Random], None]
"""Makes a mutated input in a scratch folder and hands it to the package."""


@dataclass(frozen=True)
class Target:
    """One kind of input.

    Attributes:
        fault: what is mutated, for the table.
        case: makes and runs one case.
        share: cases relative to those of the fastest targets.
    """

    fault: str
    case: Case
    share: float = 1.0


class Corpus:
    """Valid files, written once by a process of its own."""

    folder: Path

    @classmethod
    def prepare(cls, folder: Path) -> None:
        """Write the corpus to a new folder."""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "benchmarks"), *_inherited_path()])}
        subprocess.run([sys.executable, "-m", "faults.corpus", str(folder)], check=True, env=environment)
        cls.folder = folder

    @classmethod
    def read(cls, name: str) -> bytes:
        """Content of a valid file."""
        return (cls.folder / name).read_bytes()


def _inherited_path() -> list[str]:
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


# --- files -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FileCase:
    """Case of one mutated file.

    Attributes:
        sources: valid files; a name is one of the corpus.
        change: mutation of the content.
        read: reads and uses the file.
    """

    sources: Sequence[str | Path]
    change: Callable[[bytes, random.Random], bytes]
    read: Callable[[Path], Any]

    def __call__(self, folder: Path, rng: random.Random) -> None:
        """Mutate one of the files and read it."""
        source = rng.choice(self.sources)
        path = folder / f"case{Path(source).suffix}"
        path.write_bytes(self.change(self.valid(source), rng))
        self.read(path)

    @staticmethod
    def valid(source: str | Path) -> bytes:
        """Content of a valid file."""
        return source.read_bytes() if isinstance(source, Path) else Corpus.read(source)


def _model() -> Any:
    from robot_dyn_id.model.robot import RobotModel

    return RobotModel.from_file(Corpus.folder / "arm.urdf")


def _read_joint_limits(path: Path) -> None:
    from robot_dyn_id.files.joint_limits import read_joint_limits

    model = _model()
    read_joint_limits(path, model).narrowed(model)


def _read_design(path: Path) -> None:
    from robot_dyn_id.files.design import read_design_settings

    read_design_settings(path)


def _read_configuration(path: Path) -> None:
    from robot_dyn_id.files.configuration import read_configuration

    _ = read_configuration(path).settings


def _read_trajectory(path: Path) -> None:
    from robot_dyn_id.files.trajectory import read_trajectory

    excitation = read_trajectory(path).excitation
    assert excitation.joint_names if hasattr(excitation, "joint_names") else True


def _read_parameters(path: Path) -> None:
    from robot_dyn_id.files.parameters import read_parameters
    from robot_dyn_id.simulation.controllers import make_usable_dynamics

    parameters = read_parameters(path)
    _use(make_usable_dynamics(parameters, Corpus.read("identified.urdf").decode(), JOINTS, needs_mass_matrix=True))


def _use(dynamics: Any) -> None:
    """Compute what a controller would; efforts must be finite."""
    import numpy as np

    state = np.zeros(len(dynamics.regressor.model.joint_names))
    with np.errstate(all="ignore"):
        effort = dynamics.gravity(state + 0.1)
    if not np.isfinite(effort).all():
        raise AssertionError(f"accepted parameters give the effort {effort}")


def _read_payload(path: Path) -> None:
    from robot_dyn_id.files.payload import read_payload

    read_payload(path)


def _read_robot(path: Path) -> None:
    from robot_dyn_id.model.robot import RobotModel

    RobotModel.from_file(path)


def _read_recording(path: Path) -> None:
    from robot_dyn_id.recordings import open_recording

    recording = open_recording(path)
    for _ in recording.chunks(recording.joint_names):
        pass
    recording.findings(recording.joint_names)


def _bag_folder(folder: Path, rng: random.Random) -> None:
    """Mutated metadata or storage file of a bag folder."""
    import shutil

    source = rng.choice(("small_db3", "small_mcap", "bag"))
    bag = folder / "bag"
    shutil.rmtree(bag, ignore_errors=True)
    shutil.copytree(Corpus.folder / source, bag)
    files = sorted(file for file in bag.iterdir() if file.is_file())
    file = rng.choice(files)
    change = mutate.mutate_yaml if file.name == "metadata.yaml" else mutate.mutate_bytes
    file.write_bytes(change(file.read_bytes(), rng))
    _read_recording(bag)


def _arrays(folder: Path, rng: random.Random) -> None:
    """Arrays of another shape, type or content in a sound archive: bytes that change are refused by their check sum."""
    import numpy as np

    with np.load(Corpus.folder / "trial.npz") as archive:
        arrays = dict(archive)
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice(list(arrays))
        arrays[name] = _changed_array(arrays[name], rng)
        if rng.random() < 0.1:
            arrays[rng.choice(("current", "temperature", "units", "reference", "wrench", "x"))] = arrays[name]
        if rng.random() < 0.1:
            del arrays[name]
    path = folder / "case.npz"
    np.savez(path, **arrays)
    _read_recording(path)


def _changed_array(array: Any, rng: random.Random) -> Any:
    import numpy as np

    if not array.ndim:
        return array
    with np.errstate(all="ignore"):
        match rng.randrange(8):
            case 0:
                return array[: rng.choice((0, 1, len(array) // 2))]
            case 1:
                return array.T if array.ndim > 1 else array[:, None]
            case 2:
                kinds = (
                    ("S3", "U2") if array.dtype.kind == "U" else ("S3", "U2", "complex128", "bool", "int8", "float16")
                )
                return array.astype(rng.choice(kinds))
            case 3:
                return array[::-1]
            case 4:
                return np.full_like(array, rng.choice(NAMES) if array.dtype.kind == "U" else rng.choice(FLOATS))
            case 5 if array.dtype.kind == "f" and array.size:
                array = array.copy()
                array.flat[rng.randrange(array.size)] = rng.choice(FLOATS)
                return array
            case 6:
                return np.array(rng.choice((0.0, "x", [], [[]], [np.nan], np.array({"a": 1}, dtype=object))))
            case _:
                return np.concatenate([array, array])


NAMES = tuple(text[:100].replace("\0", "") for text in mutate.TEXTS)

FLOATS = tuple(float(number) for number in mutate.NUMBERS)


def _read_mesh(path: Path) -> None:
    import numpy as np

    from robot_dyn_id.excitation.collision.meshes import read_mesh, simplify

    simplify(*read_mesh(path, np.ones(3)), 20)


def _read_srdf(path: Path) -> None:
    from robot_dyn_id.excitation.collision.srdf import read_disabled_pairs

    read_disabled_pairs(path)


# --- messages --------------------------------------------------------------------------------------------------------


def _message(name: str, rng: random.Random) -> Any:
    from rclpy.serialization import deserialize_message, serialize_message
    from robot_dyn_id.msg import ParameterSet
    from sensor_msgs.msg import JointState
    from std_msgs.msg import String
    from trajectory_msgs.msg import JointTrajectory

    kinds = {kind.__name__: kind for kind in (ParameterSet, JointState, JointTrajectory, String)}
    message = deserialize_message(Corpus.read(f"{name}.cdr"), kinds[name])
    changed = mutate.mutate_message(message, rng)
    try:
        return deserialize_message(serialize_message(changed), kinds[name])
    except Exception:  # what the libraries of ROS raise has no common base
        return message  # not a message that could arrive


def _parameter_set(folder: Path, rng: random.Random) -> None:
    from robot_dyn_id.parameters import ParameterSet
    from robot_dyn_id.simulation.controllers import make_usable_dynamics

    parameters = ParameterSet.from_message(_message("ParameterSet", rng))
    _use(make_usable_dynamics(parameters, Corpus.read("identified.urdf").decode(), JOINTS, needs_mass_matrix=True))


def _joint_state(folder: Path, rng: random.Random) -> None:
    from robot_dyn_id.nodes.messages.joint_state import JointOrder

    message, order = _message("JointState", rng), JointOrder(JOINTS)
    if order.concerns(message):
        order.read(message)


def _joint_state_bytes(folder: Path, rng: random.Random) -> None:
    from robot_dyn_id.recordings.joint_states import decode, read_header_stamps

    data = Corpus.read("JointState.cdr")
    messages = [mutate.mutate_bytes(data, rng), data]
    decode(messages)
    read_header_stamps(messages)


def _trajectory(folder: Path, rng: random.Random) -> None:
    from robot_dyn_id.nodes.messages.conversions import read_trajectory_points

    read_trajectory_points(_message("JointTrajectory", rng), JOINTS)


def _description(folder: Path, rng: random.Random) -> None:
    from robot_dyn_id.model.robot import RobotModel

    source = rng.choice((Corpus.read("arm.urdf"), Corpus.read("made.xacro")))
    change = rng.choice((mutate.mutate_xml, mutate.mutate_xacro))
    RobotModel.from_urdf(change(source, rng).decode("utf-8", "replace"))


# --- the command line ------------------------------------------------------------------------------------------------


def _command(folder: Path, rng: random.Random) -> None:
    """One verb with one or two mutated files; an exit code from 0 to 3 is declared."""
    import shutil

    from robot_dyn_id.cli import main

    files = {
        "robot": ("identified.urdf", mutate.mutate_xml),
        "config": ("configuration.yaml", mutate.mutate_yaml),
        "parameters": ("parameters.yaml", mutate.mutate_yaml),
        "data": rng.choice((("trial.npz", mutate.mutate_bytes), ("trial.csv", mutate.mutate_bytes))),
        "limits": ("joint_limits.yaml", mutate.mutate_yaml),
        "payload": ("payload.yaml", mutate.mutate_yaml),
    }
    verb = rng.choice(("base", "identify", "identify", "predict", "validate", "export", "simulate"))
    used = {
        "base": ("robot", "config"),
        "identify": ("robot", "config", "data"),
        "predict": ("robot", "parameters", "data"),
        "validate": ("robot", "parameters", "data"),
        "export": ("robot", "parameters"),
        "simulate": ("robot", "parameters", "data"),
    }[verb]
    hit = rng.sample(used, rng.choice((1, 1, 2)))
    shutil.rmtree(folder / "out", ignore_errors=True)
    given = {}
    for use in used:
        name, change = files[use]
        data = Corpus.read(name)
        given[use] = folder / f"case_{name}"
        given[use].write_bytes(change(data, rng) if use in hit else data)
    words = [verb, "--robot", given["robot"], "--json"]
    words += [given["data"]] if "data" in given else []
    for use in ("config", "parameters"):
        words += [f"--{use}", given[use]] if use in given else []
    outputs = {
        "identify": "out",
        "predict": "out/tau.npz",
        "validate": "out",
        "export": "out/made.urdf",
        "simulate": "out/moved.npz",
    }
    if verb in outputs:
        (folder / "out").mkdir() if "/" in outputs[verb] else None
        words += ["--out", folder / outputs[verb]]
    words += ["--format", "urdf"] if verb == "export" else []
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main([str(word) for word in words])
    if code not in (0, 1, 2, 3):
        raise AssertionError(f"{verb} ends with exit code {code}: {err.getvalue()[-300:]}")
    if code in (0, 1):
        json.loads(out.getvalue())


TARGETS: dict[str, Target] = {
    "parameters": Target("parameters.yaml", FileCase(["parameters.yaml"], mutate.mutate_yaml, _read_parameters), 0.5),
    "configuration": Target(
        "configuration (YAML)",
        FileCase(
            ["configuration.yaml", *sorted((ROOT / "config/identification").glob("*.yaml"))],
            mutate.mutate_yaml,
            _read_configuration,
        ),
    ),
    "trajectory": Target(
        "trajectory.yaml",
        FileCase(sorted((ROOT / "config/trajectories").glob("*.yaml")), mutate.mutate_yaml, _read_trajectory),
    ),
    "design": Target(
        "design (YAML)",
        FileCase(["design.yaml", *sorted((ROOT / "config/design").glob("*.yaml"))], mutate.mutate_yaml, _read_design),
    ),
    "joint_limits": Target(
        "joint_limits.yaml", FileCase(["joint_limits.yaml"], mutate.mutate_yaml, _read_joint_limits)
    ),
    "payload": Target("payload.yaml", FileCase(["payload.yaml"], mutate.mutate_yaml, _read_payload)),
    "urdf": Target(
        "URDF", FileCase(["arm.urdf", *sorted((ROOT / "urdf").glob("*.urdf"))], mutate.mutate_xml, _read_robot)
    ),
    "xacro": Target("xacro", FileCase(["made.xacro"], mutate.mutate_xacro, _read_robot), 0.2),
    "mcap": Target("bag file (mcap)", FileCase(["small.mcap", "bag/bag_0.mcap"], mutate.mutate_bytes, _read_recording)),
    "bag": Target("bag folder (metadata, mcap, db3)", _bag_folder),
    "npz": Target("recording (.npz)", FileCase(["trial.npz"], mutate.mutate_bytes, _read_recording), 0.5),
    "arrays": Target("recording (.npz), arrays", _arrays),
    "mesh": Target("mesh (STL, OBJ)", FileCase(["box.stl", "box.obj"], mutate.mutate_bytes, _read_mesh)),
    "srdf": Target("SRDF", FileCase(["arm.srdf"], mutate.mutate_xml, _read_srdf)),
    "csv": Target("recording (.csv)", FileCase(["trial.csv"], mutate.mutate_bytes, _read_recording)),
    "parameter_set": Target("ParameterSet message", _parameter_set),
    "joint_state": Target("JointState message", _joint_state),
    "joint_state_bytes": Target("JointState bytes (CDR)", _joint_state_bytes),
    "joint_trajectory": Target("JointTrajectory message", _trajectory),
    "robot_description": Target("robot_description text", _description, 0.5),
    "command": Target("command line with mutated files", _command, 0.05),
}

LIBRARIES = (
    "robot_dyn_id.model.robot",
    "robot_dyn_id.simulation.controllers",
    "robot_dyn_id.identification.pipeline",
    "robot_dyn_id.files.joint_limits",
    "robot_dyn_id.files.payload",
    "robot_dyn_id.files.trajectory",
    "robot_dyn_id.excitation.design.settings",
    "robot_dyn_id.nodes.messages.conversions",
    "robot_dyn_id.nodes.messages.joint_state",
    "robot_dyn_id.nodes.runtime.robot_source",
    "robot_dyn_id.recordings.joint_states",
    "robot_dyn_id.recordings.rosbag2",
    "mcap.reader",
    "xacro",
)


# --- one case --------------------------------------------------------------------------------------------------------


def generator(target: str, number: int) -> random.Random:
    """Random numbers of one case."""
    return random.Random(f"{target} {number}")


def outcome(target: str, number: int, folder: Path) -> str:
    """Run a case; empty if only what is declared came of it, else what did."""
    from robot_dyn_id.errors import RobotDynIdError

    try:
        TARGETS[target].case(folder, generator(target, number))
    except RobotDynIdError as error:
        text = str(error)
        if "\n" in text:
            return f"message of several lines: {text[:200]!r}"
        if len(text) > LONGEST_MESSAGE:
            return f"message too long: {len(text)} characters, {text[:100]!r}"
    except BaseException as error:  # whatever it is, it would have ended a node or a command
        places = traceback.extract_tb(error.__traceback__)
        own = [place for place in places if "robot_dyn_id" in place.filename] or places
        where = f"{Path(own[-1].filename).name}:{own[-1].lineno}"
        return f"{type(error).__name__} in {where}: {str(error)[:200]!r}"
    return ""


def _peak_memory() -> int:
    """Largest resident memory since the last reset [bytes]."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return 1024 * int(line.split()[1])
    raise RuntimeError("VmHWM is missing in /proc/self/status")


def _child(target: str, numbers: range, folder: Path, pipe: int) -> None:
    """Run cases one after the other and write one line about each."""
    os.setpgid(0, 0)
    sink = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(sink, stream)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY_B, size + MEMORY_B))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with os.fdopen(pipe, "w") as lines:
        for number in numbers:
            Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM
            before, begin = _peak_memory(), time.monotonic()
            found = outcome(target, number, folder)
            line = [number, found, time.monotonic() - begin, _peak_memory() - before]
            print(json.dumps(line), file=lines, flush=True)


@dataclass
class Tally:
    """Figures of the cases of one target so far."""

    runs: int = 0
    slowest: float = 0.0
    largest: int = 0
    broken: dict[int, str] | None = None


def _lines(pipe: int) -> Iterator[str | None]:
    """Lines of a pipe; None when none came within the time of a case."""
    held = b""
    while True:
        if not select.select([pipe], [], [], HANG_S)[0]:
            yield None
            return
        data = os.read(pipe, 65536)
        if not data:
            return
        *whole, held = (held + data).split(b"\n")
        yield from (line.decode() for line in whole)


def _batch(target: str, numbers: range, folder: Path, tally: Tally) -> int:
    """Run cases in one child; the number of the first case that has not been run."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with contextlib.suppress(BaseException):
            _child(target, numbers, folder, writing)
        os._exit(0)
    os.close(writing)
    following, hung = numbers.start, False
    assert tally.broken is not None
    for line in _lines(reading):
        if line is None:
            hung = True
            break
        number, found, seconds, memory = json.loads(line)
        following, tally.runs = number + 1, tally.runs + 1
        tally.slowest, tally.largest = max(tally.slowest, seconds), max(tally.largest, memory)
        if not found and memory > MEMORY_B:
            found = f"took {memory / 2**20:.0f} MiB"
        if found:
            tally.broken[number] = found
    os.close(reading)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if following < numbers.stop:
        if hung:
            tally.broken[following], tally.slowest = f"took longer than {HANG_S:g} s", max(tally.slowest, HANG_S)
        else:
            tally.broken[following] = f"the process ended by signal {os.WTERMSIG(status)}"
        tally.runs += 1
        following += 1
    return following


def run(target: str, cases: int, folder: Path, batch: int = 200) -> tuple[Result, dict[int, str]]:
    """Run the cases of a target.

    Returns:
        The row of the table, and what came of each case that broke its promise, by its number.
    """
    tally = Tally(broken={})
    assert tally.broken is not None
    following = 0
    while following < cases:
        following = _batch(target, range(following, min(cases, following + batch)), folder, tally)
    for number in [number for number, text in tally.broken.items() if text.startswith("took longer")]:
        again = Tally(broken={})  # a computer that was held up is not a hang
        _batch(target, range(number, number + 1), folder, again)
        if not again.broken:
            del tally.broken[number]
    result = Result(
        "only declared errors, no hang, no large memory",
        TARGETS[target].fault,
        tally.runs,
        len(tally.broken),
        tally.slowest,
        HANG_S,
        "s",
        tuple(_summary(target, tally.broken)),
    )
    return result, tally.broken


def _summary(target: str, broken: dict[int, str]) -> list[str]:
    """One line for each kind of failure, with the number of one case that shows it."""
    kinds: dict[str, list[int]] = {}
    for number, text in broken.items():
        kinds.setdefault(text.split(": ")[0], []).append(number)
    return [
        f"{len(numbers)} x {kind}, as in `python -m faults.fuzz {target} --only {numbers[0]}`: "
        f"{broken[numbers[0]].removeprefix(kind).strip(': ')[:160]}"
        for kind, numbers in sorted(kinds.items(), key=lambda item: -len(item[1]))
    ]


def prepare(folder: Path) -> None:
    """Load libraries and write the corpus."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    corpus = folder / "corpus"
    if not corpus.exists():
        corpus.mkdir()
        Corpus.prepare(corpus)
    Corpus.folder = corpus
    for library in LIBRARIES:
        importlib.import_module(library)
    from robot_dyn_id.simulation.plant import warm_up

    warm_up()
    _check_corpus(folder)


def _check_corpus(folder: Path) -> None:
    """Read every valid file: mutations of one that is refused would all be refused for the same reason.

    Raises:
        RobotDynIdError: a valid file is refused.
    """
    for target in TARGETS.values():
        if isinstance(target.case, FileCase):
            for source in target.case.sources:
                path = folder / f"valid{Path(source).suffix}"
                path.write_bytes(target.case.valid(source))
                target.case.read(path)


def main() -> int:
    """Fuzz some targets, or repeat a case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--cases", type=int, default=1000, help="cases of each target, times its share")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="repeat this case, with its traceback")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="corpus and case stay in this folder")
    given = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = given.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(exist_ok=True)
        prepare(folder)
        if given.only is not None:
            TARGETS[given.targets[0]].case(folder, generator(given.targets[0], given.only))
            return 0
        failures = 0
        for target in given.targets or TARGETS:
            begin = time.monotonic()
            result, _ = run(target, max(1, round(given.cases * TARGETS[target].share)), folder)
            print(f"{target}: {result.runs} cases, {result.failures} broken, {time.monotonic() - begin:.0f} s")
            print("".join(f"  {note}\n" for note in result.notes), end="", flush=True)
            failures += result.failures
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
