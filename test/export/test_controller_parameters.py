# SPDX-License-Identifier: Apache-2.0
"""Parameters of other packages' controllers: their own formulas, written out here, give the identified friction."""

import json

import numpy as np
import pytest
import yaml
from support.altered import altered, scaled
from support.given_parameters import parameter_set
from support.robots import URDFS

from robot_dyn_id.cli import main
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.terms import Coulomb, Dahl, Offset, Viscous
from robot_dyn_id.errors import InputError
from robot_dyn_id.export import FORMATS, TOOL_FORMATS, export_model
from robot_dyn_id.export.friction_curves import FrictionCurves
from robot_dyn_id.files.parameters import write_parameters
from robot_dyn_id.files.payload import read_payload
from robot_dyn_id.parameters import FitFor, urdf_hash
from robot_dyn_id.uses import ANSWERS

JOINTS = tuple(f"panda_joint{i}" for i in range(1, 8))
N = len(JOINTS)
SPEED = 1.5


def panda(*terms, compensates=("none",), drives=(), **parts):
    parameters = parameter_set(URDFS["panda"].read_text(), JOINTS, terms=terms)
    ranges = {"q_min": np.full(N, -1.0), "q_max": np.full(N, 1.0), "dq_max": np.full(N, SPEED)}
    return altered(parameters, effort={"robot_compensates": compensates, **dict(drives)}, ranges=ranges, **parts)


def exported(name, parameters):
    result = FORMATS[name](parameters)
    return yaml.safe_load(result.text)["/**"]["ros__parameters"], result.findings


def crisp(dq, fp1, fp2, fp3):
    """utils/friction_model.hpp of crisp_controllers."""
    return fp1 / (1.0 + np.exp(-fp2 * (dq + fp3))) - fp1 / (1.0 + np.exp(-fp2 * fp3))


def robotis(dq, torque, parameters):
    """Friction in `update` of gravity_compensation_controller, joint by joint; `torque` is that before it."""
    result = np.array(torque)
    for i, v in enumerate(dq * parameters["input_velocity_scaling_factors"]):
        scalar = parameters["kinetic_friction_scalars"][i]
        scalar *= 1.0 + abs(torque[i] * parameters["kinetic_friction_torque_scalars"][i])
        rate = 1.0 - (abs(v) * 10.0 - parameters["friction_compensation_velocity_thresholds"][i])
        scalar *= max(rate, 0.0)
        result[i] += np.sign(v) * scalar * abs(v)
        if v and abs(result[i]) < parameters["unloaded_effort_thresholds"][i]:
            result[i] += np.sign(v) * parameters["unloaded_effort_offsets"][i]
        if abs(v) < parameters["static_friction_velocity_thresholds"][i]:
            result[i] += parameters["static_friction_scalars"][i] * abs(result[i])
    return result * parameters["torque_scaling_factors"]


def test_smoothed_coulomb_friction_is_exact_in_crisp_controllers():
    parameters = panda(Coulomb(0.05))
    given, findings = exported("crisp_controllers", parameters)
    assert given["joints"] == list(JOINTS)
    assert given["use_friction"] and given["use_gravity_compensation"] and given["use_coriolis_compensation"]
    levels = parameters.terms.values
    assert np.allclose(given["friction"]["fp1"], 2.0 * levels, rtol=1e-6)
    assert np.allclose(given["friction"]["fp2"], 2.0 / 0.05, rtol=1e-6)
    dq = np.random.default_rng(0).uniform(-SPEED, SPEED, (200, N))
    friction = Dynamics.from_parameters(parameters).friction(np.zeros_like(dq), dq)
    theirs = crisp(dq, *(np.array(given["friction"][f"fp{i}"]) for i in (1, 2, 3)))
    assert np.allclose(theirs, friction, atol=1e-5)
    assert [finding.code for finding in findings] == ["friction_approximated"]


def test_viscous_friction_has_no_place_in_crisp_controllers_and_is_reported():
    parameters = panda(Viscous(), Coulomb(0.05), Offset())
    given, (finding,) = exported("crisp_controllers", parameters)
    viscous, coulomb, offsets = parameters.terms.values.reshape(3, N)
    assert np.allclose(given["friction"]["fp1"], 2.0 * coulomb, rtol=1e-6)
    lost = viscous[0] * SPEED + offsets[0]
    assert f"{JOINTS[0]} {lost:.2g} of" in finding.message


def test_presliding_friction_is_fitted_by_its_level_in_sliding():
    given, _ = exported("crisp_controllers", panda(Dahl()))
    curves = FrictionCurves.from_parameters(panda(Dahl()))
    assert np.allclose(np.array(given["friction"]["fp1"]) / 2.0, curves.dry[:, -1], rtol=0.02)


