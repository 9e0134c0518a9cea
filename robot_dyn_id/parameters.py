# SPDX-License-Identifier: Apache-2.0
"""Names, order and units of parameters, and the identified parameter set."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError, storable
from robot_dyn_id.findings import Definition, Section
from robot_dyn_id.uses import ANSWERS, NO, USES

INERTIAL_SYMBOLS = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
"""Standard parameters of a body in its joint frame: mass, first moment, inertia about the frame's origin."""

INERTIAL_UNITS = ("kg", *("kg m",) * 3, *("kg m^2",) * 6)


def urdf_hash(urdf: str) -> str:
    """Hexadecimal SHA-256 of a robot description, by which a controller knows its robot."""
    return hashlib.sha256(urdf.encode()).hexdigest()


def inertial_names(bodies: int) -> tuple[str, ...]:
    """Names of all standard parameters, numbered like the moving joints from 1: m1 ... Izz1, m2 ..."""
    return tuple(f"{symbol}{body + 1}" for body in range(bodies) for symbol in INERTIAL_SYMBOLS)


TORQUE_UNIT, FORCE_UNIT = "N m", "N"
"""Units of the efforts of revolute and of prismatic joints."""

DRIVE_UNITS = {"current": "A", "motor_torque": "N m (motor)"}
"""Units of efforts whose drive gain is not known, by the kind of the effort."""


def effort_unit_over(effort_unit: str, slides: bool, coordinate: float, time: float) -> str:
    """Unit of a parameter whose column has the unit (rad or m)^coordinate s^-time.

    Radians are left out, so that a viscous friction reads N m s and a rotor inertia kg m^2.

    Args:
        effort_unit: unit of the effort, N m or N, or one of `DRIVE_UNITS`.
        slides: whether the coordinate is a length.
        coordinate: exponent of the coordinate in the unit of the column.
        time: exponent of the inverse time in the unit of the column.
    """
    if (coordinate, time) == (1, 2) and effort_unit in (TORQUE_UNIT, FORCE_UNIT):
        return "kg" if slides else "kg m^2"
    seconds = "" if time == 0 else " s" if time == 1 else f" s^{time:.3g}"
    meters = "" if coordinate == 0 or not slides else "/m" if coordinate == 1 else f"/m^{coordinate:.3g}"
    return f"{effort_unit}{seconds}{meters}"


def inertial_units_over(effort_unit: str, slides: bool) -> tuple[str, ...]:
    """Units of the ten standard parameters of a body that are determined by efforts without a known drive gain.

    Args:
        effort_unit: unit of the efforts, one of `DRIVE_UNITS`.
        slides: whether the joint of these efforts is prismatic.
    """
    lengths = (0, *(1,) * 3, *(2,) * 6)  # kg m^length: the torque is such a parameter times m^(2 - length) / s^2
    over = [(1 if slides else 2) - length for length in lengths]
    meters = {2: "/m^2", 1: "/m", 0: "", -1: " m"}
    return tuple(f"{effort_unit} s^2{meters[power]}" for power in over)


PARAMETERS_FILE = "parameters.yaml"
"""Name of the file of a parameter set in a folder of results."""

FORMAT_VERSION = 2
"""Version of the fields of a parameter set, in files and messages; others are refused. 0.1.0, which had no such field,
counts as 1."""

FORMAT_REMEDY = "identify the robot again with this version, or use the version that is named in software_version"
"""Advice on a parameter set of another format version."""

GAIN_UNKNOWN = Definition(
    "gain_unknown",
    Section.DATA,
    "error",
    "Currents, or motor torques, came without gains, and weight and inertia of some joints are too small to "
    "estimate theirs from the masses of the URDF: the model predicts amperes there. All uses are answered with "
    "no, and exports, controllers, payloads and simulations refuse the model.",
    "measure the gains with a known weight (command `gains`), or give `gain` [N m/A or N/A], torque constant "
    "times gear ratio, of each joint in the configuration, and identify again",
    lowers=dict.fromkeys(USES, NO),
    check="sign and unit",
)

GAIN_REMEDY = GAIN_UNKNOWN.cure
"""Advice on drive gains that are not known."""


