# SPDX-License-Identifier: Apache-2.0
"""ParameterSet messages that no identification writes, each with the words by which it is refused."""

import array
import math
from functools import reduce

import numpy as np
from robot_dyn_id.msg import FitFor

from robot_dyn_id.files.parameters import FORMAT, write_parameters
from robot_dyn_id.identification.assembly import replace_values
from robot_dyn_id.parameters import urdf_hash
from robot_dyn_id.text.yaml import Row, format_yaml
from support.model_nodes import ARM, identified, message
from support.parameter_sets import field_types

BOMB = (
    '<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    + ']><robot name="small">&i;</robot>'
)
XACRO = '<robot name="x" xmlns:xacro="http://www.ros.org/wiki/xacro"><link name="${open(\'/etc/passwd\')}"/></robot>'


def owner(one, path):
    """The message that has a field, and the name of the field in it."""
    *parts, field = path.split(".")
    return reduce(getattr, parts, one), field


def changed(path, change):
    """The field that a change makes of the present one."""

    def apply(one):
        part, field = owner(one, path)
        setattr(part, field, change(getattr(part, field)))

    return apply


def item(path, value, place=0):
    """One entry of a list or array replaced."""

    def replaced(values):
        values[place] = value
        return values

    return changed(path, replaced)


def whole(path, value):
    return changed(path, lambda _: value)


def together(*changes):
    return lambda one: [change(one) for change in changes]


def described(urdf):
    return together(whole("robot.urdf", urdf), whole("robot.urdf_sha256", urdf_hash(urdf)))


def swapped(path, first=0, second=1):
    def exchanged(values):
        values[first], values[second] = values[second], values[first]
        return values

    return changed(path, exchanged)


def renamed(path, old, new):
    return changed(path, lambda names: [new if name == old else name for name in names])


def scaled(path, factor):
    return changed(path, lambda values: array.array("d", [factor * value for value in values]))


def many_columns(one):
    one.base.column_names = [f"c{i}" for i in range(10**5)]
    one.base.mapping = array.array("d", bytes(8))


def same_columns(one):
    one.base.independent = array.array("I", [0] * len(one.base.names))


def reordered_joints(one):
    """Every field per joint in the other order: consistent in itself, but not the order of the URDF."""
    ranges = [f"ranges.{name}" for name in ("q_min", "q_max", "dq_max", "ddq_max")]
    for path in ("robot.joint_names", "judgment.held_out_nrmse", *ranges):
        changed(path, lambda values: values[::-1])(one)


def other_mapping(one):
    """Base parameters that fit their mapping, which is not that of the robot."""
    known = identified()
    mapping = known.base.mapping.copy()
    free = next(k for k in range(mapping.shape[1]) if k not in known.base.independent and mapping[:, k].any())
    mapping[:, free] += 1.0
    full = np.concatenate([known.bodies.standard_parameters, known.terms.values])
    full[free] = 1.0
    one.base.mapping = array.array("d", mapping.ravel())
    one.bodies.standard_parameters = array.array("d", full[: len(known.bodies.standard_parameters)])
    one.estimate.values = array.array("d", mapping @ full)


def overlong(one):
    one.judgment.reasons = ["x" * 100_000]


