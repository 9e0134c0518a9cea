# SPDX-License-Identifier: Apache-2.0
"""Designs of excitations: exact gradients of all that a search sees, requirements kept on a fine grid, refusals."""

from dataclasses import replace

import numpy as np
import pytest
from support.designs import ARM7, LITTLE, PLANAR, plan, regressor_of_arm, slope_error
from support.parameter_sets import identified_lift
from support.robots import URDFS as PUBLISHED

from robot_dyn_id.dynamics.regressor import Motion, Regressor, place_terms_on_joints
from robot_dyn_id.errors import InputError, MotionError, UsageError
from robot_dyn_id.excitation.design.objectives import OBJECTIVES, condition, condition_raw, smooth_objective
from robot_dyn_id.excitation.design.optimizers import OPTIMIZERS, SearchEffort
from robot_dyn_id.excitation.design.planning import make_design_task, make_payload_parameters
from robot_dyn_id.excitation.design.search import design
from robot_dyn_id.excitation.design.space_requirements import MinimumDistance
from robot_dyn_id.excitation.forms.registry import FORMS
from robot_dyn_id.files.design import design_settings
from robot_dyn_id.model.robot import RobotModel

LEAST = {**LITTLE, "draws": 5, "starts": 1, "steps": 30}
TABLE = {"name": "table", "box": [0.6, 0.6, 0.1], "position": [0.6, 0.0, 0.05]}


def found(model=PLANAR, seed=1, optimizer="gradient", effort=LITTLE, **demands):
    return design(plan(model, **demands).problem, OPTIMIZERS[optimizer], seed, SearchEffort(**effort))


# --- gradients ---------------------------------------------------------------------------------------------------

EVERYTHING = {
    "jerk": {"all": 60.0},
    "payload": {"link": "link7", "mass": 1.5, "position": [0.0, 0.02, 0.1]},
    "workspace": {"link": "link7", "lower": [-0.4, -np.inf, 0.2], "upper": [0.5, np.inf, 0.9]},
    "quiet_band": (0.29, 0.41),
}


@pytest.mark.parametrize("free_center", [False, True])
def test_what_a_search_sees_has_exact_gradients(free_center):
    problem = plan(**EVERYTHING, free_center=free_center).problem.with_samples(60)
    kinds = [type(requirement).__name__ for requirement in problem.requirements]
    assert kinds == ["JointLimits", "EffortLimits", "WorkspaceLimits", "ExcludedBand"]
    for seed in range(3):
        x = problem.parametrization.random(np.random.default_rng(seed), 1.2)
        assert slope_error(problem.objective_value, lambda x: problem.score(x).gradient(), x) < 1e-6
        for requirement in problem.requirements:
            one = replace(problem, requirements=(requirement,))
            assert slope_error(one.excess, one.excess_jacobian, x) < 1e-6, type(requirement).__name__


def test_the_clearance_of_a_search_has_exact_gradients():
    """On convex hulls: between round shapes the nearest points themselves are known to 1e-3 only."""
    panda = RobotModel.from_file(PUBLISHED["panda"], joints=[f"panda_joint{i}" for i in range(1, 8)])
    problem = plan(panda, clearance=0.09, obstacles=(TABLE,)).problem.with_samples(60)
    (separation,) = (one for one in problem.requirements if isinstance(one, MinimumDistance))
    one = replace(problem, requirements=(separation,))
    for seed in range(3):
        x = problem.parametrization.random(np.random.default_rng(seed), 1.0)
        assert slope_error(one.excess, one.excess_jacobian, x) < 1e-5


@pytest.mark.parametrize("objective", [condition, condition_raw])
def test_softened_objectives_lie_beyond_the_exact_ones_come_close_and_have_exact_gradients(objective):
    problem = plan(velocity_scale=0.95).problem.with_samples(60)
    x = problem.parametrization.random(np.random.default_rng(3))
    exact = replace(problem, objective=objective).objective_value(x)
    gaps = []
    for sharpness in (10.0, 30.0, 100.0, 1000.0):
        soft = replace(problem, objective=smooth_objective(objective, sharpness))
        gaps.append(soft.objective_value(x) - exact)
        assert slope_error(soft.objective_value, lambda x, soft=soft: soft.score(x).gradient(), x) < 1e-6
    assert (
        all(gap >= -1e-12 for gap in gaps) and gaps[0] > 1e-4 and sorted(gaps, reverse=True) == gaps and gaps[-1] < 0.01
    )
    assert smooth_objective(OBJECTIVES["d_optimal"], 30.0) is OBJECTIVES["d_optimal"]


