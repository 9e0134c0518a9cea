# SPDX-License-Identifier: Apache-2.0
"""ROS packages that a xacro file needs: found next to it, in given folders, or named as missing."""

import pytest

from robot_dyn_id.cli import main
from robot_dyn_id.errors import MissingArgumentError, ModelError
from robot_dyn_id.excitation.collision.meshes import find_mesh
from robot_dyn_id.model.packages import find_package, list_folders_above
from robot_dyn_id.model.urdf import RobotDescription

ARM = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="arm">
  <xacro:include filename="$(find vendor_description)/parts/links.xacro"/>
  <xacro:property name="masses" value="${xacro.load_yaml('$(find vendor_tools)/masses.yaml')}"/>
  <link name="base"/>
  <xacro:link_of mass="${$(arg mass) + masses['more']}"/>
  <joint name="j" type="continuous"><parent link="base"/><child link="tip"/><axis xyz="0 0 1"/></joint>
</robot>"""
LINKS = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:macro name="link_of" params="mass">
    <link name="tip"><inertial><mass value="${mass}"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
    </inertial></link>
  </xacro:macro>
</robot>"""


def package(folder, name):
    folder.mkdir(parents=True)
    (folder / "package.xml").write_text(f"<package><name>{name}</name></package>")
    return folder


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """Two packages, of which one lies in a folder of another name, as in a copy of its repository."""
    monkeypatch.delenv("ROS_PACKAGE_PATH", raising=False)
    monkeypatch.setenv("AMENT_PREFIX_PATH", "")
    vendor = package(tmp_path / "src" / "Vendor_ROS2_Description-main", "vendor_description")
    (vendor / "parts").mkdir()
    (vendor / "parts" / "links.xacro").write_text(LINKS)
    (vendor / "urdf").mkdir()
    (vendor / "urdf" / "arm.xacro").write_text(ARM)
    (package(tmp_path / "src" / "tools", "vendor_tools") / "masses.yaml").write_text("more: 1")
    return tmp_path / "src"


def test_the_package_of_a_xacro_file_and_those_next_to_it_are_found(workspace):
    file = workspace / "Vendor_ROS2_Description-main" / "urdf" / "arm.xacro"
    text = RobotDescription.from_file(file, xacro={"mass": "3"})
    assert text.root().find("link[@name='tip']/inertial/mass").get("value") == "4"
    assert len(text.parts) == 2


@pytest.mark.parametrize("how", ["folder above", "folders", "ROS_PACKAGE_PATH", "installation"])
def test_packages_elsewhere_are_found(how, workspace, tmp_path, monkeypatch):
    (tmp_path / "alone").mkdir()
    file = tmp_path / "alone" / "arm.xacro"
    file.write_text(ARM)
    given = {"folder above": [workspace], "folders": list(workspace.iterdir())}.get(how, ())
    if how == "ROS_PACKAGE_PATH":
        monkeypatch.setenv(how, f"/nowhere:{workspace}")
    if how == "installation":
        monkeypatch.setenv("AMENT_PREFIX_PATH", f"/nowhere:{tmp_path / 'opt'}")
        (tmp_path / "opt").mkdir()
        (tmp_path / "opt" / "share").mkdir()
        for folder, name in (("Vendor_ROS2_Description-main", "vendor_description"), ("tools", "vendor_tools")):
            (tmp_path / "opt" / "share" / name).symlink_to(workspace / folder)
    assert "<mass" in RobotDescription.from_file(file, given, {"mass": "3"}).text


def test_a_missing_argument_and_an_argument_without_a_xacro_file_are_named(workspace, tmp_path):
    file = workspace / "Vendor_ROS2_Description-main" / "urdf" / "arm.xacro"
    with pytest.raises(MissingArgumentError) as caught:
        RobotDescription.from_file(file)
    assert caught.value.name == "mass"
    plain = tmp_path / "plain.urdf"
    plain.write_text('<robot name="a"><link name="b"/></robot>')
    with pytest.raises(ModelError, match="not a xacro file"):
        RobotDescription.from_file(plain, xacro={"mass": "3"})


def test_the_command_line_names_package_and_option(workspace, tmp_path, capsys):
    file = tmp_path / "arm.xacro"
    file.write_text(ARM)
    words = ["base", "--robot", str(file)]
    assert main(words) == 3
    assert capsys.readouterr().err.count("\n") == 1 and main([*words, "--package", str(workspace)]) == 3
    assert "--xacro mass:=VALUE" in capsys.readouterr().err
    assert main([*words, "--package", str(workspace), "--xacro", "mass=3"]) == 2
    assert main([*words, "--package", str(workspace), "--xacro", "mass:=3"]) == 0
    assert main(words) == 3
    error = capsys.readouterr().err.splitlines()[-1]
    assert "vendor_description" in error and "--package" in error


def test_meshes_are_found_in_packages_of_other_folders(workspace, tmp_path):
    mesh = workspace / "tools" / "tool.stl"
    mesh.write_text("solid")
    name = "package://vendor_tools/tool.stl"
    assert find_mesh(name) is None
    assert find_mesh(name, [workspace / "tools"]) == find_mesh(name, [workspace]) == mesh
    arm = workspace / "Vendor_ROS2_Description-main" / "urdf" / "arm.xacro"
    assert find_mesh(name, list_folders_above(arm)) == mesh
    assert find_package("vendor_tools", [tmp_path / "none"]) is None
