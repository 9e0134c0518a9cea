# SPDX-License-Identifier: Apache-2.0
"""The paper of the Logistic strokes: what is exact, its steps, and a repetition at a small extent."""

from dataclasses import replace

import numpy as np
import pytest

from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import InputError
from robot_dyn_id.files.configuration import read_configuration
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.kernels.trials import feedback
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.nodes.excitation.settings import ExcitationSettings, make_plan
from robot_dyn_id.papers.figures import Extent, Spread
from robot_dyn_id.papers.inputs import read_node_parameters
from robot_dyn_id.papers.logistic2r import reproduction as logistic2r
from robot_dyn_id.papers.logistic2r import studies
from robot_dyn_id.papers.logistic2r.drawings import draw_all, draw_search, draw_strokes, draw_validation
from robot_dyn_id.papers.logistic2r.genetic import RANGES, StrokeLimits, evolve
from robot_dyn_id.papers.logistic2r.strokes import JOINTS, PAPER, SAMPLE, LockableArm, StrokeTrials
from robot_dyn_id.papers.logistic2r.studies import (
    BEST,
    ITERATIONS,
    START,
    WRONG,
    draw_arm_unlike_urdf,
    make_quiet_trials,
    repeat_trials,
)
from robot_dyn_id.simulation.controllers import Gains, ScaledNominalInertia
from robot_dyn_id.simulation.sensors import Sensors
from robot_dyn_id.simulation.simulated_robot import BLOCK, SensorStream
from robot_dyn_id.workflow.iteration import SimulatedTrials


@pytest.fixture(scope="module")
def arm():
    return LockableArm()


@pytest.fixture(scope="module")
def strokes(arm):
    """The published ones, so fast that their torques need no minute: the same angles in an eighth of the time."""
    slow = logistic2r.make_published_strokes(arm)
    quick = {
        joint: replace(
            stroke,
            motion=replace(stroke.motion, steepness=8.0 * stroke.motion.steepness, period=stroke.motion.period / 8.0),
            half=stroke.half / 8.0,
            gains=Gains(64.0 * stroke.gains.proportional, 8.0 * stroke.gains.derivative, exponent=0.7),
        )
        for joint, stroke in slow.of.items()
    }
    return replace(slow, of=quick)


def test_what_is_exact(arm):
    figures = logistic2r.compare_equations(arm, logistic2r.make_published_strokes(arm))
    assert all(figure.verdict in ("holds", "reproduced") for figure in figures), figures


def test_the_published_optimum_breaks_its_limits_for_joint_1_only(arm):
    published = logistic2r.make_published_strokes(arm)
    shares = {joint: logistic2r.find_largest_use(arm, joint, stroke) for joint, stroke in published.of.items()}
    peaks = {
        joint: np.array([w * a / 4.0 / (np.pi / 6.0), w**2 * a / (6.0 * np.sqrt(3.0)) / (np.pi / 15.0)])
        for joint, (a, w) in {"joint1": (2.313, 1.523), "joint2": (2.094, 0.996)}.items()
    }
    for joint, share in shares.items():
        assert np.allclose(share[1:], peaks[joint], rtol=1e-5), "peaks w A / 4 and w^2 A / (6 sqrt 3)"
    assert shares["joint1"].max() > 2.0 > 1.0 > shares["joint2"].max()


def test_a_joint_whose_neighbor_is_locked_has_the_torque_of_the_whole_arm(arm):
    rng = np.random.default_rng(1)
    theta, state = rng.uniform(0.5, 2.0, 6), rng.uniform(-2.0, 2.0, 3)
    whole = arm.base.independent
    for joint in JOINTS:
        number = arm.model.joint_names.index(joint)
        full = np.zeros((3, 2))
        full[:, number] = state
        torque = Dynamics(arm.regressor, whole, theta).inverse_dynamics(*full)[number]
        assert arm.dynamics(theta, joint).inverse_dynamics(*state[:, None])[0] == pytest.approx(torque, rel=1e-12)


