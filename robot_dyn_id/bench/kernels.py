# SPDX-License-Identifier: Apache-2.0
"""Speed of the kernels of a 7-axis arm as ratios to peers in the same run: Pinocchio, FIGAROH and MuJoCo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.bench.measuring import REPEATS, BenchFigure, Timing, compute_ratio, measure_interleaved
from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.problem import UnfilteredProblem
from robot_dyn_id.dynamics.regressor import Motion, Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Offset, Viscous
from robot_dyn_id.estimators.factors import Factors
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.excitation.design.information import Information
from robot_dyn_id.excitation.design.objectives import condition
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.model.robot import RobotModel, parse_with_pinocchio
from robot_dyn_id.online.recursion import RecursiveLeastSquares
from robot_dyn_id.progress import Progress, Stage, ignore_progress
from robot_dyn_id.simulation.batch_plant import BatchPlant
from robot_dyn_id.simulation.plant import Plant, make_nominal_dynamics

PERIOD_SAMPLES, FEWER_SAMPLES = 1000, 200
"""Samples of a period of motion, for a peer and for the objective of designs."""

STEPS, UPDATES = 2000, 500
"""Simulated steps of 1 ms, and updates of a recursive estimate, of one run."""

UPDATE_RATE = 60_000.0
"""Rate of recursive updates that is to be possible [Hz]."""

ROBOTS, BATCH_STEPS = 512, 50
"""Robots that are simulated at once, and steps of 1 ms of one run."""

VISCOUS = 1.0
"""Friction of the simulated arm, which MuJoCo has too [N m s/rad]."""


@dataclass(frozen=True)
class Arm:
    """The arm that is measured, with friction, along a random motion.

    Attributes:
        regressor: its regressor, with viscous and Coulomb friction and an offset on every joint.
        independent: indices of the independent columns.
        motion: the motion.
        torque: torque along the motion [N m], shape (n, N).
    """

    regressor: Regressor
    independent: Integers
    motion: Motion
    torque: Array

    @classmethod
    def from_samples(cls, samples: int) -> Arm:
        """The shared 7-axis arm along `samples` samples."""
        model = RobotModel.from_file(find_shared_file("urdf/arm7.urdf"))
        regressor = Regressor(model, place_terms_on_joints(model, (Viscous(), Coulomb(), Offset())))
        motion = Motion(*draw_random_fourier(model, 1).evaluate(np.linspace(0.0, 10.0, samples))[:3])
        torque = regressor.torque(motion, np.random.default_rng(0).normal(size=len(regressor.names)))
        return cls(regressor, compute_base_parameters(regressor).independent, motion, torque)

    @property
    def model(self) -> RobotModel:
        """The robot."""
        return self.regressor.model


def measure_kernels(samples: int, repeats: int = REPEATS, progress: Progress = ignore_progress) -> list[BenchFigure]:
    """Ratios of kernels to their peers.

    Args:
        samples: number of samples of the motion.
        repeats: measured runs of each contender.
        progress: callback that receives every stage of the work.
    """
    arm = Arm.from_samples(samples)
    figures: list[BenchFigure] = []
    parts = (
        ("regressor and estimation", _estimation),
        ("base parameters", _base_parameters),
        ("forward dynamics and simulation", _simulation),
        ("excitation objective", _objective),
        ("recursive estimation", _online),
    )
    for number, (name, measure) in enumerate(parts):
        progress(Stage("measuring kernels", number, len(parts), name))
        figures += measure(arm, repeats)
    return figures


def _estimation(arm: Arm, repeats: int) -> list[BenchFigure]:
    """Stacked regressor, and samples to parameters."""
    rigid, n, samples = Regressor(arm.model), len(arm.model.joint_names), len(arm.motion)
    dense, rows = np.zeros((10 * n, n, samples)), np.zeros((samples, n, 10 * n))
    problem = UnfilteredProblem.from_samples(arm.regressor, arm.independent, arm.motion, arm.torque)
    loop, ones = _pinocchio_loop(arm, rows), np.ones(n)

    def stacked_least_squares() -> None:
        loop()
        friction = arm.regressor.dense(arm.motion)[10 * n :].transpose(2, 1, 0)
        stack = np.concatenate([rows, friction], axis=2).reshape(samples * n, -1)
        np.linalg.lstsq(stack[:, arm.independent], arm.torque.T.ravel(), rcond=None)

    contenders: dict[str, Callable[[], object]] = {
        "regressor": lambda: rigid.dense(arm.motion, dense),
        "loop": loop,
        "qr": lambda: Factors.from_problem(problem, method="qr").solve(ones),
        "gram": lambda: Factors.from_problem(problem, method="gram").solve(ones),
        "lstsq": stacked_least_squares,
    }
    figaroh = _figaroh(arm)
    if not isinstance(figaroh, str):
        contenders |= figaroh
    found = measure_interleaved(contenders, repeats)
    theirs: dict[str, Timing | str] = {
        name: figaroh if isinstance(figaroh, str) else found[name] for name in ("figaroh regressor", "figaroh")
    }
    goal = 40.0 if samples >= 100_000 else 18.0
    return [
        compute_ratio("stacked regressor against a Python loop over Pinocchio", found["loop"], found["regressor"], 7.0),
        compute_ratio("stacked regressor against FIGAROH", theirs["figaroh regressor"], found["regressor"], goal),
        compute_ratio("samples to parameters by QR against loop and lstsq", found["lstsq"], found["qr"], 15.0),
        compute_ratio("samples to parameters by Gram against loop and lstsq", found["lstsq"], found["gram"], 30.0),
        compute_ratio("samples to parameters by QR against FIGAROH", theirs["figaroh"], found["qr"], 100.0),
        compute_ratio("samples to parameters by Gram against FIGAROH", theirs["figaroh"], found["gram"], 200.0),
    ]


def _base_parameters(arm: Arm, repeats: int) -> list[BenchFigure]:
    found = measure_interleaved({"ours": lambda: compute_base_parameters(arm.regressor)}, 3 * repeats)["ours"]
    return [BenchFigure("base parameters with friction", 1e3 * found.seconds, "ms", 5.0, True, found.spread)]


def _simulation(arm: Arm, repeats: int) -> list[BenchFigure]:
    """Forward dynamics of many states from base parameters, and steps of a simulation."""
    import pinocchio

    rigid, model = Regressor(arm.model), arm.model
    base = compute_base_parameters(rigid)
    ours = Dynamics(rigid, base.independent, base.mapping @ model.inertial_parameters)
    q, dq = (np.ascontiguousarray(values.T) for values in (arm.motion.q, arm.motion.dq))
    tau, out = 20.0 * np.random.default_rng(1).normal(size=q.shape), np.empty_like(q)
    peer = _pinocchio_model(model)
    data = peer.createData()

    def loop() -> None:
        for k in range(len(q)):
            out[k] = pinocchio.aba(peer, data, q[k], dq[k], tau[k])

    n = len(model.joint_names)
    start = np.linspace(-0.5, 0.5, n)
    simulated = make_nominal_dynamics(model, np.full(n, VISCOUS), np.zeros(n), 0.01)
    plant = Plant(simulated, start)
    many = BatchPlant(simulated, np.tile(simulated.parameters, (ROBOTS, 1)), start, threads=1)
    every, rest = np.ones(ROBOTS, dtype=bool), np.zeros_like(start)

    def step() -> None:
        plant.q[:], plant.dq[:] = start, 0.0
        plant.advance(np.zeros(n), 1e-3 * STEPS)

    def step_all() -> None:
        many.place(every, start, rest)
        for _ in range(BATCH_STEPS):
            many.advance(np.zeros_like(many.q), 1e-3)

    contenders: dict[str, Callable[[], object]] = {
        "batch": step_all,
        "ours": lambda: ours.forward_dynamics(q, dq, tau),
        "aba": loop,
        "steps": step,
    }
    if hasattr(pinocchio, "abaInParallel"):
        pool, states = pinocchio.ModelPool(peer, 1), [np.asfortranarray(values.T) for values in (q, dq, tau)]
        columns = np.empty_like(states[0])
        contenders["parallel"] = lambda: pinocchio.abaInParallel(1, pool, *states, columns)
    mujoco = _mujoco(model, start)
    if not isinstance(mujoco, str):
        contenders["mujoco"] = mujoco
    found = measure_interleaved(contenders, repeats)
    parallel: Timing | str = found.get("parallel", "this Pinocchio has no abaInParallel")
    theirs: Timing | str = mujoco if isinstance(mujoco, str) else found["mujoco"]
    return [
        compute_ratio("forward dynamics against pin.aba", found["aba"], found["ours"], 3.5),
        compute_ratio("forward dynamics against pin.abaInParallel, one thread", parallel, found["ours"], 2.3),
        compute_ratio(
            "Runge-Kutta steps of one robot with viscous friction against MuJoCo", theirs, found["steps"], 2.0
        ),
        compute_ratio(
            f"Runge-Kutta steps of {ROBOTS} robots at once against MuJoCo",
            theirs if isinstance(theirs, str) else _scaled(theirs, 1.0 / STEPS),
            _scaled(found["batch"], 1.0 / (BATCH_STEPS * ROBOTS)),
            2.0,
        ),
    ]


def _scaled(timing: Timing, factor: float) -> Timing:
    """Time of a part of the work."""
    return Timing(factor * timing.seconds, timing.spread)


def _objective(arm: Arm, repeats: int) -> list[BenchFigure]:
    """Condition number of a period of motion, by Gram matrices and by a loop with an SVD."""
    rigid, n = Regressor(arm.model), len(arm.model.joint_names)
    base = compute_base_parameters(rigid)
    t = 10.0 * np.arange(PERIOD_SAMPLES) / PERIOD_SAMPLES
    motion = Motion(*draw_random_fourier(arm.model, 1).evaluate(t)[:3])
    few = motion.take(slice(None, None, PERIOD_SAMPLES // FEWER_SAMPLES))
    rows, ours = np.zeros((PERIOD_SAMPLES, n, 10 * n)), Information(rigid, base, np.ones(n))
    loop = _pinocchio_loop(Arm(rigid, base.independent, motion, np.empty(0)), rows)

    def peer() -> float:
        loop()
        stack = rows.reshape(PERIOD_SAMPLES * n, -1)[:, base.independent]
        return float(np.linalg.cond(stack / np.linalg.norm(stack, axis=0)))

    contenders: dict[str, Callable[[], object]] = {
        "peer": peer,
        "ours": lambda: condition(ours.matrix(motion)),
        "few": lambda: condition(ours.matrix(few)),
    }
    found = measure_interleaved(contenders, 3 * repeats)
    return [
        compute_ratio("excitation objective against loop and SVD", found["peer"], found["ours"], 9.0),
        compute_ratio("excitation objective, 200 of 1000 samples", found["peer"], found["few"], 25.0),
    ]


def _online(arm: Arm, repeats: int) -> list[BenchFigure]:
    """Recursive update of all base parameters, against a QR of the factor and the new rows."""
    p, n = len(arm.independent), len(arm.model.joint_names)
    rng = np.random.default_rng(0)
    rows, targets = rng.normal(size=(UPDATES, n, p)), rng.normal(size=(UPDATES, n))
    ours = RecursiveLeastSquares(np.zeros(p), np.full(p, 100.0))

    def update() -> None:
        for block, target in zip(rows, targets, strict=True):
            ours.update(block, target, 0.9999)

    def restack() -> None:
        factor: Any = np.eye(p + 1)
        for block, target in zip(rows, targets, strict=True):
            factor = np.linalg.qr(np.vstack([0.9999 * factor, np.column_stack([block, target])]), mode="r")

    found = measure_interleaved({"ours": update, "peer": restack}, repeats)
    own = found["ours"]
    return [
        BenchFigure("recursive update", 1e6 * own.seconds / UPDATES, "us", 1e6 / UPDATE_RATE, True, own.spread),
        compute_ratio("recursive update against a QR by NumPy", found["peer"], own, 5.0),
    ]


def _pinocchio_model(model: RobotModel) -> Any:
    return parse_with_pinocchio(model.urdf, model.name, model.gravity)


def _pinocchio_loop(arm: Arm, rows: Array) -> Callable[[], None]:
    """One regressor after the other, into `rows`, shape (N, n, 10 n)."""
    import pinocchio

    peer = _pinocchio_model(arm.model)
    data = peer.createData()
    q, dq, ddq = (np.ascontiguousarray(values.T) for values in (arm.motion.q, arm.motion.dq, arm.motion.ddq))

    def loop() -> None:
        for k in range(len(rows)):
            rows[k] = pinocchio.computeJointTorqueRegressor(peer, data, q[k], dq[k], ddq[k])

    return loop


def _figaroh(arm: Arm) -> dict[str, Callable[[], object]] | str:
    """FIGAROH's regressor, and its way from samples to base parameters; or why there is neither."""
    try:
        from figaroh.tools.qrdecomposition import double_QR
        from figaroh.tools.regressor import build_regressor_basic, build_regressor_reduced, get_index_eliminate
    except ImportError as error:
        return f"FIGAROH does not import: {error}"
    n, torque = len(arm.model.joint_names), arm.torque.ravel()
    robot = SimpleNamespace(model=_pinocchio_model(arm.model))  # all that it needs; its own class loads meshes
    robot.data = robot.model.createData()
    states = [np.ascontiguousarray(values.T) for values in (arm.motion.q, arm.motion.dq, arm.motion.ddq)]
    wanted = {"is_joint_torques": True, "has_friction": True, "has_joint_offset": True, "act_idxv": list(range(n))}
    rigid = {"is_joint_torques": True, "act_idxv": list(range(n))}
    standard = dict.fromkeys((f"p{number}" for number in range(13 * n)), 0.0)

    def whole() -> None:
        regressor = build_regressor_basic(robot, *states, wanted)
        gone, left = get_index_eliminate(regressor, standard, 1e-6)
        double_QR(torque, build_regressor_reduced(regressor, gone), left, standard)

    return {
        "figaroh regressor": lambda: build_regressor_basic(robot, *states, rigid),
        "figaroh": whole,
    }


def _mujoco(model: RobotModel, start: Array) -> Callable[[], object] | str:
    """The simulated steps in MuJoCo without contact and constraints, or why not."""
    try:
        import mujoco
    except ImportError:
        return "MuJoCo is not installed"
    try:
        spec = mujoco.MjSpec.from_string(model.urdf.replace("package://", ""))
        spec.compiler.discardvisual = True
        theirs = spec.compile()
    except ValueError as error:
        return f"MuJoCo refuses the URDF: {error}"
    theirs.opt.integrator, theirs.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, 1e-3
    theirs.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    theirs.dof_damping[:] = VISCOUS
    data = mujoco.MjData(theirs)

    def run() -> None:
        data.qpos[:], data.qvel[:] = start, 0.0
        mujoco.mj_step(theirs, data, nstep=STEPS)

    return run