def describe_unknown_gains(units: Mapping[str, str]) -> str:
    """Statement about joints whose drive gain is not known.

    Args:
        units: units of their efforts, by joint name.
    """
    unit = next(iter(units.values()))
    names = ", ".join(units)
    return f"the drive gain of {names} is not known: the model predicts efforts in {unit} there, not in N m or N"


UNKNOWN = "unknown"
"""Word of fields that nothing has determined."""

EFFORT_KINDS = (
    *(UNKNOWN, "torque", "current", "motor_torque"),
    *("gravity_compensated", "gravity_and_friction_compensated", "external"),
)
"""Contents that a measured effort may have."""

NONE = "none"
"""Word of a driver that adds nothing to a command."""

COMPENSATED_PARTS = ("gravity", "friction", "coriolis")
"""Torques that the driver of a robot may add to a command."""

COMPENSATIONS = (UNKNOWN, NONE, *COMPENSATED_PARTS)
"""Words of `robot_compensates`: parts of the torque, or one of `UNKNOWN` and `NONE` alone."""

IMPLIED_COMPENSATIONS = {
    "gravity_compensated": ("gravity",),
    "gravity_and_friction_compensated": ("gravity", "friction"),
}
"""Torques that a driver adds to a command, by the kind of effort that it reports without them. Other kinds imply
nothing: a robot that measures joint torques may add gravity to a command or not."""

HELD_OUT_METHODS = (UNKNOWN, "cross_validation", "recordings", "range")
"""Origins of held-out data: blocked cross-validation, recordings of their own, or a range of the training data."""

VELOCITY_SOURCES = ("recorded", "derivative")
"""Sources of the velocities that a model was identified with: as recorded, or derivatives of the positions."""

FILE_ONLY = {"message": False}
"""Metadata of fields that messages do not hold."""


@dataclass(frozen=True)
class TermState:
    """Internal state of a term on one joint, such as the deflection of a Dahl element.

    Entries of one name on one joint are parallel elements, in order.

    Attributes:
        name: `term.state`, such as `dahl.deflection`.
        joint: joint or coupling that the term acts on.
        initial_values: value of each scalar of the state at the beginning of a motion, SI; at least one.
        parameter_names: names of the constants of the state equation, such as `breakaway_displacement`.
        parameter_values: their values, SI.
    """

    name: str
    joint: str
    initial_values: tuple[float, ...]
    parameter_names: tuple[str, ...] = ()
    parameter_values: tuple[float, ...] = ()


@dataclass(frozen=True)
class FitFor:
    """Whether a model is fit for a use, and the figure that the answer rests on.

    Attributes:
        use: one of `USES`.
        answer: one of `ANSWERS`.
        figure: measured figure; NaN if it could not be determined.
        unit: unit of figure and threshold.
        threshold: value of the figure up to which the answer is yes.
        because: codes of the findings that the answer rests on.
        joints: joints that limit the answer; empty if it holds for the whole arm.
    """

    use: str
    answer: str
    figure: float
    unit: str
    threshold: float
    because: tuple[str, ...] = ()
    joints: tuple[str, ...] = ()


