# SPDX-License-Identifier: Apache-2.0
"""Do the 95 % intervals of the automatic model hold the truth, by kind of parameter, with the whole choice repeated?

Every draw is another robot: an arm whose bodies are those of its URDF, deformed by about 10 %, with two thirds of the
families of terms, each with levels of its own, and a random motion of 30 s at 100 Hz. It is recorded with white noise,
with noise that is correlated over 0.1 s, and with resampled residuals of a measured arm (of the folder that
ROBOT_DYN_ID_DATA names, else left out). Of each recording filter, terms, couplings, tilt, weights and strength are
chosen and the model is fitted, as `identify` does it without options, and its intervals are compared with the truth:
by kind of parameter, and apart for parameters that are truly zero, which no interval from zero on can miss from above:
the goals are for the others.

    python benchmarks/automatic_intervals.py --draws 34        # of each of three arms: 102 for each noise
"""

from __future__ import annotations

from measuring import Goal, append_row, at_least, at_most, one_thread, read_rows, skipped, table

if __name__ == "__main__":
    one_thread()

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import arms
import numpy as np
from uncertainty import measured_residuals

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.consistency import convert_to_parameters, pseudo_inertia
from robot_dyn_id.dynamics.prior import make_nominal_prior
from robot_dyn_id.dynamics.regressor import Motion, Regressor, TermColumn, place_terms_on_joints
from robot_dyn_id.dynamics.terms import TERMS
from robot_dyn_id.estimators import Consistent
from robot_dyn_id.excitation import FourierSeries, draw_random_fourier
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.identification.selection.choice import choose_model
from robot_dyn_id.identification.selection.options import Options
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.signals.trials import FilteredTrials, SignalSettings
from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulate_recording

ARMS = ("planar3r", "ur5", "panda")
NOISES = ("white", "AR(1) 0.1 s", "measured")
RATE, DURATION, PERIOD = 100.0, 30.0, 10.0
BLOCK_S = 2.0
"""Length of the pieces that measured residuals are drawn in [s]."""

DEFORMATION = 0.1
"""Standard deviation of the entries of the deformation of a body."""

NOISE_SHARE, LEAST_LEVEL = 0.03, 0.1
"""Noise relative to a joint's level: the RMS of the torque of its bodies, at least this share of the mean one."""

FAMILIES: dict[str, dict[str, tuple[float, ...]]] = {
    "simple": {"offset": (0.05,), "viscous": (0.1,), "double_coulomb": (0.03, 0.1)},
    "rotor": {"rotor_inertia": (0.1,)},
    "presliding": {"dahl": (0.0, 0.03, 0.05, 0.03, 0.05, 0.0)},
    "saturating": {"saturating_viscous": (0.05, 0.0, 0.05)},
    "load": {"load_coulomb": (0.05,), "load_dahl": (0.0, 0.0, 0.02, 0.03, 0.0, 0.0)},
}
"""Torque of the columns of each term relative to the level of its joint, multiplied by a factor between 0.5 and 2."""

PRESENT = 2.0 / 3.0
"""Share of the robots that have each family; all have the simple one."""

KINDS = {
    "offset": "offset",
    "viscous": "viscous",
    "double_coulomb": "Coulomb",
    "rotor_inertia": "rotor inertia",
    "dahl": "presliding",
    "saturating_viscous": "saturating",
    "load_coulomb": "load-dependent",
    "load_dahl": "load-dependent",
}
"""Kind of parameter of each term; others are of kind `other`."""

CURVE = "friction curve"
"""Sum of all terms of a joint, at some of its speeds: 1.96 standard deviations by the covariance."""

SPEEDS = (0.1, 0.3, 1.0)
"""Speeds at which friction is compared, as shares of the largest one."""

NORMAL = 1.96
LOWEST, HIGHEST = 0.90, 0.98


