# SPDX-License-Identifier: Apache-2.0
"""Torque that a driver adds to a command: parts of the model's torque, and the statement about them."""

import numpy as np
import pytest
from support.altered import altered
from support.given_parameters import parameter_set
from support.robots import OBLIQUE

from robot_dyn_id.dynamics.compensation import DriverCompensation, check_compensations, decide_compensations
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.terms import Coulomb, Dahl, Offset, RotorInertia, Spring, Viscous
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.parameters import COMPENSATED_PARTS

TERMS = (Viscous(), Coulomb(), Dahl(), RotorInertia(), Spring(), Offset())


@pytest.fixture(scope="module")
def parameters():
    return altered(parameter_set(OBLIQUE, terms=TERMS), effort={"robot_compensates": ("unknown",)})


def states_of(parameters, count):
    n = len(parameters.robot.joint_names)
    return np.random.default_rng(0).uniform(-1.5, 1.5, (3, count, n))


def test_each_part_is_that_of_the_rigid_bodies_or_of_moving_friction(parameters):
    dynamics = Dynamics.from_parameters(parameters)
    (q, dq, _), rest = states_of(parameters, 20), np.zeros((20, len(parameters.robot.joint_names)))
    without_terms = parameter_set(OBLIQUE, terms=TERMS, values=np.zeros_like(parameters.terms.values))
    bodies = Dynamics.from_parameters(without_terms)
    weightless = Dynamics.from_parameters(parameter_set(OBLIQUE, gravity=(0.0, 0.0, 0.0)))
    expected = {
        "gravity": bodies.gravity(q),
        "coriolis": weightless.bias(q, dq),
        "friction": dynamics.friction(q, dq) - dynamics.friction(q, rest),
    }
    for part in COMPENSATED_PARTS:
        got = DriverCompensation(dynamics, (part,)).torque(q, dq)
        # A spring or an offset on a joint is a part of its gravity torque where motion cannot separate them.
        assert np.abs(got - expected[part]).max() <= 1e-9 * np.abs(expected[part]).max(), part
    everything = DriverCompensation(dynamics, COMPENSATED_PARTS).torque(q, dq)
    at_rest = dynamics.friction(q, rest)
    assert np.allclose(everything + at_rest, dynamics.bias(q, dq), atol=1e-9 * np.abs(everything).max())
    assert not DriverCompensation(dynamics, ()).torque(q, dq).any()


def test_friction_is_that_of_the_wanted_velocity_and_of_its_states(parameters):
    dynamics = Dynamics.from_parameters(parameters)
    q, dq, wanted = states_of(parameters, 1)[:, 0]
    states = dynamics.advance(dynamics.initial_states(), q, q + 1e-4, 0.01)
    got = DriverCompensation(dynamics, ("friction",)).torque(q, dq, wanted, states)
    assert np.array_equal(got, dynamics.friction(q, wanted, states) - dynamics.friction(q, np.zeros_like(q)))


def stated(parameters, *words, kind="unknown"):
    return altered(parameters, effort={"robot_compensates": words, "kind": kind})


def test_the_parameter_set_or_the_user_decides(parameters):
    assert decide_compensations(stated(parameters, "none")) == ()
    assert decide_compensations(stated(parameters, "coriolis", "gravity")) == ("coriolis", "gravity")
    assert decide_compensations(parameters, ("gravity",)) == ("gravity",)
    assert decide_compensations(stated(parameters, "gravity", "friction"), ("friction", "gravity"))


@pytest.mark.parametrize(
    ("words", "kind", "given", "error", "names"),
    [
        (("unknown",), "unknown", (), InputError, ["robot_compensates is unknown", "set robot_compensates"]),
        ((), "torque", ("unknown",), InputError, ["robot_compensates is unknown"]),
        (("gravity",), "unknown", ("none",), UsageError, ["[none]", "[gravity]", "parameter set"]),
        (("unknown",), "gravity_compensated", ("none",), UsageError, ["gravity_compensated", "[none]"]),
        (("unknown",), "unknown", ("gravitation",), UsageError, ["'gravitation'"]),
        (("unknown",), "unknown", ("none", "gravity"), UsageError, ["none and other words"]),
        (("unknown",), "unknown", ("gravity", "gravity"), UsageError, ["twice"]),
    ],
)
def test_what_is_unknown_or_contradictory_is_refused_by_naming_both(parameters, words, kind, given, error, names):
    with pytest.raises(error) as refused:
        decide_compensations(stated(parameters, *words, kind=kind), given)
    for name in names:
        assert name in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "words", "contradicts"),
    [
        ("gravity_compensated", ("gravity",), False),
        ("gravity_compensated", ("gravity", "coriolis"), False),
        ("gravity_compensated", ("unknown",), False),
        ("gravity_compensated", ("friction",), True),
        ("gravity_and_friction_compensated", ("gravity",), True),
        ("torque", ("gravity",), False),  # as of robots that measure complete torques and add gravity to commands
        ("current", ("none",), False),
    ],
)
def test_efforts_without_gravity_are_those_of_a_driver_that_adds_it(parameters, kind, words, contradicts):
    if not contradicts:
        check_compensations(kind, words)
        assert altered(parameters, effort={"kind": kind, "robot_compensates": words}).effort.kind == kind
        return
    for refused, error in (
        (check_compensations, UsageError),
        (lambda k, w: stated(parameters, *w, kind=k), InputError),
    ):
        with pytest.raises(error, match=kind) as raised:
            refused(kind, words)
        assert "robot_compensates" in str(raised.value)
