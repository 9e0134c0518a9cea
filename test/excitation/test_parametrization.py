# SPDX-License-Identifier: Apache-2.0
"""Every form of excitation under its contract: analytic derivatives, exact gradients, rest at both ends, limits."""

from dataclasses import replace

import numpy as np
import pytest
from support.robots import panda_arm
from support.simulated import LIFT

from robot_dyn_id.errors import MotionError, UsageError
from robot_dyn_id.excitation import FORMS, Demand, MotionLimits, make_excitation, make_parametrization
from robot_dyn_id.excitation.forms.bspline import place_knots
from robot_dyn_id.excitation.trajectory import Repeated, Scaled, check_excitation, check_limits
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.signals.strokes import compute_rates_at_angle

ACCELERATION = (15, 7.5, 10, 12.5, 15, 20, 20)
PANDA = MotionLimits.from_model(panda_arm(), ACCELERATION, velocity_scale=0.9, margin=0.05)
JERKY = MotionLimits.from_model(panda_arm(), ACCELERATION, jerk=(30.0,))
LIFT_LIMITS = MotionLimits.from_model(RobotModel.from_urdf(LIFT), (3.0,), jerk=(200.0, 400.0))
LIMITS = {"panda": PANDA, "panda, jerk counts": JERKY, "lift": LIFT_LIMITS}

every_form = pytest.mark.parametrize("form", FORMS)
every_robot = pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
fixed_or_free = pytest.mark.parametrize("free", [False, True], ids=["fixed center", "free center"])

OTHERS = {
    "bspline of degree 3": ("bspline", {"degree": 3}),
    "bspline of degree 4": ("bspline", {"degree": 4, "control_points": 12}),
    "open bspline": ("bspline", {"closed": False}),
    "polynomial of degree 8": ("polynomial", {"degree": 8}),
    "polynomial of degree 16": ("polynomial", {"degree": 16}),
    "multisine off the harmonics": ("multisine", {"frequencies": (0.13, 0.31, 0.52, 0.83)}),
    "falling chirp": ("chirp", {"frequencies": (2.0, 0.5)}),
    "falling sweep": ("sweep_steps", {"frequencies": (4.0, 0.5)}),
    "many harmonics": ("fourier", {"harmonics": 25}),
}
CASES = {name: (name, {}) for name in FORMS} | OTHERS
every_case = pytest.mark.parametrize(("form", "options"), CASES.values(), ids=CASES)


def family_of(form, limits=PANDA, **options):
    return make_parametrization(form, limits, Demand(**{"period": 6.0, **options}))


def start(family, seed=1, share=0.9):
    return family.random(np.random.default_rng(seed), share)


def within(family, count=211):
    """Times between the places where the jerk has steps."""
    return np.linspace(0.0, family.duration, count + 2)[1:-1] + 1.234e-4


def uses(motion, limits, reach, t):
    q, dq, ddq, dddq = motion.evaluate(t)
    away = np.abs(q - motion.center[:, None]).max(axis=1)
    rates = zip((dq, ddq, dddq), (limits.velocity, limits.acceleration, limits.jerk), strict=True)
    return np.array([away / reach, *(np.abs(values).max(axis=1) / limit for values, limit in rates)])


@fixed_or_free
@every_case
def test_the_sample_is_the_motion_and_the_motion_has_analytic_derivatives(form, options, free):
    family = family_of(form, free_center=free, **options)
    x, t = start(family), within(family)
    assert x.shape == (family.size,)
    motion = family.trajectory(x)
    assert motion.duration == family.duration
    for ours, same in zip(family.sample(x, t), motion.evaluate(t), strict=True):
        assert ours.shape == (7, len(t))
        assert np.allclose(ours, same, rtol=1e-10, atol=1e-10 * max(1.0, np.abs(same).max()))
    h = 1e-5 * motion.fastest
    before, after, here = motion.evaluate(t - h), motion.evaluate(t + h), motion.evaluate(t)
    for lower in range(3):
        slope = (after[lower] - before[lower]) / (2 * h)
        assert np.allclose(slope, here[lower + 1], rtol=0.0, atol=1e-6 * max(1.0, np.abs(here[lower + 1]).max()))


