# SPDX-License-Identifier: Apache-2.0
"""The package as others meet it: installed, built by colcon, found by CMake, on the right distribution."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
import yaml
from support.given_parameters import parameter_set
from support.processes import run_program
from support.simulated import ARM

import robot_dyn_id
from robot_dyn_id.cli.doctor import MIN_PYTHON
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.terms import Viscous
from robot_dyn_id.files.parameters import write_parameters

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
DISTRIBUTIONS = ("jazzy", "kilted")
KEYS = yaml.safe_load((Path(__file__).parent / "rosdep_keys.yaml").read_text(encoding="utf-8"))
BROUGHT_BY_MCAP = {"lz4", "zstandard"}
OPTIONAL = {"rosbags"}

TOOLS = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
CMAKE = shutil.which("cmake", path=TOOLS)
COLCON = shutil.which("colcon", path=TOOLS)


def environment(*prefixes):
    """Return the environment of a shell that has sourced the prefixes, and the ROS 2 wheels if any."""
    if (Path(sys.prefix) / "share/rosidl_default_generators").exists():
        prefixes = (*prefixes, sys.prefix)
    changed = {"PATH": TOOLS}
    folders = {"AMENT_PREFIX_PATH": "", "CMAKE_PREFIX_PATH": "", "LD_LIBRARY_PATH": "lib"}
    for variable, folder in folders.items():
        paths = [str(Path(prefix) / folder) for prefix in prefixes] + [os.environ.get(variable, "")]
        changed[variable] = os.pathsep.join(filter(None, paths))
    return {**os.environ, **changed}


def run(*command, **options):
    """Run a command and return its standard output; its whole output explains a failure."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


# --- Messages -----------------------------------------------------------------------------------------------


def test_the_message_has_every_field_of_its_definition():
    from robot_dyn_id.msg import ParameterSet

    definition = (ROOT / "msg/ParameterSet.msg").read_text(encoding="utf-8")
    defined = re.findall(r"^[a-zA-Z]\S* +(\w+)\b(?! *=)", definition, flags=re.MULTILINE)
    assert list(ParameterSet.get_fields_and_field_types()) == defined


def prefix():
    """Where the package is installed: <prefix>/lib/python3.x/site-packages/robot_dyn_id/msg/__init__.py."""
    return Path(importlib.import_module("robot_dyn_id.msg").__file__).parents[5]


@pytest.mark.slow
def test_the_cpp_example_is_built_as_documented_and_agrees_with_python(tmp_path):
    """Without LD_LIBRARY_PATH on the wheels, where no documented command sets it."""
    if CMAKE is None:
        pytest.skip("cmake is not installed")
    shell = environment(prefix())
    if (Path(sys.prefix) / "share/rosidl_default_generators").exists():
        del shell["LD_LIBRARY_PATH"]
    parameters = parameter_set(ARM, terms=(Viscous(),))
    write_parameters(tmp_path / "parameters.yaml", parameters)

    run(CMAKE, "-S", ROOT / "examples/cpp", "-B", tmp_path / "build", env=shell)
    run(CMAKE, "--build", tmp_path / "build", env=shell)
    run(CMAKE, "--install", tmp_path / "build", "--prefix", tmp_path / "installed", env=shell)

    dynamics, n = Dynamics.from_parameters(parameters), len(parameters.robot.joint_names)
    rest = dynamics.gravity(np.full(n, 0.3))
    moving = dynamics.inverse_dynamics(*(np.full(n, value) for value in (0.3, 0.2, 0.1)))
    for program in ("build/identified_dynamics", "installed/bin/identified_dynamics"):
        lines = run(tmp_path / program, tmp_path / "parameters.yaml", env=shell).splitlines()[1:]
        assert [line.split()[0] for line in lines] == list(parameters.robot.joint_names)
        torques = np.array([line.split()[1:] for line in lines], dtype=float)
        np.testing.assert_allclose(torques, np.column_stack([moving, rest]), rtol=1e-6, atol=1e-12)


