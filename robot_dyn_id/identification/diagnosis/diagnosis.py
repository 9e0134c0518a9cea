# SPDX-License-Identifier: Apache-2.0
"""Diagnosis of a recording: which fault explains efforts that the robot's rigid-body dynamics do not fit.

All hypotheses (`hypotheses`) are compared, and only the one with the largest advantage is reported, so that one fault
does not appear under several names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.dynamics.body_prior import has_placeholder_masses
from robot_dyn_id.findings import Definition, Finding, Section, Severity
from robot_dyn_id.identification.diagnosis.directions import flag_one_way
from robot_dyn_id.identification.diagnosis.gain_factors import GainFactor, estimate_gain_factors
from robot_dyn_id.identification.diagnosis.health import AMPERES_RATIO, EFFORT_IN_AMPERES, EFFORT_SIGN
from robot_dyn_id.identification.diagnosis.hypotheses import (
    LEAST_ZERO_ADVANTAGE,
    LOADED_RATIO,
    STANDARD_WEIGHT,
    Convention,
    Exchange,
    GravityFits,
    ScaleProfile,
    SignPattern,
    TimeScale,
    WeightFactors,
    compare_conventions,
    compute_pattern_cost,
    find_exchange,
    find_friction_directions,
    find_time_scale,
    find_zero,
)
from robot_dyn_id.identification.diagnosis.samples import MotionSamples, RigidFit, RigidGrams, RigidRows
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.uses import LIMITED, NO, USES, WEIGHT_USES

GAIN_INCONSISTENT = Definition(
    "gain_inconsistent",
    Section.HEALTH,
    "error",
    "With another factor of one joint's effort the rigid-body dynamics of all joints fit, with free inertial "
    "parameters: its gain or unit differs from that of the other joints. Several joints are named where their "
    "efforts do not show which of them it is. A warning below a factor of two, information below 1.2.",
    "compare the effort of the joint with a known load, and correct its `gain` or unit if that confirms it",
    overrulable=True,
    lowers=dict.fromkeys(USES, NO),
    check="sign and unit",
)

GAIN_UNVERIFIABLE = Definition(
    "gain_unverifiable",
    Section.HEALTH,
    "info",
    "Neither weight nor inertia in the efforts of a joint determines their scale or sign, or only roughly: a "
    "wrong gain there would not be found, or not below the error that is given. A warning where only the weight "
    "of the URDF's masses could verify it, and differs from the effort by more than a factor of three.",
    "compare the effort of the joint with a known load",
    check="sign and unit",
)

URDF_CONTRADICTED = Definition(
    "urdf_contradicted",
    Section.HEALTH,
    "error",
    "The weight in the efforts of several joints differs from that of the URDF's own masses by more than a factor "
    "of two, and no bodies on the axes of the URDF explain the effort of a joint, or no correction of the recording "
    "gives the weight of all of them its sign: the URDF describes another robot. Information where bodies on its axes "
    "explain the efforts, but their weight differs as much, or on all loaded joints by more than 1.5: its masses "
    "are placeholders or another robot's, or all gains are wrong. A warning where the ratio is nearly the same on all "
    "loaded joints (information from 1.2 to 1.3): unit or gain of all efforts may be wrong, which nothing but these "
    "masses could show. Beyond a factor of three on all of them a model is made, and its verdict is bad.",
    "check that the URDF describes this robot (axes, zero positions, tool) and its masses, and the unit and the "
    "gain of the efforts",
    overrulable=True,
    lowers=dict.fromkeys(USES, LIMITED),
    check="sign and unit",
)

EFFORT_UNITS = Definition(
    "effort_units",
    Section.HEALTH,
    "error",
    "The efforts of all loaded joints are about 1000 times the torque of the URDF's own masses, or all the same "
    "thousandth of it. A model is made, and its verdict is bad.",
    "convert the efforts to N m, or state `ignore: [effort_units]` if only the masses are wrong",
    overrulable=True,
    lowers=dict.fromkeys(USES, NO),
    check="sign and unit",
)

EFFORT_GRAVITY_COMPENSATED = Definition(
    "effort_gravity_compensated",
    Section.HEALTH,
    "warning",
    "The efforts contain inertia or friction, but no weight in any direction: the driver compensates gravity "
    "before it reports them. The model is identified without gravity, and predicts such efforts. Information if "
    "`effort_kind` states it.",
    "record the complete joint torques for a model with gravity, or state `effort_kind`",
    lowers=dict.fromkeys(WEIGHT_USES, NO),
    lowers_always=True,
    check="gravity",
)

EFFORT_EXTERNAL = Definition(
    "effort_external",
    Section.HEALTH,
    "error",
    "The efforts contain neither weight nor inertia nor friction, as estimates of external torques.",
    "record measured joint torques or motor currents, or state `effort_kind`",
    overrulable=True,
    lowers=dict.fromkeys(USES, NO),
    check="gravity",
)

GRAVITY_DIRECTION = Definition(
    "gravity_direction",
    Section.HEALTH,
    "error",
    "Another direction of gravity in the base frame explains the efforts, with free inertial parameters: the base "
    "is mounted on a wall, on a ceiling or on a slope. A warning below 15 degrees.",
    "set the gravity vector",
    overrulable=True,
    lowers=dict.fromkeys(WEIGHT_USES, NO),
    check="gravity",
)

JOINTS_SWAPPED = Definition(
    "joints_swapped",
    Section.HEALTH,
    "error",
    "With two joints exchanged, or with all joints in the reversed order or shifted by one, the rigid-body dynamics "
    "fit: their names, or columns, have another order.",
    "correct the names or the order of the joints in the recording",
    overrulable=True,
    lowers=dict.fromkeys(USES, NO),
    check="sign and unit",
)

POSITION_CONVENTION = Definition(
    "position_convention",
    Section.HEALTH,
    "error",
    "With the positions of one joint counted from a zero that is a quarter or half turn away, or in the other "
    "direction, the rigid-body dynamics fit: the driver and the URDF have different conventions.",
    "correct the zero or the direction of the joint in the driver, in the recording or in the URDF, which may be that "
    "of another robot",
    overrulable=True,
    lowers=dict.fromkeys(USES, NO),
    check="sign and unit",
)

POSITION_ZERO = Definition(
    "position_zero",
    Section.HEALTH,
    "error",
    "With the positions of one joint counted from another zero the rigid-body dynamics fit, with free inertial "
    "parameters: the encoder is calibrated in another way than the URDF states. A warning below 15 degrees.",
    "calibrate the joint in a pose that is known; the angle is an estimate, which errors of the model shift",
    overrulable=True,
    lowers=dict.fromkeys(USES, LIMITED),
    check="sign and unit",
)

TIME_SCALE = Definition(
    "time_scale",
    Section.HEALTH,
    "error",
    "With a motion that is several times as fast or as slow as the time stamps state, the rigid-body dynamics fit: "
    "weight and inertia of the same bodies are at odds as the recording is.",
    "correct the time stamps, or the rate that they were made from",
    overrulable=True,
    lowers=dict.fromkeys(USES, NO),
    check="sign and unit",
)

URDF_IN_MILLIMETERS = Definition(
    "urdf_in_millimeters",
    Section.HEALTH,
    "error",
    "Consecutive joints of the URDF are more than 10 m apart.",
    "convert the lengths of the URDF to meters",
    overrulable=True,
    lowers=dict.fromkeys(USES, NO),
    check="sign and unit",
)

LEAST_ADVANTAGE = 1.0
"""Advantage from which on a hypothesis replaces the recording as it is: the product of the joints' residuals falls to
1/e."""

LEAST_POSITIONS_RATIO = 1.5
"""Independent positions of a motion, as a ratio to the number of parameters, that a diagnosis needs."""

LEAST_EXCHANGE_ADVANTAGE = 2.0
"""Advantage from which on an exchange of two joints is reported; joints without weight exchange by chance."""

CURRENT_SIGMAS = 10.0
"""Standard deviations by which the weight in currents differs from zero."""

LEAST_TILT_DEG, OTHER_MOUNTING_DEG = 1.5, 15.0
"""Angle between configured and estimated gravity that is reported, and from which on the data are refused."""

LEAST_TILT_ADVANTAGE = 0.8
"""Advantage from which on a small tilt of the base is reported."""

WEIGHTLESS_ADVANTAGE = 0.3
"""Advantage of a fit without gravity from which on efforts contain no weight, where the URDF has no masses."""

SAME_ADVANTAGE = 0.5
"""Difference of advantages below which wrong gains of two joints explain the efforts equally well."""

LEAST_DYNAMICS = 0.3
"""Advantage of a rigid-body fit over none, with friction in both, below which efforts contain no dynamics."""

LEAST_FRICTION_SHARE = 0.3
"""Share of the efforts' variance that friction and offsets explain above which efforts contain friction."""