@every_case
def test_it_is_at_rest_at_both_ends_and_nothing_but_the_jerk_has_steps(form, options):
    family = family_of(form, **options)
    motion = family.trajectory(start(family))
    q, dq, ddq, _ = motion.evaluate(np.linspace(0.0, motion.duration, 500))
    for rate in (dq, ddq):
        assert np.abs(rate[:, [0, -1]]).max() < 1e-10 * np.abs(rate).max()
    if family.periodic:
        assert np.allclose(q[:, 0], q[:, -1], rtol=0, atol=1e-12)
    check_excitation(motion, 2 if family.periodic else 1, PANDA.joint_names)
    t = np.linspace(0.0, motion.duration, 20001)
    peaks = [np.abs(values).max() for values in motion.evaluate(t)]
    for d, values in enumerate(motion.evaluate(t)[:3]):
        assert np.abs(np.diff(values, axis=1)).max() < 1.1 * peaks[d + 1] * t[1]


@fixed_or_free
@every_case
def test_the_gradient_is_exact(form, options, free):
    family = family_of(form, LIFT_LIMITS, free_center=free, **options)
    rng = np.random.default_rng(5)
    x, t = start(family), within(family, 60)
    weights = [rng.normal(size=(2, len(t))) / np.abs(values).max() for values in family.sample(x, t)]

    def value(x):
        return sum(np.sum(w * values) for w, values in zip(weights, family.sample(x, t), strict=True))

    h = 1e-5
    differences = np.array([(value(x + h * e) - value(x - h * e)) / (2 * h) for e in np.eye(family.size)])
    gradient = family.pull_back(x, t, tuple(weights))
    assert gradient.shape == (family.size,)
    assert np.abs(gradient - differences).max() < 1e-6 * np.abs(gradient).max()
    twice = family.pull_back(x, t, tuple(np.array([[w], [-2.0 * w]]) for w in weights))
    np.testing.assert_allclose(twice, [[gradient], [-2.0 * gradient]], rtol=0, atol=1e-12 * np.abs(gradient).max())


@every_robot
@fixed_or_free
@every_case
def test_a_random_motion_reaches_exactly_one_limit_of_every_joint_and_leaves_none(form, options, free, limits):
    family = family_of(form, limits, free_center=free, **options)
    x = start(family, seed=3, share=0.8)
    motion = family.trajectory(x)
    reach = family.reach - np.abs(motion.center - family.center)
    fine = np.linspace(0.0, motion.duration, 30_001)
    knots = place_knots(6.0, options.get("degree", 5), options.get("control_points", 20))  # corners of cubic splines
    sides = np.array([0.0, 1.0, motion.duration - 1.0, motion.duration, *knots])[:, None] + [-1e-9, 1e-9]
    fine = np.clip(np.sort(np.concatenate([fine, sides.ravel()])), 0.0, motion.duration)
    use = np.max(uses(motion, limits, reach, fine), axis=0)
    assert np.all(use <= 0.8)
    assert np.all(use >= 0.8 * (1 - 1e-4))
    assert make_parametrization(form, limits, Demand(period=6.0, free_center=free, **options)).size == family.size
    again = make_parametrization(form, limits, Demand(period=6.0, free_center=free, **options))
    assert np.array_equal(start(again, seed=3, share=0.8), x)
    if family.size > len(limits.joint_names) and form not in ("sequential_sine",):
        assert not np.allclose(start(family, seed=4, share=0.8), x)


@fixed_or_free
@every_form
def test_scaled_is_the_same_motion_around_its_center(form, free):
    family = family_of(form, free_center=free)
    x, t = start(family), within(family)
    factor = np.linspace(0.2, 1.5, 7)
    motion, other = family.trajectory(x), family.trajectory(family.scaled(x, factor))
    assert np.array_equal(other.center, motion.center)
    center = motion.center[:, None]
    assert np.allclose(other.evaluate(t)[0] - center, factor[:, None] * (motion.evaluate(t)[0] - center), atol=1e-12)
    slower = Scaled(motion, 0.5, 0.25)
    small = family.trajectory(family.scaled(x, np.full(7, 0.25)))
    assert slower.duration == 2 * motion.duration
    assert slower.fastest == 2 * motion.fastest
    for d, (ours, full) in enumerate(zip(slower.evaluate(2 * t), small.evaluate(t), strict=True)):
        assert np.allclose(ours, full * 0.5**d, atol=1e-9 * np.abs(full).max())


