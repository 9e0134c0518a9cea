# SPDX-License-Identifier: Apache-2.0
"""Growth of the cost from samples to parameters with samples, joints and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.bench.measuring import measure_interleaved
from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.problem import UnfilteredProblem
from robot_dyn_id.dynamics.regressor import Motion, Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import AbsoluteVelocity, Coulomb, Offset, RotorInertia, Spring, Stribeck, Term, Viscous
from robot_dyn_id.estimators.factors import Factors
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.report.assets import make_page_environment
from robot_dyn_id.report.interactive import Plot, PlotAxis, PlotSheet, Series, Table

SAMPLES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
JOINTS = (2, 4, 7, 10, 15, 20, 30)
FEW_SAMPLES, FEW_JOINTS = SAMPLES[:4], JOINTS[:4]
TERMS: tuple[Term, ...] = (Viscous(), Coulomb(), Offset(), RotorInertia(), Spring(), Stribeck(), AbsoluteVelocity())
"""Terms that are added one after the other, so that the number of parameters grows."""

AT_SAMPLES = 5_000
"""Samples at which joints and parameters vary."""

LINK = """<link name="link{k}"><inertial><origin xyz="0.05 0.02 0.1"/><mass value="2"/>
<inertia ixx="0.02" ixy="0.001" ixz="0.002" iyy="0.03" iyz="0.001" izz="0.01"/></inertial></link>
<joint name="joint{k}" type="revolute"><parent link="{parent}"/><child link="link{k}"/><origin xyz="0.02 0 0.2"/>
<axis xyz="{axis}"/><limit lower="-2.5" upper="2.5" velocity="2" effort="100"/></joint>"""


@dataclass(frozen=True)
class GrowthPoint:
    """Cost at one size.

    Attributes:
        size: samples, joints or parameters.
        regressor: CPU time of the stacked regressor of the samples of a tile, per sample [us].
        estimation: CPU time from samples to parameters, per sample [us].
    """

    size: int
    regressor: float
    estimation: float


def make_serial_chain(joints: int) -> RobotModel:
    """A chain of equal links whose axes alternate."""
    axes = ("0 0 1", "0 1 0", "1 0 0")
    parts = [LINK.format(k=k, parent=f"link{k - 1}" if k else "base", axis=axes[k % len(axes)]) for k in range(joints)]
    return RobotModel.from_urdf(f'<robot name="chain{joints}"><link name="base"/>{"".join(parts)}</robot>')


def measure_growth(quick: bool = False, repeats: int = 3) -> dict[str, list[GrowthPoint]]:
    """Cost per sample over the number of samples, of joints, and of parameters of a 7-axis arm.

    Args:
        quick: fewer and smaller sizes.
        repeats: measured runs at each size.
    """
    arm = RobotModel.from_file(find_shared_file("urdf/arm7.urdf"))
    standard = TERMS[:3]
    return {
        "samples": [_point(arm, standard, count, count, repeats) for count in (FEW_SAMPLES if quick else SAMPLES)],
        "joints": [
            _point(make_serial_chain(count), standard, AT_SAMPLES, count, repeats)
            for count in (FEW_JOINTS if quick else JOINTS)
        ],
        "parameters": [
            _point(arm, TERMS[:count], AT_SAMPLES, None, repeats)
            for count in range(0, len(TERMS) + 1, 3 if quick else 1)
        ],
    }


def _point(model: RobotModel, terms: Sequence[Term], samples: int, size: int | None, repeats: int) -> GrowthPoint:
    """Cost at one size; without `size` it is the number of base parameters."""
    regressor = Regressor(model, place_terms_on_joints(model, terms))
    independent = compute_base_parameters(regressor).independent
    motion = Motion(*draw_random_fourier(model, 1).evaluate(np.linspace(0.0, 10.0, samples))[:3])
    torque = regressor.torque(motion, np.random.default_rng(0).normal(size=len(regressor.names)))
    problem = UnfilteredProblem.from_samples(regressor, independent, motion, torque)
    part = motion.take(slice(0, min(samples, AT_SAMPLES)))
    dense, ones = regressor.dense(part), np.ones(len(model.joint_names))
    found = measure_interleaved(
        {
            "regressor": lambda: regressor.dense(part, dense),
            "estimation": lambda: Factors.from_problem(problem).solve(ones),
        },
        repeats,
    )
    return GrowthPoint(
        size or len(independent),
        1e6 * found["regressor"].seconds / len(part),
        1e6 * found["estimation"].seconds / samples,
    )


def render_growth_page(growth: dict[str, list[GrowthPoint]]) -> str:
    """Page with one plot for samples, joints and parameters each."""
    sheet = PlotSheet()
    for what, points in growth.items():
        table = Table(
            np.array([float(point.size) for point in points]),
            (
                Series("regressor", np.array([point.regressor for point in points]), "blue"),
                Series("samples to parameters", np.array([point.estimation for point in points]), "orange"),
            ),
        )
        axes = PlotAxis(what, logarithmic=what == "samples"), PlotAxis("CPU time per sample [us]")
        sheet.add(what, Plot(f"CPU time per sample over the number of {what}", *axes, (table,)))
    template = make_page_environment().get_template("growth.html.j2")
    return template.render(sheet=sheet, growth=growth, at_samples=AT_SAMPLES)
