# SPDX-License-Identifier: Apache-2.0
"""Variables of the shell with which ROS 2 cannot start: one line that names them, before anything is written."""

import json

import pytest
from support.processes import run_python

from robot_dyn_id.cli import main
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.nodes.runtime.middleware import check_domain, check_middleware, list_installed_middleware

ANOTHER = {"RMW_IMPLEMENTATION": "rmw_of_another_kind_cpp"}
SECURED = {
    "ROS_SECURITY_ENABLE": "true",
    "ROS_SECURITY_STRATEGY": "Enforce",
    "ROS_SECURITY_KEYSTORE": "/no/such/keystore",
}
NEEDS_INDEX = pytest.mark.skipif(not list_installed_middleware(), reason="the installed middleware is not known")
NODE = "from robot_dyn_id.nodes.starting import start; start('torque_residual_monitor')"


@pytest.fixture
def refused(monkeypatch, capfd):
    """Run a command with variables of the shell, and return the error that it reports."""

    def run(variables, *words):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        capfd.readouterr()
        code = main([*words, "--json"])
        error = json.loads(capfd.readouterr().out)["error"]
        assert error["exit_code"] == code
        return error

    return run


@NEEDS_INDEX
def test_the_middleware_that_is_installed_is_accepted(monkeypatch):
    for name in ("", *list_installed_middleware()):
        monkeypatch.setenv("RMW_IMPLEMENTATION", name)
        check_middleware()
    monkeypatch.delenv("RMW_IMPLEMENTATION")
    check_middleware()


@NEEDS_INDEX
def test_another_middleware_is_refused_before_anything_is_written(refused, tmp_path):
    error = refused(ANOTHER, "demo", "--out", str(tmp_path / "run"))
    assert error["exit_code"] == UsageError.exit_code
    assert ANOTHER["RMW_IMPLEMENTATION"] in error["message"] and "unset RMW_IMPLEMENTATION" in error["message"]
    assert all(name in error["message"] for name in list_installed_middleware())
    assert not (tmp_path / "run").exists()
    assert refused(ANOTHER, "watch", "--once")["message"] == error["message"]


@NEEDS_INDEX
def test_a_distribution_that_is_sourced_in_addition_to_the_wheels_does_not_count(monkeypatch, tmp_path):
    index = tmp_path / "share/ament_index/resource_index/rmw_typesupport"
    index.mkdir(parents=True)
    (index / "rmw_of_the_distribution").touch()
    wheels = list_installed_middleware()
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    on_wheels = "robot_dyn_id._installed_version"
    monkeypatch.setattr(on_wheels, lambda package: "7.1.6")
    assert "rmw_of_the_distribution" not in list_installed_middleware()
    monkeypatch.setattr(on_wheels, lambda package: None)
    assert list_installed_middleware() == ["rmw_of_the_distribution"] != wheels


def test_a_domain_without_ports_is_refused(monkeypatch, refused):
    for domain in ("", "0", "232"):
        monkeypatch.setenv("ROS_DOMAIN_ID", domain)
        check_domain()
    error = refused({"ROS_DOMAIN_ID": "999"}, "watch", "--once")
    assert error["exit_code"] == UsageError.exit_code and "ROS_DOMAIN_ID is 999" in error["message"]


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("variables", "words"), [({"ROS_DOMAIN_ID": "abc"}, []), (ANOTHER, ["unset"])], ids=["domain", "middleware"]
)
def test_a_node_names_the_variable_in_one_line(variables, words, monkeypatch):
    if variables is ANOTHER and not list_installed_middleware():
        pytest.skip("the installed middleware is not known")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    done = run_python(NODE)
    assert done.returncode in (UsageError.exit_code, InputError.exit_code)
    assert done.stderr.count("\n") == 1
    assert all(word in done.stderr for word in (*variables, *variables.values(), *words))


@pytest.mark.parametrize("variables", [{"ROS_DOMAIN_ID": "abc"}, SECURED], ids=["domain", "security"])
def test_what_ros_refuses_is_not_a_fault_of_this_package(variables, refused):
    error = refused(variables, "watch", "--once")
    assert error["exit_code"] == InputError.exit_code
    assert all(f"{name}={value}" in error["action"] for name, value in variables.items())


def test_doctor_survives_and_names_the_variable(monkeypatch, capfd):
    monkeypatch.setenv("ROS_DOMAIN_ID", "999")
    assert main(["doctor", "--json"]) == InputError.exit_code
    checks = {check["name"]: check for check in json.loads(capfd.readouterr().out)["checks"]}
    assert checks["middleware"]["status"] == "problem" and "ROS_DOMAIN_ID is 999" in checks["middleware"]["action"]
    assert checks["self-test"]["status"] == "warn"
