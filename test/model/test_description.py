# SPDX-License-Identifier: Apache-2.0
"""Robot descriptions compared by meaning."""

import re
from xml.etree import ElementTree

import pytest
from support.simulated import ARM, GRIPPER

from robot_dyn_id.model.description import hash_description, is_same_robot
from robot_dyn_id.model.robot import RobotModel

COLLISION = '<collision name="a"><geometry><box size="1 1 1"/></geometry></collision>'


def reordered(text):
    root = ElementTree.fromstring(text)
    root[:] = list(root)[::-1]
    return ElementTree.tostring(root, encoding="unicode")


def with_collision(text, shape=COLLISION):
    return text.replace("</link>", f"{shape}</link>", 1)


SAME = {
    "indentation": lambda text: re.sub(r">\s*<", ">\n\t<", text),
    "comment": lambda text: text.replace("</robot>", "<!-- calibrated --></robot>"),
    "order of elements": reordered,
    "spelling of numbers": lambda text: re.sub(r'mass value="([^"]*)"', r'mass value="\g<1>e0"', text),
    "negative zero": lambda text: text.replace('"0 0 0"', '"0.0 -0.0  0e0"'),
    "simulator": lambda text: text.replace("</robot>", '<gazebo reference="l1"><mu1>0.2</mu1></gazebo></robot>'),
    "visual": lambda text: with_collision(text, "<visual><geometry><sphere radius='1'/></geometry></visual>"),
    "collision": with_collision,
    "default dynamics": lambda text: text.replace("</joint>", '<dynamics damping="0"/></joint>', 1),
}

OTHER = {
    "name": lambda text: text.replace('name="small"', 'name="other"'),
    "mass": lambda text: re.sub(r'<mass value="([^"]*)"', r'<mass value="1\1"', text, count=1),
    "inertia": lambda text: re.sub(r'ixx="([^"]*)"', r'ixx="1\1"', text, count=1),
    "axis": lambda text: re.sub(r'<axis xyz="[^"]*"', '<axis xyz="0 0.6 0.8"', text, count=1),
    "origin": lambda text: re.sub(r'(<joint .*?<origin xyz=")[^"]*"', r'\g<1>0.1 0.2 0.4"', text, count=1, flags=re.S),
    "limit": lambda text: re.sub(r'effort="[^"]*"', 'effort="77"', text, count=1),
    "joint name": lambda text: re.sub(r'<joint name="[^"]*"', '<joint name="new"', text, count=1),
    "type": lambda text: text.replace('type="revolute"', 'type="prismatic"', 1),
    "mimic": lambda text: text.replace('multiplier="-0.5"', 'multiplier="0.5"'),
}


@pytest.mark.parametrize("change", SAME)
def test_another_text_with_the_same_content_is_the_same_robot(change):
    text = SAME[change](ARM)
    assert text != ARM
    assert is_same_robot(ARM, text) and hash_description(ARM) == hash_description(text)
    RobotModel.from_urdf(text)  # still a description


@pytest.mark.parametrize("change", OTHER)
def test_another_content_is_another_robot(change):
    text = OTHER[change](GRIPPER)
    assert text != GRIPPER
    assert not is_same_robot(GRIPPER, text)


def test_collision_geometry_counts_where_motions_were_checked():
    base, named = with_collision(ARM), with_collision(ARM, COLLISION.replace('name="a"', 'name="b"'))
    larger = with_collision(ARM, COLLISION.replace("1 1 1", "1 1 2"))
    hashes = [hash_description(text, collisions=True) for text in (ARM, base, named, larger)]
    assert hashes[1] == hashes[2] and len({hashes[0], hashes[1], hashes[3]}) == 3


def test_a_text_that_is_not_xml_is_compared_literally():
    assert is_same_robot("<robot", "<robot") and not is_same_robot("<robot", "<robot ")