def test_the_executable_may_be_imported_by_the_processes_that_it_starts():
    """As multiprocessing does with the script of its parent: the demo would begin a second time."""
    script = prefix() / "lib/robot_dyn_id/robot-dyn-id"
    code = f"import runpy; runpy.run_path({str(script)!r}, run_name='__mp_main__'); print('imported')"
    assert run(sys.executable, "-c", code) == "imported\n"


# --- The environment of `make` ------------------------------------------------------------------------------


def script(name):
    """Return the module of a script of `.ci`."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f".ci/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_keeps_the_environment_from_being_made_is_one_line():
    check = script("prerequisites")
    assert PROJECT["requires-python"] == ">={}.{}".format(*check.OLDEST)
    assert check.OLDEST == MIN_PYTHON
    assert check.obstacle((3, 11), "x86_64", []) == ""
    for version, machine, missing, words in (
        ((3, 9), "x86_64", [], "PYTHON=python3.13"),
        ((3, 14), "x86_64", [], "3.10 to 3.13"),
        ((3, 12), "aarch64", [], "colcon"),
        ((3, 12), "x86_64", ["the module ensurepip", "g++"], "python3.12-venv"),
    ):
        line = check.obstacle(version, machine, missing)
        assert words in line and "\n" not in line
        assert all(name in line for name in missing)


def test_a_trimmed_environment_has_the_same_libraries_once_and_no_headers(tmp_path):
    packages = tmp_path / "lib/python3.11/site-packages"
    headers, libraries = packages / "cmeel.prefix/include/boost", packages / "cmeel.prefix/lib"
    for folder in (headers, libraries):
        folder.mkdir(parents=True)
    (headers / "version.hpp").write_text("1")
    for name, text in {"liba.so": "a", "liba.so.1": "a", "libb.so": "b", "a.py": "a"}.items():
        (libraries / name).write_text(text)
    script("trim").trim(tmp_path)
    assert not headers.parent.exists()
    assert sorted(file.name for file in libraries.iterdir()) == ["a.py", "liba.so", "liba.so.1", "libb.so"]
    assert {file.name: file.read_text() for file in libraries.glob("lib*")} == {
        **{"liba.so": "a", "liba.so.1": "a"},
        "libb.so": "b",
    }
    assert {file.name: file.stat().st_nlink for file in libraries.iterdir()} == {
        **{"a.py": 1, "liba.so": 2, "liba.so.1": 2},
        "libb.so": 1,
    }


# --- colcon -------------------------------------------------------------------------------------------------

# Stands in for test/ in the workspace: what colcon has built must be what its tests import.
PROBE = """
import robot_dyn_id, robot_dyn_id.errors, robot_dyn_id.msg

def test_the_workspace_is_imported():
    for module in (robot_dyn_id, robot_dyn_id.errors, robot_dyn_id.msg):
        assert module.__file__.startswith({installed!r})
