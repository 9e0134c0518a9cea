# SPDX-License-Identifier: Apache-2.0
"""ParameterSet messages that no identification writes, each with the words by which it is refused."""

import array
import json
import math
import re

import numpy as np

from robot_dyn_id.files.parameters import write_parameters
from robot_dyn_id.identification.assembly import with_values
from robot_dyn_id.parameters import urdf_hash
from support.model_nodes import ARM, identified, message

BOMB = (
    '<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    + ']><robot name="small">&i;</robot>'
)
XACRO = '<robot name="x" xmlns:xacro="http://www.ros.org/wiki/xacro"><link name="${open(\'/etc/passwd\')}"/></robot>'


def item(field, value, place=0):
    """One entry of a list or array replaced."""

    def change(one):
        values = getattr(one, field)
        values[place] = value
        setattr(one, field, values)

    return change


def whole(field, value):
    return lambda one: setattr(one, field, value)


def described(urdf):
    def change(one):
        one.urdf, one.urdf_sha256 = urdf, urdf_hash(urdf)

    return change


def swapped(field, first=0, second=1):
    def change(one):
        values = getattr(one, field)
        values[first], values[second] = values[second], values[first]

    return change


def renamed(field, old, new):
    return lambda one: setattr(one, field, [new if name == old else name for name in getattr(one, field)])


def scaled(field, factor):
    return lambda one: setattr(one, field, array.array("d", [factor * value for value in getattr(one, field)]))


def many_columns(one):
    one.column_names = [f"c{i}" for i in range(10**5)]
    one.mapping = array.array("d", bytes(8))


def same_columns(one):
    one.independent_columns = array.array("I", [0] * len(one.names))


def reordered_joints(one):
    """Every field per joint in the other order: consistent in itself, but not the order of the URDF."""
    for field in ("joint_names", "held_out_nrmse", "q_min", "q_max", "dq_max", "ddq_max"):
        setattr(one, field, getattr(one, field)[::-1])


def other_mapping(one):
    """Base parameters that fit their mapping, which is not that of the robot."""
    known = identified()
    mapping = known.mapping.copy()
    free = next(k for k in range(mapping.shape[1]) if k not in known.independent_columns and mapping[:, k].any())
    mapping[:, free] += 1.0
    full = np.concatenate([known.standard_parameters, known.term_values])
    full[free] = 1.0
    one.mapping = array.array("d", mapping.ravel())
    one.standard_parameters = array.array("d", full[: len(known.standard_parameters)])
    one.values = array.array("d", mapping @ full)


def overlong(one):
    one.reasons = ["x" * 100_000]


