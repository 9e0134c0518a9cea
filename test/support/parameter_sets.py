# SPDX-License-Identifier: Apache-2.0
"""A parameter set that every check admits, and that careless text formats and conversions change."""

from dataclasses import is_dataclass
from functools import cache, reduce

import numpy as np

from robot_dyn_id.files.values import list_field_hints
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.validation.holdout import split
from robot_dyn_id.parameters import (
    BaseEstimate,
    BaseParameters,
    BodyParameters,
    Effort,
    Fingerprint,
    FitFor,
    IdentifiedRobot,
    Judgment,
    ParameterSet,
    Provenance,
    Ranges,
    ResidualProfile,
    SignalProcessing,
    TermParameters,
    TermState,
    urdf_hash,
)
from support.simulated import LIFT, Simulated


def awkward_set() -> ParameterSet:
    """Subnormal, infinite, NaN, 1/3 and -0.0 numbers, texts that look like YAML, unicode, lines of the URDF."""
    rng = np.random.default_rng(3)
    columns = np.array([0, 1, 2, 3, 21])
    full = rng.normal(size=22)
    full[columns] = 1 / 3, 5e-324, -0.0, -2.2250738585072014e-308, 0.1 + 0.2
    mapping = np.zeros((5, 22))
    mapping[np.arange(5), columns] = 1.0
    mapping[0, 5:9] = rng.normal(size=4)
    sigmas = np.array([np.inf, 1e-150, 1 / 3, 0.0, 1e5])
    covariance = np.diag(np.where(np.isfinite(sigmas), sigmas, 0.0) ** 2)
    covariance[2, 4] = covariance[4, 2] = 1e4 / 3
    covariance[0] = covariance[:, 0] = np.inf
    urdf = '<robot name="é">\r\n\t<link name="a: b"/>  \n\n#no comment\u2028\x85 "quoted" \'too\'\n</robot>\n '
    names = tuple(f"c{i}" for i in range(22))
    return ParameterSet(
        robot=IdentifiedRobot(
            name="Röböt 关节 🤖",
            urdf=urdf,
            urdf_sha256=urdf_hash(urdf),
            joint_names=("関節: 1", "true"),
            held_joint_names=("- ß",),
            held_joint_positions=np.array([0.1]),
            gravity=np.array([0.0, 0.1, -9.81]),
            body_names=("true", "関節: 1"),
        ),
        base=BaseParameters(
            names=tuple(names[i] for i in columns),
            expressions=("c0 + 1/3 c5", "c1", "c2", "null", "~"),
            units=("kg", "kg m", "kg m", "", "N m s"),
            independent=columns,
            mapping=mapping,
            column_names=names,
        ),
        estimate=BaseEstimate(
            values=mapping @ full,
            standard_deviations=sigmas,
            interval_lows=np.array([-np.inf, 0.0, -0.0, -1e-310, 0.1]),
            interval_highs=np.array([np.inf, 5e-324, 1 / 3, 0.0, 0.1 + 0.2]),
            status=("not excited", "good", "weak", "good", "weak"),
            covariance=covariance,
            condition_number=float("inf"),
            condition_number_scaling="columns",
            prior_strength=float("nan"),
        ),
        bodies=BodyParameters(full[:20], True, np.zeros(0)),
        terms=TermParameters(
            names=("viscous", "offset"),
            joints=("true", "- ß"),
            values=full[20:],
            standard_deviations=np.array([np.inf, 0.1]),
            constant_names=("coulomb.smoothing_width",),
            constant_joints=("true",),
            constant_values=np.array([1e-310]),
            states=(
                TermState("dahl.deflection", "true", (1 / 3, -0.0), ("a: b", "delta"), (5e-324, 0.1 + 0.2)),
                TermState("dahl.deflection", "- ß", (1e-310,)),
            ),
        ),
        effort=Effort(
            "motor_torque",
            ("gravity", "friction"),
            np.array([1 / 3, 0.0]),
            np.array([-1.0, 1.0]),
            np.array([1.0, 1 / 3]),
            np.array([0.0, 1 / 3]),
        ),
        processing=SignalProcessing(1000 / 3, 4.1, 2.05, 4, "derivative"),
        ranges=Ranges(np.array([-1.0, 0]), np.array([1.7e11, 2]), np.array([1.0, 2]), np.array([1.0, 2])),
        residuals=ResidualProfile(
            np.array([[0.0, 1 / 3], [0.0, 5e-324]]), np.array([[1e-310, 0.1 + 0.2], [-0.0, 1e9]])
        ),
        provenance=Provenance(
            sources=("null", "~", "- a", "{b}", " spaces ", ""),
            sha256="cd",
            fingerprint=Fingerprint(
                digests=np.array([0, 2**32 - 1], dtype=np.uint32),
                starts=np.array([1.7e9 + 0.1, 0.0, 0.0, 0.0, 0.0, 1.0]),
                stops=np.array([1.7e9 + 1 / 3, 0.0, 0.0, 0.0, 0.0, 2.0]),
            ),
            estimator="weighted",
            software_version="0",
        ),
        judgment=Judgment(
            held_out_nrmse=np.array([1e-310, np.nan]),
            held_out_all_joints_nrmse=float("nan"),
            held_out_method="range",
            verdict="suspect",
            reasons=("joint ß: …", "# no comment"),
            fit_for=(
                FitFor("payload", "no", 1 / 3, "N m", float("inf"), ("noise", "null"), ("関節: 1",)),
                FitFor("feed_forward", "limited", -0.0, "", 0.1),
            ),
            unexplained_joints=("関節: 1",),
        ),
    )


def field_types(kind=ParameterSet, name=""):
    """Dotted name and type of every field of a parameter set, or of a part of this name."""
    for field, hint in list_field_hints(kind).items():
        path = f"{name}.{field}" if name else field
        if is_dataclass(hint):
            yield from field_types(hint, path)
        elif field != "term_classes":
            yield path, hint


def leaves(parameters):
    """Dotted name and value of every field of a parameter set."""
    for name, _ in field_types():
        yield name, reduce(getattr, name.split("."), parameters)


def assert_same(one, other):
    """Every field of the same type, and every number of the same bits."""
    for (name, ours), (_, theirs) in zip(leaves(one), leaves(other), strict=True):
        assert type(ours) is type(theirs), name
        if isinstance(ours, np.ndarray):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), name
            assert ours.tobytes() == theirs.tobytes(), name
        elif isinstance(ours, float):
            assert np.float64(ours).tobytes() == np.float64(theirs).tobytes(), name
        else:
            assert ours == theirs, name


@cache
def identified_lift():
    robot = Simulated(LIFT)
    training, held_out = split([robot.record(noise=0.1)], robot.joints)
    return identify(training, held_out, robot.model, Settings(), "1.2.3").parameters
