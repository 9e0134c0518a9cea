# SPDX-License-Identifier: Apache-2.0
"""Requests of the services of drivers, in all versions of their definitions."""

from dataclasses import fields
from types import SimpleNamespace

import numpy as np
import pytest
from geometry_msgs.msg import Inertia, InertiaStamped, Vector3
from support.broken_packages import without_library
from support.robots import brick

from robot_dyn_id.dynamics.consistency import convert_to_central
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.execution.rehearsal import REHEARSAL_SPEED
from robot_dyn_id.loads.payload import Payload, move_parameters, move_payload
from robot_dyn_id.model.kinematics import Placement
from robot_dyn_id.nodes.payload.drivers import DRIVERS, fill_franka, fill_ur
from robot_dyn_id.nodes.payload.settings import PayloadSettings, list_wrist_parameters
from robot_dyn_id.nodes.payload.wrist import WristExcitation

TURN = np.array([[np.cos(0.7), -np.sin(0.7), 0.0], [np.sin(0.7), np.cos(0.7), 0.0], [0.0, 0.0, 1.0]])
BODY = move_parameters(
    brick(2.0, (0.03, -0.02, 0.12), (0.1, 0.15, 0.2)),
    Placement(0, TURN, np.array([0.0, 0.0, 0.1])),
    Placement(0, np.eye(3), np.zeros(3)),
)
"""A brick whose inertia has products, in the frame of a flange."""
MASS, CENTER, INERTIA = convert_to_central(BODY)


def of_message(message):
    """Mass, center and matrix of a `geometry_msgs/Inertia`."""
    xx, xy, xz, yy, yz, zz = (getattr(message, f"i{name}") for name in ("xx", "xy", "xz", "yy", "yz", "zz"))
    return message.m, [message.com.x, message.com.y, message.com.z], [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]


def same(mass, center, inertia=INERTIA, tolerance=1e-12):
    assert mass == pytest.approx(MASS, rel=1e-6)
    np.testing.assert_allclose(center, CENTER, atol=1e-12)
    np.testing.assert_allclose(inertia, INERTIA, atol=tolerance)


def test_the_frame_of_the_flange():
    """The brick, 0.1 m further out and turned about the axis of the flange, by hand."""
    assert abs(MASS - 2.0) < 1e-12
    np.testing.assert_allclose(CENTER, TURN @ [0.03, -0.02, 0.12] + [0.0, 0.0, 0.1])
    a, b, c = (2.0 / 12.0 * x**2 for x in (0.1, 0.15, 0.2))
    np.testing.assert_allclose(INERTIA, TURN @ np.diag([b + c, a + c, a + b]) @ TURN.T, atol=1e-15)
    assert abs(INERTIA[0, 1]) > 1e-4


def test_requests_of_the_installed_packages():
    ur, franka = pytest.importorskip("ur_msgs.srv"), pytest.importorskip("franka_msgs.srv")
    request = ur.SetPayload.Request()
    fill_ur(request, BODY)
    point = request.center_of_gravity
    same(request.mass, [point.x, point.y, point.z])
    request = franka.SetLoad.Request()
    fill_franka(request, BODY)
    same(request.mass, request.center_of_mass, np.reshape(request.load_inertia, (3, 3), order="F"))


def test_requests_of_other_versions():
    """Fields of later definitions, of which only one can be installed at a time."""
    request = SimpleNamespace(payload=Inertia(), transition_time=0.0)
    fill_ur(request, BODY)
    same(*of_message(request.payload))
    flat = dict.fromkeys(("ixx", "iyy", "izz", "ixy", "ixz", "iyz"), 0.0)
    request = SimpleNamespace(mass=0.0, center_of_gravity=Vector3(), **flat)
    fill_ur(request, BODY)
    assert (request.ixx, request.ixy, request.iyz) == (INERTIA[0, 0], INERTIA[0, 1], INERTIA[1, 2])
    request = SimpleNamespace(load_inertia=InertiaStamped())
    fill_franka(request, BODY)
    same(*of_message(request.load_inertia.inertia))


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_driver_whose_library_cannot_be_loaded_is_named(driver, tmp_path):
    service = DRIVERS[driver]
    pytest.importorskip(service.package)
    with (
        without_library(service.package, tmp_path),
        pytest.raises(UsageError, match=f"the library of {service.package}"),
    ):
        service.load()
    assert service.load() is not None


def test_a_payload_is_moved_with_its_covariance():
    """A mass known to 0.1 kg and no moments: 0.1 m further out, the first moment is uncertain by 0.01 kg m."""
    body, start = brick(2.0, (0.0, 0.0, 0.0), (0.1, 0.15, 0.2)), Placement(0, np.eye(3), np.zeros(3))
    covariance = np.zeros((10, 10))
    covariance[0, 0] = 0.01
    moved = move_payload(
        Payload("tool", body, covariance, body, ("Ixx",)),
        "flange",
        Placement(0, TURN, np.array([0.0, 0.0, 0.1])),
        start,
    )
    np.testing.assert_allclose(np.sqrt(np.diag(moved.covariance))[:4], [0.1, 0.0, 0.0, 0.01], atol=1e-12)
    assert moved.link == "flange"
    assert moved.not_excited == ("Ixx", "Ixy", "Iyy")  # turned about z


def test_the_motion_of_the_wrist_depends_on_no_arguments_of_the_process_and_is_no_excitation():
    settings = PayloadSettings(link="tool")
    given = {parameter.name for parameter in list_wrist_parameters(settings, speed_scale=1.0)}
    assert given >= {"speed_scale", "latency", "velocity_scale", "position_margin"}
    assert "excitation_status" not in [interface.name for interface in WristExcitation.INTERFACES]


def test_the_slow_test_is_as_slow_as_a_rehearsal():
    (row,) = (item for item in fields(PayloadSettings) if item.name == "slow_speed")
    assert row.default <= row.metadata["rule"].maximum <= REHEARSAL_SPEED
