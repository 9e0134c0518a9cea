"""Names, order and units of parameters, and the identified parameter set."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from robot_dyn_id.dataset import Array
from robot_dyn_id.errors import InputError

INERTIAL_SYMBOLS = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
"""Standard parameters of a body in its joint frame: mass, first moment, inertia about the frame's origin."""

INERTIAL_UNITS = ("kg", *("kg m",) * 3, *("kg m^2",) * 6)


def urdf_hash(urdf: str) -> str:
    """Hexadecimal SHA-256 of a robot description, by which a controller knows its robot."""
    return hashlib.sha256(urdf.encode()).hexdigest()


def inertial_names(bodies: int) -> tuple[str, ...]:
    """Names of all standard parameters, numbered like the moving joints from 1: m1 ... Izz1, m2 ..."""
    return tuple(f"{symbol}{body + 1}" for body in range(bodies) for symbol in INERTIAL_SYMBOLS)


def effort_unit_over(effort_unit: str, coordinate: int, time: int) -> str:
    """Unit of a parameter whose column has the unit (rad or m)^coordinate s^-time.

    Radians are left out, so that a viscous friction reads N m s and a rotor inertia kg m^2.
    """
    if (coordinate, time) == (1, 2):
        return "kg" if effort_unit == "N" else "kg m^2"
    seconds = "" if time == 0 else " s" if time == 1 else f" s^{time}"
    metres = "" if coordinate == 0 or effort_unit != "N" else "/m" if coordinate == 1 else f"/m^{coordinate}"
    return f"{effort_unit}{seconds}{metres}"