@pytest.mark.parametrize(
    ("compensates", "uses"),
    [
        (("none",), (True, True, True)),
        (("gravity",), (True, False, True)),
        (("friction", "gravity"), (False, False, True)),
        (("coriolis",), (True, True, False)),
    ],
)
def test_crisp_controllers_add_what_the_driver_does_not(compensates, uses):
    given, _ = exported("crisp_controllers", panda(Coulomb(), compensates=compensates))
    assert (given["use_friction"], given["use_gravity_compensation"], given["use_coriolis_compensation"]) == uses


def test_the_kinetic_friction_of_robotis_never_exceeds_the_identified_one():
    parameters = panda(Viscous(), Coulomb(0.05))
    given, findings = exported("gravity_compensation_controller", parameters)
    assert {finding.code for finding in findings} == {"friction_approximated", "drive_units_not_exported"}
    dynamics, shares = Dynamics.from_parameters(parameters), []
    for dq in np.random.default_rng(0).uniform(-SPEED, SPEED, (300, N)):
        theirs, friction = robotis(dq, np.zeros(N), given), dynamics.friction(np.zeros(N), dq)
        assert np.all(
            theirs * np.sign(dq) <= friction * np.sign(dq) * (1.0 + 1e-3)
        )  # the smallest ratio is found among 400 speeds
        assert np.all(theirs * dq >= 0.0)
        shares.append(theirs / friction)
    assert np.max(shares) > 0.95  # as much as is possible


def test_drive_gains_scale_the_torque_of_robotis():
    parameters = panda(Coulomb(), drives={"drive_gains": np.full(N, 4.0), "drive_signs": np.array([1.0] * 6 + [-1.0])})
    given, _ = exported("gravity_compensation_controller", parameters)
    assert given["torque_scaling_factors"] == [0.25] * 6 + [-0.25]


@pytest.mark.parametrize("name", ["crisp_controllers", "gravity_compensation_controller"])
def test_a_driver_of_which_it_is_not_known_what_it_adds_is_refused(name):
    with pytest.raises(InputError, match="robot_compensates is unknown"):
        FORMATS[name](panda(Coulomb(), compensates=("unknown",)))


def test_a_second_gravity_compensation_is_refused():
    with pytest.raises(InputError, match="second time"):
        FORMATS["gravity_compensation_controller"](panda(Coulomb(), compensates=("gravity",)))


@pytest.mark.parametrize("words", [("friction",), ("coriolis",), ("friction", "coriolis")])
def test_robotis_adds_nothing_that_the_driver_adds(words):
    given, findings = exported("gravity_compensation_controller", panda(Coulomb(), compensates=words))
    assert given["kinetic_friction_scalars"] == [0.0] * N
    velocity = 0.0 if "coriolis" in words else 1.0  # of its inverse dynamics, which contain Coriolis torques
    assert given["input_velocity_scaling_factors"] == [velocity] * N
    assert [finding.code for finding in findings] == ["friction_left_out", "drive_units_not_exported"]
    torque = np.arange(1.0, 1.0 + N)
    assert np.array_equal(robotis(np.full(N, 0.3), torque, given), torque)


@pytest.mark.parametrize("name", ["crisp_controllers", "gravity_compensation_controller"])
def test_the_parser_of_ros_reads_the_files(name, tmp_path):
    rclpy = pytest.importorskip("rclpy")
    result = FORMATS[name](panda(Coulomb(), Viscous()))
    (tmp_path / "controller.yaml").write_text(result.text)
    context = rclpy.Context()
    rclpy.init(args=["--ros-args", "--params-file", str(tmp_path / "controller.yaml")], context=context)
    try:
        node = rclpy.create_node("one", context=context, automatically_declare_parameters_from_overrides=True)
        assert node.get_parameter("joints").value == list(JOINTS)
        node.destroy_node()
    finally:
        rclpy.shutdown(context=context)


@pytest.mark.parametrize("name", FORMATS)
def test_a_bad_verdict_is_exported_only_on_request(name, tmp_path, capsys):
    parameters = panda(Coulomb(), judgment={"verdict": "bad", "reasons": ("the signs of two joints are wrong",)})
    with pytest.raises(InputError, match="the verdict on the parameters is bad"):
        export_model(name, parameters)
    (tmp_path / "arm.urdf").write_text(parameters.robot.urdf)
    write_parameters(tmp_path / "parameters.yaml", parameters)
    out = tmp_path / "model"
    words = ["export", "--robot", str(tmp_path / "arm.urdf"), "--parameters", str(tmp_path / "parameters.yaml")]
    words += ["--format", name, "--out", str(out), "--json"]
    assert main(words) == 3 and not out.exists()
    assert "--allow-bad-verdict" in json.loads(capsys.readouterr().out)["error"]["message"]
    assert main([*words, "--allow-bad-verdict"]) == 0
    assert "export_of_bad_verdict" in {one["code"] for one in json.loads(capsys.readouterr().out)["findings"]}
    assert out.read_text() == FORMATS[name](parameters).text


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("name", FORMATS)
def test_a_simulator_gets_a_model_that_is_not_fit_for_it_with_a_finding(name, answer):
    judged = (FitFor("forward_simulation", answer, 0.5, "rad", 0.2, joints=("panda_joint6",)),)
    parameters = panda(Coulomb(), judgment={"fit_for": judged})
    findings = export_model(name, parameters, allow_bad_verdict=True).findings  # too heavy for its motors
    found = [(one.message, one.joints) for one in findings if one.code == "not_fit_for_simulation"]
    named = [(f"fit for forward simulation: {answer}, 0.5 of 0.2 rad", ("panda_joint6",))]
    assert found == (named if name in ("mjcf", "sdf") and answer != "yes" else [])