NAN, INF = math.nan, math.inf
HOSTILE = {
    "NaN value": (item("estimate.values", NAN), "estimate.values holds nan"),
    "infinite value": (item("estimate.values", INF, -1), "estimate.values holds inf"),
    "value of 1e300": (item("estimate.values", 1e300), r"estimate.values holds 1e\+300"),
    "values times 100": (scaled("estimate.values", 100.0), "values of .* is not mapping"),
    "no values": (scaled("estimate.values", 0.0), "values of .* is not mapping"),
    "NaN in the mapping": (item("base.mapping", NAN, 5), "mapping holds nan"),
    "mapping of zeros": (scaled("base.mapping", 0.0), "mapping is not the identity"),
    "mapping of 1e308": (scaled("base.mapping", 1e308), "mapping holds"),
    "mapping of another robot": (other_mapping, "different torques of joint"),
    "equal columns": (same_columns, "mapping is not the identity"),
    "column that does not exist": (item("base.independent", 2**32 - 1), "column that does not exist"),
    "a hundred thousand columns": (many_columns, "mapping has|at most 2000"),
    "NaN deviation": (item("estimate.standard_deviations", NAN), "estimate.standard_deviations holds nan"),
    "negative deviation": (item("estimate.standard_deviations", -0.1), "estimate.standard_deviations holds -0.1"),
    "negative deviation of a term": (item("terms.standard_deviations", -1.0), "terms.standard_deviations holds -1"),
    "NaN covariance": (item("estimate.covariance", NAN, 1), "covariance holds NaN"),
    "negative variance": (item("estimate.covariance", -1.0), "variance below 0"),
    "infinite variance": (item("estimate.covariance", INF), "squares of standard_deviations"),
    "asymmetric covariance": (item("estimate.covariance", 1.0, 1), "covariance is not symmetric"),
    "covariance of others": (scaled("estimate.covariance", 4.0), "squares of standard_deviations"),
    "gravity of 1e6": (whole("robot.gravity", [0.0, 0.0, -1e6]), "gravity is 1e"),
    "NaN gravity": (whole("robot.gravity", [0.0, NAN, -9.81]), "gravity holds nan"),
    "infinite gravity": (whole("robot.gravity", [0.0, 0.0, -INF]), "gravity holds -inf"),
    "sideways gravity of 30": (whole("robot.gravity", [30.0, 0.0, 0.0]), "gravity is 30"),
    "joints in another order": (reordered_joints, "joint_names is not that of its URDF"),
    "joint twice": (item("robot.joint_names", "elbow"), "joint_names has elbow twice"),
    "joint of another robot": (renamed("robot.joint_names", "elbow", "knee"), "knee, which is not one of body_names"),
    "bodies in another order": (swapped("robot.body_names"), "body_names is not that of its URDF"),
    "columns in another order": (
        swapped("base.column_names", 0, 9),
        "is not the name of its column|column_names is not",
    ),
    "column twice": (item("base.column_names", "m2", 1), "column_names has m2 twice"),
    "names in another order": (swapped("base.names"), "is not the name of its column"),
    "units of others": (item("base.units", "lb"), "units is not that of its URDF"),
    "held joint with NaN": (
        together(whole("robot.held_joint_names", ["h"]), whole("robot.held_joint_positions", [NAN])),
        "held_joint_positions holds nan",
    ),
    "held joint that moves": (
        together(whole("robot.held_joint_names", ["elbow"]), whole("robot.held_joint_positions", [0.0])),
        "elbow is among joint_names",
    ),
    "NaN standard parameter": (item("bodies.standard_parameters", NAN), "standard_parameters holds nan"),
    "infinite term": (item("terms.values", INF), "terms.values holds inf"),
    "unknown term": (item("terms.names", "magic"), "term magic on .* is not known"),
    "terms in another order": (swapped("terms.names", 0, -1), "parameter set: "),
    "NaN constant": (item("terms.constant_values", NAN), "terms.constant_values holds nan"),
    "negative width": (item("terms.constant_values", -1.0), "smoothing_width must be"),
    "verdict excellent": (whole("judgment.verdict", "excellent"), "verdict is 'excellent', expected one of good"),
    "status perfect": (item("estimate.status", "perfect"), "status is 'perfect'"),
    "scaling of rows": (whole("estimate.condition_number_scaling", "rows"), "condition_number_scaling is 'rows'"),
    "reversed range": (whole("ranges.q_min", array.array("d", [9.0] * 3)), "q_min of joint .* is greater"),
    "infinite range": (item("ranges.q_max", INF), "q_max holds inf"),
    "negative speed": (item("ranges.dq_max", -1.0), "dq_max holds -1"),
    "no sample rate": (whole("processing.sample_rate", 0.0), "sample_rate is 0"),
    "infinite cutoff": (whole("processing.cutoff_frequency", INF), "cutoff_frequency holds inf"),
    "motion filter without a cutoff": (
        whole("processing.motion_cutoff_frequency", 0.0),
        "motion_cutoff_frequency is 0",
    ),
    "velocity of a dream": (whole("processing.velocity_source", "dreamed"), "velocity_source is 'dreamed'"),
    "order of 2^32 - 1": (whole("processing.filter_order", 2**32 - 1), "filter_order is 4294967295"),
    "negative error": (item("judgment.held_out_nrmse", -1.0), "held_out_nrmse holds -1"),
    "line breaks": (whole("robot.name", "a\n[FATAL] b"), "robot.name holds a text that is not one printable line"),
    "overlong reason": (overlong, "reasons holds a text"),
    "path of a file": (described("/dev/zero"), "must begin with '<'"),
    "path in disguise": (described("file:///etc/passwd"), "must begin with '<'"),
    "XML bomb": (described(BOMB), "(?i)entity|broken XML|another URDF|hash"),
    "xacro": (described(XACRO), ""),
    "another hash": (whole("robot.urdf_sha256", "0" * 64), "the hash differs"),
    "format of the future": (whole("format_version", 4), "format_version is 4"),
    "verdict in capitals": (whole("judgment.verdict", "BAD"), "verdict is 'BAD', expected one of good"),
    "driver that adds none and gravity": (
        whole("effort.robot_compensates", ["none", "gravity"]),
        "robot_compensates holds none",
    ),
    "driver that adds gravity twice": (whole("effort.robot_compensates", ["gravity", "gravity"]), "a word twice"),
    "driver that adds magic": (whole("effort.robot_compensates", ["magic"]), "robot_compensates is 'magic'"),
    "efforts without gravity of a driver that adds none": (
        together(whole("effort.kind", "gravity_compensated"), whole("effort.robot_compensates", ["none"])),
        "contradict each other",
    ),
    "effort of a dream": (whole("effort.kind", "dreamed"), "effort.kind is 'dreamed'"),
    "use of a dream": (
        item("judgment.fit_for", FitFor(use="flight", answer="yes")),
        "use is 'flight', expected one of",
    ),
    "answer of a dream": (
        item("judgment.fit_for", FitFor(use="payload", answer="maybe"), -1),
        "answer is 'maybe', expected one of yes",
    ),
    "use twice": (item("judgment.fit_for", FitFor(use="payload", answer="yes")), "has one use twice"),
    "held out by a dream": (whole("judgment.held_out_method", "dreamed"), "held_out_method is 'dreamed'"),
    "condition below 1": (whole("estimate.condition_number", 0.5), "condition_number is 0.5"),
    "gains of no joint": (whole("effort.drive_gains", [1.0]), "drive_gains has shape"),
    "intervals upside down": (
        lambda one: together(
            whole("estimate.interval_lows", array.array("d", [2.0] * len(one.base.names))),
            whole("estimate.interval_highs", array.array("d", [1.0] * len(one.base.names))),
        )(one),
        "interval_lows holds NaN, or is greater",
    ),
    "edited URDF": (whole("robot.urdf", ARM + " "), "the hash differs"),
}
"""Changes of the message of a good set, and the reason of the refusal (a regular expression)."""


