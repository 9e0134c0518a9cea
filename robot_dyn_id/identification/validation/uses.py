# SPDX-License-Identifier: Apache-2.0
"""Uses that a model is fit for: the figure that each use needs, its threshold, and the answer.

A criterion compares one figure of one joint with the largest value that a use tolerates. The answer is `yes` up to that
threshold, `limited` up to `Thresholds.limited_ratio` times the threshold, and `no` beyond; feed-forward and computed
torque are limited as long as the arm tracks better than under gravity compensation alone. An inertia that is uncertain
limits computed torque however uncertain it is: its torque errors are those that were measured, and nothing shows that
the arm will not follow. Findings of severity warning
lower the answers of the uses that they concern, and an error lowers all. A model without gravity is fit for no use that
needs the weight, even if the user has stated that the efforts contain none.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.identification.thresholds import Thresholds
from robot_dyn_id.identification.validation.metrics import HeldOut, JointMetrics
from robot_dyn_id.identification.validation.rollout import HORIZONS_S, Rollouts
from robot_dyn_id.parameters import FitFor, Ranges
from robot_dyn_id.uses import ANSWERS, APART, LIMITED, NO, USES, YES

GRAVITY_ERROR_HIGH = Definition(
    "gravity_error_high",
    Section.USES,
    "info",
    "The held-out error of a joint exceeds both `thresholds.friction_share` of the friction that holds it and "
    "`thresholds.rated_share` of its rated effort: under gravity compensation the arm drifts.",
    "check the effort of the joint, and record more positions of it",
)

GRAVITY_UNCERTAIN = Definition(
    "gravity_uncertain",
    Section.USES,
    "info",
    "Two standard deviations of the torque at rest exceed the error that gravity compensation tolerates, or the "
    "smallest external torque that collision detection must find.",
    "record longer, in more positions of all joints",
)

OFFSET_LARGE = Definition(
    "offset_large",
    Section.USES,
    "info",
    "The constant part of a joint's effort exceeds what gravity compensation, or feed-forward and computed "
    "torque, tolerate as an error. The data of one sensor cannot distinguish a wrong zero from a torque, and a "
    "controller that commands a wrong zero pushes the joint. Collision detection and payloads, which measure by "
    "the same sensor, are not concerned.",
    "compare the effort of the joint at rest with its weight, correct the zero of the sensor, or command the "
    "torque without this offset",
)

TORQUE_ERROR_HIGH = Definition(
    "torque_error_high",
    Section.USES,
    "info",
    "The held-out error of a joint exceeds both `thresholds.tracking_share` of the torque that feedback supplies under "
    "gravity compensation alone and `thresholds.rated_share` of its rated effort: the arm tracks hardly better.",
    "check the effort of the joint and its friction terms, and record longer",
)

INERTIA_UNCERTAIN = Definition(
    "inertia_uncertain",
    Section.USES,
    "info",
    "Where the inertia of a joint is larger than identified, by up to two standard deviations, feedback through it is "
    "weaker, and errors of the torque move the joint by as much more: the held-out error times that ratio exceeds what "
    "computed torque tolerates. An inertia that is not positive excludes computed torque.",
    "record faster motion of the joint, with frequent reversals",
)

ROLLOUT_ERROR_HIGH = Definition(
    "rollout_error_high",
    Section.USES,
    "info",
    "After 1 s of simulation under the recorded efforts, without feedback, a joint is farther from the recorded "
    "motion than `thresholds.rollout_share` of its trained range.",
    "use the model in simulations with feedback, or restart them more often from measured states",
)

ROLLOUT_DIVERGES = Definition(
    "rollout_diverges",
    Section.USES,
    "info",
    "After 0.1 s of simulation under the recorded efforts, without feedback, a joint is already farther from the "
    "recorded motion than a tenth of what is tolerated after 1 s: inertia or friction of the joint are wrong, or "
    "too small against the errors of the effort.",
    "record faster motion of the joint, with frequent reversals",
)

ROLLOUT_NOT_COMPUTED = Definition(
    "rollout_not_computed",
    Section.USES,
    "info",
    "The model cannot be simulated on the held-out data: they are too short, a term has no forward dynamics, or "
    "the mass matrix is not positive definite.",
    "give longer recordings, or use terms that can be simulated",
)

CONTACT_THRESHOLD_HIGH = Definition(
    "contact_threshold_high",
    Section.USES,
    "info",
    "The torque error that 99.9 % of the held-out samples do not exceed is above `thresholds.contact_share` of "
    "the rated effort: smaller external torques are not detectable on this joint.",
    "check the friction terms of the joint, and the noise of its effort",
)

PAYLOAD_RESOLUTION_LOW = Definition(
    "payload_resolution_low",
    Section.USES,
    "info",
    "The errors of the model imitate a payload above `thresholds.payload_share` of the mass that needs the rated "
    "effort of a joint.",
    "train longer, and identify payloads with a slow motion through many positions",
)

WEIGHT_UNCERTAIN = Definition(
    "weight_uncertain",
    Section.USES,
    "info",
    "Two standard deviations of the torque at rest imitate a payload above `thresholds.payload_share` of the mass that "
    "needs the rated effort of a joint.",
    "record longer, in more positions of all joints",
)

SHORT_S, LONG_S = HORIZONS_S[:2]
"""Times after which errors of rollouts decide whether forward simulation is fit at all, and whether it is fit [s]."""

MIN_ROLLOUT_DISTANCE = 0.01
"""Error of a rollout that is always tolerated [rad or m]."""

ANY_FINITE = sys.float_info.max
"""Limit of a figure that does not exclude a use as long as it is finite."""

LEAST_LOAD_TORQUE = 1e-3
"""Torque of 1 kg at the last link below which a joint does not carry it [N m/kg or N/kg]."""

CERTAINTY = 2.0
"""Standard deviations of a figure that follows from the parameter covariance, compared with its tolerance."""

FEWEST_DIGITS, MOST_DIGITS = 2, 6
"""Significant digits of a figure and its threshold; more than the fewest only where these do not differ."""

LARGEST_PRINTED = 1e6
"""Figure above which a message does not print its digits, and below whose inverse it is 0."""

MOST_REDUCED = 2
"""Numbers of joints left out that are suggested."""


@dataclass(frozen=True)
class Criterion:
    """Figure of one joint, or of the whole arm, that a use depends on.

    Attributes:
        use: one of `USES`.
        code: code of the finding that reports a figure above its threshold.
        joint: name of the joint; empty for the whole arm.
        figure: the figure; NaN if it could not be determined.
        unit: unit of figure and threshold; empty for ratios.
        threshold: largest figure with the answer yes.
        limited: largest figure with the answer limited.
        after: time of simulation after which the figure is measured [s]; NaN: not in a simulation.
    """

    use: str
    code: str
    joint: str
    figure: float
    unit: str
    threshold: float
    limited: float
    after: float = math.nan

    @property
    def answer(self) -> str:
        """One of `ANSWERS`; `no` for a figure that is not known, unless no figure would exclude the use."""
        if self.figure <= self.threshold:
            return YES
        return LIMITED if self.figure <= self.limited or math.isinf(self.limited) else NO

    @property
    def ratio(self) -> float:
        """Figure over threshold; infinite if one of them is not known."""
        ratio = self.figure / self.threshold if self.threshold > 0.0 else math.inf
        return math.inf if math.isnan(ratio) else ratio


@dataclass(frozen=True)
class ModelScales:
    """Uncertainty and rollouts of a model.

    Attributes:
        gravity_deviation: standard deviation of the torque at rest [N m or N], shape (n,).
        constant: constant torque of each joint, its identified offset [N m or N], shape (n,).
        inertia_deviation: relative standard deviation of the diagonal of the mass matrix, shape (n,).
        rollouts: simulations under the recorded efforts.
    """

    gravity_deviation: Array
    constant: Array
    inertia_deviation: Array
    rollouts: Rollouts


def list_criteria(
    held_out: HeldOut, scales: ModelScales, trained: Ranges, thresholds: Thresholds
) -> tuple[Criterion, ...]:
    """All criteria of a model.

    Args:
        held_out: metrics on held-out data, with the friction of the joints.
        scales: uncertainty and rollouts of the model.
        trained: ranges of the training motion.
        thresholds: thresholds of the uses.
    """
    found: list[Criterion] = []
    for number, joint in enumerate(held_out.joints):
        if joint.is_validated:  # otherwise `joint_not_validated` answers for all uses
            found += _list_joint_criteria(joint, scales, number, thresholds)
    capacity = estimate_capacity(held_out)
    apparent = held_out.apparent_load if math.isfinite(capacity) else math.nan
    share = thresholds.payload_share * capacity
    limited = thresholds.limited_ratio * share
    found.append(Criterion("payload", "payload_resolution_low", "", apparent, "kg", share, limited))
    unknown = CERTAINTY * _estimate_weight_deviation(held_out, scales.gravity_deviation)
    found.append(Criterion("payload", "weight_uncertain", "", unknown, "kg", share, limited))
    return (*found, *_list_rollout_criteria(held_out, scales.rollouts, trained.q_max - trained.q_min, thresholds))


def _list_joint_criteria(
    joint: JointMetrics, scales: ModelScales, number: int, thresholds: Thresholds
) -> Iterator[Criterion]:
    """Criteria of the torque of one joint, of this number."""

    def make(use: str, code: str, figure: float, threshold: float, limited: float | None = None) -> Criterion:
        limited = thresholds.limited_ratio * threshold if limited is None else limited
        return Criterion(use, code, joint.name, figure, joint.unit, threshold, limited)

    tolerated = thresholds.rated_share * joint.rated
    still = max(thresholds.friction_share * joint.friction, tolerated)
    moving = max(thresholds.tracking_share * joint.dynamic_rms, tolerated)
    worse = max(joint.dynamic_rms, thresholds.limited_ratio * tolerated)
    spread = CERTAINTY * float(scales.gravity_deviation[number])
    constant = abs(float(scales.constant[number]))
    weakened = joint.rmse * (1.0 + CERTAINTY * float(scales.inertia_deviation[number]))
    yield make("gravity_compensation", "gravity_error_high", joint.rmse, still)
    yield make("gravity_compensation", "gravity_uncertain", spread, still)
    yield make("gravity_compensation", "offset_large", constant, still)
    for use in ("feed_forward", "computed_torque"):
        yield make(use, "offset_large", constant, moving, worse)
        yield make(use, "torque_error_high", joint.rmse, moving, worse)
    yield make("computed_torque", "inertia_uncertain", weakened, moving, ANY_FINITE)
    contact = thresholds.contact_share * joint.rated
    yield make("collision_detection", "contact_threshold_high", joint.detectable, contact)
    yield make("collision_detection", "gravity_uncertain", spread, contact)


def _list_rollout_criteria(
    held_out: HeldOut, rollouts: Rollouts, ranges: Array, thresholds: Thresholds
) -> Iterator[Criterion]:
    """Criteria of forward simulation: an error after `LONG_S` limits it, one after `SHORT_S` excludes it."""
    distances = np.maximum(thresholds.rollout_share * ranges, MIN_ROLLOUT_DISTANCE)
    for number, joint in enumerate(held_out.joints):
        if not joint.is_validated:
            continue
        unit = "m" if joint.slides else "rad"
        distance = float(distances[number])
        short, long = rollouts.errors[:2, number].tolist()
        limit = max(distance * SHORT_S / LONG_S, MIN_ROLLOUT_DISTANCE)
        for code, error, tolerated, limited, after in (
            ("rollout_error_high", long, distance, math.inf, LONG_S),
            ("rollout_diverges", short, limit, limit, SHORT_S),
        ):
            code = "rollout_not_computed" if math.isnan(error) else code
            yield Criterion("forward_simulation", code, joint.name, error, unit, tolerated, limited, after)


def estimate_capacity(held_out: HeldOut) -> float:
    """Point mass at the last link that needs the rated effort of one joint in the poses of the motion [kg].

    NaN if no joint whose effort the model explains carries it.
    """
    rated = np.array([joint.rated for joint in held_out.joints])
    torque = np.array([joint.load_torque for joint in held_out.joints])
    if not torque.max(initial=0.0) > LEAST_LOAD_TORQUE:
        return math.nan
    masses = np.divide(rated, torque, out=np.full(len(torque), np.inf), where=torque > 0.0)
    rotary = np.array([not joint.slides for joint in held_out.joints])
    # joints near the load carry little of it, and their drives are as weak
    carrying = (torque > 0.1 * torque[rotary].max(initial=0.0)) | ~rotary
    return float(masses[carrying].min(initial=np.inf)) if np.isfinite(torque).all() else math.nan


def _estimate_weight_deviation(held_out: HeldOut, deviations: Array) -> float:
    """Standard deviation of the mass at the last link that the joint which shows it best leaves open [kg].

    NaN if no joint whose effort the model explains carries it.

    Args:
        held_out: metrics on held-out data.
        deviations: standard deviation of the torque at rest [N m or N], shape (n,).
    """
    torque = np.array([joint.load_torque for joint in held_out.joints])
    carrying = torque > LEAST_LOAD_TORQUE
    return float((deviations[carrying] / torque[carrying]).min()) if carrying.any() else math.nan


def list_unloaded(held_out: HeldOut) -> tuple[str, ...]:
    """Joints whose effort shows no payload: its model explains too little of it, or 1 kg hardly changes it."""
    return tuple(joint.name for joint in held_out.joints if joint.load_torque <= LEAST_LOAD_TORQUE)


def report_criteria(criteria: Iterable[Criterion], rollouts: Rollouts) -> tuple[Finding, ...]:
    """Findings about figures above their thresholds, one for each code; information, as they concern single uses."""
    exceeded: dict[str, dict[str, Criterion]] = {}
    for one in criteria:
        if one.answer != YES:
            known = exceeded.setdefault(one.code, {})
            known[one.joint] = max(known.get(one.joint, one), one, key=lambda each: each.ratio)
    return tuple(_report(code, list(by_joint.values()), rollouts) for code, by_joint in exceeded.items())


def _report(code: str, criteria: Sequence[Criterion], rollouts: Rollouts) -> Finding:
    joints = [one.joint for one in criteria if one.joint]
    listed = ", ".join(f"{one.joint} {_format(one)}" for one in criteria)
    match code:
        case "gravity_error_high":
            message = f"the held-out error exceeds what gravity compensation tolerates: joint {listed}"
            return GRAVITY_ERROR_HIGH.found(message, joints)
        case "gravity_uncertain":
            message = f"two standard deviations of the gravity torque exceed what is tolerated: joint {listed}"
            return GRAVITY_UNCERTAIN.found(message, joints)
        case "offset_large":
            message = f"efforts have a constant part, which may be a wrong zero of the sensor: joint {listed}"
            return OFFSET_LARGE.found(message, joints)
        case "torque_error_high":
            message = f"the held-out error exceeds what feed-forward and computed torque tolerate: joint {listed}"
            return TORQUE_ERROR_HIGH.found(message, joints)
        case "inertia_uncertain":
            message = f"at an inertia that is this uncertain, torque errors may move the joint too far: joint {listed}"
            return INERTIA_UNCERTAIN.found(message, joints)
        case "rollout_error_high":
            message = f"simulated for {LONG_S:g} s without feedback, the motion differs from the recorded one: {listed}"
            return ROLLOUT_ERROR_HIGH.found(message, joints)
        case "rollout_diverges":
            message = (
                f"simulated for {SHORT_S:g} s without feedback, the motion differs from the recorded one: {listed}"
            )
            return ROLLOUT_DIVERGES.found(message, joints)
        case "rollout_not_computed":
            reason = rollouts.problem or f"no stretch of the held-out data lasts {LONG_S:g} s"
            return ROLLOUT_NOT_COMPUTED.found(f"no forward simulation on held-out data: {reason}")
        case "contact_threshold_high":
            message = f"only large external torques stand out from the model's errors: joint {listed}"
            return CONTACT_THRESHOLD_HIGH.found(message, joints)
        case "weight_uncertain":
            message = f"two standard deviations of the torque at rest imitate a payload of {_format(criteria[0])}"
            return WEIGHT_UNCERTAIN.found(message)
        case _:
            message = f"the errors of the model imitate a payload of {_format(criteria[0])}"
            if math.isnan(criteria[0].figure):
                message = "no joint whose effort the model explains carries a payload at the last link"
            return PAYLOAD_RESOLUTION_LOW.found(message)


def _format(one: Criterion) -> str:
    return format_figure(one.figure, one.threshold, one.unit)


def format_figure(figure: float, threshold: float, unit: str) -> str:
    """Figure and threshold as users read them: `1.2 of 0.8 N m`, or `40% of 20%`."""
    one, other = format_figure_texts(figure, threshold, unit)
    return f"{one} of {other} {unit}".rstrip()


def format_figure_texts(figure: float, threshold: float, unit: str) -> tuple[str, str]:
    """Figure and threshold without their unit; ratios in percent.

    Both have two significant digits, or as many as it takes to differ.
    """
    scale, sign = (1.0, "") if unit else (100.0, "%")
    texts = "", ""
    for digits in range(FEWEST_DIGITS, MOST_DIGITS + 1):
        texts = _plain(scale * figure, digits, sign), _plain(scale * threshold, digits, sign)
        if texts[0] != texts[1] or figure == threshold:
            break
    return texts


def _plain(value: float, digits: int, sign: str) -> str:
    """A number without exponent."""
    if math.isnan(value):
        return "unknown"
    if abs(value) >= LARGEST_PRINTED:
        return "infinite" if math.isinf(value) else f">{LARGEST_PRINTED:.0f}{sign}"
    if abs(value) < 1.0 / LARGEST_PRINTED:
        return f"0{sign}"
    return np.format_float_positional(value, precision=digits, unique=False, fractional=False, trim="-") + sign


@dataclass(frozen=True)
class UseJudgment:
    """Answer about one use.

    Attributes:
        fit: answer about the whole arm, the worst one of its joints.
        joints: answer about each joint, in the order of the robot; `APART` where the use does not rest on the joint.
        joint: joint that the figure is of; empty: of the whole arm.
        code: code of the finding that reports this figure; empty where it is within its threshold.
        after: time of simulation after which the figure is measured [s]; NaN: not in a simulation.
    """

    fit: FitFor
    joints: Mapping[str, str]
    joint: str = ""
    code: str = ""
    after: float = math.nan

    @property
    def reason(self) -> str:
        """Findings that lower an answer although the figure would not, as text; empty where the figure does.

        Without the gain of a drive the figures themselves mean nothing.
        """
        if "gain_unknown" in self.fit.because:
            return "because of gain_unknown"
        within = self.fit.figure <= self.fit.threshold
        return f"because of {', '.join(self.fit.because)}" if within and self.fit.answer != YES else ""


def judge_uses(
    joint_names: Sequence[str],
    criteria: Iterable[Criterion],
    findings: Iterable[Finding],
    unloaded: Collection[str] = (),
) -> tuple[UseJudgment, ...]:
    """Judge what a model is fit for.

    Args:
        joint_names: joints of the robot, n.
        criteria: figures and thresholds of the uses.
        findings: everything that was found about data and model.
        unloaded: joints whose effort shows no payload; see `list_unloaded`.
    """
    criteria, findings = tuple(criteria), tuple(findings)
    judgments = []
    for use in USES:
        own = [one for one in criteria if one.use == use]
        apart = unloaded if use == "payload" and set(joint_names) - set(unloaded) else ()
        if own:
            best = {name: APART if name in apart else YES for name in joint_names}
            judgments.append(_judge_use(use, best, own, findings))
    return tuple(judgments)


def _judge_use(
    use: str, best: Mapping[str, str], criteria: Sequence[Criterion], findings: Sequence[Finding]
) -> UseJudgment:
    """Answer about one use.

    Args:
        use: the use.
        best: answer about each joint where nothing lowers it.
        criteria: figures and thresholds of this use.
        findings: everything that was found about data and model.
    """
    answers = dict(best)
    reasons: list[tuple[str, str]] = []  # of each answer below yes: its code

    def lower(answer: str, code: str, joints: Sequence[str]) -> None:
        reasons.append((answer, code))
        # a finding about joints that are not identified concerns all that are
        for joint in [joint for joint in joints if joint in answers] or [name for name in best if best[name] != APART]:
            answers[joint] = max(answers[joint], answer, key=(APART, *ANSWERS).index)

    for one in criteria:
        if one.answer != YES:
            lower(one.answer, one.code, [one.joint] if one.joint else [])
    for finding in findings:
        answer = finding.definition.lowered(use, finding.severity)
        if answer != YES:
            lower(answer, finding.code, () if finding.severity == "error" else finding.joints)
    whole = max((YES, *(answer for answer, _ in reasons)), key=ANSWERS.index)
    worst = max(criteria, key=lambda one: (ANSWERS.index(one.answer), one.ratio))
    because = tuple(dict.fromkeys(code for answer, code in reasons if answer == whole))
    limiting = tuple(name for name, answer in answers.items() if answer == whole) if whole != YES else ()
    joints = () if {*answers.values()} <= {whole, APART} else limiting
    fit = FitFor(use, whole, worst.figure, worst.unit, worst.threshold, because, joints)
    return UseJudgment(fit, answers, worst.joint, "" if worst.answer == YES else worst.code, worst.after)


@dataclass(frozen=True)
class ReducedFit:
    """Uses that a model is fit for on some of its joints, but not on all.

    Attributes:
        without: joints that are left out.
        identify: joints that remain.
        uses: uses with the answer yes on each of these.
        order: all joints in the order of the robot.
    """

    without: tuple[str, ...]
    identify: tuple[str, ...]
    uses: tuple[str, ...]
    order: tuple[str, ...]


def reduce_joints(judgments: Sequence[UseJudgment]) -> tuple[ReducedFit, ...]:
    """Joints without which a model is fit for further uses, the fewest first, each time for more uses than before.

    At least half of the joints remain, and at most `MOST_REDUCED` ways are stated.

    Args:
        judgments: answers about the uses, of all joints.
    """
    order = tuple(judgments[0].joints) if judgments else ()
    failing = {
        one.fit.use: frozenset(name for name, answer in one.joints.items() if answer in (LIMITED, NO))
        for one in judgments
        if one.fit.answer != YES
    }
    sets = {
        frozenset().union(*chosen) for n in range(1, len(failing) + 1) for chosen in combinations(failing.values(), n)
    }
    found: list[ReducedFit] = []
    for left_out in sorted(
        sets, key=lambda names: (len(names), [order.index(name) for name in order if name in names])
    ):
        uses = tuple(use for use, names in failing.items() if names and names <= left_out)
        if 2 * len(left_out) <= len(order) and len(uses) > (len(found[-1].uses) if found else 0):
            without = tuple(name for name in order if name in left_out)
            found.append(ReducedFit(without, tuple(name for name in order if name not in left_out), uses, order))
    return tuple(found[:MOST_REDUCED])