REFUSED_FACTOR, WARNED_FACTOR = 2.0, 1.2
"""Factor of a joint's effort, or its inverse, from which on the data are refused, and from which on it is a warning;
smaller ones may be calibration."""

COARSE_FACTOR = 1.1
"""Wrong factor of a joint's effort that the data would have to show; joints where they would not are reported."""

LARGEST_LIMIT = 3.0
"""Largest wrong factor that is reported as not found; the scale of a joint counts as verified within it. Efforts whose
loaded joints are all beyond it command no torques."""

CARRYING_RATIO = 0.03
"""Torque of a joint, as a ratio to the largest one, above which it counts when URDF and efforts are compared."""

CONTRADICTED_FACTOR, COMMON_FACTOR = 2.0, 1.5
"""Factor, or its inverse, between efforts and the URDF's weight that contradicts the URDF: of several joints, and
common to all loaded joints."""

EQUAL_FACTOR, EQUAL_LEAST, EQUAL_WARNED = 1.15, 1.2, 1.3
"""Largest ratio of two of the factors of all loaded joints that have one cause, such as a unit or a gain of all, and
the factors, or their inverses, from which on such a one is named, and is a warning."""

WRONG_SCALE_ACTION = (
    "compare an effort with a known weight and correct unit or gain of the efforts (1 kgf cm is 0.0981 N m), or the "
    "masses of the URDF; state `ignore: [urdf_contradicted]` if only they are wrong"
)
"""Action against efforts whose scale the weight contradicts by more than `LARGEST_LIMIT` on all loaded joints."""

FEWEST_CONTRADICTED = 2
"""Number of joints whose weight contradicts the URDF: that of one alone may have a wrong gain."""

UNEXPLAINED_RATIO = 0.4
"""Residual of a joint, as a ratio to its effort about the mean, above which no body on the URDF's axes explains it."""

