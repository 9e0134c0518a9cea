"""How well a model predicts torques that it has not seen, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from robot_dyn_id.dataset import Array
from robot_dyn_id.problem import Smooth
from robot_dyn_id.regressor import Integers, Regressor
from robot_dyn_id.signals.processing import SignalPlan
from robot_dyn_id.trained import Ranges, Strays, outside, spoken, strays, uncertainty


@dataclass(frozen=True)
class JointMetrics:
    """Prediction of one joint's torque; ratios are to the RMS of the measured torque.

    Attributes:
        name: joint.
        unit: N m or N.
        rms: of the measured torque, low-passed.
        rmse: RMS error.
        nrmse: rmse / rms.
        correlation: of predicted and measured torque.
        max_error: largest error.
        raw_nrmse: against the measured torque as recorded, not low-passed.
        constant_nrmse: what the best constant would reach.
        nominal_nrmse: what the URDF's own inertial parameters reach.
        own_nrmse: what the model's own uncertainty lets expect, RMS of (w C w')^1/2 / rms; 0 where not asked for.
    """

    name: str
    unit: str
    rms: float
    rmse: float
    nrmse: float
    correlation: float
    max_error: float
    raw_nrmse: float
    constant_nrmse: float
    nominal_nrmse: float
    own_nrmse: float = 0.0

    @property
    def explained(self) -> float:
        """Share of the torque's variance about its mean that the prediction explains; negative if it does harm."""
        return 1.0 - (self.nrmse / self.constant_nrmse) ** 2 if self.constant_nrmse > 0 else 0.0


@dataclass(frozen=True)
class HeldOut:
    """Metrics on data that were not used for estimation.

    Attributes:
        joints: per joint.
        all_joints_nrmse: norm of all errors / norm of all torques.
        nominal_all_joints_nrmse: the same for the URDF's own parameters.
        samples: time samples compared.
        outside: share of all joints' samples far outside their trained ranges (by more than half), 0 where unknown.
        outside_of: joints and quantities that lie there for more than `OUTSIDE` of the samples, and for how many.
        slow: joints that are never faster than `SLOW` of the trained speed, and that share.
    """

    joints: tuple[JointMetrics, ...]
    all_joints_nrmse: float
    nominal_all_joints_nrmse: float
    samples: int
    outside: float
    slow: tuple[tuple[str, float], ...] = ()
    outside_of: Strays = ()


@dataclass
class _Sums:
    """Running sums of predictions and measurements, shape (n,) each."""

    samples: int = 0
    outside: Array | float = 0.0
    totals: dict[str, Array] = field(default_factory=dict)
    largest: Array | float = 0.0
    fastest: Array | float = 0.0

    def add(self, **values: Array) -> None:
        for name, value in values.items():
            self.totals[name] = self.totals.get(name, 0.0) + value.sum(axis=1)