"""


@pytest.mark.slow
def test_colcon_builds_and_tests_the_same_tree(tmp_path):
    """But for most of its interfaces, which the environment of the tests was built with, and without optimization:
    compiling all takes a minute."""
    if COLCON is None:
        pytest.skip("colcon is not installed")
    source = tmp_path / "robot_dyn_id"
    hidden = shutil.ignore_patterns(".*", "__pycache__", "build", "install", "log", "test")
    shutil.copytree(ROOT, source, ignore=hidden)
    for interface in [*(source / "msg").iterdir(), *(source / "action").iterdir()]:
        if interface.stem not in ("Finding", "IdentifyRecordings"):
            interface.unlink()
    (source / "test").mkdir()
    installed = tmp_path / "install/robot_dyn_id"
    (source / "test/test_probe.py").write_text(PROBE.format(installed=str(installed)))
    shell = environment()

    options = (f"-DPython3_EXECUTABLE={sys.executable}", "-DCMAKE_BUILD_TYPE=Debug")
    run(COLCON, "build", "--cmake-args", *options, cwd=tmp_path, env=shell)
    run(COLCON, "test", "--return-code-on-test-failure", cwd=tmp_path, env=shell)

    assert "1 test, 0 errors, 0 failures" in run(COLCON, "test-result", "--all", cwd=tmp_path, env=shell)
    assert os.access(installed / "lib/robot_dyn_id/robot-dyn-id", os.X_OK)
    assert (installed / "share/robot_dyn_id/package.xml").exists()


# --- Distributions ------------------------------------------------------------------------------------------


def first_import(folder, built_for, **variables):
    """Return what a first import of a package with an altered record says on standard error."""
    package = folder / "robot_dyn_id"
    package.mkdir()
    for name in ("__init__.py", "version.py"):
        shutil.copy(ROOT / "robot_dyn_id" / name, package)
    (package / "_built_for.py").write_text(f'DISTRIBUTION = "{built_for}"\n')
    shell = {name: value for name, value in os.environ.items() if name not in ("ROS_VERSION", "ROS_DISTRO")}
    command = [sys.executable, "-c", "import robot_dyn_id"]
    shell.update(variables)
    return run_program(*command, cwd=folder, env=shell, check=True).stderr


def test_a_package_of_the_sourced_distribution_is_silent(tmp_path):
    assert first_import(tmp_path, "jazzy", ROS_VERSION="2", ROS_DISTRO="jazzy") == ""


def test_a_package_of_another_than_the_sourced_distribution_says_so_in_one_line(tmp_path):
    output = first_import(tmp_path, "jazzy", ROS_VERSION="2", ROS_DISTRO="kilted")
    assert output.count("\n") == 1
    assert "built for ROS 2 jazzy, but ROS 2 kilted is running" in output


@pytest.mark.parametrize("built_for", DISTRIBUTIONS)
def test_a_package_of_other_wheels_than_the_installed_ones_says_so_in_one_line(tmp_path, built_for):
    try:
        pin = f"ros-rclpy[fastrtps]=={metadata.version('ros-rclpy')}"
    except metadata.PackageNotFoundError:
        pytest.skip("no ROS 2 wheels are installed")
    (running,) = (name for name in DISTRIBUTIONS if pin in EXTRAS[name])
    output = first_import(tmp_path, built_for)
    if built_for == running:
        assert output == ""
    else:
        assert output.count("\n") == 1
        assert f"built for ROS 2 {built_for}, but ROS 2 {running} is running" in output


# --- One place for each number ------------------------------------------------------------------------------


def test_the_versions_agree():
    manifest = ElementTree.parse(ROOT / "package.xml").getroot()
    assert manifest.findtext("version") == robot_dyn_id.__version__
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == robot_dyn_id.__version__


def manifest_dependencies():
    manifest = ElementTree.parse(ROOT / "package.xml").getroot()
    return {element.text for element in manifest if element.tag.endswith("depend")}


def test_every_dependency_of_the_manifest_is_a_rosdep_key_that_apt_resolves():
    assert manifest_dependencies() == {*KEYS["apt"], *KEYS["ros"]}
    assert set(DISTRIBUTIONS) <= set(KEYS["distributions"])


def test_the_plugins_depend_on_what_each_distribution_has():
    manifest = ElementTree.parse(ROOT / "cpp/ros2_control/package.xml").getroot()
    conditions = {one.text: one.get("condition", "") for one in manifest if one.tag.endswith("depend")}
    assert conditions.pop("robot_dyn_id") == "" and set(conditions) == set(KEYS["ros2_control"])
    for key, missing in KEYS["ros2_control"].items():
        assert conditions[key] == " and ".join(f"$ROS_DISTRO != {distribution}" for distribution in missing), key
    assert manifest.findtext("version") == robot_dyn_id.__version__


def test_every_python_dependency_has_a_rosdep_key_or_stands_in_the_installation_page():
    page = (ROOT / "docs/installation.md").read_text(encoding="utf-8")
    pip = re.search(r"pip install --user --break-system-packages (\S.*)", page)[1].split()
    apt_names = {"pin": "pinocchio", "PyYAML": "python3-yaml"}
    for requirement in PROJECT["dependencies"]:
        name = re.match(r"[\w-]+", requirement)[0]
        known = {name, f"python3-{name}", apt_names.get(name)} & manifest_dependencies()
        assert known or (name in KEYS["pip"] and (name in pip or name in BROUGHT_BY_MCAP | OPTIONAL)), name


def test_pixi_installs_what_the_manifest_and_pip_need():
    """No test reaches its channels: the packages are compared with those of package.xml and pyproject.toml."""
    pixi = tomllib.loads((ROOT / "pixi.toml").read_text(encoding="utf-8"))
    conda, pip = pixi["dependencies"], pixi["pypi-dependencies"]
    assert {name for key in pixi["workspace"]["channels"] for name in key.split("/")[-1:]} == {
        "robostack-jazzy",
        "conda-forge",
    }
    only_for_tests = re.compile(r"python3-(pytest|sklearn)|ament_(lint_auto|cmake_(pytest|lint_cmake|xmllint))")
    for key in sorted(manifest_dependencies()):
        if not only_for_tests.fullmatch(key):
            plain = {"yaml": "pyyaml", "matplotlib": "matplotlib-base"}
            name = key.removeprefix("python3-")
            assert {plain.get(name, name), f"ros-jazzy-{key.replace('_', '-')}"} & set(conda), key
    for requirement in PROJECT["dependencies"]:
        name, bound = re.fullmatch(r"([\w-]+)(.*)", requirement).groups()
        if name == "xacro":  # of the distribution, whose numbers differ
            continue
        conda_name = {"pin": "pinocchio"}.get(name, name.lower())
        assert {**conda, **pip}[conda_name] == bound, requirement


def test_the_manifest_names_its_license_file_and_its_addresses():
    manifest = ElementTree.parse(ROOT / "package.xml").getroot()
    assert (ROOT / manifest.find("license").get("file")).is_file()
    assert {url.get("type") for url in manifest.findall("url")} == {"website", "repository", "bugtracker"}
    for kind in ("msg", "srv", "action"):
        interfaces = {interface.stem for interface in (ROOT / kind).glob(f"*.{kind}")}
        if interfaces:
            assert interfaces <= set(dir(importlib.import_module(f"robot_dyn_id.{kind}"))), "CMake installs all of them"


def test_every_ros_wheel_is_pinned():
    for name in DISTRIBUTIONS:
        for requirement in EXTRAS[name] + EXTRAS[f"build-{name}"]:
            assert re.fullmatch(r"ros-[a-z-]+(\[fastrtps\])?==\d+\.\d+\.\d+", requirement), requirement


def test_ros_wheels_come_with_the_extra_of_a_distribution_only():
    free = PROJECT["dependencies"] + EXTRAS["build"] + EXTRAS["test"] + EXTRAS["lint"]
    assert [requirement for requirement in free if requirement.startswith("ros-")] == []


def test_both_distributions_run_the_same_packages():
    jazzy, kilted = ([pin.partition("==")[0] for pin in EXTRAS[name]] for name in DISTRIBUTIONS)
    assert jazzy == kilted


def test_pip_refuses_an_unknown_distribution_in_one_line():
    command = [sys.executable, "setup.py", "--version"]
    shell = {**os.environ, "ROS_DISTRO": "atlantis"}
    done = run_program(*command, cwd=ROOT, env=shell)
    assert done.returncode != 0
    assert re.fullmatch(r"ROS_DISTRO=atlantis: .*jazzy, kilted.*\n", done.stderr)


def test_licenses_of_what_is_contained_are_installed_with_it():
    files = PROJECT["license-files"]
    assert {"LICENSE", "THIRD_PARTY.md"} <= set(files)
    assert all((ROOT / file).is_file() for file in files)
    assert re.search(r"install\(FILES LICENSE THIRD_PARTY.md ", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
    assert "THIRD_PARTY.md" in (ROOT / "MANIFEST.in").read_text(encoding="utf-8")