def test_strokes_that_are_followed_exactly_identify_the_parameters(arm):
    published = logistic2r.make_published_strokes(arm)
    found = published.identified(published._designed())
    assert np.allclose(found.values, arm.nominal, atol=1e-9)


def test_feedback_of_finite_time_is_linear_for_an_exponent_of_1_and_odd():
    error, rate = np.array([0.3, -0.2]), np.array([-0.5, 0.0])
    assert np.array_equal(feedback(error, rate, 4.0, 3.0, 1.0), 4.0 * error + 3.0 * rate)
    bent = feedback(error, rate, 4.0, 3.0, 0.7)
    assert np.allclose(bent, [4.0 * 0.3**0.7 - 3.0 * 0.5 ** (1.4 / 1.7), -4.0 * 0.2**0.7], rtol=1e-12)
    assert np.array_equal(feedback(-error, -rate, 4.0, 3.0, 0.7), -bent)


def test_the_start_holds_any_arm_of_the_family_within_its_droop(arm):
    for joint, stroke in logistic2r.make_published_strokes(arm).of.items():
        prior, span = arm.dynamics(arm.nominal, joint), float(stroke.motion.span[0])
        q, dq, _ = (x.T for x in stroke.motion.evaluate(np.linspace(0.0, stroke.motion.duration, 300))[:3])
        start = ScaledNominalInertia.from_gravity_sag(0.1 * span, prior, stroke.gains, q, dq, 1.5)
        weight = 1.5 * np.abs(prior.bias(q, dq)).max()
        inertia = start.scale * prior.mass_matrix(q[0])[0, 0]
        assert inertia * stroke.gains.proportional * (0.1 * span) ** 0.7 == pytest.approx(weight, rel=1e-9)


def test_repeating_brings_the_parameters_of_an_arm_unlike_its_urdf(arm, strokes):
    theta = arm.nominal * np.array([1.4, 1.0, 0.6, 0.7, 1.0, 1.5])
    run = repeat_trials(make_quiet_trials(strokes, theta))
    errors = [run.error(k) for k in (1, 2, 3, 6)]
    assert errors[-1] < 0.01 < errors[0], errors
    assert run.found.errors[-1] < 0.05 * run.found.errors[0]
    (tracking, torques, parameters) = draw_all(run, run)
    assert [len(drawing.panels) for drawing in (tracking, torques, parameters)] == [4, 2, 3]
    first = tracking.panels[0].curves
    assert np.abs(first[2].y - first[-1].y).max() < np.abs(first[0].y - first[-1].y).max(), (
        "iteration 3 and 1, designed"
    )
    assert run.best_error == np.abs(run.found.parameters.values - theta).max()


def test_torques_of_the_validation_are_those_of_the_arm(arm, strokes):
    """By its dynamics, not by the printed equations; and they say so if the parameters are wrong."""
    run = repeat_trials(make_quiet_trials(strokes, arm.nominal))
    figures = figures_of(run)
    t = np.linspace(0.0, 10.0, 1001)
    true, found = (arm.dynamics(theta) for theta in (arm.nominal, run.found.parameters.values))
    first = np.array([np.sin(t), np.cos(t), -np.sin(t)])
    for words, second in (
        ("-sin t", -first),
        ("cos 2t", np.array([np.cos(2 * t), -2 * np.sin(2 * t), -4 * np.cos(2 * t)])),
    ):
        states = np.array([first, second]).transpose(1, 2, 0)
        torque = true.inverse_dynamics(*states)
        error = found.inverse_dynamics(*states) - torque
        limits = logistic2r.TARGETS["validation"] * np.sqrt((torque**2).mean(axis=0))
        for joint, (rms, limit) in enumerate(zip(np.sqrt((error**2).mean(axis=0)), limits, strict=True), 1):
            figure = figures[f"torque {joint}, q1 = sin t, q2 = {words}, {BEST}: RMS error [N m]"]
            assert figure.ours == pytest.approx(rms, rel=1e-6, abs=1e-12)
            assert figure.missed == (rms > limit)
            assert figure.published is None, "the paper prints no torque errors"
    wrong = replace(run, trials=replace(run.trials, theta=1.2 * arm.nominal))
    assert all(figure.missed for name, figure in figures_of(wrong).items() if "cos 2t" in name)


