# SPDX-License-Identifier: Apache-2.0
"""Prior knowledge of a robot's parameters: its URDF, or a parameter set that was identified earlier."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import InputError
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import ParameterSet

PRIOR_CONTRADICTED = Definition(
    "prior_contradicted",
    Section.ESTIMATES,
    "info",
    "Parameters differ from the prior by more than their own size: the URDF has other axes or lengths, or its "
    "masses are placeholders.",
    "check that the URDF describes this robot (axes, link lengths, tool) and that its masses are realistic",
)

FLOOR = 0.1
"""Least mass and length of a body's scales, as a share of the mean over the robot's bodies."""

CALIBRATION_M = 0.02
"""Distance of a joint in two descriptions of one robot, before and after a calibration [m]."""

CALIBRATION_DEG = 3.0
"""Angle of the axis of a joint in two descriptions of one robot [deg]."""

HIDDEN = 1e-12
"""Singular values of the free columns' mapping below this share of the largest are zero."""


@dataclass(frozen=True)
class Prior:
    """Expected values of all c columns of a regressor, and how large each of them is on this robot.

    Attributes:
        source: what it comes from, for messages.
        values: expected values of the columns, ten inertial parameters per body first, shape (c,).
        scales: size of an error that is as large as the parameter itself, by the robot's own masses and lengths, shape
            (c,); infinite where nothing is known.
        mapping: base = mapping @ full, shape (p, c).
        individual: whether each body's values are known; those of a parameter set may hold only in combination.
    """

    source: str
    values: Array
    scales: Array
    mapping: Array
    individual: bool = True

    @property
    def center(self) -> Array:
        """Expected values of the base parameters, shape (p,)."""
        return np.asarray(self.mapping @ self.values)

    def rows(self, spread: float) -> Array:
        """Independent equations of unit variance on the base parameters, [A b] with A base = b, shape (k, p + 1).

        Args:
            spread: standard deviation of every parameter as a share of its scale. Columns of infinite scale are free,
                and so is every combination of base parameters that they take part in.
        """
        left, covariance = self._determined
        if not len(left):
            return np.zeros((0, len(self.mapping) + 1))
        root = np.linalg.inv(np.linalg.cholesky(covariance)) @ left / spread
        known = np.isfinite(self.scales)
        return np.column_stack([root, root @ self.mapping[:, known] @ self.values[known]])

    def report_contradictions(
        self,
        names: Sequence[str],
        values: Array,
        standard_deviations: Array,
        joints_of: Callable[[Collection[str]], tuple[str, ...]],
    ) -> tuple[Finding, ...]:
        """Finding about base parameters that contradict the prior, if there are any.

        Those are further from the prior, beyond three standard deviations, than they are large on this robot. A URDF of
        other axes or lengths makes such ones while the torque may still be predicted, and so does one whose masses are
        less than half of the robot's.

        Args:
            names: names of the base parameters, p.
            values: estimated values, shape (p,).
            standard_deviations: standard deviations of the estimates, shape (p,); infinite ones are not compared.
            joints_of: joints that the parameters of these names belong to.
        """
        known = np.isfinite(self.scales)
        size = np.linalg.norm(self.mapping[:, known] * self.scales[known], axis=1)
        judged = (size > 0.0) & ~self.mapping[:, ~known].any(axis=1) & np.isfinite(standard_deviations)
        away = np.abs(values - self.center)
        far = np.where(judged, away - 3.0 * standard_deviations, 0.0) / np.where(size > 0.0, size, 1.0)
        worst = [place for place in np.argsort(-far)[:3] if far[place] > 1.0]
        if not worst:
            return ()
        joints = joints_of([names[place] for place in worst])
        count = f"{np.count_nonzero(far > 1.0)} of {len(names)} parameters"
        message = f"{count} contradict those of the {self.source}, most on joint {', '.join(joints)}"
        return (PRIOR_CONTRADICTED.found(message, joints),)

    @cached_property
    def _determined(self) -> tuple[Array, Array]:
        """Combinations without free columns, shape (k, p), and their covariance at a spread of 1, shape (k, k)."""
        known = np.isfinite(self.scales)
        size = np.sqrt(((self.mapping[:, known] * self.scales[known]) ** 2).sum(axis=1))
        unit = np.where(size > 0.0, size, 1.0)
        bases, singular, _ = np.linalg.svd(self.mapping[:, ~known] / unit[:, None])
        rank = int(np.count_nonzero(singular > HIDDEN * singular.max(initial=0.0)))
        left = bases[:, rank:].T / unit
        spread = left @ (self.mapping[:, known] * self.scales[known])
        return left, spread @ spread.T


def make_nominal_prior(model: RobotModel, mapping: Array) -> Prior:
    """The URDF's own masses and inertias; nothing is known of the terms.

    Raises:
        InputError: the URDF has no masses.
    """
    terms = mapping.shape[1] - len(model.inertial_parameters)
    return Prior(
        source=f"URDF of {model.name}",
        values=np.append(model.inertial_parameters, np.zeros(terms)),
        scales=np.append(find_inertial_scales(model), np.full(terms, np.inf)),
        mapping=mapping,
    )


