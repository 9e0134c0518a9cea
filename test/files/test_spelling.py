# SPDX-License-Identifier: Apache-2.0
"""Old spellings are refused by naming the present one: keys of all files, options."""

import pytest

from robot_dyn_id.cli import main
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.excitation.design.settings import DesignSettings
from robot_dyn_id.files.design import read_design_settings
from robot_dyn_id.files.payload import read_payload
from robot_dyn_id.files.spelling import RENAMED, refuse_old_spelling, refuse_old_spellings
from robot_dyn_id.files.values import list_field_hints


def test_no_present_name_is_an_old_one():
    assert not set(RENAMED) & set(RENAMED.values())
    assert {"optimizer", "free_center"} <= {*list_field_hints(DesignSettings), *RENAMED.values()}


@pytest.mark.parametrize("old", RENAMED)
def test_every_old_name_is_refused_with_the_present_one(old):
    with pytest.raises(UsageError, match=f"^{old}: is now spelled {RENAMED[old]}$"):
        refuse_old_spelling(old)
    with pytest.raises(UsageError, match=rf"^a\.{old}: is now spelled {RENAMED[old]}$"):
        refuse_old_spellings({"b": [1], "a": {old: 1}})
    refuse_old_spelling(RENAMED[old])


@pytest.mark.parametrize("old", ["optimiser", "free_centre"])
def test_a_design_file_with_an_old_key(old, tmp_path):
    file = tmp_path / "design.yaml"
    file.write_text(f"{old}: true\n")
    with pytest.raises(UsageError, match=rf"design\.yaml: {old}: is now spelled {RENAMED[old]}"):
        read_design_settings(file)


def test_a_payload_file_with_an_old_key(tmp_path):
    file = tmp_path / "payload.yaml"
    file.write_text("link: hand\nmass: 1.0\ncentre_of_mass: [0, 0, 0]\n")
    with pytest.raises(InputError, match=r"payload\.yaml: centre_of_mass: is now spelled center_of_mass"):
        read_payload(file)


@pytest.mark.parametrize("option", ["--optimiser", "--optimiser=gradient"])
def test_an_old_option(option, capfd):
    assert main(["design", "--robot", "arm.urdf", option, "gradient"]) == 2
    assert capfd.readouterr().err == "robot-dyn-id: --optimiser: is now spelled --optimizer\n"