# --- designs -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_every_form_can_be_designed_and_keeps_to_all_limits(form):
    demands = {"form": form, "period": 4.0 if form == "sequential_sine" else 8.0, "jerk": {"all": 200.0}}
    one = plan(PLANAR, **demands)
    result = design(one.problem, OPTIMIZERS["gradient"], 1, SearchEffort(**LITTLE))
    assert result.feasible and result.objective_value <= result.random_objective_values[0] + 1e-9
    t = np.linspace(0.0, result.excitation.duration, 20011)
    q, dq, ddq, dddq = result.excitation.evaluate(t)
    limits = one.limits
    assert (q >= limits.lower[:, None] - 1e-6).all() and (q <= limits.upper[:, None] + 1e-6).all()
    for values, limit in ((dq, limits.velocity), (ddq, limits.acceleration), (dddq, limits.jerk)):
        assert (np.abs(values).max(axis=1) <= limit * (1.0 + 1e-4)).all()
    effort = Regressor(PLANAR).torque(Motion(q, dq, ddq), PLANAR.inertial_parameters)
    assert (np.abs(effort).max(axis=1) <= PLANAR.limits.effort * (1.0 + 1e-4)).all()
    for end in (0.0, result.excitation.duration):
        _, dq, ddq, _ = result.excitation.evaluate(np.array([end]))
        assert np.abs(dq).max() < 1e-9 and np.abs(ddq).max() < 1e-6


def test_a_motion_that_hardly_moves_a_joint_is_refused_with_what_limits_it():
    slow = replace(PLANAR, limits=replace(PLANAR.limits, velocity=np.array([2.0, 2.0, 0.006])))
    one = plan(slow)
    with pytest.raises(
        MotionError,
        match=r"moves too little .*: joint3 0.0\d+ of 0.02 rad; what it is limited by: .*velocity of joint3",
    ):
        design(one.problem, OPTIMIZERS["gradient"], 1, SearchEffort(draws=2, starts=1, finished=1, steps=2))


@pytest.mark.slow
def test_a_design_is_better_than_random_motions_and_reproducible():
    one, again, other = found(), found(), found(seed=2)
    assert (
        one.objective_value < one.random_objective_values[0] - 0.3
    )  # standard deviations 14 % smaller, in the geometric mean
    assert np.array_equal(one.coefficients, again.coefficients)
    assert not np.array_equal(one.coefficients, other.coefficients)


@pytest.mark.slow
def test_the_reported_standard_deviations_are_those_of_weighted_least_squares():
    """Standard deviations of the recording that the design is for, by the plain stacked regressor."""
    one = plan(PLANAR, rate=50.0, noise={"all": 0.3})
    result = design(one.problem, OPTIMIZERS["gradient"], 1, SearchEffort(**LITTLE))
    t = np.arange(0.0, result.excitation.duration, 1.0 / 50.0)
    rows = one.problem.information.regressor.dense(Motion(*result.excitation.evaluate(t)[:3]))
    stacked = rows.transpose(2, 1, 0).reshape(-1, len(rows))[:, one.problem.information.base.independent]
    expected = 0.3 * np.sqrt(np.linalg.inv(stacked.T @ stacked).diagonal())
    assert result.standard_deviations == pytest.approx(expected, rel=0.02)  # Coulomb columns are not smooth
    scaled = stacked / np.linalg.norm(stacked, axis=0)
    assert result.condition_numbers["columns"] == pytest.approx(np.linalg.cond(scaled), rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["cma_es", "genetic", "particle_swarm"])
def test_searches_of_populations_find_feasible_motions_and_the_same_again(optimizer):
    pytest.importorskip("pymoo")
    one, again = (found(optimizer=optimizer) for _ in range(2))
    assert one.feasible and np.array_equal(one.coefficients, again.coefficients)


@pytest.mark.slow
def test_efforts_of_a_payload_are_kept():
    heavy = {"link": "link7", "mass": 6.0, "position": [0.0, 0.0, 0.1]}
    light, loaded = (
        found(ARM7, effort={**LEAST, "steps": 150}, effort_scale=0.6, velocity_scale=0.95, friction=0.0, **more)
        for more in ({}, {"payload": heavy})
    )
    carried = ARM7.inertial_parameters + make_payload_parameters(ARM7, heavy)

    def peak(result, parameters):
        t = np.linspace(0.0, result.excitation.duration, 5001)
        effort = Regressor(ARM7).torque(Motion(*result.excitation.evaluate(t)[:3]), parameters)
        return (np.abs(effort).max(axis=1) / ARM7.limits.effort).max()

    assert peak(loaded, carried) <= 0.6 * (1.0 + 1e-4) < peak(light, carried)