@dataclass(frozen=True)
class ParameterSet:
    """An identified model: everything that inverse and forward dynamics need beside nothing else than itself.

    Field by field the message `robot_dyn_id/ParameterSet` (without its header) and the file `parameters.yaml`. With p
    base parameters, c columns (10 per moving body, then the linear terms) and n joints:

    Attributes:
        robot_name: name in the URDF.
        urdf: the URDF text.
        urdf_sha256: its hash, by which a controller knows its robot.
        joint_names: the n joints.
        held_joint_names: joints that stood still.
        held_joint_positions: where they stood [rad or m].
        gravity: gravity vector in the base frame [m/s^2], 3 values.
        body_names: the moving joints, mimic followers included.
        names: base parameters, p; each is named after the column it stands in.
        expressions: what it is a combination of, `Izz1 + 0.1296 m2`.
        units: units.
        values: values, SI.
        standard_deviations: one sigma; infinite where the data could not tell.
        status: good, weak or not excited.
        covariance: (p, p).
        column_names: c.
        mapping: full to base, (p, c): base = mapping @ full.
        independent_columns: the column that each base parameter is named after, p.
        standard_parameters: 10 per body in `body_names` order, a representative that with `term_values` gives the
            identified torque in any recursive Newton-Euler code.
        physically_consistent: whether that representative could be a real robot.
        term_names: name of the term of each column after the inertial ones.
        term_joints: the joint (or coupling) that it acts on.
        term_values: representative values.
        term_standard_deviations: one sigma; infinite where the column cannot be told on its own.
        term_constant_names: `term.constant`, e.g. coulomb.smoothing_width.
        term_constant_joints: joint of each constant.
        term_constant_values: SI.
        sample_rate: rate of the uniform grid [Hz].
        cutoff_frequency: of the zero-phase low-pass [Hz].
        filter_order: Butterworth order of one pass.
        data_sources: recordings used for training.
        data_sha256: hash of their content.
        estimator: name of the estimator.
        software_version: version of this package.
        held_out_nrmse: per joint, ratio.
        held_out_all_joints_nrmse: ratio.
        condition_number: of the regressor of the training data.
        condition_number_scaling: `columns` or `none`.
        verdict: good, suspect or bad.
        reasons: why it is not good.
        q_min: least trained position, n.
        q_max: greatest trained position, n.
        dq_max: greatest trained speed, n.
        ddq_max: greatest trained acceleration, n.
    """

    robot_name: str
    urdf: str = field(repr=False)
    urdf_sha256: str
    joint_names: tuple[str, ...]
    held_joint_names: tuple[str, ...]
    held_joint_positions: Array
    gravity: Array
    body_names: tuple[str, ...]
    names: tuple[str, ...]
    expressions: tuple[str, ...] = field(repr=False)
    units: tuple[str, ...] = field(repr=False)
    values: Array
    standard_deviations: Array
    status: tuple[str, ...]
    covariance: Array = field(repr=False)
    column_names: tuple[str, ...] = field(repr=False)
    mapping: Array = field(repr=False)
    independent_columns: NDArray[np.uint32] = field(repr=False)
    standard_parameters: Array = field(repr=False)
    physically_consistent: bool
    term_names: tuple[str, ...]
    term_joints: tuple[str, ...]
    term_values: Array
    term_standard_deviations: Array
    term_constant_names: tuple[str, ...]
    term_constant_joints: tuple[str, ...]
    term_constant_values: Array
    sample_rate: float
    cutoff_frequency: float
    filter_order: int
    data_sources: tuple[str, ...]
    data_sha256: str
    estimator: str
    software_version: str
    held_out_nrmse: Array
    held_out_all_joints_nrmse: float
    condition_number: float
    condition_number_scaling: str
    verdict: str
    reasons: tuple[str, ...]
    q_min: Array
    q_max: Array
    dq_max: Array
    ddq_max: Array

    def __post_init__(self) -> None:
        """Check that all parts fit together and freeze the arrays.

        Raises:
            InputError: a field of the wrong length, a URDF that is not the one its hash tells.
        """
        if urdf_hash(self.urdf) != self.urdf_sha256:
            raise InputError("parameter set: its URDF is not the one it was identified with (the hash differs)")
        n, p, c = len(self.joint_names), len(self.names), len(self.column_names)
        terms = c - 10 * len(self.body_names)
        shapes: dict[str, tuple[int, ...]] = {
            **dict.fromkeys(("expressions", "units", "values", "standard_deviations", "status"), (p,)),
            **dict.fromkeys(("held_out_nrmse", "q_min", "q_max", "dq_max", "ddq_max"), (n,)),
            **dict.fromkeys(("term_names", "term_joints", "term_values", "term_standard_deviations"), (terms,)),
            **dict.fromkeys(("term_constant_joints", "term_constant_values"), (len(self.term_constant_names),)),
            "held_joint_positions": (len(self.held_joint_names),),
            "gravity": (3,),
            "covariance": (p, p),
            "mapping": (p, c),
            "independent_columns": (p,),
            "standard_parameters": (10 * len(self.body_names),),
        }
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, np.ndarray):
                value = value.copy()
                value.flags.writeable = False
                object.__setattr__(self, item.name, value)
            if item.name in shapes and np.shape(value) != shapes[item.name]:
                raise InputError(
                    f"parameter set: {item.name} has shape {np.shape(value)}, expected {shapes[item.name]}"
                )
        if p and int(self.independent_columns.max()) >= c:
            raise InputError("parameter set: independent_columns names a column that does not exist")


def expression(coefficients: Sequence[float], names: Sequence[str]) -> str:
    """A linear combination as text, six digits, unit coefficients left out: `Izz1 + 0.1296 m2 - mx3`.

    Nine decimals are kept (nanometres), as what is smaller is rounding in the URDF; twelve are looked at first, so that
    rounding in the computation does not decide which way a decimal tie (0.03647925) is written.
    """
    text = ""
    for exact, name in zip(coefficients, names, strict=True):
        value = round(round(float(exact), 12), 9)
        if value == 0.0:
            continue
        size = "" if abs(value) == 1.0 else f"{abs(value):.6g} "
        sign = ("- " if value < 0 else "+ ") if text else ("-" if value < 0 else "")
        text += f"{' ' if text else ''}{sign}{size}{name}"
    return text