@dataclass(frozen=True)
class Robot:
    """A robot of one draw.

    Attributes:
        nominal: description that it is identified with.
        regressor: its true terms.
        parameters: true values of all columns, shape (c,).
        noise: standard deviation of the efforts, shape (n,).
        motion: the motion that is recorded.
        speeds: largest speeds of this motion, shape (n,).
    """

    nominal: RobotModel
    regressor: Regressor
    parameters: Array
    noise: Array
    motion: FourierSeries
    speeds: Array

    @classmethod
    def draw(cls, arm: str, seed: int) -> Robot:
        """Draw a robot and its motion."""
        rng = np.random.default_rng((seed, ARMS.index(arm)))
        model = nominal(arm)
        motion = draw_random_fourier(model, seed, period=PERIOD)
        states = Motion(*motion.evaluate(sample_times(PERIOD, RATE))[:3])
        bodies = deformed(model.inertial_parameters, rng)
        torque = Regressor(model).torque(states, bodies)
        level = np.sqrt(np.mean(torque**2, axis=1))
        level = np.maximum(level, LEAST_LEVEL * level.mean())
        rates = {
            "viscous": np.sqrt(np.mean(states.dq**2, axis=1)),
            "rotor_inertia": np.sqrt(np.mean(states.ddq**2, axis=1)),
            "load_coulomb": level,
            "load_dahl": level,
        }
        present = [name for name in FAMILIES if name == "simple" or rng.uniform() < PRESENT]
        levels = {term: shares for name in present for term, shares in FAMILIES[name].items()}
        regressor = Regressor(
            model, place_terms_on_joints(model, [TERMS[name]() for name in levels]), tuple(bodies.tolist())
        )
        values = []
        for column in regressor.term_columns:
            joint = model.joint_names.index(column.coordinate.name)
            unit = level[joint] / rates.get(column.term.name, np.ones(len(level)))[joint]
            values.append(unit * levels[column.term.name][column.index] * 2.0 ** rng.uniform(-1.0, 1.0))
        speeds = np.abs(states.dq).max(axis=1)
        return cls(model, regressor, np.append(bodies, values), NOISE_SHARE * level, motion, speeds)

    def true_values(self, regressor: Regressor) -> Array:
        """True values of the columns of another regressor; terms that the robot does not have are zero, shape (c,)."""
        inertial = 10 * len(self.nominal.body_names)
        terms = self.parameters[inertial:].tolist()
        known = {_key(column): value for column, value in zip(self.regressor.term_columns, terms, strict=True)}
        return np.append(
            self.parameters[:inertial], [known.get(_key(column), 0.0) for column in regressor.term_columns]
        )


def _key(column: TermColumn) -> tuple[str, str, int]:
    return column.coordinate.name, column.term.name, column.index


@cache
def nominal(arm: str) -> RobotModel:
    """Description that the robots of an arm are identified with."""
    return arms.model(arm) if arm in arms.ARMS else RobotModel.from_file(find_shared_file(f"urdf/{arm}.urdf"))


def deformed(bodies: Array, rng: np.random.Generator) -> Array:
    """Bodies after a random affine deformation of each, which keeps them physically consistent, shape (10 b,)."""
    matrices = pseudo_inertia(bodies.reshape(-1, 10))
    change = np.eye(4) + DEFORMATION * rng.normal(size=(len(matrices), 4, 4))
    change[:, 3, :3] = 0.0
    return convert_to_parameters(change @ matrices @ change.transpose(0, 2, 1)).ravel()


def sensors_of(noise: str, deviations: Array) -> Sensors:
    """Errors of a recording."""
    if noise != "measured":
        return Sensors(deviations, correlation_time=0.0 if noise == "white" else float(noise.split()[1]))
    residuals = measured_residuals()
    assert not isinstance(residuals, str)
    own = residuals[: len(deviations)]
    scaled = own / own.std(axis=1, keepdims=True) * deviations[:, None]
    return Sensors(np.zeros_like(deviations), residuals=scaled, block=BLOCK_S)


def study(arm: str, noise: str, seed: int) -> dict[str, Any]:
    """One robot, recorded and identified.

    Returns:
        Rows [kind, truth, value, standard deviation, low, high], and what was chosen.
    """
    robot = Robot.draw(arm, seed)
    times, sensors = sample_times(DURATION, RATE), sensors_of(noise, robot.noise)
    own = int(np.random.SeedSequence((seed, ARMS.index(arm), NOISES.index(noise))).generate_state(1)[0])
    recording = simulate_recording(robot.regressor, robot.parameters, robot.motion, times, sensors, own)
    trials = FilteredTrials.from_recordings([recording], robot.nominal.joint_names, {}, SignalSettings()).decimated()
    selection = choose_model(trials, robot.nominal, Options(without_blocks=False))
    regressor = selection.regressor
    base = compute_base_parameters(regressor)
    prior = make_nominal_prior(robot.nominal, base.mapping)
    estimate = selection.complete(Consistent()).fit(selection.trials.problem(regressor, base.independent, prior))
    assert estimate.intervals is not None
    inertial = 10 * len(regressor.model.body_names)
    kinds = [
        "inertial" if place < inertial else KINDS.get(regressor.term_columns[place - inertial].term.name, "other")
        for place in base.independent
    ]
    truth = base.mapping @ robot.true_values(regressor)
    columns = (truth, estimate.values, estimate.standard_deviations, *estimate.intervals.T)
    rows = [[kind, *row] for kind, row in zip(kinds, np.transpose(columns).tolist(), strict=True)]
    for share in SPEEDS:
        rest = np.zeros((len(robot.speeds), 1))
        states = Motion(rest, share * robot.speeds[:, None], rest)
        true = _terms_of(robot.regressor, states).T @ robot.parameters[inertial:]
        coefficients = _terms_of(regressor, states)
        at = np.flatnonzero(base.independent >= inertial)
        effects = coefficients[base.independent[at] - inertial]
        found = effects.T @ estimate.values[at]
        sigma = np.sqrt(np.einsum("in,ij,jn->n", effects, estimate.covariance[np.ix_(at, at)], effects))
        for row in zip(true, found, sigma, found - NORMAL * sigma, found + NORMAL * sigma, strict=True):
            rows.append([CURVE, *(float(value) for value in row)])
    present = {_key(column) for column in regressor.term_columns}
    values = robot.parameters[inertial:]
    left_out = [
        KINDS[column.term.name]
        for column, value in zip(robot.regressor.term_columns, values, strict=True)
        if value and _key(column) not in present
    ]
    return {
        "arm": arm,
        "noise": noise,
        "seed": seed,
        "rows": rows,
        "left_out": left_out,
        "strength": selection.strength,
        "tilted": any(one.code == "base_tilted" for one in selection.findings),
        "couplings": [row.name for row in selection.tried if row.step == "coupling" and row.chosen],
    }


