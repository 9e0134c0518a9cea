# SPDX-License-Identifier: Apache-2.0
"""The exported Python module: NumPy alone, and the torques of `Dynamics`."""

import ast

import numpy as np
import pytest
from support.altered import altered
from support.compiled_models import ROBOTS, STATES, path
from support.given_parameters import parameter_set
from support.processes import run_python
from support.robots import OBLIQUE, ratio

from robot_dyn_id.cli import main
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.terms import TERMS, Coulomb, Dahl, LoadCoulomb, LoadDahl, Offset, RotorInertia, Viscous
from robot_dyn_id.export import export_model
from robot_dyn_id.export.evaluator import fill_template
from robot_dyn_id.files.parameters import write_parameters

TOLERANCE = 1e-9


def module_of(parameters):
    """The exported module, as Python executes it."""
    names = {}
    exec(compile(export_model("python", parameters, allow_bad_verdict=True).text, "model.py", "exec"), names)
    return names


def assert_equal(parameters):
    """The functions of the module give the same as `Dynamics` along a path, with and without its history."""
    dynamics, module = Dynamics.from_parameters(parameters), module_of(parameters)
    q, dq, ddq, tau, _ = path(len(parameters.robot.joint_names), np.random.default_rng(2))
    assert len(q) == STATES
    for name, arguments in (
        ("inverse_dynamics", (q, dq, ddq)),
        ("gravity", (q,)),
        ("bias", (q, dq)),
        ("friction", (q, dq)),
        ("mass_matrix", (q,)),
        ("forward_dynamics", (q, dq, tau)),
    ):
        theirs, ours = module[name](*arguments), getattr(dynamics, name)(*arguments)
        assert theirs.shape == ours.shape
        assert ratio(theirs, ours) < TOLERANCE, name
        assert ratio(module[name](*(one[3] for one in arguments)), ours[3]) < TOLERANCE, name
    return dynamics, module, (q, dq, ddq)


@pytest.mark.parametrize("name", ROBOTS)
def test_it_gives_the_torques_of_the_model(name):
    text, joints = ROBOTS[name]
    terms = (Viscous(), Coulomb(), Offset(), RotorInertia(), LoadCoulomb())
    assert_equal(parameter_set(text, joints, terms=terms, gravity=(1.0, -2.0, -9.0)))


@pytest.mark.parametrize("name", [name for name, term in TERMS.items() if term().laws and not term.signal])
def test_every_term_that_is_a_sum_of_laws_is_written(name):
    assert_equal(parameter_set(OBLIQUE, terms=(TERMS[name](),)))


@pytest.mark.slow
def test_presliding_friction_follows_the_history_of_the_motion():
    parameters = parameter_set(OBLIQUE, terms=(Viscous(), Dahl(), LoadDahl()))
    dynamics, module, (q, dq, ddq) = assert_equal(parameters)
    histories = dynamics.regressor.integrate(q.T, 0.01)
    expected = dynamics.inverse_dynamics(q, dq, ddq, histories)
    state, found = module["initial_state"](), []
    for sample in range(len(q)):
        if sample:
            state = module["advance"](state, q[sample - 1], q[sample])
        found.append(module["inverse_dynamics"](q[sample], dq[sample], ddq[sample], state))
    assert ratio(np.array(found), expected) < TOLERANCE


def test_it_needs_numpy_and_nothing_else():
    text = export_model("python", parameter_set(OBLIQUE, terms=(Viscous(),))).text
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node) for node in imports] == ["import numpy as np"]


def test_terms_with_temperature_are_left_out_and_named():
    exported = export_model("python", parameter_set(OBLIQUE, terms=(Viscous(), TERMS["temperature_coulomb"]())))
    assert [one.code for one in exported.findings] == ["term_not_exported"]


def test_arrays_of_another_number_of_joints_are_refused():
    module = module_of(parameter_set(OBLIQUE))
    with pytest.raises(ValueError, match="do not fit 4 joints"):
        module["gravity"](np.zeros(3))


def test_the_command_writes_a_module_that_runs_alone(tmp_path, capfd):
    (tmp_path / "arm.urdf").write_text(OBLIQUE)
    parameters = parameter_set(OBLIQUE, terms=(Viscous(), Coulomb()))
    write_parameters(tmp_path / "p.yaml", parameters)
    words = {"robot": "arm.urdf", "parameters": "p.yaml", "out": "arm_model.py"}
    options = [word for key, name in words.items() for word in (f"--{key}", str(tmp_path / name))]
    assert main(["export", *options, "--format", "python"]) == 0
    capfd.readouterr()
    program = "import arm_model; print(*arm_model.gravity([0.1, 0.2, 0.3, 0.4]).tolist())"
    done = run_python(program, cwd=tmp_path, check=True)
    expected = Dynamics.from_parameters(parameters).gravity(np.array([0.1, 0.2, 0.3, 0.4]))
    np.testing.assert_allclose([float(word) for word in done.stdout.split()], expected, rtol=1e-12, atol=1e-12)


def test_names_neither_break_the_module_nor_become_code():
    """A field of the template, quotes and backslashes in names."""
    names = ("@comment@", "@laws@", 'quote"""\\')
    parameters = parameter_set(OBLIQUE, terms=(Viscous(),))
    named = altered(parameters, robot={"name": 'x"""; import nothing_of_that_name; """@laws@'})
    assert "LAWS" in module_of(named)
    text = fill_template("@joints@ @comment@ @unknown@", {"comment": "c", "joints": repr(names)})
    assert text == f"{names!r} c @unknown@"


@pytest.mark.parametrize(
    ("added", "code"), [(("gravity",), "driver_compensates"), (("unknown",), "driver_unknown"), (("none",), None)]
)
def test_what_the_driver_adds_is_reported(added, code):
    parameters = altered(parameter_set(OBLIQUE, terms=(Viscous(),)), effort={"robot_compensates": added})
    exported = export_model("python", parameters)
    assert {one.code for one in exported.findings} & {"driver_compensates", "driver_unknown"} == ({code} - {None})
    assert "those of the motors" in ast.get_docstring(ast.parse(exported.text))
