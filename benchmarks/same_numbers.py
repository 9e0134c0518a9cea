# SPDX-License-Identifier: Apache-2.0
"""Whether two versions of the package give the same numbers, byte for byte.

    PYTHONPATH=BEFORE python benchmarks/same_numbers.py record before --data ../shared/data
    PYTHONPATH=AFTER  python benchmarks/same_numbers.py record after --data ../shared/data
    python benchmarks/same_numbers.py compare before after

`record` identifies measured and simulated arms by the plain command, predicts with each model, and reproduces the
papers; `compare` names each value that differs, but for dates, versions, durations and folders.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import yaml

MEASURED = {
    "fer": ("fer_unisa_bag", ("train_0_16s",), "val_16_24s"),
    "tiago": ("tiago_figaroh", ("train_7_48s",), "val_48_68s"),
    "panda": ("panda_gaz2019", ("train_0_14s",), "val_14_21s"),
    "kuka": ("kuka_lwr4_iit", ("train_m1_slow", "train_m3_fast"), "val_m2_slow_repeat"),
}
"""Folder of a data set, its training recordings, and the one that is predicted."""

SIMULATED = 10
"""Number of simulated arms."""

PAPERS = ("planar3r", "quaternion6r", "logistic2r", "flexible2r", "space6r")
"""Names of the reproductions."""

CHANGES = re.compile(r"created|version|duration|seconds|date|folder|path|host|elapsed|took|revision", re.IGNORECASE)
"""Places of a file that say when, where and by which version it was made."""


def main() -> int:
    """Record the numbers of the package that this Python imports, or compare two records."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    record = verbs.add_parser("record")
    record.add_argument("out", type=Path)
    record.add_argument("--data", type=Path, required=True, help="folder of the measured data sets")
    record.add_argument("--only", nargs="+", default=(), help="names of arms or papers")
    compare = verbs.add_parser("compare")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.verb == "compare":
        found = list(differences(given.before, given.after))
        print("\n".join(found) or "no difference")
        return int(bool(found))
    given.out.mkdir(parents=True)
    for name, train, robot, other in arms(given.data, given.out):
        if not given.only or name in given.only:
            print(name, flush=True)
            _identify(given.out / name, train, robot, other)
    for name in PAPERS:
        if not given.only or name in given.only:
            print(name, flush=True)
            answer = run("reproduce", name, "--json")
            (given.out / f"{name}.json").write_text(answer, encoding="utf-8")
    return 0


def run(*words: object) -> str:
    """Output of a command of the package.

    Raises:
        SystemExit: it failed, other than by a bad verdict.
    """
    command = [sys.executable, "-m", "robot_dyn_id", *map(str, words)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    )
    if done.returncode > 1:
        raise SystemExit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr[-500:]}")
    return done.stdout


def arms(data: Path, out: Path) -> Iterator[tuple[str, Sequence[Path], Path, Path]]:
    """Name, training recordings, URDF, and the recording that is predicted, of each arm."""
    for name, (folder, train, other) in MEASURED.items():
        files = [data / folder / f"{recording}.npz" for recording in train]
        yield name, files, data / folder / "model.urdf", data / folder / f"{other}.npz"
    robot = Path(__file__).resolve().parents[1] / "urdf" / "arm7.urdf"
    for seed in range(SIMULATED):
        yield f"arm7_{seed}", [_simulate(out, robot, seed, 30.0)], robot, _simulate(out, robot, seed + 100, 10.0)


def _simulate(out: Path, robot: Path, seed: int, duration: float) -> Path:
    """Recording of an arm that is heavier than its URDF, with friction and noise, along a random motion."""
    from arms import NOISE, true_parameters

    from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
    from robot_dyn_id.dynamics.terms import Coulomb, Offset, Viscous
    from robot_dyn_id.excitation import draw_random_fourier
    from robot_dyn_id.model.robot import RobotModel
    from robot_dyn_id.recordings.npz import write_npz
    from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulate_recording

    model, path = RobotModel.from_file(robot), out / f"arm7_{seed}.npz"
    regressor = Regressor(model, place_terms_on_joints(model, (Viscous(), Coulomb(), Offset())))
    motion, times = draw_random_fourier(model, seed, period=10.0), sample_times(duration, 200.0)
    made = simulate_recording(regressor, true_parameters(model), motion, times, Sensors(NOISE, 1e-5, 1e-3), seed)
    samples = made.samples
    write_npz(path, model.joint_names, samples.t, q=samples.q, dq=samples.dq, tau=samples.tau)
    return path


def _identify(out: Path, train: Sequence[Path], robot: Path, other: Path) -> None:
    run("identify", *train, "--robot", robot, "--out", out)
    parameters, predicted = out / "parameters.yaml", out / "predicted.npz"
    run("predict", other, "--robot", robot, "--parameters", parameters, "--out", predicted)
    with np.load(predicted) as stored:
        text = {name: stored[name].tolist() for name in stored.files}
    (out / "predicted.json").write_text(json.dumps(text, indent=0) + "\n", encoding="utf-8")


def differences(before: Path, after: Path) -> Iterator[str]:
    """Each value of two records that differs: by its place, findings in any order."""
    texts = {path.relative_to(folder) for folder in (before, after) for path in folder.rglob("*")}
    for name in sorted(path for path in texts if path.suffix in (".yaml", ".json")):
        files = [folder / name for folder in (before, after)]
        if not all(file.is_file() for file in files):
            yield f"{name}: only in one of them"
            continue
        one, other = (dict(_leaves(_read(file, folder))) for file, folder in zip(files, (before, after), strict=True))
        if one.get(".format_version") != other.get(".format_version"):  # the same values, wherever they are
            one, other = (
                {f".{text}": text for place, text in leaves.items() if not place.endswith((".use", ".format_version"))}
                for leaves in (one, other)
            )
        for place in sorted(one.keys() | other.keys()):
            pair = [found.get(place, "nothing")[:100] for found in (one, other)]
            if one.get(place) != other.get(place) and not CHANGES.search(place):
                yield f"{name}: {place}: {pair[0]} -> {pair[1]}"


def _read(file: Path, folder: Path) -> object:
    """Content of a file, without the name of its folder."""
    text = file.read_text(encoding="utf-8").replace(str(folder.resolve()), "")
    return json.loads(text) if file.suffix == ".json" else yaml.load(text, Loader=yaml.CSafeLoader)


def _leaves(value: object, place: str = "") -> Iterator[tuple[str, str]]:
    """Place and text of each number and word; numbers to the last digit."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{place}.{key}")
    elif isinstance(value, list):
        if place.endswith((".findings", ".warnings")):
            value = sorted(value, key=str)
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{place}[{number}]")
    else:
        yield place, repr(value)


if __name__ == "__main__":
    sys.exit(main())