def figures_of(run):
    return {figure.name: figure for figure in logistic2r.compare_validation(run, None)}


def test_the_best_iteration_is_not_the_last_and_worse_one(arm, strokes):
    run = repeat_trials(make_quiet_trials(strokes, arm.nominal))
    errors = run.found.errors
    assert run.found.converged and errors[-1] > min(errors)
    used = run.found.iterations[int(np.argmin(errors)) - 1].parameters
    assert np.array_equal(run.best, used.values[PAPER])
    assert len(run.theta) == ITERATIONS and np.array_equal(run.theta[-1], run.best)


def test_samples_are_those_of_the_windows(arm):
    stroke = logistic2r.make_published_strokes(arm).of["joint2"]
    t = SAMPLE * np.arange(round(stroke.motion.duration / SAMPLE))
    kept, direction = stroke.samples(t)
    assert kept.sum() == len(direction) == 4 * 246
    assert np.array_equal(np.sign(stroke.motion.evaluate(t[kept])[1][0]), direction)


def test_all_errors_of_sensors_at_once_are_those_one_after_the_other():
    sensors = Sensors(np.array([0.1, 0.2]), 1e-3, 1e-2, correlation_time=0.05)
    count, still = BLOCK + 100, np.zeros(2)
    one, other = (SensorStream(sensors, 100.0, 0.0, seed=3) for _ in range(2))
    expected = np.array([one.measure(still, still, still) for _ in range(count)])
    assert np.array_equal(other.errors(count), expected)
    assert np.array_equal(other.measure(still, still, still), one.measure(still, still, still))


def test_a_model_with_an_inertia_that_is_not_positive_is_held_near_the_urdf_or_refused(arm):
    """Where only Izz1 is unknown to the data, only that is held; where all is known, there is no model."""
    theta = arm.nominal.copy()
    theta[2] = -4.0
    unknown = np.diag([1e-6, 1e-6, 9.0, 1e-6, 1e-6, 1e-6])
    model = arm.make_model(theta, unknown, WRONG, JOINTS)
    assert model.held and np.allclose(np.delete(model.values, 2), np.delete(theta, 2), atol=1e-4)
    prior = (WRONG * arm.nominal[2]) ** 2
    assert model.values[2] == pytest.approx((theta[2] * prior + arm.nominal[2] * 9.0) / (prior + 9.0))
    with pytest.raises(InputError, match="not positive"):
        arm.make_model(theta, 1e-6 * np.eye(6), WRONG, JOINTS)
    good = arm.make_model(arm.nominal, unknown, WRONG, [None])
    assert not good.held and np.array_equal(good.values, arm.nominal)


@pytest.mark.slow
def test_noise_that_hides_an_inertia_ends_with_a_model(arm):
    """Without the guard the arm ran away: feedback through an inertia of -2 to -3 kg m^2 was used."""
    feasible = logistic2r.optimize_feasible_strokes(arm)
    angle, torque = 1e-3, 0.1
    sensors = Sensors(np.full(1, torque), angle, 10.0 * angle)
    run = repeat_trials(StrokeTrials(feasible, arm.nominal, START, sensors, seed=3))
    assert run.best_error < 1.0, run.found.reason
    assert min(run.found.errors) < 0.1 * run.found.errors[0], run.found.errors
    used = [one.used.values for one in run.found.iterations if one.used is not None]
    inertias = [arm.dynamics(theta, joint).mass_matrix(np.zeros(1))[0, 0] for theta in used for joint in JOINTS]
    assert min(inertias) > 0.0, "of a joint, with the body that it carries"