@every_form
def test_the_same_times_are_kept_and_others_are_not_mistaken_for_them(form):
    family = family_of(form)
    x, t = start(family), within(family)
    other = t.copy()
    first = family.sample(x, t)
    other *= 0.5
    assert not np.allclose(family.sample(x, other)[0], first[0])
    assert np.array_equal(family.sample(x, t)[0], first[0])
    t *= 0.5  # in place
    assert np.array_equal(family.sample(x, t)[0], family.sample(x, other)[0])


@every_form
def test_repetition_and_the_length_of_what_is_repeated(form):
    limits = PANDA
    one, three = (make_excitation(form, limits, Demand(period=4.0, periods=n)) for n in (1, 3))
    turns = 7 if form in ("sequential_sine", "logistic") else 1
    assert three.duration - one.duration == pytest.approx(8.0 * turns)
    t = np.linspace(0.0, three.duration, 100_000)
    q = three.evaluate(t)[0]
    assert np.abs(np.diff(q, axis=1)).max() < 1.1 * PANDA.velocity.max() * t[1]
    check_limits(three, limits)


# --- what is peculiar to a form ----------------------------------------------------------------------------------


def test_free_coefficients_are_what_the_ends_leave():
    size = {form: family_of(form).size / 7 for form in FORMS}
    # 5 harmonics: velocity and acceleration at the ends tie two of ten; splines: 4 conditions, closed, and a mean of 0
    assert size == {
        "fourier": 8,
        "fourier_blend": 10,
        "bspline": 14,
        "polynomial": 3,
        "multisine": 8,
        "chirp": 4,
        "sweep_steps": 6,
        "logistic": 2,
        "sequential_sine": 1,
    }
    assert family_of("polynomial", degree=8).size == 7
    assert family_of("bspline", closed=False).size == 7 * 15
    assert family_of("multisine", frequencies=(0.13, 0.31, 0.52)).size == 7 * 2
    assert all(family_of(form, free_center=True).size == 7 * (size[form] + 1) for form in FORMS)


def test_a_polynomial_of_degree_8_is_the_published_one():
    """Chen et al. 2021: c t^4 (T - t)^4; with T = 5 s and amplitude 1 its peaks are 0.76164 1/s and 1.28 1/s^2."""
    family = family_of("polynomial", period=5.0, degree=8)
    t = np.linspace(0.0, 5.0, 251)
    motion = family.trajectory(start(family))
    q, dq, ddq, dddq = motion.evaluate(t)
    amplitude = motion.evaluate(np.array([2.5]))[0] - family.center[:, None]
    s = t / 5.0
    assert np.allclose(q - family.center[:, None], amplitude * 256 * s**4 * (1 - s) ** 4, atol=1e-12)
    assert np.abs(dq / amplitude).max() == pytest.approx(0.76164, abs=5e-6)
    assert np.abs(ddq / amplitude).max() == pytest.approx(1.28, abs=5e-6)
    assert np.abs(dddq[:, [0, -1]]).max() < 1e-9


def test_a_logistic_stroke_has_its_rates_by_the_angle_alone():
    family = family_of("logistic")
    motion = family.trajectory(start(family))
    for place, joint in enumerate(motion.order):
        t = np.linspace(0.0, 6.0, 4001)
        eased = np.minimum(t % 3.0, 3.0 - t % 3.0) < 0.05 * 3.0 + 1e-9
        q, dq, ddq, _ = (values[joint] for values in motion.evaluate(place * 6.0 + t))
        low = motion.center[joint] - motion.span[joint] / 2
        direction = np.where(t < 3.0, 1.0, -1.0)
        velocity, acceleration = compute_rates_at_angle(q, low, motion.span[joint], motion.steepness[joint], direction)
        assert np.allclose(velocity[~eased], dq[~eased], rtol=0, atol=1e-12 * np.abs(dq).max())
        assert np.allclose(acceleration[~eased], ddq[~eased], rtol=0, atol=1e-12 * np.abs(ddq).max())
        steepness, span = motion.steepness[joint], motion.span[joint]
        assert np.abs(dq).max() == pytest.approx(steepness * span / 4, rel=1e-4)
        assert np.abs(ddq).max() == pytest.approx(steepness**2 * span / (6 * np.sqrt(3)), rel=1e-4)


