# SPDX-License-Identifier: Apache-2.0
"""Payload as the services of robot drivers take it.

`ur_msgs/SetPayload` (mass, center of gravity from the tool flange along its axes; newer versions also the inertia about
the center of gravity and a transition time, or all of it as a `geometry_msgs/Inertia`) and `franka_msgs/SetLoad` (mass,
center of mass in the flange frame, inertia matrix about the center of mass along the axes of the flange, column by
column; newer versions a `geometry_msgs/InertiaStamped`). Which version is installed shows in the fields of the request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.consistency import convert_to_central
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.files.payload import MOMENTS
from robot_dyn_id.nodes.messages.message_types import find_interface_class

NO_DRIVER, FILE = "none", "file"


@dataclass(frozen=True)
class DriverService:
    """Service of a driver that takes a payload.

    Attributes:
        package: package of the service type.
        type_name: name of the service type.
        name: default name of the service.
        frame: frame in which the driver takes the payload.
        fill: function that fills a request with the ten parameters of the payload in that frame.
    """

    package: str
    type_name: str
    name: str
    frame: str
    fill: Callable[[Any, Array], None]

    def load(self) -> Any:
        """Type of the service.

        Raises:
            UsageError: the package is not installed, or its library cannot be loaded.
        """
        try:
            return find_interface_class(f"{self.package}/srv/{self.type_name}")
        except InputError as error:
            raise UsageError(f"parameter driver: {error}, or set driver to file") from None


def fill_ur(request: Any, parameters: Array) -> None:
    """Fill a request of `ur_msgs/SetPayload`, of any version.

    Args:
        request: the request.
        parameters: m mx my mz Ixx Ixy Iyy Ixz Iyz Izz about the origin of the tool flange, shape (10,).
    """
    mass, center, inertia = convert_to_central(parameters)
    if hasattr(request, "payload"):
        _fill_inertia(request.payload, mass, center, inertia)
        return
    request.mass = float(mass)
    _fill_vector(request.center_of_gravity, center)
    if hasattr(request, "ixx"):
        for name, place in MOMENTS.items():
            setattr(request, name, float(inertia[place]))


def fill_franka(request: Any, parameters: Array) -> None:
    """Fill a request of `franka_msgs/SetLoad`, of any version.

    Args:
        request: the request.
        parameters: m mx my mz Ixx Ixy Iyy Ixz Iyz Izz about the origin of the flange frame, shape (10,).
    """
    mass, center, inertia = convert_to_central(parameters)
    if hasattr(request.load_inertia, "inertia"):
        _fill_inertia(request.load_inertia.inertia, mass, center, inertia)
        return
    request.mass = float(mass)
    request.center_of_mass = center.tolist()
    request.load_inertia = inertia.ravel(order="F").tolist()


def _fill_inertia(message: Any, mass: float, center: Array, inertia: Array) -> None:
    """Fill a `geometry_msgs/Inertia`."""
    message.m = float(mass)
    _fill_vector(message.com, center)
    for name, place in MOMENTS.items():
        setattr(message, name, float(inertia[place]))


def _fill_vector(message: Any, values: Array) -> None:
    message.x, message.y, message.z = (float(value) for value in values)


DRIVERS = {
    "ur": DriverService("ur_msgs", "SetPayload", "io_and_status_controller/set_payload", "tool0", fill_ur),
    "franka": DriverService("franka_msgs", "SetLoad", "service_server/set_load", "panda_link8", fill_franka),
}
"""Drivers by the value of the parameter `driver`."""


class DriverClient:
    """Client of the service of a driver: one request at a time, whose answer is polled."""

    def __init__(self, node: Any, driver: str, name: str) -> None:
        """Create the client.

        Args:
            node: node that calls the service.
            driver: key of `DRIVERS`.
            name: name of the service; empty: that of the driver.

        Raises:
            UsageError: the package of the service is not installed.
        """
        self._service = DRIVERS[driver]
        self._type = self._service.load()
        self._node = node
        self._client = node.create_client(self._type, name or self._service.name)
        self._answer: Any = None

    def send(self, parameters: Array) -> None:
        """Send a payload, given by its ten parameters in the frame of the driver.

        Raises:
            InputError: the service has no server.
        """
        if not self._client.service_is_ready():
            raise InputError(f"no server of the service {self._client.srv_name}: start the driver of the robot")
        request = self._type.Request()
        self._service.fill(request, parameters)
        self._answer = self._client.call_async(request)

    def result(self) -> str | None:
        """Result of the request: None while there is none, empty if the driver has taken it, else why it has not."""
        if not self._answer.done():
            return None
        answer = self._answer.result()
        if answer.success:
            return ""
        why = " ".join(str(getattr(answer, "error", "")).split())
        return f"{self._client.srv_name} has refused the payload{f': {why}' if why else ''}"

    def destroy(self) -> None:
        """Take the client out of the graph."""
        self._node.destroy_client(self._client)