@pytest.mark.slow
def test_the_fitted_start_gives_the_printed_tracking_error(arm):
    run = repeat_trials(
        make_quiet_trials(logistic2r.make_published_strokes(arm), arm.nominal, start_inertia=logistic2r.FITTED_START)
    )
    figures = {figure.name: figure for figure in logistic2r.compare_tables(run)}
    first = figures["tracking error of joint 2, iteration 1 [rad]"]
    assert (first.published, first.verdict) == (0.6, "other conditions") and abs(first.ours - 0.6) < 0.05
    errors = [figures[f"error of theta 4 (Izz2) after iteration {k}, fitted start [kg m^2]"] for k in (1, 2, 3)]
    assert [round(figure.published, 3) for figure in errors] == [0.797, 0.302, 0.007]
    assert errors[2].ours < 0.01 < errors[1].ours < errors[0].ours
    third = [figures[f"theta {n} ({name}) after iteration 3"] for n, name in ((1, "Izz1"), (3, "my1"), (5, "mx2"))]
    assert [figure.published for figure in third] == [1.991, 0.002, 1.0]
    assert figures["theta 6 (my2) after iteration 3"].published == 0.0
    assert not any(figure.verdict == "beaten" for figure in figures.values())


def test_the_genetic_search_lowers_the_condition_number_of_the_strokes(arm):
    limits = logistic2r.read_limits_of(arm)
    for joint, stroke in logistic2r.make_published_strokes(arm).of.items():
        given = logistic2r.PUBLISHED[joint]
        variables = np.array([[given["span"], given["steepness"], given["window"]]])
        assert limits.condition_number(variables)[0] == pytest.approx(logistic2r.compute_condition(stroke), rel=2e-3)
        assert (limits.excess(variables)[0] > 0.0) == (joint == "joint1")
    variables, curve = evolve(limits, 0, generations=60)
    assert np.all(np.diff(curve) <= 1e-9) and curve[-1] < 100.0 < curve[0]
    assert curve[-1] == pytest.approx(limits.objective(variables[None])[0])
    assert np.all((variables >= RANGES[:, 0]) & (variables <= RANGES[:, 1]))
    assert isinstance(limits, StrokeLimits) and limits.velocity == pytest.approx(np.pi / 6.0)
    assert len(draw_search([curve, curve]).panels[0].curves) == 2


def test_drawings_hold_the_designs_and_the_validations(arm, strokes):
    run = repeat_trials(make_quiet_trials(strokes, arm.nominal))
    drawing = draw_validation(logistic2r.compare_validations(arm, run, None))
    assert [len(panel.curves) for panel in drawing.panels] == [2, 4, 2, 4]
    drawing = draw_strokes({"published": strokes})
    assert [len(panel.curves) for panel in drawing.panels] == [2, 2, 2]


@pytest.mark.slow
def test_a_fourier_series_is_repeated_under_the_same_controller(arm):
    """One trial without noise gives the parameters, of an arm unlike its URDF too."""
    feasible = logistic2r.optimize_feasible_strokes(arm)
    fourier = logistic2r.FourierTrials(feasible, *logistic2r.read_fourier_series())
    once, best = fourier.errors(draw_arm_unlike_urdf(feasible, 0), logistic2r.QUIET, 0)
    assert max(once, best) < 1e-3


