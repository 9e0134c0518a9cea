"""Files that would hang, crash or fill the memory: a declared error at once, within bounded memory."""

import numpy as np
import pytest

from robot_dyn_id.errors import InputError, ModelError
from robot_dyn_id.excitation.meshes import find_mesh, read_mesh
from robot_dyn_id.excitation.srdf import disabled_pairs

LAUGHS = (
    '<!DOCTYPE robot [<!ENTITY a0 "ha">'
    + "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12))
    + "]><robot>&a11;</robot>"
)


# --- Robots -------------------------------------------------------------------------------------------------------

SRDFS = {
    "entities": (LAUGHS, "a document type is not allowed"),
    "depth": ("<a>" * 300 + "</a>" * 300, "nested deeper than 200"),
    "not XML": ("\0\1\2", "broken XML"),
    "size": (" " * (16 * 2**20 + 1), "larger than 16 MiB"),
}


@pytest.mark.parametrize("case", SRDFS)
def test_srdf(case, tmp_path):
    text, words = SRDFS[case]
    (tmp_path / "arm.srdf").write_text(text)
    with pytest.raises(InputError, match=rf"arm\.srdf: .*{words}"):
        disabled_pairs(tmp_path / "arm.srdf")


def collada(inside):
    head = "<COLLADA version='1.4.1'><library_visual_scenes><visual_scene id='a'>"
    return f"{head}{inside}</visual_scene></library_visual_scenes></COLLADA>"


MESHES = {
    "depth.dae": (collada("<node>" * 300_000 + "</node>" * 300_000), "nested deeper than 200"),
    "entities.dae": (LAUGHS.replace("robot", "COLLADA"), "a document type is not allowed"),
    "broken.dae": ("<COLLADA>", "not a mesh that can be read"),
    "size.stl": (None, "larger than 128 MiB"),
    "count.stl": ("x" * 80 + "\x7f" * 4, "not a mesh that can be read"),
}


@pytest.mark.parametrize("name", MESHES)
def test_mesh(name, tmp_path):
    content, words = MESHES[name]
    file = tmp_path / name
    file.write_text(content or "")
    if content is None:
        with file.open("wb") as stream:
            stream.truncate(2**40)
    with pytest.raises(InputError, match=words):
        read_mesh(file, np.ones(3))


@pytest.mark.parametrize("name", ["http://[", "a" * 5000, "package://a/" + "b" * 5000, "\0", "file:///dev/zero"])
def test_names_of_meshes_that_are_no_files(name):
    assert find_mesh(name) is None


def test_messages_cannot_control_a_terminal_or_fill_a_log():
    assert str(ModelError("a\x1b[2Jb\x07")) == r"a\x1b[2Jb\x07"
    long = str(ModelError("x" * 100_000 + ": do this"))
    assert len(long) < 2100
    assert long.endswith(": do this")
