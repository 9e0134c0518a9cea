# SPDX-License-Identifier: Apache-2.0
"""What verbs print."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.cli.findings import print_findings
from robot_dyn_id.identification.evaluation import Evaluation
from robot_dyn_id.identification.pipeline import Identification
from robot_dyn_id.parameters import ParameterSet


def print_evaluation(evaluation: Evaluation) -> None:
    """A table of the held-out errors, the cross-check and the verdict."""
    held_out, check = evaluation.held_out, evaluation.cross_check
    print(f"{'joint':<24} {'RMS':>9} {'error':>9} {'NRMSE':>7} {'URDF':>7} {'corr.':>7}  (held-out effort; NRMSE of "
          f"this model and of the URDF's own)")  # fmt: skip
    for joint in held_out.joints:
        print(
            f"{joint.name:<24} {joint.rms:>9.3g} {joint.rmse:>9.3g} {_share(joint.nrmse)} {_share(joint.nominal_nrmse)}"
            f" {joint.correlation:>7.3f}  {joint.unit}"
        )
    print(f"all joints: NRMSE {held_out.all_joints_nrmse:.2%} (the URDF's own parameters: "
          f"{held_out.nominal_all_joints_nrmse:.2%}), low-pass {evaluation.plan.low_pass.cutoff:.3g} Hz")  # fmt: skip
    print(f"cross-check: largest difference {check.max_difference:.1e}, rank {check.rank_ours} ours, "
          f"{check.rank_pinocchio} Pinocchio's")  # fmt: skip
    print_findings(evaluation.findings, answers_as_json=False)
    print(f"verdict: {evaluation.verdict.word}")


def print_price(result: Identification) -> None:
    """What the bounds of the estimator, if it has any, do to the held-out error."""
    if result.unconstrained_nrmse is not None:
        with_bounds = result.evaluation.held_out.all_joints_nrmse
        print(f"physical consistency: every link could exist; NRMSE {with_bounds:.2%}, without these bounds "
              f"{result.unconstrained_nrmse:.2%}")  # fmt: skip


def print_essential(result: Identification) -> None:
    """What a backward elimination has left out, if there was one."""
    if result.essential is None:
        return
    print(f"essential parameters: {len(result.essential.kept)}; left out, with the value and standard deviation of "
          f"each, the relative one then, the growth of the residual and the F-test of all so far:")  # fmt: skip
    for step in result.essential.left_out:
        print(f"  {step.name:<10} {step.value:>10.3g} +- {step.standard_deviation:<9.2g} "
              f"{step.relative_deviation:>9.1%} {step.residual_growth:>10.4%}   "
              f"F {step.statistic:.3g}, p {step.probability:.3g}")  # fmt: skip
    if result.essential.objected is not None:
        step = result.essential.objected
        print(f"  the F-test keeps {step.name} ({step.relative_deviation:.1%}; p {step.probability:.2g})")


def count_of(parameters: ParameterSet) -> str:
    """How many base parameters there are, of what, and how well they are known."""
    inertial = int(np.count_nonzero(parameters.independent_columns < 10 * len(parameters.body_names)))
    count, weak = len(parameters.names), sum(word != "good" for word in parameters.status)
    return f"{count} base parameters ({inertial} of inertia, {count - inertial} of other terms; {weak} weak)"


def _share(ratio: float) -> str:
    """Per cent in seven characters."""
    return f"{ratio:>7.1%}" if ratio < 9.995 else "  >999%"
