# SPDX-License-Identifier: Apache-2.0
"""The identified parameter set and its parts; names, order and units of parameters."""

from robot_dyn_id.parameters.base import LONGEST_EXPRESSION, BaseEstimate, BaseParameters
from robot_dyn_id.parameters.bodies import BodyParameters, TermParameters, TermState
from robot_dyn_id.parameters.effort import (
    COMPENSATED_PARTS,
    COMPENSATIONS,
    GAIN_REMEDY,
    GAIN_UNKNOWN,
    IMPLIED_COMPENSATIONS,
    NONE,
    Effort,
    SignalProcessing,
    compensation_fault,
    describe_unknown_gains,
    implied_compensations,
)
from robot_dyn_id.parameters.judgment import FitFor, Judgment
from robot_dyn_id.parameters.parameter_set import (
    FORMAT_REMEDY,
    FORMAT_VERSION,
    PARAMETERS_FILE,
    ParameterSet,
    check_format_version,
)
from robot_dyn_id.parameters.provenance import Fingerprint, Provenance
from robot_dyn_id.parameters.ranges import Ranges, ResidualProfile, least_travel
from robot_dyn_id.parameters.robot import MOST_BODIES, IdentifiedRobot, urdf_hash
from robot_dyn_id.parameters.rules import LARGEST, LONGEST_LINE, UNKNOWN
from robot_dyn_id.parameters.units import (
    FORCE_UNIT,
    INERTIAL_SYMBOLS,
    INERTIAL_UNITS,
    TORQUE_UNIT,
    effort_unit_over,
    expression,
    inertial_names,
    inertial_units_over,
    name_drive_unit,
)

__all__ = [
    "COMPENSATED_PARTS",
    "COMPENSATIONS",
    "FORCE_UNIT",
    "FORMAT_REMEDY",
    "FORMAT_VERSION",
    "GAIN_REMEDY",
    "GAIN_UNKNOWN",
    "IMPLIED_COMPENSATIONS",
    "INERTIAL_SYMBOLS",
    "INERTIAL_UNITS",
    "LARGEST",
    "LONGEST_EXPRESSION",
    "LONGEST_LINE",
    "MOST_BODIES",
    "NONE",
    "PARAMETERS_FILE",
    "TORQUE_UNIT",
    "UNKNOWN",
    "BaseEstimate",
    "BaseParameters",
    "BodyParameters",
    "Effort",
    "Fingerprint",
    "FitFor",
    "IdentifiedRobot",
    "Judgment",
    "ParameterSet",
    "Provenance",
    "Ranges",
    "ResidualProfile",
    "SignalProcessing",
    "TermParameters",
    "TermState",
    "check_format_version",
    "compensation_fault",
    "describe_unknown_gains",
    "effort_unit_over",
    "expression",
    "implied_compensations",
    "inertial_names",
    "inertial_units_over",
    "least_travel",
    "name_drive_unit",
    "urdf_hash",
]