def compare(
    regressor: Regressor,
    columns: Integers,
    values: Array,
    walk: Callable[[], Iterable[Smooth]],
    plan: SignalPlan,
    trained: Ranges | None = None,
    covariance: Array | None = None,
) -> HeldOut:
    """Predict the torques of a walk and compare.

    Args:
        regressor: robot and terms.
        columns: the columns that `values` belong to (the independent ones).
        values: base parameters.
        walk: smooth windows with measured efforts.
        plan: its low-pass is applied to the measured efforts, never to the prediction.
        trained: ranges of the training motion.
        covariance: of the base parameters, for the model's own uncertainty along the walk.
    """
    sums = _Sums()
    nominal = np.flatnonzero(regressor.structure[: 10 * len(regressor.model.body_names)].any(axis=1))
    for piece in walk():
        if piece.tau is None or not piece.own.any():
            continue
        measured = plan.low_pass.apply(piece.tau, plan.rate)[:, piece.own]
        motion = piece.motion.take(piece.own)
        predicted = regressor.torque(motion, values, columns)
        urdf = regressor.torque(motion, regressor.model.inertial_parameters[nominal], nominal)
        error = predicted - measured
        sums.add(
            tau=measured, tau2=measured**2, hat=predicted, hat2=predicted**2, product=predicted * measured,
            error2=error**2, raw2=(predicted - piece.tau[:, piece.own]) ** 2, tau_raw2=piece.tau[:, piece.own] ** 2,
            urdf2=(urdf - measured) ** 2,
        )  # fmt: skip
        if covariance is not None:
            sums.add(own2=uncertainty(regressor, columns, covariance, motion) ** 2)
        sums.largest = np.maximum(sums.largest, np.abs(error).max(axis=1))
        sums.samples += measured.shape[1]
        if trained is not None:
            beyond = outside(motion, trained)
            sums.outside = sums.outside + np.sum([*beyond, beyond.any(axis=0)], axis=2)
        sums.fastest = np.maximum(sums.fastest, np.abs(motion.dq).max(axis=1))
    if not sums.samples:
        return HeldOut((), np.inf, np.inf, 0, 0.0)
    held_out = _conclude(regressor, sums)
    if trained is None:
        return held_out
    shares = np.asarray(sums.outside) / sums.samples
    return replace(
        held_out,
        slow=_slow(regressor, sums, trained),
        outside=float(shares[3].mean()),
        outside_of=strays(regressor.model.joint_names, shares[:3]),
    )


SLOW = 0.2
"""Share of the trained top speed that held-out data must reach to tell about inertia and friction."""


def _slow(regressor: Regressor, sums: _Sums, trained: Ranges) -> tuple[tuple[str, float], ...]:
    share = np.asarray(sums.fastest) / np.maximum(trained.dq_max, 1e-300)
    return tuple((n, s) for n, s in zip(regressor.model.joint_names, share.tolist(), strict=True) if s < SLOW)


def _conclude(regressor: Regressor, sums: _Sums) -> HeldOut:
    n, total = sums.samples, sums.totals
    joints = []
    for j, name in enumerate(regressor.model.joint_names):
        mean, hat = total["tau"][j] / n, total["hat"][j] / n
        variance, spread = total["tau2"][j] / n - mean**2, total["hat2"][j] / n - hat**2
        rms = float(np.sqrt(total["tau2"][j] / n))
        scale = rms if rms > 0 else 1.0
        product = total["product"][j] / n - mean * hat
        correlation = product / np.sqrt(variance * spread) if variance > 0 and spread > 0 else 0.0
        rmse = float(np.sqrt(total["error2"][j] / n))
        joints.append(
            JointMetrics(
                name=name,
                unit=regressor.model.effort_units[j],
                rms=rms,
                rmse=rmse,
                nrmse=rmse / scale,
                correlation=float(np.clip(correlation, -1, 1)),
                max_error=float(np.asarray(sums.largest)[j]),
                raw_nrmse=float(np.sqrt(total["raw2"][j] / max(total["tau_raw2"][j], 1e-300))),
                constant_nrmse=float(np.sqrt(max(variance, 0.0))) / scale,
                nominal_nrmse=float(np.sqrt(total["urdf2"][j] / n)) / scale,
                own_nrmse=float(np.sqrt(total["own2"][j] / n)) / scale if "own2" in total else 0.0,
            )
        )
    power = max(float(total["tau2"].sum()), 1e-300)
    return HeldOut(
        joints=tuple(joints),
        all_joints_nrmse=float(np.sqrt(total["error2"].sum() / power)),
        nominal_all_joints_nrmse=float(np.sqrt(total["urdf2"].sum() / power)),
        samples=sums.samples,
        outside=0.0,
    )


