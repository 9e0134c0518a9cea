# SPDX-License-Identifier: Apache-2.0
"""Joint states with a counter in the header, published as bytes that a test keeps, and a recorder in a process of its own."""

import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

from mcap.exceptions import McapError
from mcap.reader import make_reader
from mcap.records import Message
from mcap.stream_reader import StreamReader
from rclpy.node import Node
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from robot_dyn_id.nodes.runtime.robot_node import RELIABLE
from robot_dyn_id.recordings.bag_writer import BagWriter

JOINTS = [f"joint_{number}" for number in range(1, 8)]


class Source(Node):
    """Publishes `count` messages (`None`: no end) at `rate`, once `listeners` are there; `published` are their bytes."""

    def __init__(
        self, topic="joint_states", qos=RELIABLE, rate=1000.0, count=None, name="source", listeners=1, **options
    ):
        super().__init__(name, **options)
        self.count, self.listeners, self.rate = count, listeners, rate
        self.start, self.due = None, 0
        self.published = []
        self.message = JointState(name=JOINTS)
        self.out = self.create_publisher(JointState, topic, qos)
        self.create_timer(1.0 / rate, self.tick)

    @property
    def done(self):
        return self.count is not None and len(self.published) >= self.count

    def tick(self):
        """Publish what is due: a timer that is late leaves ticks out."""
        if self.start is None and self.out.get_subscription_count() >= self.listeners:
            self.start = time.monotonic()
        while self.start is not None and not self.done and self.due <= (time.monotonic() - self.start) * self.rate:
            self.due += 1
            self.publish()

    def publish(self):
        number = len(self.published)
        self.message.header.frame_id = str(number)
        self.message.header.stamp = self.get_clock().now().to_msg()
        self.message.position = self.message.velocity = self.message.effort = [0.001 * number] * len(JOINTS)
        data = serialize_message(self.message)
        self.published.append(data)
        self.out.publish(data)


def start_recorder(*arguments, before="", **options):
    """`ros2 run robot_dyn_id recorder` where there is no `ros2`; `before` is run in the process first."""
    code = f"import sys\n{before}\nfrom robot_dyn_id.nodes.executables import run_executable\nsys.exit(run_executable('recorder'))"
    return subprocess.Popen(
        [sys.executable, "-c", code, "--ros-args", *arguments], stderr=subprocess.PIPE, text=True, **options
    )


def bytes_on_disk(folder, topic="/joint_states"):
    """Every message of a finished bag, by the reader of another library."""
    (path,) = Path(folder).glob("*.mcap")
    with path.open("rb") as file:
        return [message.data for _, channel, message in make_reader(file).iter_messages() if channel.topic == topic]


def bytes_of_unfinished(folder):
    """Messages of the complete chunks of a bag whose writer was killed, by the stream reader of another library."""
    (path,) = Path(folder).glob("*.mcap")
    messages = []
    with path.open("rb") as file:
        try:
            for record in StreamReader(file, validate_crcs=True).records:
                if isinstance(record, Message):
                    messages.append(record.data)
        except (McapError, ValueError, struct.error):  # it ends where the process was killed
            pass
    return messages


def block_disk(monkeypatch):
    """Block writes to the disk until the yielded event is set; for fixtures."""
    goes, write = threading.Event(), BagWriter.write

    def wait_and_write(self, *arguments):
        goes.wait()
        write(self, *arguments)

    monkeypatch.setattr(BagWriter, "write", wait_and_write)
    yield goes
    goes.set()