def test_a_search_that_breaks_a_limit_is_counted_in_all_its_rows(arm):
    """The first of two searches ends with the published stroke of joint 1, which breaks its limits."""
    published = [tuple(logistic2r.PUBLISHED[joint].values())[:3] for joint in ("joint1", "joint2")]
    ends = iter([published[0], published[1], published[1], published[1]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logistic2r, "evolve", lambda limits, seed: (np.array(next(ends)), np.array([100.0, 90.0])))
        found = logistic2r.search_genetically(arm, Extent(2), lambda line: None)
    assert found.failed == 1 and found.sums.tolist() == [180.0, 180.0] and found.curves.shape == (2, 2, 2)
    published = logistic2r.make_published_strokes(arm)
    rows = [f for f in logistic2r.compare_design(published, published, found) if "genetic algorithm" in f.name]
    assert [figure.spread.failed for figure in rows] == [1, 1]
    assert rows[1].verdict == "other conditions"


def test_strokes_and_series_are_compared_draw_by_draw():
    """A draw in which one of the two fails counts for the other; one in which both fail, for neither."""
    ours, others = Spread(np.array([1.0, np.inf, 3.0, np.inf])), Spread(np.array([2.0, 4.0, np.inf, np.inf]))
    ratios = studies.compare_draws(ours, others)
    assert ratios.values.tolist() == [0.5, np.inf, 0.0, 1.0] and ratios.failed == 3


@pytest.mark.slow
def test_settings_of_the_scenario_identify_from_the_angle_in_the_first_run():
    """Without the nodes: strokes begin where the arm stands, and the start without a model stays close to them."""
    simulator, controller, publisher = (
        read_node_parameters("logistic2r", name)
        for name in ("simulator", "computed_torque_controller", "excitation_publisher")
    )
    model = RobotModel.from_file(find_shared_file("urdf/logistic2r.urdf"), gravity=simulator["gravity"])
    motion = make_plan(model, ExcitationSettings(**publisher)).excitation
    begin = motion.evaluate(np.zeros(1))[0][:, 0]
    assert begin == pytest.approx(simulator["initial_position"], abs=1e-3), "an approach is not a stroke"
    gains = Gains(
        *(tuple(controller[name]) for name in ("proportional", "derivative")), exponent=controller["exponent"]
    )
    settings = read_configuration(find_shared_file("config/identification/logistic2r.yaml")).settings
    assert (settings.velocity, settings.estimator.name, settings.estimator.order) == ("logistic", "stepwise", "planned")
    trials = SimulatedTrials(
        Dynamics.from_model(model),
        motion,
        motion.duration,
        500.0,
        Sensors(np.full(2, simulator["effort_noise"][0]), simulator["position_noise"], simulator["velocity_noise"]),
        gains,
        ScaledNominalInertia.from_robot(controller["start_droop"], model, gains),
        limit_effort=False,
    )
    recording = trials.follow(None).recording
    found = identify([recording], [recording], model, settings, "test").parameters
    truth = compute_base_parameters(Regressor(model)).mapping @ model.inertial_parameters
    assert found.estimate.standard_deviations.max() < 0.01
    assert (np.abs(found.estimate.values - truth) < 4.0 * found.estimate.standard_deviations).all()


@pytest.mark.slow
def test_the_papers_own_start_of_joint_1_runs_away_with_the_printed_gains(arm):
    """With ten times the printed Kp the first iteration is the printed one within 0.01."""
    figures = logistic2r.compare_sequence(logistic2r.make_published_strokes(arm))
    assert len(figures) == 18
    printed, faster = figures[:9], figures[9:]
    assert np.isnan(printed[2].ours) and "the trial was stopped" in printed[2].why
    assert {figure.verdict for figure in printed} == {"not reproducible"}
    assert faster[0].ours == pytest.approx(faster[0].published, abs=0.01)
    assert abs(faster[2].ours - 2.0) < 0.01
    assert {figure.verdict for figure in faster} == {"other conditions"}


def test_the_penalty_is_constant(arm):
    """1000 wherever a limit is violated, by however much."""
    limits = logistic2r.read_limits_of(arm)
    little, much = np.array([[2.0, 1.1, 300.0], [3.0, 2.0, 300.0]])
    for one in (little, much):
        assert limits.excess(one[None])[0] > 0.0
        assert limits.objective(one[None]) - limits.condition_number(one[None]) == pytest.approx(1000.0)
