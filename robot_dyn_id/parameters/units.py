# SPDX-License-Identifier: Apache-2.0
"""Names, order and units of parameters."""

from __future__ import annotations

from collections.abc import Sequence

INERTIAL_SYMBOLS = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
"""Standard parameters of a body in its joint frame: mass, first moment, inertia about the frame's origin."""

INERTIAL_UNITS = ("kg", *("kg m",) * 3, *("kg m^2",) * 6)


def inertial_names(bodies: int) -> tuple[str, ...]:
    """Names of all standard parameters, numbered like the moving joints from 1: m1 ... Izz1, m2 ..."""
    return tuple(f"{symbol}{body + 1}" for body in range(bodies) for symbol in INERTIAL_SYMBOLS)


TORQUE_UNIT, FORCE_UNIT = "N m", "N"
"""Units of the efforts of revolute and of prismatic joints."""

DRIVE_UNITS = {"current": "A", "motor_torque": "N m (motor)"}
"""Units of efforts whose drive gain is not known, by the kind of the effort."""


def name_drive_unit(kind: str, related: bool) -> str:
    """Unit of the effort of a joint whose drive gain is not known: `A`, or `rel. A`.

    Args:
        kind: kind of the effort, a key of `DRIVE_UNITS`.
        related: whether its gain is known as a ratio to the mean gain: the effort is what a drive of that gain needs.
    """
    return f"{'rel. ' if related else ''}{DRIVE_UNITS[kind]}"


def effort_unit_over(effort_unit: str, slides: bool, coordinate: float, time: float) -> str:
    """Unit of a parameter whose column has the unit (rad or m)^coordinate s^-time.

    Radians are left out, so that a viscous friction reads N m s and a rotor inertia kg m^2.

    Args:
        effort_unit: unit of the effort, N m or N, or that of a drive, see `name_drive_unit`.
        slides: whether the coordinate is a length.
        coordinate: exponent of the coordinate in the unit of the column.
        time: exponent of the inverse time in the unit of the column.
    """
    if (coordinate, time) == (1, 2) and effort_unit in (TORQUE_UNIT, FORCE_UNIT):
        return "kg" if slides else "kg m^2"
    seconds = "" if time == 0 else " s" if time == 1 else f" s^{time:.3g}"
    meters = "" if coordinate == 0 or not slides else "/m" if coordinate == 1 else f"/m^{coordinate:.3g}"
    return f"{effort_unit}{seconds}{meters}"


def inertial_units_over(effort_unit: str, slides: bool) -> tuple[str, ...]:
    """Units of the ten standard parameters of a body that are determined by efforts without a known drive gain.

    Args:
        effort_unit: unit of the efforts, see `name_drive_unit`.
        slides: whether the joint of these efforts is prismatic.
    """
    lengths = (0, *(1,) * 3, *(2,) * 6)  # kg m^length: the torque is such a parameter times m^(2 - length) / s^2
    over = [(1 if slides else 2) - length for length in lengths]
    meters = {2: "/m^2", 1: "/m", 0: "", -1: " m"}
    return tuple(f"{effort_unit} s^2{meters[power]}" for power in over)


def expression(coefficients: Sequence[float], names: Sequence[str]) -> str:
    """A linear combination as text, six digits, unit coefficients left out: `Izz1 + 0.1296 m2 - mx3`.

    Nine decimals are kept (nanometres), as what is smaller is rounding in the URDF; twelve are looked at first, so that
    rounding in the computation does not decide which way a decimal tie (0.03647925) is written.
    """
    text = ""
    for exact, name in zip(coefficients, names, strict=True):
        value = round(round(float(exact), 12), 9)
        if value == 0.0:
            continue
        size = "" if abs(value) == 1.0 else f"{abs(value):.6g} "
        sign = ("- " if value < 0 else "+ ") if text else ("-" if value < 0 else "")
        text += f"{' ' if text else ''}{sign}{size}{name}"
    return text