@dataclass(frozen=True)
class ParameterSet:
    """Identified model, self-contained: everything needed for inverse and forward dynamics.

    Example:
        ```python
        parameters = rdi.load_parameters("run/parameters.yaml")
        for name, value, sigma in zip(parameters.names, parameters.values, parameters.standard_deviations):
            print(f"{name}: {value:.4g} +- {sigma:.2g}")
        ```

    The message `robot_dyn_id/ParameterSet` and the file `parameters.yaml` have the same fields, but for those that only
    files hold, see `message_fields`. With p base parameters,
    c columns (10 per moving body, then the linear terms) and n joints:

    Attributes:
        robot_name: name of the robot in its URDF.
        urdf: text of the URDF.
        urdf_sha256: hash of the URDF, by which a controller identifies its robot.
        joint_names: names of the n joints.
        held_joint_names: names of the locked joints.
        held_joint_positions: positions of the locked joints [rad or m].
        gravity: gravity vector in the base frame [m/s^2], shape (3,).
        body_names: names of the moving joints, mimic joints included.
        names: names of the p base parameters; each is named after its independent column.
        expressions: combination of columns that each base parameter is, such as `Izz1 + 0.1296 m2`.
        units: units of the base parameters.
        values: values of the base parameters, SI.
        standard_deviations: standard deviations (1 sigma); inf if not identifiable from the data.
        interval_lows: lower ends of the 95 % intervals of the values, shape (p,); empty if the estimator has none. They
            are not symmetric where a sign or what other parameters may take over limits a parameter: friction that was
            estimated as zero has an interval from zero on.
        interval_highs: upper ends of these intervals, shape (p,); empty if the estimator has none.
        status: `good`, `weak` or `not excited`, for each base parameter.
        covariance: covariance of the values, shape (p, p).
        column_names: names of the c columns.
        mapping: shape (p, c); values = mapping @ (standard_parameters, term_values).
        independent_columns: column that each base parameter is named after, shape (p,).
        standard_parameters: 10 per body in the order of `body_names`; a standard-parameter realization that, with
            `term_values`, gives the identified torque in any recursive Newton-Euler algorithm.
        physically_consistent: whether every body of that realization is physically possible.
        term_names: term of each column after the inertial ones.
        term_joints: joint or coupling that the term acts on.
        term_values: values of these columns in the realization.
        term_standard_deviations: standard deviations (1 sigma); inf if a column is only identifiable in combination.
        term_constant_names: constants of terms as `term.constant`, such as coulomb.smoothing_width.
        term_constant_joints: joint of each constant.
        term_constant_values: values of the constants, SI.
        sample_rate: rate of the uniform grid of samples [Hz].
        cutoff_frequency: cut-off frequency of the zero-phase low-pass filter of regressor and effort [Hz].
        motion_cutoff_frequency: cut-off frequency of the zero-phase low-pass filter of positions and velocities, before
            they are differentiated [Hz].
        filter_order: Butterworth order of each pass of both filters.
        velocity_source: source of the velocities, one of `VELOCITY_SOURCES`.
        data_sources: recordings used for training.
        data_sha256: hash of their content.
        data_digests: digests of some samples of these recordings, ascending, by which held-out data are compared with
            them, see `Fingerprint`; empty if they were not computed.
        data_starts: first time stamp of each recording [s since the epoch of its clock]; 0 where stamps are not those
            of a clock; empty if not known.
        data_stops: last time stamp of each recording [s].
        estimator: name of the estimator.
        software_version: version of this package.
        held_out_nrmse: NRMSE of each joint on held-out data, a ratio, shape (n,).
        held_out_all_joints_nrmse: NRMSE of all joints on held-out data, a ratio.
        condition_number: condition number of the regressor of the training data.
        condition_number_scaling: `columns` or `none`.
        verdict: good, suspect or bad.
        reasons: reasons why the verdict is not good.
        q_min: minimum positions in the training data [rad or m], shape (n,).
        q_max: maximum positions in the training data [rad or m], shape (n,).
        dq_max: maximum speeds in the training data [rad/s or m/s], shape (n,).
        ddq_max: maximum accelerations in the training data [rad/s^2 or m/s^2], shape (n,).
        states: internal states of terms; empty if no term has any.
        prior_strength: information of the prior on single links that the covariance contains, see `Consistent`; 0
            without a prior; NaN: not known. Messages hold neither it nor the residuals, which no node uses.
        residual_speeds: lower ends of the ranges of the speed that `residual_deviations` belong to, ascending, from 0
            on [rad/s or m/s], shape (n, k); empty: not known.
        residual_deviations: RMS of each joint's residuals of the training data in each of these ranges [N m or N],
            shape (n, k); see `ResidualProfile`.
        load_parameters: standard parameters that the load of load-dependent friction is computed from, 10 per body;
            empty: those of the URDF.
        fit_for: uses that the model is fit for; empty if they have not been judged.
        effort_kind: content of the measured effort, one of `EFFORT_KINDS`: as stated, or as the data show it; else
            unknown.
        robot_compensates: torques that the driver adds to a command, of `COMPENSATIONS`; an empty tuple is stored as
            `("unknown",)`, as a message in which the field is not filled must not count as a driver that adds nothing.
            Nothing determines it yet.
        drive_gains: gain of each joint, effort per recorded current [N m/A or N/A], shape (n,); 0: the recorded effort
            is used, which is the current itself where `effort_kind` is one, see `unknown_gains`; empty: 0 for all
            joints.
        drive_signs: sign of each joint's recorded effort or current, 1 or -1, shape (n,); empty like `drive_gains`.
        offset_deviations: standard deviation of the zero of each joint's effort between the training recordings
            [N m or N], shape (n,); 0: no difference was found; empty: they were not compared. Where it is not 0, the
            offset is the mean zero, and its standard deviation is that of the zero of another recording.
        held_out_method: origin of the held-out data, one of `HELD_OUT_METHODS`.
        format_version: version of these fields, `FORMAT_VERSION`.
        term_classes: classes of the user's own terms in this set. Neither files nor messages store them: they are given
            again when a file is read.
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
    motion_cutoff_frequency: float
    filter_order: int
    velocity_source: str
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
    states: tuple[TermState, ...] = ()
    fit_for: tuple[FitFor, ...] = ()
    effort_kind: str = UNKNOWN
    robot_compensates: tuple[str, ...] = (UNKNOWN,)
    drive_gains: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    drive_signs: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    offset_deviations: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    interval_lows: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    interval_highs: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    held_out_method: str = UNKNOWN
    prior_strength: float = field(default=math.nan, metadata=FILE_ONLY)
    residual_speeds: Array = field(default_factory=lambda: np.zeros(0), repr=False, metadata=FILE_ONLY)
    residual_deviations: Array = field(default_factory=lambda: np.zeros(0), repr=False, metadata=FILE_ONLY)
    load_parameters: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    data_digests: NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, dtype=np.uint32), repr=False)
    data_starts: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    data_stops: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    format_version: int = FORMAT_VERSION
    term_classes: tuple[type, ...] = field(default=(), repr=False, compare=False, metadata={"stored": False})

    @property
    def unknown_gains(self) -> tuple[str, ...]:
        """Joints whose effort is a current, or a motor torque, of unknown drive gain.

        The model predicts that quantity there, not the torque of the joint, and must not command, simulate or estimate
        torques.
        """
        if self.effort_kind not in DRIVE_UNITS:
            return ()
        gains = self.drive_gains.tolist() if len(self.drive_gains) else [0.0] * len(self.joint_names)
        return tuple(name for name, gain in zip(self.joint_names, gains, strict=True) if not gain > 0.0)

    @property
    def drive_units(self) -> dict[str, str]:
        """Units of the efforts of the joints of `unknown_gains`, by joint name."""
        return dict.fromkeys(self.unknown_gains, DRIVE_UNITS.get(self.effort_kind, ""))

    @property
    def effort_factors(self) -> Array:
        """Effort per effort or current that the drive of each joint reports, gain times sign, shape (n,)."""
        if not len(self.drive_gains):
            return np.ones(len(self.joint_names))
        return np.where(self.drive_gains > 0.0, self.drive_gains, 1.0) * self.drive_signs

    @property
    def held_out_shares(self) -> Array:
        """Held-out NRMSE of each joint, shape (n,); that of all joints where a joint has none."""
        own = self.held_out_nrmse
        return np.where(np.isfinite(own), own, self.held_out_all_joints_nrmse)

    def held_out_error(self, torque: Array) -> Array:
        """Torque error of the model along a motion [N m or N], shape (n,): held-out NRMSE times RMS torque.

        Args:
            torque: torque of the model [N m or N], shape (N, n).
        """
        return np.asarray(self.held_out_shares * np.sqrt(np.mean(torque**2, axis=0)))

    def refuse_unknown_gains(self) -> None:
        """Refuse a model that predicts currents, where torques are needed.

        Raises:
            InputError: gains are not known, see `unknown_gains`.
        """
        if self.unknown_gains:
            raise InputError(f"parameter set: {describe_unknown_gains(self.drive_units)}: {GAIN_REMEDY}", GAIN_REMEDY)

    def refuse_bad_verdict(self, action: str = "identify again") -> None:
        """Refuse a model that must not command torques.

        Args:
            action: advice to the user about a bad verdict.

        Raises:
            InputError: the verdict is bad, or gains are not known, see `unknown_gains`.
        """
        self.refuse_unknown_gains()
        if self.verdict == "bad":
            raise InputError(f"the verdict on the parameters is bad ({'; '.join(self.reasons)}): {action}", action)

    def __post_init__(self) -> None:
        """Freeze the arrays and check every field: a set may come from a file or from any node of the network.

        Order and names of joints, bodies and columns are compared with the URDF in `Regressor.from_parameters`.

        Raises:
            InputError: another format version, or a field that is too long, has the wrong length or holds a value that
                no identification writes.
        """
        check_format_version(self.format_version)
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, np.ndarray):
                value = value.copy()
                value.flags.writeable = False
                object.__setattr__(self, item.name, value)
        if not self.robot_compensates:
            object.__setattr__(self, "robot_compensates", (UNKNOWN,))
        _check_sizes(self)
        _check_words(self)
        _check_numbers(self)
        _check_mapping(self)
        _check_covariance(self)
        _check_states(self)
        _check_fit_for(self)


def check_format_version(version: int) -> None:
    """Refuse a parameter set of another format version.

    Raises:
        InputError: the version, and what to do.
    """
    if version != FORMAT_VERSION:
        found = "format_version is missing" if version == 0 else f"format_version is {version}"
        raise InputError(
            f"parameter set: {found}, this version of robot_dyn_id reads {FORMAT_VERSION}: {FORMAT_REMEDY}",
            FORMAT_REMEDY,
        )


def implied_compensations(effort_kind: str) -> tuple[str, ...]:
    """Value of `robot_compensates` that the kind of the measured effort implies; `("unknown",)` if it implies none."""
    return IMPLIED_COMPENSATIONS.get(effort_kind, (UNKNOWN,))


def compensation_fault(effort_kind: str, robot_compensates: Sequence[str]) -> str:
    """Reason why a driver cannot report one and add the other; empty if it can, or if nothing is stated.

    Efforts without gravity give a model without gravity: no controller can add it, so the driver must.
    """
    alone = next((word for word in (UNKNOWN, NONE) if word in robot_compensates), None)
    if alone is not None and len(robot_compensates) > 1:
        return f"robot_compensates holds {alone} and other words"
    if len(set(robot_compensates)) < len(robot_compensates):
        return f"robot_compensates [{', '.join(robot_compensates)}] holds a word twice"
    if alone == UNKNOWN or not robot_compensates:
        return ""
    missing = [part for part in IMPLIED_COMPENSATIONS.get(effort_kind, ()) if part not in robot_compensates]
    if not missing:
        return ""
    return (
        f"effort_kind {effort_kind} and robot_compensates [{', '.join(robot_compensates)}] contradict each other: "
        f"efforts without {missing[0]} are those of a driver that adds {missing[0]} to a command; correct one of them"
    )


def stored_fields() -> tuple[Field[Any], ...]:
    """Fields of a parameter set that files hold."""
    return tuple(item for item in fields(ParameterSet) if item.metadata.get("stored", True))


def message_fields() -> tuple[Field[Any], ...]:
    """Fields of a parameter set that messages hold."""
    return tuple(item for item in stored_fields() if item.metadata.get("message", True))


LARGEST = 1e12
"""Bound of all magnitudes [SI]. No robot is near it, and products of such numbers do not overflow."""

MOST = {
    "joint_names": 100,
    "held_joint_names": 100,
    "body_names": 100,
    "names": 1000,
    "column_names": 2000,
    "term_constant_names": 10_000,
    "data_sources": 10_000,
    "reasons": 1000,
    "states": 10_000,
    "fit_for": 100,
    "robot_compensates": 10,
    "data_digests": 10_000,
}
"""Greatest lengths of lists, refused before anything of the size of their product is computed."""

MOST_PER_ENTRY = 1000
"""Greatest lengths of the lists of one state or one use."""

LONGEST_LINE = 4096
"""Greatest length of a text [characters], except for expressions and the URDF."""

LONGEST_EXPRESSION = 48 * MOST["column_names"]
"""Greatest length of an expression [characters]; a column adds its coefficient (12), its name, and a sign."""

LONGEST_URDF = 2**24
"""Greatest length of the URDF text [characters]."""

STRONGEST_GRAVITY = 20.0
"""Greatest gravity [m/s^2]: twice the Earth's."""

