# SPDX-License-Identifier: Apache-2.0
"""Wall time on one core over that on all cores of whole tasks, whose results have to be the same bit for bit.

The tasks take turns on one core and on all. Wall time is only meaningful on a computer with nothing else to do. Where
nothing is divided (a model that is not chosen, with a cheap estimator), the ratio is 1.
"""

from __future__ import annotations

from measuring import Goal, at_least, one_thread, script

if __name__ == "__main__":
    one_thread()

import os
import pickle
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import robot_dyn_id as rdi
from robot_dyn_id.arrays import Array
from robot_dyn_id.estimators import ESTIMATORS

ARM = str(Path(rdi.__file__).parents[1] / "urdf" / "arm7.urdf")
SETS = {
    "panda_gaz2019": "train_0_14s.npz",
    "fer_unisa_bag": "train_0_16s.npz",
    "tiago_figaroh": "train_7_48s.npz",
    "kuka_lwr4_iit": "train_m1_slow.npz",
}
REPEATS = 3
NOT_SLOWER = 0.97
SEARCH = {"starts": 8, "finished": 4, "steps": 60}


def measure() -> list[Goal]:
    """All tasks, or those whose names begin with an argument of the command line."""
    wanted = tuple(sys.argv[1:]) or ("",)
    return [_compare(name, task) for name, task in _tasks().items() if name.startswith(wanted)]


def _tasks() -> dict[str, Callable[[], object]]:
    tasks: dict[str, Callable[[], object]] = {"design of a motion of 7 joints": _design}
    folder = os.environ.get("ROBOT_DYN_ID_DATA")
    for name, file in SETS.items() if folder else ():
        path = Path(str(folder)) / name
        tasks[f"identify {name}, model chosen"] = lambda path=path, file=file: _identify(path, file, rdi.Settings())
    if folder:
        path, file = Path(folder) / "panda_gaz2019", SETS["panda_gaz2019"]
        pinned, consistent = (ESTIMATORS[name]() for name in ("weighted", "consistent"))
        terms = tuple(rdi.TERMS[name]() for name in ("viscous", "coulomb", "offset"))
        for name, settings in (
            ("bootstrap, 100 draws, weighted", rdi.Settings(estimator=pinned, terms=terms, bootstrap=100)),
            ("bootstrap, 100 draws, consistent", rdi.Settings(estimator=consistent, terms=terms, bootstrap=100)),
            ("pinned model, weighted", rdi.Settings(estimator=pinned, terms=terms)),
        ):
            tasks[name] = lambda settings=settings: _identify(path, file, settings)
    return tasks


def _identify(folder: Path, file: str, settings: rdi.Settings) -> tuple[Array, Array]:
    robot, recording = rdi.load_robot(str(folder / "model.urdf")), rdi.open_recording(str(folder / file))
    parameters = rdi.identify(robot, recording, settings).parameters
    return parameters.estimate.values, parameters.estimate.covariance


def _design() -> Array:
    return rdi.design(rdi.load_robot(ARM), acceleration={"all": 6.0}, clearance=0.0, search=SEARCH).design.coefficients


def _compare(name: str, task: Callable[[], object]) -> Goal:
    """Median wall times of a task on one core and on all, which take turns."""
    every = os.sched_getaffinity(0)
    seconds: dict[int, list[float]] = {1: [], len(every): []}
    results = set()
    task()
    for _ in range(REPEATS):
        for count, times in seconds.items():
            os.sched_setaffinity(0, sorted(every)[:count])
            start = time.perf_counter()
            results.add(pickle.dumps(task()))
            times.append(time.perf_counter() - start)
    os.sched_setaffinity(0, every)
    assert len(results) == 1, "the results differ"
    one, all_cores = (median(times) for times in seconds.values())
    return at_least(name, one / all_cores, NOT_SLOWER, one_core_s=one, all_cores_s=all_cores, cores=len(every))


if __name__ == "__main__":
    script(measure)
