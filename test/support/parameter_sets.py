# SPDX-License-Identifier: Apache-2.0
"""A parameter set that every check admits, and that careless text formats and conversions change."""

from functools import cache

import numpy as np

from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.validation.holdout import split
from robot_dyn_id.parameters import FitFor, ParameterSet, TermState, urdf_hash
from support.simulated import LIFT, Simulated


def awkward_set() -> ParameterSet:
    """Subnormal, infinite, NaN, 1/3 and -0.0 numbers, texts that look like YAML, unicode, lines of the URDF."""
    rng = np.random.default_rng(3)
    columns = np.array([0, 1, 2, 3, 21], dtype=np.uint32)
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
        robot_name="Röböt 关节 🤖",
        urdf=urdf,
        urdf_sha256=urdf_hash(urdf),
        joint_names=("関節: 1", "true"),
        held_joint_names=("- ß",),
        held_joint_positions=np.array([0.1]),
        gravity=np.array([0.0, 0.1, -9.81]),
        body_names=("true", "関節: 1"),
        names=tuple(names[i] for i in columns),
        expressions=("c0 + 1/3 c5", "c1", "c2", "null", "~"),
        units=("kg", "kg m", "kg m", "", "N m s"),
        values=mapping @ full,
        standard_deviations=sigmas,
        status=("not excited", "good", "weak", "good", "weak"),
        covariance=covariance,
        column_names=names,
        mapping=mapping,
        independent_columns=columns,
        standard_parameters=full[:20],
        physically_consistent=True,
        term_names=("viscous", "offset"),
        term_joints=("true", "- ß"),
        term_values=full[20:],
        term_standard_deviations=np.array([np.inf, 0.1]),
        term_constant_names=("coulomb.smoothing_width",),
        term_constant_joints=("true",),
        term_constant_values=np.array([1e-310]),
        sample_rate=1000 / 3,
        cutoff_frequency=4.1,
        motion_cutoff_frequency=2.05,
        filter_order=4,
        velocity_source="derivative",
        data_sources=("null", "~", "- a", "{b}", " spaces ", ""),
        data_sha256="cd",
        estimator="weighted",
        software_version="0",
        held_out_nrmse=np.array([1e-310, np.nan]),
        held_out_all_joints_nrmse=float("nan"),
        condition_number=float("inf"),
        condition_number_scaling="columns",
        verdict="suspect",
        reasons=("joint ß: …", "# no comment"),
        q_min=np.array([-1.0, 0]),
        q_max=np.array([1.7e11, 2]),
        dq_max=np.array([1.0, 2]),
        ddq_max=np.array([1.0, 2]),
        states=(
            TermState("dahl.deflection", "true", (1 / 3, -0.0), ("a: b", "delta"), (5e-324, 0.1 + 0.2)),
            TermState("dahl.deflection", "- ß", (1e-310,)),
        ),
        fit_for=(
            FitFor("payload", "no", 1 / 3, "N m", float("inf"), ("noise", "null"), ("関節: 1",)),
            FitFor("feed_forward", "limited", -0.0, "", 0.1),
        ),
        effort_kind="motor_torque",
        robot_compensates=("gravity", "friction"),
        drive_gains=np.array([1 / 3, 0.0]),
        drive_signs=np.array([-1.0, 1.0]),
        offset_deviations=np.array([0.0, 1 / 3]),
        interval_lows=np.array([-np.inf, 0.0, -0.0, -1e-310, 0.1]),
        interval_highs=np.array([np.inf, 5e-324, 1 / 3, 0.0, 0.1 + 0.2]),
        held_out_method="range",
        data_digests=np.array([0, 2**32 - 1], dtype=np.uint32),
        data_starts=np.array([1.7e9 + 0.1, 0.0, 0.0, 0.0, 0.0, 1.0]),
        data_stops=np.array([1.7e9 + 1 / 3, 0.0, 0.0, 0.0, 0.0, 2.0]),
    )


def assert_same(one, other):
    """Every field of the same type, and every number of the same bits."""
    for item in stored_fields():
        ours, theirs = getattr(one, item.name), getattr(other, item.name)
        assert type(ours) is type(theirs), item.name
        if isinstance(ours, np.ndarray):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), item.name
            assert ours.tobytes() == theirs.tobytes(), item.name
        elif isinstance(ours, float):
            assert np.float64(ours).tobytes() == np.float64(theirs).tobytes(), item.name
        else:
            assert ours == theirs, item.name


@cache
def identified_lift():
    robot = Simulated(LIFT)
    training, held_out = split([robot.record(noise=0.1)], robot.joints)
    return identify(training, held_out, robot.model, Settings(), "1.2.3").parameters