HIGHEST_RATE = 1e6
"""Greatest sample rate [Hz]."""

HIGHEST_ORDER = 12
"""Greatest order of the low-pass."""

WORDS = {
    "verdict": ("good", "suspect", "bad"),
    "status": ("good", "weak", "not excited"),
    "condition_number_scaling": ("columns", "none"),
    "effort_kind": EFFORT_KINDS,
    "robot_compensates": COMPENSATIONS,
    "held_out_method": HELD_OUT_METHODS,
    "velocity_source": VELOCITY_SOURCES,
}
"""Words that fields may hold."""

AGREEMENT = 1e-6
"""Relative difference within which fields that express the same quantity agree. Identification meets 1e-10."""


def _refused(what: str) -> InputError:
    return InputError(f"parameter set: {what}")


def _check_sizes(one: ParameterSet) -> None:
    """Refuse fields that are too long or whose lengths do not fit together."""
    n, p, c = len(one.joint_names), len(one.names), len(one.column_names)
    for name, most in MOST.items():
        if len(getattr(one, name)) > most:
            raise _refused(f"{name} has {len(getattr(one, name))} entries, at most {most} are read")
    if not (n and p):
        raise _refused(f"{'names' if n else 'joint_names'} is empty")
    terms = c - 10 * len(one.body_names)
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(("expressions", "units", "values", "standard_deviations", "status"), (p,)),
        **dict.fromkeys(("held_out_nrmse", "q_min", "q_max", "dq_max", "ddq_max"), (n,)),
        **dict.fromkeys(("term_names", "term_joints", "term_values", "term_standard_deviations"), (terms,)),
        **dict.fromkeys(("term_constant_joints", "term_constant_values"), (len(one.term_constant_names),)),
        "held_joint_positions": (len(one.held_joint_names),),
        "gravity": (3,),
        "covariance": (p, p),
        "mapping": (p, c),
        "independent_columns": (p,),
        "standard_parameters": (10 * len(one.body_names),),
        "load_parameters": (10 * len(one.body_names) if len(one.load_parameters) else 0,),
        **dict.fromkeys(("drive_gains", "drive_signs"), (n if len(one.drive_gains) else 0,)),
        "offset_deviations": (n if len(one.offset_deviations) else 0,),
        **dict.fromkeys(("interval_lows", "interval_highs"), (p if len(one.interval_lows) else 0,)),
        **dict.fromkeys(("residual_speeds", "residual_deviations"), _profile_shape(one, n)),
        "data_digests": (len(one.data_digests),),
        **dict.fromkeys(("data_starts", "data_stops"), (len(one.data_sources) if len(one.data_starts) else 0,)),
    }
    for name, expected in shapes.items():
        if np.shape(getattr(one, name)) != expected:
            raise _refused(f"{name} has shape {np.shape(getattr(one, name))}, expected {expected}")