def check_prior_robot(parameters: ParameterSet, model: RobotModel) -> None:
    """Check that the joints of a parameter set have the frames and axes of a robot, see `check_prior_joints`.

    Raises:
        InputError: a joint with the same name elsewhere.
    """
    held = dict(zip(parameters.robot.held_joint_names, parameters.robot.held_joint_positions, strict=True))
    other = RobotModel.from_urdf(parameters.robot.urdf, parameters.robot.joint_names, held)
    check_prior_joints(other, model, f"parameter set of {parameters.robot.name}")


def check_prior_joints(prior: RobotModel, model: RobotModel, source: str) -> None:
    """Check that joints of the same names have the same frames and axes in two descriptions, within a calibration.

    Args:
        prior: the robot of a prior.
        model: the robot that is identified.
        source: name of the prior, for messages.

    Raises:
        InputError: a joint elsewhere.
    """
    for number, name in enumerate(model.body_names):
        if name not in prior.body_names:
            continue  # other joints are refused where columns are compared
        place = prior.body_names.index(name)
        away = float(np.linalg.norm(model.translation[number] - prior.translation[place]))
        turn = model.rotation[number].T @ prior.rotation[place]
        cosines = 0.5 * (np.trace(turn) - 1.0), model.axis[number] @ turn @ prior.axis[place]
        turned = float(np.degrees(np.arccos(np.clip(min(cosines), -1.0, 1.0))))
        other_kind = bool(model.prismatic[number] != prior.prismatic[place])
        if other_kind or away > CALIBRATION_M or turned > CALIBRATION_DEG:
            how = "is of another type" if other_kind else f"differs by {1e3 * away:.3g} mm and {turned:.3g} deg"
            raise InputError(
                f"prior: joint {name} of the {source} {how} from that of {model.name}: it is another robot; give a "
                f"prior of this robot"
            )


def make_earlier_prior(parameters: ParameterSet, regressor: Regressor, mapping: Array) -> Prior:
    """An earlier parameter set; its terms are as uncertain as they are large, all of one kind at least `FLOOR` of it.

    Args:
        parameters: the set.
        regressor: whose c columns must be those of the set, and whose robot's masses and lengths give the scales: those
            of the set may be no body's own.
        mapping: base = mapping @ full, shape (p, c).

    Raises:
        InputError: other columns, or a URDF without masses.
    """
    if regressor.names != parameters.base.column_names:
        raise InputError(
            f"prior: the parameter set of {parameters.robot.name} has other joints or terms than are to be identified: "
            f"give one with the same, or use the URDF as prior"
        )
    sizes = find_term_scales(regressor, parameters.terms.values)
    kinds = np.array(
        [name.rstrip("0123456789") for name in regressor.names[len(parameters.bodies.standard_parameters) :]]
    )
    least = [FLOOR * sizes[kinds == kind].mean() for kind in kinds]
    sizes = np.maximum(sizes, least)
    return Prior(
        source=f"parameter set of {parameters.robot.name}",
        values=np.append(parameters.bodies.standard_parameters, parameters.terms.values),
        scales=np.append(find_inertial_scales(regressor.model), np.where(sizes > 0.0, sizes, np.inf)),
        mapping=mapping,
        individual=False,
    )


def find_term_scales(regressor: Regressor, values: Array) -> Array:
    """Sizes of the parameters of terms, shape (t,).

    A difference, which may be small by chance, is as uncertain as the two numbers that it is between.

    Args:
        regressor: with the terms.
        values: values of the parameters of the terms, shape (t,).
    """
    sizes, first = np.abs(values), 0
    for _, term in regressor.terms:
        for symbol, other in term.differences.items():
            difference, base = (first + term.symbols.index(name) for name in (symbol, other))
            sizes[difference] = np.hypot(values[base], values[base] + values[difference])
        first += len(term.symbols)
    return sizes


def find_inertial_scales(model: RobotModel) -> Array:
    """Sizes of the ten parameters of each body: m, m r (three times), m r^2 (six times), shape (10 b,).

    m is its mass and r the root mean square distance of its mass from the joint's origin; neither counts for less than
    `FLOOR` of the mean over the bodies, so that a body that the URDF leaves out is not taken for certain.

    Raises:
        InputError: the URDF has no masses.
    """
    bodies = model.inertial_parameters.reshape(-1, 10)
    mass, trace = bodies[:, 0], bodies[:, [4, 6, 9]].sum(axis=1)
    if not mass.any():
        raise InputError(f"{model.name}: no prior, for its URDF has no masses: complete it, or use another estimator")
    radius = np.sqrt(np.maximum(trace, 0.0) / np.where(mass > 0.0, 2.0 * mass, np.inf))
    mass, radius = (np.maximum(size, FLOOR * size.mean()) for size in (mass, radius))
    scales = np.empty_like(bodies)
    scales[:, 0] = mass
    scales[:, 1:4] = (mass * radius)[:, None]
    scales[:, 4:] = (mass * radius**2)[:, None]
    return scales.ravel()