def test_a_multisine_on_the_harmonics_is_a_fourier_series_with_low_peaks():
    harmonics = tuple(k / 10.0 for k in range(1, 21))
    multisine = family_of("multisine", period=10.0, frequencies=harmonics)
    series = family_of("fourier", period=10.0, harmonics=20)
    x, t = start(multisine), within(multisine)
    same = replace(
        series.trajectory(start(series)), center=multisine.center, coefficients=multisine.trajectory(x).coefficients
    )
    for ours, other in zip(multisine.sample(x, t), same.evaluate(t), strict=True):
        assert np.allclose(ours, other, atol=1e-9 * np.abs(other).max())

    def crest(family):
        q = [family.sample(start(family, seed), t)[0] - family.center[:, None] for seed in range(20)]
        return np.median([np.abs(values).max(axis=1) / values.std(axis=1) for values in q])

    assert crest(multisine) < crest(series)


def test_a_chirp_sweeps_its_band():
    family = family_of("chirp", period=20.0, frequencies=(0.5, 3.0))
    motion = replace(family.trajectory(start(family)), coefficients=np.tile([1.0, 0.0, 0.0, 0.0], (7, 1)))
    t = np.linspace(0.0, 20.0, 20001)
    q = motion.evaluate(t)[0][0] - motion.center[0]
    crossings = t[1:][(q[:-1] < 0) & (q[1:] >= 0)]
    frequency, middle = 1.0 / np.diff(crossings), (crossings[1:] + crossings[:-1]) / 2
    assert np.allclose(frequency, 0.5 + 2.5 * middle / 20.0, rtol=0.02)


def test_sweeps_keep_their_speed_and_steps_follow_them():
    family = family_of("sweep_steps", period=24.0, frequencies=(0.2, 2.0))
    sweep = replace(family.trajectory(start(family)), coefficients=np.tile([1.0, *np.zeros(5)], (7, 1)))
    t = np.linspace(0.0, 24.0, 24001)
    q, dq = (values[0] for values in sweep.evaluate(t)[:2])
    parts = [(t > begin) & (t < begin + 5.0) for begin in (1.0, 6.0, 12.0)]
    speeds = [np.abs(dq[part]).max() for part in parts]
    assert np.ptp(speeds) < 0.1 * max(speeds)  # at 0.3 to 0.8, 0.8 to 1.3, and 1.4 to 1.9 Hz
    assert np.all(q[t > 18.0] == sweep.center[0])
    steps = replace(sweep, coefficients=np.tile([0.0, 0.0, 0.0, 0.0, 1.0, -1.0], (7, 1)))
    moved = steps.evaluate(t)[0][0] - steps.center[0]
    assert not moved[t < 18.0].any()
    places = np.searchsorted(t, [18.5, 20.0, 21.5, 23.0])
    np.testing.assert_allclose(moved[places], [1.0, 0.0, -1.0, 0.0], atol=1e-12)
    assert steps.evaluate(np.array([18.125]))[0][0, 0] - steps.center[0] == pytest.approx(0.5)  # half of 0.25 s


def test_blended_harmonics_are_not_tied():
    family = family_of("fourier_blend", periods=2, blend=0.7)
    motion = family.trajectory(start(family))
    t = 0.7 + np.linspace(0.0, 5.9, 100)
    assert np.allclose(motion.evaluate(t)[0], motion.evaluate(t + 6.0)[0], atol=1e-12)
    assert np.abs(motion.evaluate(np.array([0.7]))[1]).max() > 0.01
    assert motion.duration == pytest.approx(13.4)