@dataclass(frozen=True)
class Thresholds:
    """What makes a verdict; ratios.

    Attributes:
        bad_nrmse: all-joint NRMSE above this is bad.
        joint_nrmse: a joint's NRMSE above this is suspect.
        constant_share: a joint that carries this share of the torque must be better than a constant.
        nominal_margin: an error this much above that of the URDF's own parameters is bad.
        explained: a joint of whose torque variance less than this is explained is not identifiable.
        condition_number: above this (unit-norm columns) is suspect.
        dropped_share: dropped rows above this are suspect.
        outside_share: samples far outside the trained ranges above this are suspect.
        own_nrmse: a joint whose torque the model's own uncertainty makes this uncertain is suspect.
    """

    bad_nrmse: float = 0.30
    joint_nrmse: float = 0.30
    constant_share: float = 0.05
    nominal_margin: float = 0.10
    explained: float = 0.5
    condition_number: float = 1000.0
    dropped_share: float = 0.01
    outside_share: float = 0.05
    own_nrmse: float = 0.10


@dataclass(frozen=True)
class Verdict:
    """`good`, `suspect` or `bad`, with the reasons."""

    word: str
    reasons: tuple[str, ...]


def judge(
    held_out: HeldOut,
    thresholds: Thresholds,
    cross_check_passed: bool,
    condition_number: float,
    dropped_share: float,
    has_nominal: bool,
    warnings: Sequence[str] = (),
) -> Verdict:
    """The verdict of an identification or validation; `warnings` make it suspect."""
    limit = thresholds
    bad, suspect = [], list(warnings)
    if not cross_check_passed:
        bad.append("the cross-check with Pinocchio failed")
    if not held_out.all_joints_nrmse <= limit.bad_nrmse:
        bad.append(f"held-out error of all joints is {held_out.all_joints_nrmse:.1%}, above {limit.bad_nrmse:.0%}")
    power = sum(joint.rms**2 for joint in held_out.joints)
    for joint in held_out.joints:
        carries = joint.rms**2 >= limit.constant_share**2 * power
        if carries and not joint.nrmse < joint.constant_nrmse:
            bad.append(f"joint {joint.name}: the prediction is not better than a constant")
        elif not joint.explained >= limit.explained:
            suspect.append(
                f"joint {joint.name} is not identifiable from these data: apart from its mean, "
                f"{max(joint.explained, 0):.0%} of its torque is explained"
            )
        elif joint.nrmse > limit.joint_nrmse:
            suspect.append(f"joint {joint.name}: held-out error is {joint.nrmse:.1%}, above {limit.joint_nrmse:.0%}")
    if has_nominal and held_out.all_joints_nrmse > (1 + limit.nominal_margin) * held_out.nominal_all_joints_nrmse:
        bad.append(
            f"worse than the URDF's own parameters ({held_out.all_joints_nrmse:.1%} against "
            f"{held_out.nominal_all_joints_nrmse:.1%})"
        )
    if condition_number > limit.condition_number:
        suspect.append(f"the condition number {condition_number:.3g} (unit-norm columns) is above "
                       f"{limit.condition_number:g}: the motion tells some parameters badly")  # fmt: skip
    if dropped_share > limit.dropped_share:
        suspect.append(f"{dropped_share:.1%} of the rows were dropped")
    if held_out.outside > limit.outside_share:
        which = f" ({spoken(held_out.outside_of)})" if held_out.outside_of else ""
        suspect.append(f"{held_out.outside:.0%} of the held-out samples lie far outside the trained motion{which}")
    unsure = [(j.name, j.own_nrmse) for j in held_out.joints if j.own_nrmse > limit.own_nrmse]
    if unsure:
        told = ", ".join(f"{name} {share:.0%}" for name, share in unsure)
        suspect.append(f"errors of the parameters alone make the torque of this motion uncertain by, joint {told}; "
                       f"train longer, or on such motion")  # fmt: skip
    if held_out.slow:
        told = ", ".join(f"{name} {share:.0%}" for name, share in held_out.slow)
        suspect.append(f"the held-out motion is weak, and its error says little: of the trained top speed it reaches, "
                       f"joint {told}; validate on a motion like the trained one")  # fmt: skip
    return Verdict("bad" if bad else "suspect" if suspect else "good", tuple(bad + suspect))
