# SPDX-License-Identifier: Apache-2.0
"""Nothing is replaced unless the user asks for it, and inputs never: one rule for every verb that writes."""

import argparse
import importlib
import json
import os
from pathlib import Path

import pytest
from support.recording_files import truth, write_bag
from support.robots import joint, link, urdf

from robot_dyn_id.cli import VERBS, main
from robot_dyn_id.cli.outputs import INPUTS, claim
from robot_dyn_id.errors import InputError, UsageError

REQUIRED = {
    "design": ("--robot", "r"),
    "identify": ("d", "--robot", "r"),
    "fleet": ("identify", "m"),
    "predict": ("d", "--robot", "r", "--parameters", "p"),
    "feedforward": ("t", "--robot", "r", "--parameters", "p"),
    "simulate": ("d", "--robot", "r", "--parameters", "p"),
    "export": ("--robot", "r", "--parameters", "p", "--format", "urdf"),
    "validate": ("d", "--robot", "r", "--parameters", "p"),
    "compare": ("run", "other"),
    "payload": ("d", "--robot", "r", "--parameters", "p", "--link", "l"),
    "chain": ("d.npz", "--robot", "r"),
    "gravity": ("d", "--robot", "r"),
    "actuators": ("d", "--robot", "r"),
    "gains": ("--bare", "d", "--loaded", "e", "--robot", "r", "--payload", "p"),
    "flexible": ("d", "--robot", "r"),
    "iterate": ("--robot", "r", "--trajectory", "t"),
    "reproduce": ("planar3r",),
    "demo": (),
    "try": ("franka",),
    "bench": ("speed",),
    "recover": ("bag",),
}
"""Verbs that write, with options that they need; none of these files exists."""

WRITES = {
    "design": ("trajectory.yaml", "preview.html"),
    "identify": ("parameters.yaml", "report.json", "report.html"),
    "fleet": ("fleet.json", "fleet.html", "pooled.yaml"),
    "predict": ("tau.npz",),
    "feedforward": ("with_efforts.yaml",),
    "simulate": ("moved.npz", "bag"),
    "export": ("model.urdf",),
    "validate": ("report.json", "report.html"),
    "compare": ("comparison.json", "comparison.html"),
    "payload": ("payload.yaml", "parameters.yaml", "report.html"),
    "chain": ("chain.yaml",),
    "gravity": ("gravity.yaml",),
    "actuators": ("actuators.yaml", "actuators.xml", "isaac_lab.txt", "actuators.urdf", "actuators.sdf"),
    "gains": ("gains.yaml",),
    "flexible": ("flexible.yaml", "report.html"),
    "iterate": ("parameters.yaml",),
    "reproduce": ("planar3r_errors.svg", "planar3r_report.html"),
    "demo": ("parameters.yaml", "report.json", "report.html", "arm.urdf", "plant.urdf", "training", "held_out", "twin"),
    "try": ("panda_exciting_trajectory.db3", "franka.urdf", "parameters.yaml", "report.json", "report.html"),
    "bench": ("bench.json", "growth.html"),
    "recover": ("bag",),
}
"""Files, or folders of bags, that each verb writes: into the folder that `--out` names, or as the file that it names."""

INTO_A_FILE = ("predict", "feedforward", "simulate", "export", "gains", "recover")
"""Verbs whose `--out` is what they write."""

FLEXIBLE = "flexible: {joints: {a: {ratio: 10}}}\n"


def options(verb):
    """Options of a verb that take a value."""
    parser = argparse.ArgumentParser()
    importlib.import_module(f"robot_dyn_id.cli.{verb}").add_arguments(parser)
    return {action.dest: action for action in parser._actions if action.nargs != 0 and action.dest != "help"}


@pytest.fixture
def refused(capfd):
    """Run a command that must be refused as wrong usage; the line on standard error."""

    def run(*words):
        capfd.readouterr()
        code = main([*map(str, words), "--json"])
        out, err = capfd.readouterr()
        assert code == 2, err
        error = json.loads(out)["error"]
        assert (error["code"], error["exit_code"]) == ("usage", 2)
        assert err.splitlines() == [f"robot-dyn-id: {error['message']}"], "something was computed before"
        return error["message"]

    return run