def _profile_shape(one: ParameterSet, joints: int) -> tuple[int, ...]:
    """Expected shape of the residuals over speed.

    Raises:
        InputError: too many ranges.
    """
    shape = np.shape(one.residual_speeds)
    if len(shape) == 2 and shape[1] > MOST_PER_ENTRY:
        raise _refused(f"residual_speeds has {shape[1]} ranges, at most {MOST_PER_ENTRY} are read")
    return (joints, shape[1]) if len(shape) == 2 and shape[1] else (0,)


def _check_words(one: ParameterSet) -> None:
    """Refuse texts and names that no identification writes."""
    for item in stored_fields():
        value = getattr(one, item.name)
        texts = (value,) if isinstance(value, str) else value if isinstance(value, tuple) else ()
        _check_lines(item.name, () if item.name in ("urdf", "states", "fit_for") else texts)
        for text in texts if item.name in WORDS else ():
            if text not in WORDS[item.name]:
                raise _refused(f"{item.name} is {text[:40]!r}, expected one of {', '.join(WORDS[item.name])}")
    if why := compensation_fault(one.effort_kind, one.robot_compensates):
        raise _refused(why)
    if len(one.urdf) > LONGEST_URDF:
        raise _refused(f"its URDF has {len(one.urdf)} characters, at most {LONGEST_URDF} are read")
    if not one.urdf.lstrip("\ufeff \t\r\n").startswith("<"):
        raise _refused("urdf is not the text of a URDF: it must begin with '<' (the name of a file is not read)")
    if urdf_hash(one.urdf) != one.urdf_sha256:
        raise _refused("its URDF is not the one it was identified with (the hash differs)")
    for name in ("joint_names", "held_joint_names", "body_names", "column_names", "names"):
        names = getattr(one, name)
        if len(set(names)) < len(names):
            raise _refused(f"{name} has {next(text for text in names if names.count(text) > 1)} twice")
    strange = next((text for text in one.joint_names if text not in one.body_names), None)
    if strange is not None:
        raise _refused(f"joint_names has {strange}, which is not one of body_names")
    both = next((text for text in one.held_joint_names if text in one.joint_names), None)
    if both is not None:
        raise _refused(f"joint {both} is among joint_names and held_joint_names")