NAN, INF = math.nan, math.inf
HOSTILE = {
    "NaN value": (item("values", NAN), "values holds nan"),
    "infinite value": (item("values", INF, -1), "values holds inf"),
    "value of 1e300": (item("values", 1e300), r"values holds 1e\+300"),
    "values times 100": (scaled("values", 100.0), "values of .* is not mapping"),
    "no values": (scaled("values", 0.0), "values of .* is not mapping"),
    "NaN in the mapping": (item("mapping", NAN, 5), "mapping holds nan"),
    "mapping of zeros": (scaled("mapping", 0.0), "mapping is not the identity"),
    "mapping of 1e308": (scaled("mapping", 1e308), "mapping holds"),
    "mapping of another robot": (other_mapping, "different torques of joint"),
    "equal columns": (same_columns, "mapping is not the identity"),
    "column that does not exist": (item("independent_columns", 2**32 - 1), "column that does not exist"),
    "a hundred thousand columns": (many_columns, "mapping has|at most 2000"),
    "NaN deviation": (item("standard_deviations", NAN), "standard_deviations holds nan"),
    "negative deviation": (item("standard_deviations", -0.1), "standard_deviations holds -0.1"),
    "negative deviation of a term": (item("term_standard_deviations", -1.0), "term_standard_deviations holds -1"),
    "NaN covariance": (item("covariance", NAN, 1), "covariance holds NaN"),
    "negative variance": (item("covariance", -1.0), "variance below 0"),
    "infinite variance": (item("covariance", INF), "squares of standard_deviations"),
    "asymmetric covariance": (item("covariance", 1.0, 1), "covariance is not symmetric"),
    "covariance of others": (scaled("covariance", 4.0), "squares of standard_deviations"),
    "gravity of 1e6": (whole("gravity", [0.0, 0.0, -1e6]), "gravity is 1e"),
    "NaN gravity": (whole("gravity", [0.0, NAN, -9.81]), "gravity holds nan"),
    "infinite gravity": (whole("gravity", [0.0, 0.0, -INF]), "gravity holds -inf"),
    "sideways gravity of 30": (whole("gravity", [30.0, 0.0, 0.0]), "gravity is 30"),
    "joints in another order": (reordered_joints, "joint_names is not that of its URDF"),
    "joint twice": (item("joint_names", "elbow"), "joint_names has elbow twice"),
    "joint of another robot": (renamed("joint_names", "elbow", "knee"), "knee, which is not one of body_names"),
    "bodies in another order": (swapped("body_names"), "body_names is not that of its URDF"),
    "columns in another order": (swapped("column_names", 0, 9), "is not the name of its column|column_names is not"),
    "column twice": (item("column_names", "m2", 1), "column_names has m2 twice"),
    "names in another order": (swapped("names"), "is not the name of its column"),
    "units of others": (item("units", "lb"), "units is not that of its URDF"),
    "held joint with NaN": (
        lambda one: (whole("held_joint_names", ["h"])(one), whole("held_joint_positions", [NAN])(one)),
        "held_joint_positions holds nan",
    ),
    "held joint that moves": (
        lambda one: (whole("held_joint_names", ["elbow"])(one), whole("held_joint_positions", [0.0])(one)),
        "elbow is among joint_names",
    ),
    "NaN standard parameter": (item("standard_parameters", NAN), "standard_parameters holds nan"),
    "infinite term": (item("term_values", INF), "term_values holds inf"),
    "unknown term": (item("term_names", "magic"), "term magic on .* is not known"),
    "terms in another order": (swapped("term_names", 0, -1), "parameter set: "),
    "NaN constant": (item("term_constant_values", NAN), "term_constant_values holds nan"),
    "negative width": (item("term_constant_values", -1.0), "smoothing_width must be"),
    "verdict excellent": (whole("verdict", "excellent"), "verdict is 'excellent', expected one of good"),
    "status perfect": (item("status", "perfect"), "status is 'perfect'"),
    "scaling of rows": (whole("condition_number_scaling", "rows"), "condition_number_scaling is 'rows'"),
    "reversed range": (lambda one: setattr(one, "q_min", array.array("d", [9.0] * 3)), "q_min of joint .* is greater"),
    "infinite range": (item("q_max", INF), "q_max holds inf"),
    "negative speed": (item("dq_max", -1.0), "dq_max holds -1"),
    "no sample rate": (whole("sample_rate", 0.0), "sample_rate is 0"),
    "infinite cutoff": (whole("cutoff_frequency", INF), "cutoff_frequency holds inf"),
    "motion filter without a cutoff": (whole("motion_cutoff_frequency", 0.0), "motion_cutoff_frequency is 0"),
    "velocity of a dream": (whole("velocity_source", "dreamed"), "velocity_source is 'dreamed'"),
    "order of 2^32 - 1": (whole("filter_order", 2**32 - 1), "filter_order is 4294967295"),
    "negative error": (item("held_out_nrmse", -1.0), "held_out_nrmse holds -1"),
    "line breaks": (whole("robot_name", "a\n[FATAL] b"), "robot_name holds a text that is not one printable line"),
    "overlong reason": (overlong, "reasons holds a text"),
    "path of a file": (described("/dev/zero"), "must begin with '<'"),
    "path in disguise": (described("file:///etc/passwd"), "must begin with '<'"),
    "XML bomb": (described(BOMB), "(?i)entity|broken XML|another URDF|hash"),
    "xacro": (described(XACRO), ""),
    "another hash": (whole("urdf_sha256", "0" * 64), "the hash differs"),
    "format of the future": (whole("format_version", 3), "format_version is 3"),
    "verdict in capitals": (whole("verdict", "BAD"), "verdict is 'BAD', expected one of good"),
    "driver that adds none and gravity": (
        whole("robot_compensates", ["none", "gravity"]),
        "robot_compensates holds none",
    ),
    "driver that adds gravity twice": (whole("robot_compensates", ["gravity", "gravity"]), "a word twice"),
    "driver that adds magic": (whole("robot_compensates", ["magic"]), "robot_compensates is 'magic'"),
    "efforts without gravity of a driver that adds none": (
        lambda one: (whole("effort_kind", "gravity_compensated")(one), whole("robot_compensates", ["none"])(one)),
        "contradict each other",
    ),
    "effort of a dream": (whole("effort_kind", "dreamed"), "effort_kind is 'dreamed'"),
    "held out by a dream": (whole("held_out_method", "dreamed"), "held_out_method is 'dreamed'"),
    "condition below 1": (whole("condition_number", 0.5), "condition_number is 0.5"),
    "gains of no joint": (whole("drive_gains", [1.0]), "drive_gains has shape"),
    "intervals upside down": (
        lambda one: (
            whole("interval_lows", array.array("d", [2.0] * len(one.names)))(one),
            whole("interval_highs", array.array("d", [1.0] * len(one.names)))(one),
        ),
        "interval_lows holds NaN, or is greater",
    ),
    "edited URDF": (whole("urdf", ARM + " "), "the hash differs"),
}
"""Changes of the message of a good set, and the reason of the refusal (a regular expression)."""


def hostile(name):
    """The message of that name."""
    one = message()
    HOSTILE[name][0](one)
    return one


def heavy(factor=100.0):
    """A set that is consistent in itself, of an arm that its motors cannot carry."""
    return message(with_values(identified(), factor * identified().values))


def hostile_file(path, name):
    """Write the parameters.yaml of that name: that of the good set, with the fields that the message has changed."""
    write_parameters(path, identified())
    good, one, text = message(), hostile(name), path.read_text(encoding="utf-8")
    for field in good.get_fields_and_field_types():
        if field != "header" and not _equal(getattr(good, field), getattr(one, field)):
            width = {"covariance": len(one.names), "mapping": len(one.column_names)}.get(field, 0)
            block = f"{field}: {_yaml(getattr(one, field), width)}\n"
            text, count = re.subn(
                rf"^{field}:.*\n(?:[-# ].*\n)*", lambda _, block=block: block, text, count=1, flags=re.MULTILINE
            )
            assert count == 1, field
    path.write_text(text, encoding="utf-8")


def _equal(one, other):
    return repr(one) == repr(other)


def _yaml(value, width=0):
    """A value as YAML, a matrix of this width row by row."""
    if width:
        rows = [value[first : first + width] for first in range(0, len(value), width)]
        return "".join(f"\n- {_yaml(row)}" for row in rows)
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, (float, np.floating)):
        text = repr(float(value))
        text = text if "." in text else text.replace("e", ".0e")  # YAML reads 1e300 as a text
        return text if math.isfinite(value) else f"{'-' if value < 0 else ''}.{str(abs(value))[:3]}"
    if isinstance(value, (int, np.integer)):
        return str(value)
    return f"[{', '.join(_yaml(item) for item in value)}]"
