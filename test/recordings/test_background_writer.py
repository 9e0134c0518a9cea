# SPDX-License-Identifier: Apache-2.0
"""A blocked disk is bridged by a backlog, then reported; accepted messages are in the bag."""

import os
import threading
import time

import pytest
from support.joint_state_source import block_disk, bytes_on_disk
from support.processes import HANG_S
from support.recording_files import JOINT_STATE, TOPIC, truth, types

from robot_dyn_id.errors import InputError
from robot_dyn_id.recordings.background_writer import BackgroundWriter, Stream

MESSAGES = truth(2000).messages()


def stream(topic=TOPIC):
    schema, type_hash = types().generate_msgdef(JOINT_STATE, ros_version=2)[0], types().hash_rihs01(JOINT_STATE)
    return Stream(topic, JOINT_STATE, schema, type_hash, offered_qos=[], stamped=True)


def feed(writer, target, messages=MESSAGES):
    for log_time, data in messages:
        writer.add(target, log_time, data)


@pytest.fixture
def blocked_disk(monkeypatch):
    yield from block_disk(monkeypatch)


def test_all_messages_are_in_the_bag(tmp_path):
    writer, topics = BackgroundWriter(tmp_path / "bag"), [stream("/a"), stream("/b")]
    for target in topics:
        writer.announce(target)
    for message in MESSAGES:
        for target in topics:
            feed(writer, target, [message])
    writer.end()
    feed(writer, topics[0])  # too late
    assert writer.ended(HANG_S)
    assert writer.failure is None
    for target in topics:
        assert bytes_on_disk(tmp_path / "bag", target.topic) == [data for _, data in MESSAGES]
        assert target.statistics.count == len(MESSAGES)
        assert target.statistics.rate == pytest.approx(500.0, rel=0.01)


def test_a_blocked_disk_neither_delays_the_caller_nor_loses_messages(tmp_path, blocked_disk):
    writer, target = BackgroundWriter(tmp_path / "bag"), stream()
    writer.announce(target)
    feed(writer, target)
    writer.end()
    assert not writer.ended(0.3)
    blocked_disk.set()
    assert writer.ended(HANG_S)
    assert writer.failure is None
    assert bytes_on_disk(tmp_path / "bag") == [data for _, data in MESSAGES]


def test_a_disk_blocked_for_too_long_is_reported(tmp_path, blocked_disk):
    writer, target = BackgroundWriter(tmp_path / "bag", backlog=100_000), stream()
    writer.announce(target)
    feed(writer, target)
    assert writer.failure == f"{tmp_path / 'bag'}: the disk is too slow (0.1 MB wait for it); what came before stays"
    blocked_disk.set()
    assert writer.ended(HANG_S)
    found = bytes_on_disk(tmp_path / "bag")
    assert found == [data for _, data in MESSAGES[: len(found)]]
    assert 100_000 < sum(map(len, found)) < 101_000


def test_a_lone_message_reaches_the_disk_without_an_end(tmp_path):
    writer, target = BackgroundWriter(tmp_path / "bag"), stream()
    writer.announce(target)
    feed(writer, target, MESSAGES[:1])
    end = time.monotonic() + HANG_S
    path = tmp_path / "bag" / "bag_0.mcap"
    while MESSAGES[0][1] not in path.read_bytes():
        assert time.monotonic() < end
        time.sleep(0.01)
    writer.end()
    assert writer.ended(HANG_S)


def test_an_interruption_is_excluded_from_the_statistics(tmp_path):
    writer, target = BackgroundWriter(tmp_path / "bag"), stream()
    writer.announce(target)
    feed(writer, target, MESSAGES[:1000])
    writer.interrupt(target)
    feed(writer, target, MESSAGES[1500:])
    writer.end()
    assert writer.ended(HANG_S)
    assert (target.statistics.count, target.statistics.stamps.count) == (1500, 1498)
    assert target.statistics.longest < 0.01


@pytest.mark.slow
def test_a_count_that_falls_has_its_reason_already(tmp_path):
    for number in range(20):
        folder = tmp_path / f"bag_{number}"
        writer, target = BackgroundWriter(folder), stream()
        writer.announce(target)
        feed(writer, target)
        end = time.monotonic() + HANG_S
        while not writer.stored(TOPIC) and time.monotonic() < end:
            time.sleep(0.01)
        (folder / f"bag_{number}_0.mcap").unlink()
        while writer.stored(TOPIC) and time.monotonic() < end:
            pass
        assert writer.failure is not None and "was removed or renamed" in writer.failure


def test_a_folder_that_exists(tmp_path):
    threads = threading.active_count()
    with pytest.raises(InputError, match="exists, and nothing is overwritten"):
        BackgroundWriter(tmp_path)
    assert threading.active_count() == threads
    assert os.listdir(tmp_path) == []