def test_every_option_that_names_a_file_is_known_as_input_or_output():
    paths = {"DATA", "TRAJECTORY", "FILE", "DIR", "URDF", "RUN", "BAG", "FILE.npz"}
    for verb in VERBS:
        named = {name for name, action in options(verb).items() if action.metavar in paths or name == "out"}
        assert named <= {*INPUTS, "out", "plots"}, verb
        if named & {"out", "plots"}:
            assert verb in WRITES, f"{verb} writes: hold it to the rule by a line in this file"


@pytest.mark.parametrize(("verb", "name"), [(verb, name) for verb, names in WRITES.items() for name in names])
def test_an_existing_output_is_refused_before_anything_is_read(verb, name, tmp_path, refused, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    folder = "." not in name
    (out / name).mkdir() if folder else (out / name).write_text("of earlier")
    required = list(REQUIRED[verb])
    if verb == "recover":
        Path("bag").mkdir()
    if verb == "flexible":  # its configuration and its robot say which experiments to read
        Path("flexible.yaml").write_text(FLEXIBLE)
        Path("r").write_text(urdf(joint("a", "base", "l1"), links=1))
        required += ["--config", "flexible.yaml"]
    option = "--plots" if verb == "reproduce" else "--out"
    message = refused(verb, *required, option, out / name if verb in INTO_A_FILE else out)
    assert name in message and str(out) in message
    assert folder or (out / name).read_text() == "of earlier"
    if "force" not in vars(parsed(verb, required, option, out)):
        assert "--force" not in message
    elif not folder:
        assert "--force" in message


def test_an_existing_page_of_gains_is_refused(tmp_path, refused):
    (tmp_path / "gains_report.html").write_text("of earlier")
    assert "gains_report.html" in refused("gains", *REQUIRED["gains"], "--out", tmp_path / "gains.yaml")


def parsed(verb, required, option, out):
    parser = argparse.ArgumentParser()
    importlib.import_module(f"robot_dyn_id.cli.{verb}").add_arguments(parser)
    return parser.parse_args([*required, option, str(out)])


LINKS = {
    "itself": lambda file, other: file,
    "another way": lambda file, other: file.parent / "sub" / ".." / file.name,
    "symbolic link": lambda file, other: other.symlink_to(file) or other,
    "hard link": lambda file, other: other.hardlink_to(file) or other,
}


@pytest.mark.parametrize("way", LINKS)
def test_an_output_that_is_an_input_is_refused_with_force_too(way, tmp_path, refused):
    (tmp_path / "sub").mkdir()
    robot = tmp_path / "arm.urdf"
    robot.write_text(f'<robot name="x">{link("base")}</robot>')
    target = LINKS[way](robot, tmp_path / "other.urdf")
    before = robot.read_bytes()
    message = refused(
        "export", "--robot", robot, "--parameters", tmp_path / "p.yaml", "--format", "urdf", "--out", target, "--force"
    )
    assert "is an input (--robot)" in message
    assert robot.read_bytes() == before


def inputs_of(verb):
    return sorted({*INPUTS} & set(options(verb)))


@pytest.mark.parametrize("verb", [verb for verb in WRITES if inputs_of(verb) and verb != "recover"])
def test_no_input_of_any_verb_may_be_its_output(verb, tmp_path):
    for name in inputs_of(verb):
        file = tmp_path / f"{name}.yaml"
        file.write_text("{}")
        value = [str(file)] if options(verb)[name].nargs == "+" else str(file)
        with pytest.raises(UsageError, match="is an input"):
            claim(argparse.Namespace(**{name: value}, force=True), file)


def test_files_behind_inputs_are_inputs(tmp_path):
    """Those of a bag, the parameters of an earlier run, and the prior that a configuration names."""
    bag = write_bag(tmp_path / "bag", truth(3).messages())
    run, prior, config = tmp_path / "run", tmp_path / "prior.yaml", tmp_path / "config.yaml"
    run.mkdir()
    (run / "parameters.yaml").write_text("")
    prior.write_text("")
    config.write_text(f"prior: {prior}\n")
    for given, file in (
        ({"data": [str(bag)]}, bag / "metadata.yaml"),
        ({"data": str(bag)}, bag / "bag.db3"),
        ({"after": str(run)}, run / "parameters.yaml"),
        ({"config": str(config)}, prior),
    ):
        with pytest.raises(UsageError, match="is an input"):
            claim(argparse.Namespace(**given, force=True), file)
        claim(argparse.Namespace(**given, force=True), tmp_path / "new.yaml")


def test_the_model_of_an_identification_is_never_its_prior(tmp_path, refused):
    (tmp_path / "parameters.yaml").write_text("earlier")
    refused("identify", "d", "--robot", "r", "--prior", tmp_path / "parameters.yaml", "--out", tmp_path, "--force")
    assert (tmp_path / "parameters.yaml").read_text() == "earlier"


def test_an_output_may_be_replaced_on_request_and_a_dangling_link_is_one(tmp_path):
    file = tmp_path / "link.urdf"
    file.symlink_to(tmp_path / "nowhere")
    assert not file.exists() and os.path.lexists(file)
    with pytest.raises(UsageError, match=r"holds link\.urdf already; choose another output, or --force"):
        claim(argparse.Namespace(force=False), file)
    claim(argparse.Namespace(force=True), file)
    with pytest.raises(UsageError, match="is a folder; give a file"):
        claim(argparse.Namespace(force=True), tmp_path)


PROGRESS_FREE = [(verb, way) for verb in WRITES if verb != "recover" for way in ("file", "read-only", "long name")]


@pytest.mark.parametrize(("verb", "way"), PROGRESS_FREE)
def test_an_output_that_cannot_be_made_is_refused_before_anything_is_read(verb, way, tmp_path, capfd, monkeypatch):
    """A file in the place of a folder, a folder of the system, a name that no file system takes."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    folder = {"file": tmp_path / "file", "read-only": Path("/proc/1/new"), "long name": tmp_path / ("x" * 300)}[way]
    required = list(REQUIRED[verb])
    if verb == "flexible":
        Path("flexible.yaml").write_text(FLEXIBLE)
        Path("r").write_text(urdf(joint("a", "base", "l1"), links=1))
        required += ["--config", "flexible.yaml"]
    option = "--plots" if verb == "reproduce" else "--out"
    out = folder / WRITES[verb][0] if verb in INTO_A_FILE else folder
    capfd.readouterr()
    assert main([verb, *required, option, str(out), "--json"]) == 3
    out, err = capfd.readouterr()
    assert err.splitlines() == [f"robot-dyn-id: {json.loads(out)['error']['message']}"], "something was read before"
    reason = {"file": "is a file; give a folder", "read-only": "cannot write there", "long name": "too long"}[way]
    assert reason in err and str(folder) in err
    assert (tmp_path / "file").read_text() == "mine"


def test_a_name_that_is_too_long_for_a_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="File name too long"):
        claim(argparse.Namespace(force=False), tmp_path / "new" / ("x" * 250 + ".yaml"))
    with pytest.raises(InputError, match="File name too long"):
        claim(argparse.Namespace(force=False), tmp_path / ("x" * 300 + ".yaml"))
    claim(argparse.Namespace(force=False), tmp_path / "new" / ("x" * 200 + ".yaml"))
    assert not list(tmp_path.iterdir()), "nothing is made before there are results"


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes to every folder")
def test_a_folder_without_permission_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="cannot write there"):
        claim(argparse.Namespace(force=False), tmp_path / "new" / "model.urdf")


def test_what_a_robot_description_consists_of_is_an_input(tmp_path, refused):
    """Files that a xacro file includes, in turn what these include, YAML that it reads, and meshes."""
    pytest.importorskip("xacro", reason="xacro is not installed")
    head = '<robot name="x" xmlns:xacro="http://www.ros.org/wiki/xacro">'
    robot, macro, inner, values = (tmp_path / name for name in ("arm.xacro", "macro.xacro", "inner.xacro", "v.yaml"))
    mesh = tmp_path / "meshes" / "l1.stl"
    mesh.parent.mkdir()
    mesh.write_text("solid")
    values.write_text("{m: 1.0}")
    robot.write_text(
        f'{head}<xacro:property name="part" value="macro"/><xacro:include filename="${{part}}.xacro"/></robot>'
    )
    macro.write_text(f'{head}<xacro:include filename="inner.xacro"/></robot>')
    inner.write_text(
        f'{head}<xacro:property name="v" value="${{xacro.load_yaml(\'v.yaml\')}}"/><link name="base"/><link name="l1">'
        '<visual><geometry><mesh filename="meshes/l1.stl"/></geometry></visual>'
        '<inertial><mass value="${v[\'m\']}"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>'
        f"{joint('a', 'base', 'l1')}</robot>"
    )
    words = ("export", "--robot", robot, "--parameters", tmp_path / "p.yaml", "--format", "urdf", "--force", "--out")
    for file in (macro, inner, values, mesh):
        before = file.read_bytes()
        assert f"{file}: is an input (--robot)" in refused(*words, file)
        assert file.read_bytes() == before
