"""What verbs print."""

from __future__ import annotations

from robot_dyn_id.evaluation import Evaluation


def print_evaluation(evaluation: Evaluation) -> None:
    """A table of the held-out errors, the cross-check and the verdict."""
    held_out, check = evaluation.held_out, evaluation.cross_check
    print(f"{'joint':<24} {'RMS':>9} {'error':>9} {'NRMSE':>7} {'URDF':>8} {'corr.':>7}")
    for joint in held_out.joints:
        print(
            f"{joint.name:<24} {joint.rms:>9.3g} {joint.rmse:>9.3g} {joint.nrmse:>7.1%} {joint.nominal_nrmse:>8.1%}"
            f" {joint.correlation:>7.3f}  {joint.unit}"
        )
    print(f"all joints: NRMSE {held_out.all_joints_nrmse:.2%} (the URDF's own parameters: "
          f"{held_out.nominal_all_joints_nrmse:.2%}), low-pass {evaluation.plan.low_pass.cutoff:.3g} Hz")  # fmt: skip
    print(f"cross-check: largest difference {check.max_difference:.1e}, rank {check.rank_ours} ours, "
          f"{check.rank_pinocchio} Pinocchio's")  # fmt: skip
    for warning in evaluation.warnings:
        print(f"  ! {warning}")
    print(f"verdict: {evaluation.verdict.word}")
