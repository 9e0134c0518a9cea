# SPDX-License-Identifier: Apache-2.0
"""Sequential motions in several configurations: how many are needed, gradients, limits, and the design for arms of six
and seven axes."""

import numpy as np
import pytest
from support.designs import LITTLE, slope_error
from support.robots import panda_arm, robot

from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Viscous
from robot_dyn_id.errors import MotionError
from robot_dyn_id.excitation.design import postures
from robot_dyn_id.excitation.design.optimizers import OPTIMIZERS
from robot_dyn_id.excitation.design.planning import make_design_task
from robot_dyn_id.excitation.design.problem import COARSE_SAMPLES
from robot_dyn_id.excitation.design.search import design
from robot_dyn_id.excitation.design.space_requirements import MinimumDistance
from robot_dyn_id.excitation.forms.registry import make_parametrization
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.parametrization import Demand
from robot_dyn_id.excitation.trajectory import Scaled, check_limits
from robot_dyn_id.files.design import design_settings
from robot_dyn_id.files.trajectory import StoredExcitation, read_trajectory, write_trajectory

FORMS = ("sequential_sine", "logistic")


def task(name, form, **demands):
    model = robot(name)
    chosen = [j for j, slides in zip(model.joint_names, model.slides, strict=True) if not slides]
    model = type(model).from_urdf(model.urdf, chosen)
    given = {"form": form, "acceleration": {"all": 4.0}, "clearance": 0.0, "period": 4.0, "search": LITTLE, **demands}
    return model, make_design_task(
        design_settings(**given), model, Regressor(model, place_terms_on_joints(model, (Viscous(), Coulomb(0.05))))
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("name", "count"), [("ur5_robot", 2), ("panda", 2), ("iiwa14", 2), ("planar3r", 1)])
def test_the_number_of_configurations_follows_from_the_robot(name, count, form):
    _, plan = task(name, form)
    family = plan.problem.parametrization
    assert family.trajectory(family.random(np.random.default_rng(0))).centers.shape[0] == count


def test_what_too_few_configurations_do_not_excite_is_named_with_a_form_that_does(monkeypatch):
    monkeypatch.setattr(postures, "MOST_POSTURES", 1)
    with pytest.raises(
        MotionError, match=r"no sequential_sine motion in up to 1 .* excites .*Ixx2.*: use the form fourier"
    ):
        task("ur5_robot", "sequential_sine")


@pytest.fixture(scope="module")
def limits():
    return MotionLimits.from_model(panda_arm(), [5.0], 0.5, 0.05)


@pytest.mark.parametrize("form", FORMS)
def test_random_motions_in_several_configurations_keep_all_limits_and_are_smooth(limits, form):
    family = make_parametrization(form, limits, Demand(period=3.0, postures=3))
    rng = np.random.default_rng(1)
    for _ in range(3):
        motion = family.trajectory(family.random(rng, 1.0))
        check_limits(motion, limits)
        check_limits(Scaled(motion, 1.0, 0.5), limits)
        t = np.linspace(0.0, motion.duration, 40_001)
        q, dq, ddq, _ = motion.evaluate(t)
        for values, rate in ((q, dq), (dq, ddq)):
            assert np.abs(np.gradient(values, t, axis=1) - rate).max() < 1e-2 * np.abs(rate).max()
        assert np.count_nonzero(np.abs(dq).max(axis=0) > 1e-9) > 0.5 * len(t)
        for number, center in enumerate(
            motion.centers
        ):  # at the middle of the first joint's turn the others are at rest
            now = number * (motion.stay + motion.transit) + 0.5 * motion.turn
            others = np.delete(np.arange(len(center)), motion.order[0])
            rest = np.array([motion.rest(joint) for joint in others])
            assert np.allclose(motion.evaluate(np.array([now]))[0][others, 0], center[others] + rest)


@pytest.mark.parametrize("form", FORMS)
def test_gradients_with_respect_to_all_configurations(form):
    _, plan = task("ur5_robot", form, postures=2)
    problem = plan.problem.with_samples(100)
    x = problem.parametrization.random(np.random.default_rng(2), 0.7)
    value = lambda x: np.array([problem.objective_value(x)])  # noqa: E731
    assert slope_error(value, lambda x: problem.score(x).gradient()[None], x) < 1e-5
    t = np.linspace(0.0, problem.parametrization.duration, 57)
    weights = [np.random.default_rng(k).normal(size=(6, 57)) for k in range(4)]

    def along(x):
        return np.array(
            [sum(np.sum(w * s) for w, s in zip(weights, problem.parametrization.sample(x, t), strict=True))]
        )

    assert slope_error(along, lambda x: problem.parametrization.pull_back(x, t, tuple(weights))[None], x) < 1e-6


@pytest.mark.parametrize("form", FORMS)
def test_a_motion_in_several_configurations_survives_its_file(form, tmp_path):
    model, plan = task("ur5_robot", form, postures=2)
    family = plan.problem.parametrization
    motion = family.trajectory(family.random(np.random.default_rng(3)))
    write_trajectory(tmp_path / "trajectory.yaml", StoredExcitation.from_excitation(model, plan.limits, motion, "test"))
    again = read_trajectory(tmp_path / "trajectory.yaml").excitation
    t = np.linspace(0.0, again.duration, 200)
    assert again.duration == motion.duration
    assert np.allclose(again.evaluate(t)[0], motion.evaluate(t)[0], atol=1e-12)


@pytest.mark.slow
def test_a_ur5_is_designed_for():
    """Refused before, after a minute: "no motion of this form makes all parameters identifiable"."""
    little = {**LITTLE, "draws": 10, "starts": 1, "steps": 5}
    _, plan = task("ur5_robot", "sequential_sine", search=little)
    found = design(plan.problem, OPTIMIZERS["gradient"], 1, design_settings(search=little).search)
    assert found.feasible and found.condition_numbers["columns"] < 20.0


@pytest.mark.slow
def test_distances_are_computed_where_the_joints_are_farthest_from_their_centers():
    """Equally spaced samples would find every sine at its zeros: 1.5 periods lie between them."""
    _, plan = task("panda", "sequential_sine", period=2.0, periods=9, postures=1, clearance=0.02)
    problem = plan.problem
    near = next(requirement for requirement in problem.requirements if isinstance(requirement, MinimumDistance))
    x = problem.parametrization.random(np.random.default_rng(0), 1.0)
    q, *rates = problem.parametrization.sample(x, problem.with_samples(COARSE_SAMPLES)._times)
    compared = q[:, near._selection((q, *rates))]
    assert compared.shape[1] < 100
    np.testing.assert_allclose(np.ptp(compared, axis=1), np.ptp(q, axis=1), rtol=0.05)
    t, motion = problem.sample_finely(x)
    (margin,) = near.margins(t, motion)
    assert margin.margin == pytest.approx(near._clearance.smallest(motion[0])[0].min() - 0.02, abs=1e-4)
