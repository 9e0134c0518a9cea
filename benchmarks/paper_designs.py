# SPDX-License-Identifier: Apache-2.0
"""Excitations of published identifications, designed by the package from the papers' inputs alone.

Every figure is computed again with plain numpy at the samples of the paper: analytic columns of the two-joint arms,
Pinocchio's regressor for the others; nothing of what the search saw is used but the coefficients that it found.
"""

from __future__ import annotations

import argparse

from measuring import Goal, at_most, one_thread, table

if __name__ == "__main__":
    one_thread()

import numpy as np
import pinocchio

from robot_dyn_id.excitation.design.search import Design
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.papers.flexible2r import reproduction as flexible2r
from robot_dyn_id.papers.inputs import optimize_design, read_settings_of
from robot_dyn_id.papers.logistic2r import reproduction as logistic2r
from robot_dyn_id.papers.planar3r import reproduction as planar3r
from robot_dyn_id.papers.space6r import reproduction as space6r


def rigid(paper: str, gravity: float, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
    """Pinocchio's regressor of a fixed-base arm at N samples, shape (N, n, 10 n)."""
    model = pinocchio.buildModelFromUrdf(str(find_shared_file(f"urdf/{paper}.urdf")))
    model.gravity.linear = np.array([0.0, 0.0, gravity])
    data, rows = model.createData(), []
    for here, v, a in zip(q.T, dq.T, ddq.T, strict=True):
        turns = [
            part
            for angle, joint in zip(here, list(model.joints)[1:], strict=True)
            for part in ((np.cos(angle), np.sin(angle)) if joint.nq == 2 else (angle,))
        ]
        rows.append(pinocchio.computeJointTorqueRegressor(model, data, np.array(turns), v, a).copy())
    return np.array(rows)


def leftmost(rows: np.ndarray) -> list[int]:
    """The independent columns that row reduction takes."""
    chosen: list[int] = []
    directions = np.zeros((len(rows), 0))
    for column in range(rows.shape[1]):
        left = rows[:, column]
        if (size := np.linalg.norm(left)) < 1e-9:
            continue
        for _ in range(2):
            left = left - directions @ (directions.T @ left)
        if np.linalg.norm(left) > 1e-8 * size:
            chosen.append(column)
            directions = np.column_stack([directions, left / np.linalg.norm(left)])
    return chosen


def beyond(motion: tuple[np.ndarray, ...], limits: tuple[np.ndarray, ...]) -> float:
    """Largest violation by a motion of lower, upper, velocity and acceleration limits; feasible at 0 or less."""
    (q, dq, ddq), (lower, upper, velocity, acceleration) = motion, limits
    ends = max((lower - q.min(axis=1)).max(), (q.max(axis=1) - upper).max())
    rates = [
        (np.abs(values).max(axis=1) / limit - 1.0).max() for values, limit in ((dq, velocity), (ddq, acceleration))
    ]
    return float(max(ends, *rates))


def sines(joint: str, **given: object) -> tuple[float, int, Design]:
    """Condition number of one period of a designed sine at 1 kHz, raw, number of its columns, and the design."""
    result = optimize_design("planar3r", planar3r.plan(joint), **given)
    motion, number = result.excitation, int(joint[-1]) - 1
    w = 2.0 * np.pi / motion.period
    t = np.arange(0.0, motion.period, 1e-3)
    q = np.repeat(motion.center[:, None], len(t), axis=1)
    dq, ddq = np.zeros_like(q), np.zeros_like(q)
    a = motion.amplitude[number]
    q[number] += a * np.sin(w * t)
    dq[number], ddq[number] = a * w * np.cos(w * t), -a * w**2 * np.sin(w * t)
    friction = np.zeros((len(t), 3, 2))
    friction[:, number] = np.column_stack([dq[number], np.sign(dq[number])])
    rows = np.concatenate([rigid("planar3r", -9.8, q, dq, ddq), friction], axis=2).reshape(3 * len(t), -1)
    columns = leftmost(rows)
    return float(np.linalg.cond(rows[:, columns])), len(columns), result


def strokes(joint: str, window: float | None = None) -> tuple[float, float, Design]:
    """Condition number of designed logistic strokes at 100 Hz, how far they are beyond the limits, and the design."""
    width = window or read_settings_of("logistic2r").demand.window
    result = optimize_design("logistic2r", logistic2r.plan(joint, window=width))
    span, w = float(result.excitation.span[0]), float(result.excitation.steepness[0])
    period, step = 40.0 / w, 0.01
    half = round(width / 2.0 / step)
    low = float(result.excitation.center[0]) - span / 2.0

    def motion(t: np.ndarray) -> tuple[np.ndarray, ...]:
        rising = t < period / 2.0
        u = span / (1.0 + np.exp(np.where(rising, -(w * t - w * period / 4.0), w * t - 3.0 * w * period / 4.0)))
        dq = np.where(rising, 1.0, -1.0) * w / span * u * (span - u)
        return low + u, dq, (w / span) ** 2 * u * (span - u) * (span - 2.0 * u)

    around = step * np.arange(-half, half + 1)
    q, _, ddq = motion(np.concatenate([period / 4.0 + around, 3.0 * period / 4.0 + around]))
    rows = np.column_stack([ddq, 9.8 * np.cos(q), -9.8 * np.sin(q)])
    whole = tuple(values[None] for values in motion(np.arange(0.0, period, 1e-3)))
    room = tuple(np.array([x]) for x in (0.0, np.pi, np.pi / 6.0, np.pi / 15.0))
    return float(np.linalg.cond(rows)), beyond(whole, room), result


def polynomials(case: str, raw: bool, degree: int) -> tuple[float, float, list[int]]:
    """Condition number of the friction columns of designed polynomials at the 251 samples of 5 s at 50 Hz.

    Returns:
        It, raw in deg/s or of unit-norm columns; how far the motion is beyond the limits; at how many of the samples
        the sign of every joint's velocity is 0. As in the paper t = mod(time, T), so that the last sample is the first
        one, and both have the sign 0. A turn that falls on a sample has a velocity of rounding errors, or 0 by luck:
        it counts as the rounding error that it is, with a sign. With 0 there, degree 8 has 3.3061 for 3.2882.
    """
    plan = flexible2r.plan(case, raw=raw, degree=degree)
    motion = flexible2r.design_from_the_start(optimize_design("flexible2r", plan).excitation)
    s = np.polynomial.Polynomial([0.0, 1.0 / 5.0])
    shapes = [_choose(degree, m) * s**m * (1.0 - s) ** (degree - m) for m in range(degree + 1)]
    curves = [sum(c * shape for c, shape in zip(row, shapes, strict=True)) for row in motion.coefficients]
    t = np.mod(np.arange(251) / 50.0, 5.0)
    velocities = [curve.deriv()(t) for curve in curves]
    signs = [np.where(t == 0.0, 0.0, np.where(v < 0.0, -1.0, 1.0)) for v in velocities]
    blocks = [np.column_stack([np.rad2deg(v) if raw else v, sign]) for v, sign in zip(velocities, signs, strict=True)]
    rows = np.zeros((251 * len(blocks), 2 * len(blocks)))
    for j, block in enumerate(blocks):
        rows[251 * j : 251 * (j + 1), 2 * j : 2 * j + 2] = block
    rows = rows if raw else rows / np.linalg.norm(rows, axis=0)
    fine = np.linspace(0.0, 5.0, 5001)
    whole = tuple(
        np.array([curve.deriv(d)(fine) if d else curve(fine) + flexible2r.START for curve in curves]) for d in range(3)
    )
    table_1 = {"joint1": (30.0, 150.0, 90.0, 40.0), "joint2": (-100.0, 100.0, 100.0, 45.0)}
    limits = np.deg2rad([table_1[name] for name in flexible2r.JOINTS[case]]).T
    return float(np.linalg.cond(rows)), beyond(whole, tuple(limits)), [int((sign == 0.0).sum()) for sign in signs]


def _choose(n: int, k: int) -> float:
    return float(np.prod([(n - i) / (i + 1) for i in range(k)]))


def series() -> tuple[float, float, float, int]:
    """Designed Fourier series, 10 s at 100 Hz: condition number raw and of unit-norm columns, how far it is
    beyond the limits, and the number of columns."""
    plan = space6r.plan()
    motion = optimize_design("space6r", plan).excitation
    k = np.arange(1, 6)[:, None]
    a, b = motion.coefficients[:, :5], motion.coefficients[:, 5:]

    def at(t: np.ndarray) -> tuple[np.ndarray, ...]:
        w = 2.0 * np.pi * k / 10.0
        s, c = np.sin(w * t), np.cos(w * t)
        return motion.center[:, None] + a @ s + b @ c, (a @ (w * c)) - b @ (w * s), -(a @ (w**2 * s)) - b @ (w**2 * c)

    q, dq, ddq = at(np.arange(1000) / 100.0)
    own = [values.T[:, :, None] * np.eye(6) for values in (ddq, np.sign(dq), dq, dq**2, dq**3)]
    rows = np.concatenate([rigid("space6r", -9.81, q, dq, ddq), *own], axis=2).reshape(6000, -1)
    columns = leftmost(rows)
    limits = (
        -np.deg2rad([170, 110, 140, 170, 170, 175]),
        np.deg2rad([170, 110, 140, 170, 170, 175]),
        np.array([1.2, 1.2, 1.5, 2, 2, 2]),
        np.array([3.0, 3, 4, 6, 6, 6]),
    )
    chosen = rows[:, columns]
    raw, scaled = np.linalg.cond(chosen), np.linalg.cond(chosen / np.linalg.norm(chosen, axis=0))
    return float(raw), float(scaled), beyond(at(np.arange(0.0, 10.0, 1e-3)), limits), len(columns)


def of_planar3r() -> list[Goal]:
    """Sines with posture and frequency free; the paper has no limits."""
    goals = []
    for joint, goal in planar3r.TARGETS["condition numbers"].items():
        figure, columns, result = sines(joint)
        w = 2.0 * np.pi / result.excitation.period
        goals.append(
            at_most(
                f"planar3r, {joint}: condition number, raw",
                figure,
                goal,
                published=planar3r.PUBLISHED["condition numbers"][joint],
                columns=columns,
                frequency=float(w),
            )
        )
    return goals


def of_logistic2r() -> list[Goal]:
    """Sum of both joints' condition numbers."""
    (first, one, _), (second, two, _) = strokes("joint2"), strokes("joint1")
    return [
        at_most(
            "logistic2r: sum of the condition numbers, raw",
            first + second,
            logistic2r.TARGETS["condition"],
            figure=f"{first + second:.3f}",
            beyond_limits=max(one, two),
        )
    ]


def of_flexible2r() -> list[Goal]:
    """Friction of the links: the paper's own form and figure, and more degrees of freedom."""
    goals = []
    best, width = flexible2r.TARGETS["optimum"], flexible2r.OPTIMUM_ERROR
    for case, goal in flexible2r.TARGETS["degree 10"].items():
        figure, out, zeros = polynomials(case, True, 8)
        goals.append(
            at_most(
                f"flexible2r, {case}, degree 8: raw condition number less {best}, absolute",
                abs(figure - best),
                width,
                figure=f"{figure:.5f}",
                published=flexible2r.PUBLISHED["friction"][case],
                beyond_limits=out,
                zeros=zeros,
            )
        )
        figure, out, zeros = polynomials(case, False, 10)
        goals.append(
            at_most(
                f"flexible2r, {case}, degree 10: condition number, unit-norm columns",
                figure,
                goal,
                beyond_limits=out,
                zeros=zeros,
            )
        )
    return goals


def of_space6r() -> list[Goal]:
    """Fourier series with the limits of the design file."""
    raw, scaled, out, columns = series()
    return [
        at_most(
            "space6r: condition number, raw",
            raw,
            space6r.TARGETS["condition"],
            columns=columns,
            unit_norm=scaled,
            beyond_limits=out,
        )
    ]


PARTS = {"planar3r": of_planar3r, "logistic2r": of_logistic2r, "flexible2r": of_flexible2r, "space6r": of_space6r}


def main() -> None:
    """Run the requested measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("papers", nargs="*", help=f"some of {', '.join(PARTS)}; all by default")
    for paper in parser.parse_args().papers or PARTS:
        print(table(PARTS[paper]()), flush=True)


if __name__ == "__main__":
    main()