def _terms_of(regressor: Regressor, states: Motion) -> Array:
    """Torque of each term column per unit parameter on the joints, shape (t, n)."""
    return np.asarray(regressor.dense(states)[10 * len(regressor.model.body_names) :, :, 0])


def report(found: list[dict[str, Any]]) -> Iterator[Goal]:
    """Print a table of each noise, and yield a goal for each kind of parameter."""
    form = "{:<12} {:<15} {:>6} {:>10} {:>9} {:>9} {:>11} {:>14} {:>9}"
    print(
        form.format("noise", "kind", "count", "intervals", "positive", "zero", "1.96 sigma", "error / half", "left out")
    )
    for noise in NOISES:
        draws = [one for one in found if one["noise"] == noise]
        rows = [row for one in draws for row in one["rows"]]
        left_out = Counter(kind for one in draws for kind in one["left_out"])
        for kind in dict.fromkeys(row[0] for row in rows):
            truth, value, sigma, low, high = np.array([row[1:] for row in rows if row[0] == kind]).T
            slack = 1e-9 * (high - low)
            inside, zero = (low - slack <= truth) & (truth <= high + slack), truth == 0.0
            size = 2.0 * np.abs(value - truth) / np.maximum(high - low, 1e-300)
            shares = [f"{inside[part].mean():.3f}" if part.any() else "-" for part in (zero | ~zero, ~zero, zero)]
            normal = f"{np.mean(np.abs(value - truth) <= NORMAL * sigma):.3f}"
            print(form.format(noise, kind, len(truth), *shares, normal, f"{np.median(size):.2f}", left_out[kind]))
            if not zero.all():
                title, share = f"{noise} noise, {kind}: 95 % intervals that hold the truth", inside[~zero].mean()
                yield at_least(title, share, LOWEST)
                yield at_most(f"{title}, and not too often", share, HIGHEST)
        strengths = Counter(one["strength"] for one in draws)
        print(
            f"{noise}: {len(draws)} draws, strengths {dict(sorted(strengths.items()))}, "
            f"{sum(one['tilted'] for one in draws)} tilted, {sum(bool(one['couplings']) for one in draws)} coupled\n"
        )


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description="Coverage of the 95 % intervals of the automatic model.")
    parser.add_argument("--draws", type=int, default=34, help="robots of each arm and noise")
    parser.add_argument("--first", type=int, default=1, help="seed of the first one")
    parser.add_argument("--out", type=Path, help="file of results, one line each; draws that it has are not repeated")
    arguments = parser.parse_args()
    found = read_rows(arguments.out) if arguments.out else []
    done = {(one["arm"], one["noise"], one["seed"]) for one in found}
    missing = isinstance(measured_residuals(), str)
    noises = [noise for noise in NOISES if noise != "measured" or not missing]
    for seed in range(arguments.first, arguments.first + arguments.draws):
        for arm in ARMS:
            for noise in noises:
                if (arm, noise, seed) not in done:
                    found.append(study(arm, noise, seed))
                    if arguments.out:
                        append_row(arguments.out, found[-1])
    goals = list(report(found))
    if missing:
        goals.append(skipped("measured noise", LOWEST, str(measured_residuals())))
    print(table(goals))


if __name__ == "__main__":
    main()