def _check_lines(name: str, texts: Sequence[str]) -> None:
    """Refuse texts that are not one printable line."""
    longest = LONGEST_EXPRESSION if name == "expressions" else LONGEST_LINE
    for text in texts:
        if storable(text, longest) != text:
            raise _refused(f"{name} holds a text that is not one printable line of {longest} characters")


def _check_states(one: ParameterSet) -> None:
    """Refuse states of terms that are not complete."""
    for state in one.states:
        _check_lines("states", (state.name, state.joint, *state.parameter_names))
        if len(state.parameter_names) != len(state.parameter_values):
            raise _refused(f"states: {state.name} has not one value for each of its parameters")
        if not 1 <= len(state.initial_values) <= MOST_PER_ENTRY or len(state.parameter_names) > MOST_PER_ENTRY:
            raise _refused(
                f"states: {state.name} must have 1 to {MOST_PER_ENTRY} initial values, and no more parameters"
            )
        if not all(abs(number) <= LARGEST for number in (*state.initial_values, *state.parameter_values)):
            raise _refused(f"states: {state.name} holds a number that is not finite or above {LARGEST:g}")


def _check_fit_for(one: ParameterSet) -> None:
    """Refuse answers about uses that do not exist."""
    for entry in one.fit_for:
        _check_lines("fit_for", (entry.unit, *entry.because, *entry.joints))
        for name, word, known in (("use", entry.use, USES), ("answer", entry.answer, ANSWERS)):
            if word not in known:
                raise _refused(f"fit_for: {name} is {word[:40]!r}, expected one of {', '.join(known)}")
        if len(entry.because) > MOST_PER_ENTRY or len(entry.joints) > MOST_PER_ENTRY:
            raise _refused(f"fit_for: {entry.use} has more than {MOST_PER_ENTRY} codes or joints")
    uses = [entry.use for entry in one.fit_for]
    if len(set(uses)) < len(uses):
        raise _refused("fit_for has one use twice")


