# SPDX-License-Identifier: Apache-2.0
"""The regressor against Pinocchio on every published model, and the layouts that estimators read it in."""

import sys

import numpy as np
import pytest
from support.processes import run_program
from support.robots import (
    GRAVITIES,
    MIMICKING,
    MIMICS,
    OBLIQUE,
    PLAIN_MIMICS,
    URDFS,
    Truth,
    every_model,
    mimic_torque,
    panda_arm,
    ratio,
    robot,
)

from robot_dyn_id.dynamics.base_parameters import draw_random_motion
from robot_dyn_id.dynamics.regressor import Layout, Motion, Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import TERMS
from robot_dyn_id.kernels.compiled import COMPILED
from robot_dyn_id.kernels.regressor import TILE
from robot_dyn_id.model.robot import RobotModel

SMALL = {"oblique": OBLIQUE, "mimics": MIMICS}


# --- Against Pinocchio -------------------------------------------------------------------------------------------


@every_model
def test_regressor_and_torque_are_those_of_pinocchio(name):
    model, truth = robot(name), Truth(robot(name))
    regressor, motion = Regressor(model), draw_random_motion(model, 100, seed=1)
    dense = regressor.dense(motion)
    assert ratio(dense.transpose(2, 1, 0), truth.regressor(motion)) <= 1e-10
    torque = regressor.torque(motion, model.inertial_parameters)
    assert ratio(torque.T, truth.torque(motion)) <= 1e-10
    assert not np.any(dense[~regressor.structure])


@pytest.mark.parametrize(
    "name", [name for name in MIMICKING if name not in ("romeo", "talos_full_v2", "talos_full_v2_box")]
)
def test_torque_is_that_of_pinocchios_own_mimic_joints(name):
    model = robot(name)
    motion = draw_random_motion(model, 100, seed=2)
    assert ratio(Regressor(model).torque(motion, model.inertial_parameters).T, mimic_torque(model, motion)) <= 1e-10


@pytest.mark.parametrize("name", ["romeo", "talos_full_v2", "talos_full_v2_box"])
def test_pinocchio_itself_refuses_mimics_before_their_leaders(name):
    with pytest.raises(ValueError, match="not in the kinematic tree"):  # or else they belong in the test above
        mimic_torque(robot(name), draw_random_motion(robot(name), 1))


@pytest.mark.parametrize("gravity", GRAVITIES)
@pytest.mark.parametrize("text", SMALL)
def test_trees_mimics_and_prismatic_joints_under_any_gravity(text, gravity):
    model = RobotModel.from_urdf(SMALL[text], gravity=GRAVITIES[gravity])
    motion = draw_random_motion(model, 100, seed=3)
    truth = Truth(model)
    assert ratio(Regressor(model).dense(motion).transpose(2, 1, 0), truth.regressor(motion)) <= 1e-14
    torque = Regressor(model).torque(motion, model.inertial_parameters)
    assert ratio(torque.T, truth.torque(motion)) <= 1e-14


@pytest.mark.parametrize("gravity", GRAVITIES)
def test_mimics_along_a_chain_are_those_of_pinocchios_own(gravity):
    model = RobotModel.from_urdf(PLAIN_MIMICS, gravity=GRAVITIES[gravity])
    motion = draw_random_motion(model, 100, seed=4)
    assert ratio(Regressor(model).torque(motion, model.inertial_parameters).T, mimic_torque(model, motion)) <= 1e-14


# --- Samples, structure, layout ----------------------------------------------------------------------------------


def full(model):
    """A regressor with every term on every joint."""
    return Regressor(model, place_terms_on_joints(model, [term() for term in TERMS.values()]))


