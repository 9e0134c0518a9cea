# SPDX-License-Identifier: Apache-2.0
"""Goals 1 and 2: the stacked rigid-body regressor against loops over Pinocchio and against FIGAROH."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from measuring import Goal, at_least, at_most, interleaved, one_thread, script, skipped

if __name__ == "__main__":
    one_thread()

import arms
import numpy as np
import pinocchio

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.regressor import Regressor

SIZES = (10_000, 100_000)
DEFINITIONS = (
    "BOOST_MPL_LIMIT_LIST_SIZE=30",
    "BOOST_MPL_LIMIT_VECTOR_SIZE=30",
    "BOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
    "BOOST_FUSION_INVOKE_MAX_ARITY=12",
    "PINOCCHIO_ENABLE_TEMPLATE_INSTANTIATION",
)
"""Definitions that Pinocchio's CMake targets give to the programs that use its headers."""

LOOP, CPP, FIGAROH, EQUAL = 7.0, 3.5, {10_000: 18.0, 100_000: 40.0}, 1e-10


def measure() -> list[Goal]:
    """All arms and sizes."""
    return [goal for arm in arms.ARMS for size in SIZES for goal in _measure(arm, size)]


def _measure(arm: str, size: int) -> list[Goal]:
    ours, theirs = Regressor(arms.model(arm)), arms.peer(arm)
    motion = arms.motion(ours.model, size)
    states = arms.by_sample(motion)
    n = len(ours.model.joint_names)
    columns, rows = np.zeros((10 * n, n, size)), np.zeros((size, n, 10 * n))
    contenders: dict[str, Callable[[], object]] = {
        "ours": lambda: ours.dense(motion, columns),
        "Python loop over Pinocchio": lambda: arms.pinocchio_loop(theirs, states, rows),
    }
    absent = {}
    for name, prepare in (("C++ loop over Pinocchio", _compiled_loop), ("FIGAROH", _figaroh)):
        prepared = prepare(arm, states, rows)
        if isinstance(prepared, str):
            absent[name] = prepared
        else:
            contenders[name] = prepared
    seconds = interleaved(contenders)
    contenders["Python loop over Pinocchio"]()
    difference = float(np.abs(columns.transpose(2, 1, 0) - rows).max() / np.abs(rows).max())
    wanted = {"Python loop over Pinocchio": LOOP, "C++ loop over Pinocchio": CPP, "FIGAROH": FIGAROH[size]}
    title = f"regressor {arm} N={size:.0e}".replace("e+0", "e")
    goals = [
        skipped(f"{title}: {name}", goal, absent[name])
        if name in absent
        else at_least(
            f"{title}: {name}",
            seconds[name] / seconds["ours"],
            goal,
            ours_us=1e6 * seconds["ours"] / size,
            peer_us=1e6 * seconds[name] / size,
        )
        for name, goal in wanted.items()
    ]
    return [*goals, at_most(f"{title}: difference from Pinocchio", difference, EQUAL)]


def _compiled_loop(arm: str, states: tuple[Array, Array, Array], rows: Array) -> Callable[[], object] | str:
    """The C++ loop, or why there is none."""
    prefix = Path(pinocchio.__file__).resolve().parents[4]
    if not any((prefix / "include").glob("boost/version.hpp")):
        return "Boost's headers are not installed (pip install cmeel-boost)"
    folders = [prefix / "include", prefix / "include" / "eigen3", Path("/usr/include/eigen3")]
    if not (folders[0] / "pinocchio" / "algorithm" / "regressor.hpp").is_file():
        return "Pinocchio's headers are not installed"
    if not any((folder / "Eigen" / "Dense").is_file() for folder in folders):
        return "Eigen's headers are not installed (pip install cmeel-eigen)"
    target = Path(tempfile.gettempdir()) / f"robot_dyn_id_pinocchio_loop_{pinocchio.__version__}.so"
    if not target.is_file():
        made = _compile(folders, prefix / "lib", target)
        if made:
            return made
    library = ctypes.CDLL(str(target))

    def run() -> None:
        library.regressors(ctypes.c_long(len(rows)), *(ctypes.c_void_p(x.ctypes.data) for x in (*states, rows)))

    with tempfile.TemporaryDirectory() as folder:
        arms.peer(arm).saveToText(f"{folder}/model")
        library.load(f"{folder}/model".encode())
    return run


def _compile(folders: list[Path], libraries: Path, target: Path) -> str:
    """Build the C++ loop; the reason if it cannot be built."""
    command = [
        "g++",
        "-O3",
        "-DNDEBUG",
        "-std=c++17",
        *(f"-D{definition}" for definition in DEFINITIONS),
        "-shared",
        "-fPIC",
        str(Path(__file__).with_name("pinocchio_loop.cpp")),
        *(f"-I{folder}" for folder in folders if folder.is_dir()),
        f"-L{libraries}",
        f"-Wl,-rpath,{libraries}",
        "-lpinocchio_default",
        "-lboost_serialization",
        "-o",
        str(target),
    ]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except OSError as error:
        return f"g++: {error.strerror}"
    except subprocess.CalledProcessError as error:
        return f"the C++ loop cannot be built: {next(iter(error.stderr.splitlines()), '')[:120]}"
    return ""


def _figaroh(arm: str, states: tuple[Array, Array, Array], rows: Array) -> Callable[[], object] | str:
    """FIGAROH's regressor builder, or why there is none."""
    try:
        from figaroh.tools.regressor import build_regressor_basic
    except ImportError as error:
        return f"FIGAROH does not import: {error}"
    robot = SimpleNamespace(model=arms.peer(arm))  # its own class loads meshes
    robot.data = robot.model.createData()
    parameters = {"is_joint_torques": True, "act_idxv": list(range(robot.model.nv))}
    return lambda: build_regressor_basic(robot, *states, parameters)


if __name__ == "__main__":
    script(measure)
