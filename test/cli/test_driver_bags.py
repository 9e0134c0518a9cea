# SPDX-License-Identifier: Apache-2.0
"""Commands on bags of drivers' types: the same answer as from other formats, and the option that an old bag needs."""

import json
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from support.driver_messages import INTERFACES, header, message, stamped, write_topics
from support.recording_files import SECOND, START

KIND = "control_msgs/msg/DynamicJointState"


@pytest.fixture(scope="module")
def old_bag(tmp_path_factory, recording):
    """The simulated recording as dynamic joint states, in a database without definitions."""
    samples, names = recording.samples, list(recording.joint_names)

    def make(row, stamp):
        values = [
            message(
                "control_msgs/msg/InterfaceValue",
                interface_names=["effort", "position"],
                values=np.array([samples.tau[row, joint], samples.q[row, joint]]),
            )
            for joint in range(len(names))
        ]
        return message(KIND, header=header(stamp), joint_names=names, interface_values=values)

    stamps = START + np.round(samples.t * SECOND).astype(np.int64)
    topics = {"/dynamic_joint_states": (KIND, stamped(stamps, make))}
    (file,) = write_topics(tmp_path_factory.mktemp("old") / "bag", topics, storage="sqlite3").glob("*.db3")
    with closing(sqlite3.connect(file)) as database:
        database.execute("DROP TABLE message_definitions")
        database.commit()
    return file


def test_an_old_bag_needs_definitions_which_the_error_names(cli, files, old_bag):
    words = ("validate", old_bag, "--robot", files / "arm.urdf", "--parameters", files / "parameters.yaml", "--json")
    code, out, err = cli(*words)
    error = json.loads(out)["error"]
    assert (code, error["code"], error["exit_code"]) == (3, "definition_missing", 3)
    assert KIND in err and "control_msgs/msg/DynamicJointState.msg" in err and "--definitions DIR" in err


@pytest.mark.slow
def test_dynamic_joint_states_give_what_a_table_gives(cli, files, old_bag):
    answers = []
    for data, more in ((files / "data.npz", ()), (old_bag, ("--definitions", INTERFACES))):
        given = ("--robot", files / "arm.urdf", "--parameters", files / "parameters.yaml", "--json")
        code, out, err = cli("validate", data, *given, *more)
        assert code == 0, err
        answers.append(json.loads(out)["held_out"]["all_joints_nrmse"])
    assert answers[0] == pytest.approx(answers[1], rel=1e-6)