def test_a_plan_shows_the_very_efforts_that_it_limits():
    """Payload and share of the limits included."""
    heavy = {"link": "link7", "mass": 6.0, "position": [0.0, 0.0, 0.1]}
    one = plan(effort_scale=0.6, payload=heavy)
    x = one.problem.parametrization.random(np.random.default_rng(1))
    shown = one.torques.torque(one.problem.sample_finely(x)[1])
    bare = Regressor(ARM7).torque(Motion(*one.problem.sample_finely(x)[1][:3]), ARM7.inertial_parameters)
    margins = {margin.name: margin for margin in one.problem.margins(x)}
    for j, name in enumerate(ARM7.joint_names):
        margin = margins[f"effort of {name}"]
        assert abs(margin.reached) == pytest.approx(np.abs(shown[j]).max(), rel=1e-12)
        assert abs(margin.limit) == one.effort[j] == pytest.approx(0.6 * ARM7.limits.effort[j])
    assert np.abs(shown - bare).max() > 1.0
    assert np.isinf(plan(effort_scale=0.0).effort).all() and one.objective == "d_optimal"


@pytest.mark.slow
def test_a_band_is_kept_quiet():
    result = found(quiet_band=(0.25, 0.35))
    t = np.arange(2000) * result.excitation.duration / 2000
    spectrum = np.abs(np.fft.rfft(result.excitation.evaluate(t)[2], axis=1)) / len(t)
    assert np.sqrt(2.0) * spectrum[:, 3].max() <= 0.02 * 6.0 * (1.0 + 1e-6)  # 0.3 Hz
    assert spectrum[:, 2].max() > 0.1


@pytest.mark.slow
def test_the_clearance_and_the_workspace_are_kept():
    room = {"link": "link7", "lower": [-0.9, -0.9, 0.25], "upper": [0.9, 0.9, 1.5]}
    one = plan(clearance=0.02, obstacles=(TABLE,), workspace=room, harmonics=3, period=5.0)
    result = design(one.problem, OPTIMIZERS["gradient"], 1, SearchEffort(**LEAST))
    t = np.arange(0.0, result.excitation.duration, 1e-3)
    one.clearance.check(t, result.excitation.evaluate(t)[0], margin=0.02)
    names = [margin.name for margin in result.margins]
    assert any(name.startswith("distance of ") for name in names)
    assert "-z side of the workspace of link7" in names
    assert all(margin.margin >= -1e-9 for margin in result.margins)


@pytest.mark.slow
def test_an_interrupt_keeps_the_best_so_far():
    lines = []

    def progress(stage):
        lines.append(str(stage))
        if str(stage).startswith("search from random motions: 1 of"):
            raise KeyboardInterrupt

    result = design(plan().problem, OPTIMIZERS["gradient"], 1, SearchEffort(**LITTLE), progress)
    assert result.interrupted and result.feasible
    assert lines[-1].startswith("search from random motions: 1 of")


@pytest.mark.slow
def test_prior_information_counts():
    """A second motion designed for the weak parameters is more informative about them than the first motion repeated."""
    from robot_dyn_id.excitation.design.objectives import a_optimal

    one = plan()
    first = design(one.problem, OPTIMIZERS["gradient"], 1, SearchEffort(**LEAST))
    known = one.problem.information_matrix(one.problem.parametrization.random(np.random.default_rng(5), 1.0))
    deviation = np.sqrt(np.linalg.inv(known).diagonal())
    weak = np.argsort(deviation)[-5:]
    after = replace(one.problem, prior=known, objective=lambda information: a_optimal(information, weak))
    second = design(after, OPTIMIZERS["gradient"], 1, SearchEffort(**LEAST))
    by_first = np.sqrt(np.linalg.inv(known + one.problem.information_matrix(first.coefficients)).diagonal())[weak]
    repeated = deviation[weak] / np.sqrt(2.0)
    assert (second.standard_deviations[weak] ** 2).sum() < (by_first**2).sum() < (repeated**2).sum()