# --- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "demand", "words"),
    [
        ("furier", {}, "unknown form of excitation 'furier'; did you mean 'fourier'?"),
        ("fourier", {"period": 0.0}, "the period must be a positive number of seconds, not 0"),
        ("fourier", {"period": np.nan}, "the period must be a positive number of seconds, not nan"),
        ("fourier", {"periods": 0}, "the number of periods must be at least 1"),
        ("fourier", {"share": 0.0}, "the usable fraction of the limits must be above 0 and at most 1, not 0"),
        ("fourier", {"harmonics": 2}, "at least 3 harmonics, not 2"),
        ("fourier_blend", {"harmonics": 0}, "at least 1 harmonic, not 0"),
        ("fourier_blend", {"blend": 0.0}, "the blend time must be a positive"),
        ("polynomial", {"degree": 7}, "a polynomial of degree 7 is fully determined by its 8"),
        ("bspline", {"degree": 2}, "a spline of degree 2 has a discontinuous acceleration"),
        ("bspline", {"control_points": 5}, "a spline of degree 5 needs at least 6 control points, not 5"),
        ("bspline", {"control_points": 6}, "a bspline motion with 6 functions is fully determined"),
        ("bspline", {"closed": False, "periods": 2}, "a spline that is not closed cannot be repeated"),
        ("multisine", {"frequencies": (0.13, 0.31, 0.52), "periods": 2}, "multiples of 0.1 Hz"),
        ("multisine", {"frequencies": (0.1, -0.2)}, "frequencies must be positive"),
        ("multisine", {"frequencies": (0.1, 0.1)}, "a frequency is given twice"),
        ("multisine", {"frequencies": (0.1,)}, "a multisine motion with 2 functions is fully determined"),
        ("chirp", {"frequencies": (0.1,)}, "a sweep needs exactly two frequencies"),
        ("chirp", {"period": 1.0}, "a chirp of 1 s is too short for two blends of 1 s each"),
        ("sweep_steps", {"frequencies": (0.1,)}, "a sweep needs exactly two frequencies"),
        ("sweep_steps", {"frequencies": (0.1, 0.2)}, "2 steps of 2.5 s, half a period of the higher frequency, do not"),
    ],
)
def test_demands_that_leave_no_motion_are_refused_with_a_reason(form, demand, words):
    with pytest.raises(UsageError, match=words.replace("?", r"\?")):
        make_excitation(form, PANDA, Demand(**demand))


@every_form
def test_a_posture_at_a_limit_leaves_a_joint_no_amplitude_and_is_named(form):
    posture = PANDA.center_and_reach()[0].copy()
    posture[2] = PANDA.upper[2]
    with pytest.raises(MotionError, match="joint panda_joint3: the requested configuration is at the position limit"):
        make_excitation(form, PANDA, Demand(posture=tuple(posture)))


def test_the_jerk_is_a_limit_like_the_others():
    motion = make_excitation("fourier", PANDA, Demand(period=6.0))
    with pytest.raises(MotionError, match=r"joint panda_joint.: the jerk of the motion reaches \d.* rad/s\^3, more"):
        check_limits(motion, JERKY)
    with pytest.raises(UsageError, match=r"jerk limits \[-1.0\] must be positive, one for all joints or one for each"):
        MotionLimits.from_model(panda_arm(), ACCELERATION, jerk=(-1.0,))


@pytest.mark.parametrize("transit", [-1.0, np.inf, np.nan])
@pytest.mark.parametrize("form", ["sequential_sine", "logistic"])
def test_the_time_of_a_transit_is_finite_also_where_there_is_none(form, transit):
    family = family_of(form)
    with pytest.raises(UsageError, match="motion must last a finite time, not"):
        replace(family.trajectory(start(family)), transit=transit)


def test_what_does_not_rest_or_move_or_close_is_no_excitation():
    family = family_of("fourier")
    motion = family.trajectory(start(family))
    names = PANDA.joint_names
    coefficients = motion.coefficients.copy()
    coefficients[4, 0] += 0.1
    with pytest.raises(MotionError, match="joint panda_joint5: the motion does not begin and end without velocity"):
        check_excitation(replace(motion, coefficients=coefficients), 1, names)
    with pytest.raises(MotionError, match="the motion moves no joint: its amplitude is 0"):
        check_excitation(replace(motion, coefficients=np.zeros((7, 10))), 1, names)
    with pytest.raises(MotionError, match="not finite"):
        check_excitation(replace(motion, coefficients=np.full((7, 10), np.nan)), 1, names)
    family = family_of("bspline", closed=False)
    open_end = family.trajectory(start(family))
    check_excitation(open_end, 1, names)
    with pytest.raises(MotionError, match="joint panda_joint1: the motion cannot be repeated"):
        check_excitation(open_end, 2, names)
    assert Repeated(motion, 3).fastest == motion.fastest == pytest.approx(1.2)


@pytest.mark.parametrize("name", ["periods", "harmonics", "degree", "control_points"])
def test_counts_that_would_fill_the_memory_are_refused(name):
    with pytest.raises(UsageError, match=f"{name} must be at most"):
        Demand(**{name: 100_000_000})