DRIVING_DIRECTION, DRIVING_SHARE = 0.65, 0.8
"""Negative direction of friction, and share of the effort that it explains, which show an effort of opposite sign."""

VERIFIED_LOSS = 0.1
"""Loss of a third and of three times a joint's effort from which on its scale counts as verified."""

MILLI_RATIO = (200.0, 5000.0)
"""Range of ratios between the efforts and the URDF's weight that indicate N mm."""

ORDER_SAMPLES = 400
"""Number of samples with which exchanged joints are searched for."""

LARGEST_OFFSET_M = 10.0
"""Distance between consecutive joints that no robot has [m]."""


@dataclass(frozen=True)
class EffortDiagnosis:
    """Findings about a recording that its rigid-body dynamics show.

    Attributes:
        findings: the findings.
        doubts: errors that do not refuse the data, as a model may predict such efforts well, but make its verdict bad:
            a scale or unit of all efforts that the masses of the URDF contradict, and nothing else could verify.
        weightless: whether the efforts contain no weight, as those of drivers that compensate gravity.
        sufficient: whether the motion suffices for a diagnosis.
        factors: factors of single efforts that explain the recording, -1 for opposite signs, by joint.
    """

    findings: tuple[Finding, ...]
    doubts: tuple[Finding, ...] = ()
    weightless: bool = False
    sufficient: bool = True
    factors: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ExplainedRecording:
    """Hypothesis that explains a recording.

    Attributes:
        finding: the finding about it.
        samples: the samples as it corrects them.
        model: the robot as it corrects it.
        factors: factors of single efforts that it corrects, by joint.
    """

    finding: Finding
    samples: MotionSamples
    model: RobotModel
    factors: Mapping[str, float] = field(default_factory=dict)


def diagnose(samples: MotionSamples, model: RobotModel, positions: float = np.inf) -> EffortDiagnosis:
    """Compare hypotheses about a recording.

    Args:
        samples: samples of the training data.
        model: the robot with the configured gravity.
        positions: number of independent positions in the motion; too few of them fit any hypothesis.
    """
    known = _flag_known(model)
    if known.any() and not known.all():  # torques cannot be compared with currents of other joints
        samples = replace(samples, valid=samples.valid & known[:, None])
    evidence = _Evidence(samples, model)
    rows, factors, present = evidence.rows, evidence.factors, evidence.present
    if positions < LEAST_POSITIONS_RATIO * evidence.grams.rank:
        return EffortDiagnosis((), sufficient=False)
    ordered = not evidence.is_exchange  # the weight of other joints shows no unit, and no missing weight
    unit = _judge_unit(factors, model) if ordered and not model.drive_units else ()
    if unit:
        return EffortDiagnosis((), doubts=unit)
    if ordered and model.gravity.any() and _weightless(evidence):
        without = evidence.gravity.without_gravity()
        found = _report_weightless(rows, without, model)
        return EffortDiagnosis(found, weightless=_has_dynamics(rows, without))
    currents = _judge_currents(factors, model) if ordered and not model.drive_units else ()
    if currents:
        return EffortDiagnosis((), doubts=currents)
    if factors.reversed and _drives(samples, model, present) and not _is_pattern(evidence.grams, factors):
        message = "the efforts of all joints have the opposite sign: friction would drive the motion"
        return EffortDiagnosis((EFFORT_SIGN.found(message, model.joint_names),))
    gains = estimate_gain_factors(rows, samples)
    explained = _explain(evidence)
    if explained is None:
        contradicted, doubts = _report_contradicted(evidence)
        found = _report_driving(evidence) or _report_gains(gains, model)
        return EffortDiagnosis((*contradicted, *found, *_report_unverified(evidence, gains)), doubts)
    contradicted, doubts = _report_contradicted(_Evidence(explained.samples, explained.model), corrected=True)
    found = (explained.finding,)
    if explained.finding.severity == "warning" and explained.finding.code == "gain_inconsistent":
        found = _report_gains(gains, model) or found
    return EffortDiagnosis((*contradicted, *found), doubts, factors=explained.factors)


@dataclass(frozen=True)
class _Evidence:
    """Fits of a recording, as it is or as a hypothesis corrects it.

    Attributes:
        samples: the samples.
        model: the robot.
    """

    samples: MotionSamples
    model: RobotModel

    @cached_property
    def gravity(self) -> GravityFits:
        """Fits under any gravity vector."""
        return GravityFits.from_samples(self.samples, self.model)

    @cached_property
    def rows(self) -> RigidRows:
        """Rows of the samples."""
        return RigidRows.from_samples(self.samples, [self.model])

    @cached_property
    def grams(self) -> RigidGrams:
        """Gram matrices of the rows."""
        return self.rows.grams()

    @cached_property
    def present(self) -> RigidFit:
        """Fit of the recording as it is."""
        return self.grams.fit()

    @cached_property
    def factors(self) -> WeightFactors:
        """Weight in the efforts."""
        return WeightFactors.from_samples(self.samples, self.model)

    @cached_property
    def scales(self) -> ScaleProfile:
        """Residuals by a factor of one joint's effort."""
        return ScaleProfile.from_grams(self.grams)

    @property
    def verified(self) -> Mask:
        """Joints whose scale the other joints or the URDF's weight verify, shape (n,)."""
        return np.asarray((self.scales.sharpness() > VERIFIED_LOSS) | self.factors.confirmed)

    @cached_property
    def fewer(self) -> MotionSamples:
        """Samples of hypotheses that change the motion."""
        return self.samples.thinned(ORDER_SAMPLES)

    @cached_property
    def exchange(self) -> Exchange | None:
        """Best other order of the joints."""
        return find_exchange(self.fewer, self.model)

    @property
    def is_exchange(self) -> bool:
        """Whether another order of the joints explains the efforts, and better than if they contained no weight."""
        without_weight = max(self.gravity.without_gravity().advantage(self.present), 0.0)
        return self.exchange is not None and self.exchange.advantage > LEAST_EXCHANGE_ADVANTAGE + without_weight