@pytest.mark.parametrize("count", [1, TILE - 1, TILE, TILE + 1, 3 * TILE + 5])
def test_samples_do_not_know_of_one_another(count):
    regressor = full(robot("panda"))
    motion = draw_random_motion(regressor.model, count, seed=5)
    dense = regressor.dense(motion)
    picked = sorted({0, count // 2, count - 1})
    for sample in picked:
        alone = regressor.dense(motion.take(slice(sample, sample + 1)))
        assert ratio(dense[..., sample : sample + 1], alone) <= 1e-14


def test_the_structure_is_that_of_the_tree():
    model = RobotModel.from_urdf(OBLIQUE)
    structure = Regressor(model).structure.reshape(4, 10, 4)
    moves = {  # joint: the bodies it carries
        "turn": {"turn", "slide", "spin", "branch"},
        "slide": {"slide", "spin"},
        "spin": {"spin"},
        "branch": {"branch"},
    }
    for i, body in enumerate(model.body_names):
        for j, name in enumerate(model.joint_names):
            assert np.all(structure[i, :, j] == (body in moves[name])), (body, name)


def test_the_structure_of_a_mimic_counts_all_that_its_leader_moves():
    model = RobotModel.from_urdf(MIMICS)
    structure = Regressor(model).structure.reshape(6, 10, 2)[:, 0]
    rows = {
        body: {model.joint_names[j] for j in np.flatnonzero(structure[i])} for i, body in enumerate(model.body_names)
    }
    assert rows == {"a": {"a"}, "b": {"a"}, "c": {"a"}, "d": {"a", "d"}, "e": {"a", "d"}, "f": {"d"}}


def test_columns_have_names_and_units():
    regressor = full(RobotModel.from_urdf(OBLIQUE))
    slide = regressor.model.body_names.index("slide") + 1
    named = dict(zip(regressor.names, regressor.units, strict=True))
    symbols = sum(len(term.symbols) for term in TERMS.values())
    assert len(named) == len(regressor.names) == 4 * 10 + 4 * symbols
    assert regressor.names[:11] == ("m1", "mx1", "my1", "mz1", "Ixx1", "Ixy1", "Iyy1", "Ixz1", "Iyz1", "Izz1", "m2")
    assert [named[name] for name in ("m1", "mx1", "Izz1", "fv1", "fc1", "off1", "Ir1")] == [
        "kg",
        "kg m",
        "kg m^2",
        "N m s",
        "N m",
        "N m",
        "kg m^2",
    ]
    assert [named[f"{name}{slide}"] for name in ("fv", "fc", "off", "Ir")] == ["N s/m", "N", "N", "kg"]


@pytest.mark.parametrize("text", SMALL)
@pytest.mark.parametrize("selection", ["all", "every third, backwards"])
def test_the_packed_layout_holds_the_dense_regressor(text, selection):
    regressor = full(RobotModel.from_urdf(SMALL[text]))
    columns = np.arange(len(regressor.names))[:: 1 if selection == "all" else -3]
    motion = draw_random_motion(regressor.model, TILE + 7, seed=6)
    dense, layout = regressor.dense(motion), Layout.from_columns(regressor, columns)
    packed = np.full((layout.starts[-1], len(motion)), np.nan)
    regressor.fill(motion, layout.slots, packed)
    for joint in range(len(regressor.model.joint_names)):
        block = layout.block(packed, joint)
        chosen = columns[layout.supports[joint]]
        assert np.array_equal(block[:-1], dense[chosen, joint])
        assert np.all(np.isnan(block[-1]))  # the row of the torque is the caller's
        left_out = np.setdiff1d(columns, chosen)
        assert not np.any(dense[left_out, joint])


def test_torque_takes_all_columns():
    regressor = full(panda_arm())
    motion, rng = draw_random_motion(regressor.model, 20, seed=7), np.random.default_rng(7)
    parameters = rng.normal(size=len(regressor.names))
    rows = regressor.dense(motion).transpose(2, 1, 0)
    assert ratio(regressor.torque(motion, parameters).T, rows @ parameters) <= 1e-14


def test_motion_is_taken_by_slice_and_by_mask():
    motion = Motion(*np.arange(30.0).reshape(3, 2, 5))
    assert len(motion) == 5
    mask = np.array([False, True, False, True, False])
    for index in (slice(1, None, 2), mask):
        taken = motion.take(index)
        assert np.array_equal([taken.q, taken.dq, taken.ddq], np.arange(30.0).reshape(3, 2, 5)[..., 1::2])


# --- Without numba -----------------------------------------------------------------------------------------------

WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None  # importing it fails
import numpy as np
from robot_dyn_id.dynamics.base_parameters import compute_base_parameters, draw_random_motion
from robot_dyn_id.kernels.compiled import COMPILED
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.model.robot import RobotModel
assert not COMPILED
out = {}
for name, source in zip(sys.argv[2::2], sys.argv[3::2]):
    model = RobotModel.from_file(source)
    regressor = Regressor(model)
    out[name] = regressor.dense(draw_random_motion(model, 300, seed=8))
    out[name + " base"] = compute_base_parameters(regressor).mapping
np.savez(sys.argv[1], **out)
"""


@pytest.mark.slow
@pytest.mark.skipif(not COMPILED, reason="numba is not installed: there is nothing to compare with")
def test_numpy_gives_what_numba_gives(tmp_path):
    names = ("panda", "tiago_pro", "ur5_robot", "anymal_c_simple", "solo12")
    sources = {name: str(URDFS[name]) for name in names}
    for name, text in SMALL.items():
        file = tmp_path / f"{name}.urdf"
        file.write_text(text)
        sources[name] = str(file)
    words = [word for pair in sources.items() for word in pair]
    command = [sys.executable, "-c", WITHOUT_NUMBA, str(tmp_path / "numpy.npz"), *words]
    done = run_program(*command)
    assert done.returncode == 0, done.stderr
    from robot_dyn_id.dynamics.base_parameters import compute_base_parameters

    with np.load(tmp_path / "numpy.npz") as slow:
        for name, source in sources.items():
            regressor = Regressor(RobotModel.from_file(source))
            dense = regressor.dense(draw_random_motion(regressor.model, 300, seed=8))
            assert ratio(dense, slow[name]) <= 1e-14, name
            assert ratio(compute_base_parameters(regressor).mapping, slow[f"{name} base"]) <= 1e-10, name