def _check_numbers(one: ParameterSet) -> None:
    """Refuse numbers that no identification writes."""
    models = ("values", "standard_parameters", "load_parameters", "mapping")
    finite = (*models, "term_values", "term_constant_values", "held_joint_positions")
    ranges = ("gravity", "q_min", "q_max", "dq_max", "ddq_max")
    signals = (
        "sample_rate",
        "cutoff_frequency",
        "motion_cutoff_frequency",
        "filter_order",
        "drive_gains",
        "drive_signs",
        "offset_deviations",
        "residual_speeds",
        "residual_deviations",
        "data_starts",
        "data_stops",
    )
    for name in (*finite, *ranges, *signals):
        bad = np.ravel(getattr(one, name))[~(np.abs(np.ravel(getattr(one, name))) <= LARGEST)]
        if len(bad):
            raise _refused(f"{name} holds {bad[0]}, expected finite numbers of magnitudes up to {LARGEST:g}")
    spreads = ("standard_deviations", "term_standard_deviations")
    for name in (*spreads, "offset_deviations", "residual_deviations", "dq_max", "ddq_max"):
        bad = getattr(one, name)[~(getattr(one, name) >= 0.0)]
        if len(bad):
            raise _refused(f"{name} holds {bad[0]}, expected 0 or more")
    if len(one.interval_lows) and not np.all(one.interval_lows <= one.interval_highs):
        raise _refused("interval_lows holds NaN, or is greater than interval_highs")
    if not math.isnan(one.prior_strength) and not 0.0 <= one.prior_strength <= LARGEST:
        raise _refused(f"prior_strength is {one.prior_strength}, expected 0 to {LARGEST:g}")
    if one.residual_speeds.size and (one.residual_speeds[:, 0].any() or np.any(np.diff(one.residual_speeds) < 0.0)):
        raise _refused("residual_speeds does not ascend from 0")
    for name in ("held_out_nrmse", "held_out_all_joints_nrmse"):  # NaN of a joint whose held-out torque is zero
        bad = np.ravel(getattr(one, name))[np.ravel(getattr(one, name)) < 0.0]
        if len(bad):
            raise _refused(f"{name} holds {bad[0]}, expected 0 or more")
    if not one.condition_number >= 1.0 - AGREEMENT:
        raise _refused(f"condition_number is {one.condition_number}, expected 1 or more")
    strength = float(np.linalg.norm(one.gravity))
    if strength > STRONGEST_GRAVITY:
        raise _refused(f"gravity is {strength:.4g} m/s^2, expected at most {STRONGEST_GRAVITY:g}")
    if not 0.0 < one.sample_rate <= HIGHEST_RATE:
        raise _refused(f"sample_rate is {one.sample_rate} Hz, expected more than 0 and at most {HIGHEST_RATE:g}")
    for name in ("cutoff_frequency", "motion_cutoff_frequency"):
        cutoff = getattr(one, name)
        if not 0.0 < cutoff <= 0.5 * one.sample_rate:
            raise _refused(f"{name} is {cutoff} Hz, expected more than 0 and at most half the rate")
    if not 1 <= one.filter_order <= HIGHEST_ORDER:
        raise _refused(f"filter_order is {one.filter_order}, expected 1 to {HIGHEST_ORDER}")
    reversed_range = np.flatnonzero(one.q_min > one.q_max)
    if len(reversed_range):
        raise _refused(f"q_min of joint {one.joint_names[reversed_range[0]]} is greater than q_max")