def _report_contradicted(
    evidence: _Evidence, *, corrected: bool = False
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Findings about a URDF whose weight differs from that in the efforts, and doubts about the scale of all efforts.

    A finding is an error where in addition no bodies on the URDF's axes explain the effort of a joint that carries
    weight, or where a recording that a hypothesis corrects still has the weight of a joint with the opposite sign:
    the hypothesis is not the cause. For doubts see `EffortDiagnosis`.

    Args:
        evidence: fits of the recording, as it is or as a hypothesis corrects it.
        corrected: whether a hypothesis has corrected the recording.
    """
    factors, model = evidence.factors, evidence.model
    if has_placeholder_masses(model):
        return (), ()
    size = np.abs(factors.factors)
    largest = factors.rms.max(initial=0.0)
    known = np.isfinite(size) & (factors.deviations < 0.1 * np.maximum(size, 1.0)) & _flag_known(model)

    def differing(least: float, factor: float) -> tuple[Mask, Mask]:
        carrying = known & (factors.rms > least * largest)
        agrees = (factors.factors > 1.0 / factor) & (factors.factors < factor)
        return carrying, carrying & ~agrees

    _, several = differing(CARRYING_RATIO, CONTRADICTED_FACTOR)
    loaded, common = differing(LOADED_RATIO, COMMON_FACTOR)
    many = several.sum() >= FEWEST_CONTRADICTED
    enough, every = loaded.sum() >= FEWEST_CONTRADICTED, factors.factors[loaded]
    all_differ = enough and (common == loaded).all()
    _, slightly = differing(LOADED_RATIO, EQUAL_LEAST)
    equal = enough and (slightly == loaded).all() and 0.0 < every.max() <= EQUAL_FACTOR * every.min()
    carrying, apart = differing(CARRYING_RATIO, LARGEST_LIMIT)
    alone = not enough and (apart == carrying).all()  # one loaded joint may have a wrong mass: the others must agree
    beyond = (enough or alone) and _is_common_scale(every)
    if not many and not all_differ and not equal and not beyond:
        return (), ()
    contradicted = loaded if beyond else several if many else common if all_differ else slightly
    unexplained = _flag_unexplained(evidence)
    names = _names(model, contradicted)
    listed = ", ".join(f"{name} {value:.2g}" for name, value in zip(names, factors.factors[contradicted], strict=True))
    message = f"the weight in the efforts, as a ratio to that of the URDF's masses, is {listed}"
    if many and unexplained.any():
        message += f", and no bodies on its axes explain the effort of {', '.join(_names(model, unexplained))}"
        return (URDF_CONTRADICTED.found(message, _names(model, contradicted | unexplained)),), ()
    if corrected and many and (factors.factors[several] < 0.0).any():
        message += ", with the correction that fits best: that is not the cause"
        return (URDF_CONTRADICTED.found(message, names),), ()
    if beyond:
        median = float(np.median(every))
        message += f": efforts are {median:.2g} times the torques, or the masses {1.0 / median:.2g} times the real ones"
        return (), (URDF_CONTRADICTED.found(message, names, "error", WRONG_SCALE_ACTION),)
    if not equal:
        return (URDF_CONTRADICTED.found(message, names, "info"),), ()
    message += f"; all loaded joints have nearly the same, as if efforts were {every.mean():.2g} times the torques"
    warned = not 1.0 / EQUAL_WARNED < every.mean() < EQUAL_WARNED
    # of no joint in particular: one that carries no weight has the unit and the URDF of the others
    return (URDF_CONTRADICTED.found(message, (), "warning" if warned else "info"),), ()


def _flag_unexplained(evidence: _Evidence) -> Mask:
    """Joints that carry weight whose effort no bodies on the URDF's axes explain, shape (n,)."""
    factors, rows = evidence.factors, evidence.rows
    loaded = factors.rms > CARRYING_RATIO * factors.rms.max(initial=0.0)
    carries = loaded & (rows.scale > CARRYING_RATIO * rows.scale.max(initial=0.0))
    return np.asarray(carries & (evidence.present.rms > UNEXPLAINED_RATIO * rows.scale))


def _is_common_scale(factors: Array) -> bool:
    """Whether factors of the loaded joints are all beyond `LARGEST_LIMIT`, and agree with the URDF but for a scale."""
    if not len(factors) or not factors.min() > 0.0 or not factors.max() < CONTRADICTED_FACTOR * factors.min():
        return False
    return bool(factors.min() > LARGEST_LIMIT or factors.max() < 1.0 / LARGEST_LIMIT)


def _report_gains(gains: Sequence[GainFactor], model: RobotModel) -> tuple[Finding, ...]:
    """Finding about gains that differ by less than a hypothesis of its own, with their standard deviations."""
    known = _flag_known(model)
    significant = [gain for gain in gains if gain.significant and known[gain.joint]]
    if not significant:
        return ()
    largest = max(gain.advantage for gain in significant)
    near = [gain for gain in significant if gain.advantage > largest - SAME_ADVANTAGE]
    near.sort(key=lambda gain: -gain.advantage)
    names = [model.joint_names[gain.joint] for gain in near]
    sizes = (
        f"{name} is {gain.value:.3g} (+- {gain.value * gain.deviation:.1g}) times"
        for name, gain in zip(names, near, strict=True)
    )
    message = f"the effort of {', or that of '.join(sizes)} the torque that the other joints determine"
    apart = max(near[0].value, 1.0 / near[0].value)
    severity: Severity = "warning" if apart > WARNED_FACTOR else "info"
    return (GAIN_INCONSISTENT.found(message, names, severity),)


def _is_pattern(grams: RigidGrams, factors: WeightFactors) -> bool:
    """Whether only some of the efforts have the opposite sign."""
    return SignPattern.from_grams(grams, factors).advantage >= LEAST_ADVANTAGE


def _drives(samples: MotionSamples, model: RobotModel, fit: RigidFit) -> bool:
    """Whether friction drives most joints instead of braking them."""
    return bool((find_friction_directions(samples, model, fit.values)[0] < 0.0).mean() > 0.5)


def _report_driving(evidence: _Evidence) -> tuple[Finding, ...]:
    """Finding about joints without weight whose friction drives them: the effort has the opposite sign.

    Where a joint never turns back, its friction could be a constant effort; where friction explains little of the
    effort itself, such as the noise of a sensor that is dead, it shows nothing.
    """
    samples, model, rows = evidence.samples, evidence.model, evidence.rows
    directions, shares = find_friction_directions(samples, model, evidence.present.values)
    driving = ~evidence.verified & (directions < -DRIVING_DIRECTION) & (shares > DRIVING_SHARE)
    driving &= ~flag_one_way(samples.motion.dq) & (_find_friction_shares(rows) > LEAST_FRICTION_SHARE)
    if not driving.any():
        return ()
    names = _names(model, driving)
    listed = ", ".join(names)
    message = f"friction drives {listed} instead of braking: the effort has the opposite sign, or the positions have"
    action = (
        "move the joint a little in the positive direction of the URDF to see which of the two is reversed; set "
        "`sign: -1` for its effort, or correct its positions"
    )
    return (EFFORT_SIGN.found(message, names, action=action),)


def examine_lengths(model: RobotModel) -> tuple[Finding, ...]:
    """Finding about a URDF whose lengths are in millimeters."""
    longest = float(np.linalg.norm(model.translation, axis=1).max(initial=0.0))
    if longest <= LARGEST_OFFSET_M:
        return ()
    message = f"joints of the URDF are up to {longest:.0f} m apart: its lengths appear to be in millimeters"
    return (URDF_IN_MILLIMETERS.found(message),)


def compute_angle_between(one: Array, other: Array) -> float:
    """Angle between two vectors [deg]; 180 if one of them is zero."""
    size = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(np.degrees(np.arccos(np.clip(one @ other / size, -1.0, 1.0)))) if size > 0.0 else 180.0


def _names(model: RobotModel, flags: Mask | Sequence[int]) -> list[str]:
    return [str(name) for name in np.array(model.joint_names)[flags]]


def _judge_unit(factors: WeightFactors, model: RobotModel) -> tuple[Finding, ...]:
    """Finding about efforts in N mm, about 1000 times the weight of all loaded joints, or about masses in grams."""
    loaded = factors.loaded
    ratios = factors.factors[loaded]
    if not loaded.any() or not (ratios > 0.0).all():
        return ()
    message = f"efforts are {np.median(ratios):.3g} times the torque of the URDF's masses: "
    if ((ratios > MILLI_RATIO[0]) & (ratios < MILLI_RATIO[1])).all():
        return (EFFORT_UNITS.found(f"{message}they appear to be in N mm", _names(model, loaded)),)
    milli = ((1.0 / ratios > MILLI_RATIO[0]) & (1.0 / ratios < MILLI_RATIO[1])).all()
    if milli and ratios.max() < EQUAL_FACTOR * ratios.min():  # those of currents differ from joint to joint
        action = "convert the masses of the URDF to kg, and its inertia to kg m^2"
        return (EFFORT_UNITS.found(f"{message}these appear to be in grams", _names(model, loaded), action=action),)
    return ()


def _judge_currents(factors: WeightFactors, model: RobotModel) -> tuple[Finding, ...]:
    """Finding about efforts in amperes: those of several loaded joints follow the weight, and are far below it."""
    loaded = factors.loaded
    ratios, deviations = factors.factors[loaded], factors.deviations[loaded]
    small = (np.abs(ratios) < AMPERES_RATIO) & (np.abs(ratios) > CURRENT_SIGMAS * deviations)
    if len(ratios) < 2 or not small.all():
        return ()
    size = float(np.median(np.abs(ratios)))
    opposite = factors.factors < -CURRENT_SIGMAS * factors.deviations
    message = f"efforts are {size:.2g} of the torque of the URDF's masses: they appear to be in amperes"
    if opposite.any():
        message += f", with the opposite sign for {', '.join(_names(model, opposite))}"
    return (EFFORT_IN_AMPERES.found(message, _names(model, loaded)),)


def _weightless(evidence: _Evidence) -> bool:
    """Whether the efforts contain no weight in any direction of gravity, or a small rest of it."""
    gravity, factors = evidence.gravity, evidence.factors
    if factors.known and not factors.weightless:
        return False
    direction = gravity.best_direction()
    none, best = gravity.without_gravity(), gravity.fit(direction)
    if not factors.known:
        return none.advantage(evidence.present) > WEIGHTLESS_ADVANTAGE and best.advantage(none) < WEIGHTLESS_ADVANTAGE
    if best.advantage(none) < LEAST_ADVANTAGE:
        return True
    along = WeightFactors.from_samples(evidence.samples, replace(evidence.model, gravity=direction))
    return along.weightless and along.has_inertia


def _has_dynamics(rows: RigidRows, fit: RigidFit) -> bool:
    """Whether inertia or friction is in efforts that contain no weight."""
    return _inertia_advantage(rows, fit) > LEAST_DYNAMICS or _friction_share(rows) > LEAST_FRICTION_SHARE


def _inertia_advantage(rows: RigidRows, fit: RigidFit) -> float:
    projected = np.sqrt((rows.tau**2).sum(axis=1) / rows.counts)
    return float(np.log(np.maximum(projected, fit.rms) / fit.rms).sum())


def _friction_share(rows: RigidRows) -> float:
    """Share of the variance of all efforts, joint by joint, that friction explains: median over the joints."""
    return float(np.median(_find_friction_shares(rows)))


def _find_friction_shares(rows: RigidRows) -> Array:
    """Share of the variance of each joint's effort that friction explains, shape (n,); 1 for one without effort."""
    left = (rows.tau**2).sum(axis=1) / rows.counts
    return np.asarray(1.0 - left / np.maximum(rows.scale**2, 1e-300))


def _report_weightless(rows: RigidRows, fit: RigidFit, model: RobotModel) -> tuple[Finding, ...]:
    """Finding about efforts without weight: compensated gravity, or external torques."""
    inertia, friction = _inertia_advantage(rows, fit) > LEAST_DYNAMICS, _friction_share(rows) > LEAST_FRICTION_SHARE
    if not (inertia or friction):
        message = "the efforts contain neither weight nor inertia nor friction of the robot"
        return (EFFORT_EXTERNAL.found(message),)
    compensated = "gravity" if friction else "gravity and friction"
    message = f"the efforts contain no weight: the driver compensates {compensated} before it reports them"
    return (EFFORT_GRAVITY_COMPENSATED.found(message),)


def _find_direction(gravity: GravityFits, factors: WeightFactors, samples: MotionSamples, model: RobotModel) -> Array:
    """Direction of gravity that the efforts agree with [m/s^2], shape (3,).

    Slow motion determines gravity up to its sign, as the parameters are free; masses of the URDF determine the sign.
    """
    if factors.reversed:
        return -model.gravity
    direction = gravity.best_direction(_magnitude(model))
    if compute_angle_between(direction, model.gravity) < OTHER_MOUNTING_DEG or not model.inertial_parameters.any():
        return direction
    along = WeightFactors.from_samples(samples, replace(model, gravity=direction))
    return -direction if along.known and float(np.median(along.factors[along.loaded])) < 0.0 else direction


def _explain(evidence: _Evidence) -> ExplainedRecording | None:
    """Hypothesis with the largest advantage, if that is large enough."""
    samples, model, gravity, factors = evidence.samples, evidence.model, evidence.gravity, evidence.factors
    scales, exchange = evidence.scales, evidence.exchange
    direction = _find_direction(gravity, factors, samples, model)
    conventions = compare_conventions(evidence.fewer, model)
    near = _settle_conventions(conventions, samples, model)
    zero = find_zero(evidence.fewer, model)
    time = find_time_scale(evidence.fewer, model)
    angle = compute_angle_between(direction, model.gravity)
    if angle < OTHER_MOUNTING_DEG and model.gravity.any():
        direction = gravity.refine(model.gravity)
        angle = compute_angle_between(direction, model.gravity)
    mounted = gravity.fit(direction).advantage(evidence.present)
    if angle > 179.9 and model.gravity.any():  # slow motion determines gravity up to its sign only
        mounted = max(mounted, LEAST_ADVANTAGE)
    least = LEAST_ADVANTAGE if angle > OTHER_MOUNTING_DEG else LEAST_TILT_ADVANTAGE
    ratios = {
        "gravity": mounted / least if angle > LEAST_TILT_DEG else 0.0,
        "exchange": 0.0 if exchange is None else exchange.advantage / LEAST_EXCHANGE_ADVANTAGE,
        "convention": near[0].advantage / LEAST_EXCHANGE_ADVANTAGE if near else 0.0,
        "time": time.advantage / LEAST_EXCHANGE_ADVANTAGE,
        "scale": 0.0 if _is_unknown(scales, model) else scales.advantage / LEAST_ADVANTAGE,
        "signs": 0.0,
    }
    signs = SignPattern.from_grams(evidence.grams, factors)
    if signs.several and signs.cost < _scale_cost(scales, factors):
        ratios |= {"scale": 0.0, "signs": signs.advantage / LEAST_ADVANTAGE}
    others = [mounted, time.advantage, scales.advantage, signs.advantage]
    others += [0.0 if exchange is None else exchange.advantage]
    others += [conventions[0].advantage + SAME_ADVANTAGE if conventions else 0.0]  # of a quarter turn, no other angle
    ratios["zero"] = 0.0 if zero is None else _weigh_zero(zero, max(others))
    best = max(ratios, key=lambda name: ratios[name])
    if ratios[best] < 1.0:
        return None
    if best == "gravity":
        return ExplainedRecording(_report_gravity(direction, model), samples, replace(model, gravity=direction))
    if best == "exchange" and exchange is not None:
        return ExplainedRecording(_report_exchange(exchange, model), exchange.undo(samples), model)
    if best == "convention":
        return ExplainedRecording(_report_conventions(near, model), near[0].undo(samples), model)
    if best == "zero" and zero is not None:
        return ExplainedRecording(_report_zero(zero, model), zero.undo(samples), model)
    if best == "time":
        return ExplainedRecording(_report_time(time), time.undo(samples), model)
    if best == "signs":
        opposite = dict.fromkeys(_names(model, signs.opposite), -1.0)
        return _with_efforts_corrected(_report_signs(signs, factors, model), samples, model, opposite)
    candidates = scales.alternatives(SAME_ADVANTAGE)
    joint, factor = candidates[0]
    own = {model.joint_names[joint]: factor}
    return _with_efforts_corrected(_report_scale(candidates, factors, model), samples, model, own)


def _with_efforts_corrected(
    finding: Finding, samples: MotionSamples, model: RobotModel, factors: Mapping[str, float]
) -> ExplainedRecording:
    """Hypothesis that single efforts are too large by factors, by joint."""
    scale = np.array([factors.get(name, 1.0) for name in model.joint_names])
    return ExplainedRecording(finding, replace(samples, tau=samples.tau / scale[:, None]), model, factors)


def _is_unknown(scales: ScaleProfile, model: RobotModel) -> bool:
    """Whether the best factor is that of a drive whose gain is not known, and not one of its sign."""
    best = scales.alternatives(SAME_ADVANTAGE)[:1]
    known = _flag_known(model)
    return any(factor > 0.0 and not known[joint] for joint, factor in best)


def _flag_known(model: RobotModel) -> Mask:
    """Joints whose efforts are torques or forces, unlike those of drives of unknown gain, shape (n,)."""
    return np.array([name not in model.drive_units for name in model.joint_names])


def _scale_cost(scales: ScaleProfile, factors: WeightFactors) -> float:
    """Cost of the best factor of one joint, comparable with that of a pattern of signs."""
    signs = np.ones(len(factors.factors))
    for joint, factor in scales.alternatives(0.0)[:1]:
        signs[joint] = np.sign(factor)
    return scales.least + compute_pattern_cost(signs, factors.directions)


def _magnitude(model: RobotModel) -> float:
    """Magnitude of the configured gravity, or the standard one where none is configured [m/s^2]."""
    size = float(np.linalg.norm(model.gravity))
    return size if size > 0.0 else STANDARD_WEIGHT


def _report_gravity(direction: Array, model: RobotModel) -> Finding:
    angle = compute_angle_between(direction, model.gravity)
    vector = ", ".join(f"{value:.2f}" for value in (np.round(direction, 2) + 0.0).tolist())  # no -0.00
    configured = (
        f"{angle:.0f} degrees from the configured one: the base is mounted in another way"
        if model.gravity.any()
        else "but none is configured, or `effort_kind` states that they contain none"
    )
    return GRAVITY_DIRECTION.found(
        f"the efforts agree with gravity [{vector}] m/s^2 in the base frame, {configured}",
        severity="error" if angle > OTHER_MOUNTING_DEG else "warning",
        action=f"set `gravity: [{vector}]` in the configuration",
    )


def _report_exchange(exchange: Exchange, model: RobotModel) -> Finding:
    names, channels = _names(model, list(exchange.joints)), exchange.channels
    if len(names) == 2:
        message = f"{channels} of {names[0]} and {names[1]} are exchanged: with the two exchanged the dynamics fit"
    else:
        order = ", ".join(_names(model, list(exchange.order)))
        message = f"{channels} have another order of the joints: those named {order} fit {', '.join(model.joint_names)}"
    return JOINTS_SWAPPED.found(message, names)


def _settle_conventions(
    conventions: Sequence[Convention], samples: MotionSamples, model: RobotModel
) -> list[Convention]:
    """Conventions that explain the recording, as well as the best one: those with which the weight has its sign.

    Empty if the advantage of the best one does not suffice, or if it leaves the effort of a joint unexplained.
    """
    near = [one for one in conventions if one.advantage > conventions[0].advantage - SAME_ADVANTAGE]
    if not near or near[0].advantage < LEAST_EXCHANGE_ADVANTAGE:
        return []
    upright = []
    for one in near:
        corrected = _Evidence(one.undo(samples), model)
        if _flag_unexplained(corrected).any():
            continue
        factors = corrected.factors
        if not factors.known or (factors.factors[factors.precise] > 0.0).all():
            upright.append(one)
    return upright


def _report_conventions(conventions: Sequence[Convention], model: RobotModel) -> Finding:
    """Finding about the convention of one joint, or of others that explain the recording as well."""
    names = [model.joint_names[one.joint] for one in conventions]
    texts = []
    for name, one in zip(names, conventions, strict=True):
        both = "positions and efforts" if one.signs[1] < 0.0 else "positions"
        zero = f"the zero of {name} is {math.degrees(one.turn):.0f} degrees from that of the URDF"
        texts.append(zero if one.turn else f"the {both} of {name} have the other direction than in the URDF")
    message = f"{', or '.join(texts)}: with this corrected the dynamics fit"
    return POSITION_CONVENTION.found(message, list(dict.fromkeys(names)))


def _weigh_zero(zero: Convention, others: float) -> float:
    """Advantage of a zero as a ratio to the least one; 0 for small angles, and for what another hypothesis explains.

    An angle that is free explains a part of many faults: it is the cause where nothing explains more, reported or not.
    """
    if abs(math.degrees(zero.turn)) < LEAST_TILT_DEG or zero.advantage < others:
        return 0.0
    return zero.advantage / LEAST_ZERO_ADVANTAGE


def _report_zero(zero: Convention, model: RobotModel) -> Finding:
    name, angle = model.joint_names[zero.joint], math.degrees(zero.turn)
    half_width = math.degrees(zero.half_width)
    turn = f"{zero.turn:+.3f} +- {zero.half_width:.3f} rad ({angle:+.1f} +- {half_width:.1f} degrees)"
    message = f"the positions of {name} fit the efforts if {turn} are added to them"
    severity: Severity = "error" if abs(angle) > OTHER_MOUNTING_DEG else "warning"
    return POSITION_ZERO.found(message, [name], severity)


def _report_time(scale: TimeScale) -> Finding:
    speed = f"{scale.factor:.2g} times as fast" if scale.factor > 1.0 else f"{1.0 / scale.factor:.2g} times as slow"
    message = f"weight and inertia in the efforts fit the same bodies if the robot moved about {speed} as recorded"
    return TIME_SCALE.found(message)


def _report_signs(signs: SignPattern, factors: WeightFactors, model: RobotModel) -> Finding:
    """Finding about several joints of opposite sign; about their opposites, too, where no weight decides."""
    determined = ~signs.undetermined
    named, others = signs.opposite & determined, ~signs.opposite & determined
    message = f"the efforts of {', '.join(_names(model, named))} have the opposite sign of those of the other joints"
    if not factors.directions[determined].any() and others.any():
        message += f", or those of {', '.join(_names(model, others))} have: no masses of the URDF decide"
        named = determined
    if signs.undetermined.any():
        message += f"; the signs of {', '.join(_names(model, signs.undetermined))} are not determined"
    return EFFORT_SIGN.found(message, _names(model, named))


def _report_scale(candidates: Sequence[tuple[int, float]], factors: WeightFactors, model: RobotModel) -> Finding:
    """Finding about the joint whose gain is wrong; about several where the URDF's weight does not decide.

    Args:
        candidates: joints that may be the cause with their factors, the best first.
        factors: weight in the efforts.
        model: the robot.
    """
    suspected = [one for one in candidates if not factors.confirmed[one[0]]] or candidates
    names = [model.joint_names[joint] for joint, _ in suspected]
    if suspected[0][1] < 0.0:
        message = (
            f"the effort of {' or '.join(names)} has the opposite sign of the torque that the other joints determine"
        )
        if suspected[0][1] != -1.0:  # a wrong sign alone leaves the size as it is
            message += f", and about {-suspected[0][1]:g} times its size: the URDF may describe another robot"
        return EFFORT_SIGN.found(message, names)
    sizes = [f"{factor:.2g}" for _, factor in suspected]
    listed = (f"{name} is about {size} times" for name, size in zip(names, sizes, strict=True))
    message = f"the effort of {', or that of '.join(listed)} the torque that the other joints determine"
    factor = float(sizes[0])  # as it is printed: what reads "2 times" is not below a factor of two
    severity: Severity = "error" if not 1.0 / REFUSED_FACTOR < factor < REFUSED_FACTOR else "warning"
    return GAIN_INCONSISTENT.found(message, names, severity)


def _report_unverified(evidence: _Evidence, gains: Sequence[GainFactor]) -> tuple[Finding, ...]:
    """Findings about joints whose effort is compared with the URDF's weight alone, roughly, or with nothing."""
    factors, model = evidence.factors, evidence.model
    scaled = _flag_known(model)
    unverified = scaled & ~evidence.verified
    apart = unverified & factors.precise & factors.loaded
    findings = []
    if apart.any():
        values = zip(_names(model, apart), factors.factors[apart], factors.deviations[apart], strict=True)
        listed = ", ".join(f"{name} {factor:.3g} (+- {deviation:.1g})" for name, factor, deviation in values)
        message = (
            "only the URDF's masses could verify the scale of these efforts, and they disagree: the efforts are, as a "
            f"ratio to the weight of these masses, {listed}"
        )
        findings.append(GAIN_UNVERIFIABLE.found(message, _names(model, apart), "warning"))
    if (unverified & ~apart).any():
        names = _names(model, unverified & ~apart)
        message = (
            f"nothing in these data verifies the scale or the sign of the effort of {', '.join(names)}: friction "
            "explains it"
        )
        findings.append(GAIN_UNVERIFIABLE.found(message, names))
    deviations = np.array([gain.sigmas * gain.deviation for gain in gains])
    limits = np.exp(np.minimum(deviations, np.log(LARGEST_LIMIT)))
    rough = scaled & ~unverified & (limits > COARSE_FACTOR)
    if rough.any():
        names = _names(model, rough)
        sizes = ", ".join(f"{name} ({limit - 1.0:.0%})" for name, limit in zip(names, limits[rough], strict=True))
        message = f"wrong gains would not be found below these relative errors: {sizes}"
        findings.append(GAIN_UNVERIFIABLE.found(message, names))
    return tuple(findings)
