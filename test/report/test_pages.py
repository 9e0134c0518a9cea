# SPDX-License-Identifier: Apache-2.0
"""Common parts of all pages: compiled templates on disk, and attitudes of bodies."""

import sys

import jinja2
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from robot_dyn_id.model.quaternions import convert_to_quaternions
from robot_dyn_id.report.compiled_templates import CompiledTemplates


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    (tmp_path / "page.html.j2").write_text("{{ 6 * number }}")
    return tmp_path


def rendered(folder, monkeypatch, settings=b""):
    """The page, and how often a template was compiled for it."""
    compiled, compile_template = [], jinja2.Environment.compile

    def counted(*arguments, **options):
        compiled.append(arguments)
        return compile_template(*arguments, **options)

    monkeypatch.setattr(jinja2.Environment, "compile", counted)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder), autoescape=True, bytecode_cache=CompiledTemplates(folder, settings)
    )
    page = environment.get_template("page.html.j2").render(number=7)
    monkeypatch.undo()
    return page, len(compiled)


def kept(folder):
    return CompiledTemplates(folder, b"").path("page.html.j2")


def test_a_template_is_compiled_once(folder, monkeypatch):
    with monkeypatch.context() as patched:
        assert rendered(folder, patched) == ("42", 1)
    assert [file.name for file in (folder / "__pycache__").iterdir()] == [kept(folder).name]
    with monkeypatch.context() as patched:
        assert rendered(folder, patched) == ("42", 0)


@pytest.mark.parametrize("change", ["template", "settings", "cut", "code", "empty"])
def test_code_that_is_not_that_of_the_template_is_replaced(folder, monkeypatch, change):
    with monkeypatch.context() as patched:
        rendered(folder, patched)
    path, settings, page = kept(folder), b"", "42"
    content = path.read_bytes()
    if change == "template":
        (folder / "page.html.j2").write_text("{{ 7 * number }}")
        page = "49"
    elif change == "settings":
        settings = b"others"
    else:
        other = content[:-1] + bytes([content[-1] ^ 1])
        path.write_bytes({"cut": content[:-10], "code": other, "empty": b""}[change])
    for compiled in (1, 0):
        with monkeypatch.context() as patched:
            assert rendered(folder, patched, settings) == (page, compiled)


def test_code_is_kept_only_where_python_keeps_its_own(folder, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(sys, "dont_write_bytecode", True)
        assert rendered(folder, patched) == ("42", 1)
    assert not kept(folder).exists()
    (folder / "__pycache__").write_text("")  # a folder that cannot be written, for root as well
    for _ in range(2):
        with monkeypatch.context() as patched:
            assert rendered(folder, patched) == ("42", 1)
    assert sorted(file.name for file in folder.iterdir()) == ["__pycache__", "page.html.j2"]


def test_quaternions_are_those_of_scipy():
    right_angles = 90.0 * np.indices((4, 4, 4)).reshape(3, -1).T
    attitudes = [Rotation.random(500, rng=1), Rotation.from_euler("xyz", right_angles, degrees=True)]
    rotation = Rotation.concatenate(attitudes).as_matrix()
    found = convert_to_quaternions(rotation.reshape(4, -1, 3, 3))
    assert found.shape == (4, 141, 4)
    assert found.reshape(-1, 4) == pytest.approx(Rotation.from_matrix(rotation).as_quat(), abs=1e-14)