def _check_mapping(one: ParameterSet) -> None:
    """Refuse base parameters that are not the combinations of columns that they claim to be.

    The identity on the independent columns makes them distinct and the rank of the mapping full.
    """
    columns = one.independent_columns.astype(np.int64)
    if int(columns.max()) >= len(one.column_names):
        raise _refused("independent_columns names a column that does not exist")
    if np.abs(one.mapping[:, columns] - np.eye(len(columns))).max() > AGREEMENT:
        raise _refused("mapping is not the identity on independent_columns")
    for number, column in enumerate(columns):
        if one.names[number] != one.column_names[column]:
            raise _refused(f"{one.names[number]} is not the name of its column, {one.column_names[column]}")
    full = np.concatenate([one.standard_parameters, one.term_values])
    allowed = AGREEMENT * (np.abs(one.mapping) @ np.abs(full) + np.abs(one.values))
    apart = np.flatnonzero(np.abs(one.values - one.mapping @ full) > allowed)
    if len(apart):
        raise _refused(f"values of {one.names[apart[0]]} is not mapping * (standard_parameters, term_values)")


def _check_covariance(one: ParameterSet) -> None:
    """Refuse a covariance that is not symmetric, semidefinite and consistent with the finite deviations."""
    known = np.isfinite(one.standard_deviations)
    variance = np.diag(one.covariance)
    if np.isnan(one.covariance).any() or not (variance >= 0.0).all():
        raise _refused("covariance holds NaN, or a variance below 0")
    sigma = one.standard_deviations[known]
    block = one.covariance[np.ix_(known, known)]
    if not np.isfinite(block).all() or np.any(np.abs(np.sqrt(variance[known]) - sigma) > AGREEMENT * sigma):
        raise _refused("covariance does not have the squares of standard_deviations on its diagonal")
    scale = np.where(sigma > 0.0, sigma, 1.0)
    correlation = block / scale / scale[:, None]
    if np.any(np.abs(correlation - correlation.T) > AGREEMENT):
        raise _refused("covariance is not symmetric")
    if np.any(np.linalg.eigvalsh(correlation) < -AGREEMENT * max(len(sigma), 1)):
        raise _refused("covariance is not positive semidefinite")


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
