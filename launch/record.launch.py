# SPDX-License-Identifier: Apache-2.0
"""Recording of a robot that is moved by other nodes."""

from robot_dyn_id.nodes.launching import declare_arguments, describe, start_node


def generate_launch_description():
    return describe(
        *declare_arguments("bag", "topics"),
        start_node("recorder", ["topics"], folder="{bag}"),
    )