@pytest.mark.slow
def test_little_noise_does_not_end_a_search_early():
    """Standard deviations scale with the noise; variances of 1e-8 must not end a search."""
    loud, quiet = (found(objective="a_optimal", noise=dict.fromkeys(PLANAR.joint_names, n)) for n in (1.0, 1e-3))
    assert np.linalg.norm(quiet.standard_deviations) < 1.1e-3 * np.linalg.norm(loud.standard_deviations)


# --- what cannot be had ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("demands", "error", "words"),
    [
        ({"acceleration": {"all": 0.0}}, UsageError, "acceleration limits"),
        ({"acceleration": {"elbow": 1.0}}, UsageError, "acceleration: elbow is not a joint"),
        ({"posture": {"joint1": 0.0}}, UsageError, "posture: the position of joint2"),
        ({"posture": dict.fromkeys(ARM7.joint_names, 9.0)}, MotionError, "joint joint1: .* is at 9"),
        ({"form": "zigzag"}, UsageError, "form of excitation 'zigzag'"),
        ({"objective": "e_optimal"}, UsageError, "objective: unknown value"),
        ({"optimizer": "annealing"}, UsageError, "optimizer: unknown value"),
        (
            {"parameters": ("m1",), "objective": "condition"},
            UsageError,
            "parameters is only used by the objective a_optimal",
        ),
        ({"parameters": ("m1",), "objective": "a_optimal"}, UsageError, "m1 is not a base parameter"),
        ({"period": 0.0}, UsageError, "the period must be a positive number"),
        ({"harmonics": 1}, UsageError, "at least 3 harmonics"),
        ({"quiet_band": (0.01, 0.05)}, UsageError, "contains no multiple of 1 / 10 s"),
        ({"quiet_band": (0.1,)}, UsageError, "two ends"),
        ({"payload": {"link": "link7"}}, UsageError, "payload: needs exactly the keys link, mass, position"),
        ({"payload": {"link": "link7", "mass": -1.0, "position": [0, 0, 0]}}, UsageError, "positive mass"),
        ({"clearance": 0.5}, UsageError, "clearance 0.5 m must be at least 0 and less than"),
        ({"noise": {"all": -1.0}}, UsageError, "torque noise"),
        ({"rate": 0.0}, UsageError, "rate of the recording"),
        ({"search": {"begins": 3}}, UsageError, "search: unknown key 'begins'"),
        ({"search": {"starts": 30, "draws": 3}}, UsageError, "1 <= finished <= starts <= draws"),
        ({"effort_scale": 2.0}, UsageError, "effort_scale must be within 0 and 1"),
    ],
)
def test_wrong_demands_are_refused_with_a_reason(demands, error, words):
    with pytest.raises(error, match=words):
        settings = design_settings(**{"acceleration": {"all": 6.0}, "clearance": 0.0, **demands})
        assert settings.search
        make_design_task(settings, ARM7, regressor_of_arm(ARM7))


@pytest.mark.slow
def test_what_cannot_be_kept_is_named_and_not_relaxed():
    with pytest.raises(MotionError, match=r"no feasible motion was found; .* effort of joint2: reaches"):
        stretched = {"all": 0.0, "joint2": 1.2}  # upright, the arm needs no effort at all at rest
        found(ARM7, effort=LEAST, harmonics=3, effort_scale=0.01, posture=stretched)
    room = {"link": "link3", "lower": [-9.0, 3.0, -9.0], "upper": [9.0, 4.0, 9.0]}
    with pytest.raises(MotionError, match=r"-y side of the workspace of link3: reaches"):
        found(effort=LEAST, harmonics=3, effort_scale=0.0, workspace=room)


def test_a_motion_is_designed_without_a_term_that_depends_on_more_than_the_motion():
    from robot_dyn_id.dynamics.terms import TERMS

    regressor = Regressor(ARM7, place_terms_on_joints(ARM7, (TERMS["temperature_coulomb"](),)))
    task = make_design_task(design_settings(clearance=0.0), ARM7, regressor)
    assert "term temperature_coulomb: the motion is designed without it" in task.notes
    assert task.problem.information.regressor.terms == ()


def test_assumed_limits_are_noted():
    one = make_design_task(design_settings(clearance=0.0), PLANAR, regressor_of_arm(PLANAR))
    assert one.notes == ("joint1, joint2, joint3: no acceleration limit given; 2 rad/s^2 is assumed",)


@pytest.mark.slow
def test_an_earlier_identification_of_something_else_is_refused():
    with pytest.raises(InputError, match="other parameters than this design"):
        make_design_task(
            design_settings(clearance=0.0), PLANAR, regressor_of_arm(PLANAR), identified_lift(), include_prior=True
        )