@pytest.mark.parametrize("name", FORMATS)
def test_a_model_that_the_motors_cannot_hold_is_exported_only_on_request(name):
    """The efforts of all joints in another unit, where no mass of the URDF shows it: the controller node refuses it."""
    heavy = scaled(panda(Coulomb()), 1e3)
    with pytest.raises(InputError, match="above the rated"):
        export_model(name, heavy)
    (finding,) = (
        one for one in export_model(name, heavy, allow_bad_verdict=True).findings if one.code == "export_of_bad_verdict"
    )
    assert "above the rated" in finding.message
    alike = heavy.robot.urdf
    for effort in ("87.0", "12.0"):
        alike = alike.replace(f'effort="{effort}"', 'effort="10"')
    export_model(
        name, altered(heavy, robot={"urdf": alike, "urdf_sha256": urdf_hash(alike)})
    )  # one number for all: a placeholder


@pytest.mark.parametrize("name", ["urdf", "mjcf"])
def test_models_of_links_report_what_the_driver_adds(name):
    def codes(*words):
        return [finding.code for finding in FORMATS[name](panda(compensates=words)).findings]

    assert codes("gravity", "coriolis") == ["driver_compensates"]
    assert codes("none") == codes("unknown") == []


PAYLOAD = """
link: tool0
mass: 1.5
center_of_mass: [0.01, -0.02, 0.08]
inertia: {ixx: 0.01, ixy: 0.0, iyy: 0.01, ixz: 0.0, iyz: 0.0, izz: 0.01}
"""


@pytest.fixture
def payload_file(tmp_path):
    (tmp_path / "payload.yaml").write_text(PAYLOAD)
    return tmp_path / "payload.yaml"


def test_tools_of_other_controllers(payload_file):
    payload = read_payload(payload_file)
    results = {name: write(payload) for name, write in TOOL_FORMATS.items()}
    for result in results.values():
        assert [finding.code for finding in result.findings] == ["tool_inertia_not_exported"]
    content = yaml.safe_load(results["admittance_controller"].text)["/**"]["ros__parameters"]["gravity_compensation"]
    assert content["frame"] == {"id": "tool0"}
    # AdmittanceRule: the weight -force along z of the world, and its moment about the sensor, are subtracted
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    weight = np.array([0.0, 0.0, -content["CoG"]["force"]])
    moment = np.cross(rotation @ content["CoG"]["pos"], weight)
    expected = 1.5 * np.array([0.0, 0.0, -9.81])
    assert np.allclose(weight, expected)
    assert np.allclose(moment, np.cross(rotation @ [0.01, -0.02, 0.08], expected))
    tool = yaml.safe_load(results["cartesian_controllers"].text)
    assert tool["tool"] == pytest.approx({"mass": 1.5, "com_x": 0.01, "com_y": -0.02, "com_z": 0.08})
    assert tool["gravity"] == {"x": 0.0, "y": 0.0, "z": -9.81}


def test_the_command_writes_a_tool_and_needs_its_inputs(payload_file, tmp_path, capsys):
    out = ["--out", str(tmp_path / "tool.yaml")]
    tool = ["export", "--format", "admittance_controller", *out]
    assert main([*tool, "--payload", str(payload_file)]) == 0
    assert "CoG" in (tmp_path / "tool.yaml").read_text()
    robot = ["export", "--format", "crisp_controllers", "--out", str(tmp_path / "none.yaml")]
    for words, reason in (
        (tool, "--payload"),
        ([*tool, "--payload", "p", "--robot", "r"], "--robot is not used"),
        ([*tool, "--payload", "p", "--robot-compensates", "none"], "--robot-compensates is not used"),
        ([*tool, "--payload", "p", "--allow-bad-verdict"], "--allow-bad-verdict is not used"),
        (robot, "--parameters"),
        ([*robot, "--robot", "r", "--parameters", "p", "--payload", "p"], "--payload is not used"),
    ):
        capsys.readouterr()
        assert main(words) == 2
        assert reason in capsys.readouterr().err