def hostile(name):
    """The message of that name."""
    one = message()
    HOSTILE[name][0](one)
    return one


def heavy(factor=100.0):
    """A set that is consistent in itself, of an arm that its motors cannot carry."""
    return message(replace_values(identified(), factor * identified().estimate.values))


def hostile_file(path, name):
    """Write the parameters.yaml of that name: that of the good set, with the fields that the message has changed."""
    write_parameters(path, identified())
    content = FORMAT.read(path)
    good, one = message(), hostile(name)
    columns = {"estimate.covariance": len(one.base.names), "base.mapping": len(one.base.column_names)}
    for field, _ in field_types():
        before, after = (getattr(*owner(each, field)) for each in (good, one))
        if repr(before) != repr(after):
            *parts, last = field.split(".")
            reduce(dict.__getitem__, parts, content)[last] = _plain(after, columns.get(field, 0))
    version = one.format_version
    path.write_text(format_yaml({"format": FORMAT.line, "format_version": version, **_rows(content)}), encoding="utf-8")


def _plain(value, width=0):
    """A value of a message as YAML has it, a matrix of this width row by row."""
    if isinstance(value, (str, float, int)):
        return value
    if hasattr(value, "get_fields_and_field_types"):  # a part of the message
        return {name: _plain(getattr(value, name)) for name in value.get_fields_and_field_types()}
    if isinstance(value, list) and value and not isinstance(value[0], (str, float, int)):
        return [_plain(entry) for entry in value]
    values = np.asarray(value).tolist() if not isinstance(value, list) else value
    return [values[first : first + width] for first in range(0, len(values), width)] if width else values


def _rows(content):
    """The content with lists in one line each, as files of this package have them."""
    if isinstance(content, dict):
        return {key: _rows(value) for key, value in content.items()}
    if isinstance(content, list) and content and isinstance(content[0], (list, dict)):
        return [_rows(entry) for entry in content]
    return Row(content) if isinstance(content, list) else content
