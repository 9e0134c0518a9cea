# SPDX-License-Identifier: Apache-2.0
"""A motion and its recording watch one another: every way in which a recording ends, and every policy."""

import pytest
from robot_dyn_id.msg import RecordingStatus

from robot_dyn_id.excitation.execution.recording_watch import (
    AUTO,
    HEARTBEAT,
    IGNORE,
    REQUIRED,
    TIMEOUT,
    MotionWatch,
    RecordingReport,
    RecordingState,
    RecordingWatch,
)

TOPIC = "/joint_states"


class Bench:
    """A watch and one or more recorders that report every `HEARTBEAT`, 10 ms at a time."""

    def __init__(self, policy=AUTO, recorders=("/recorder",)):
        self.watch = RecordingWatch(policy, TOPIC)
        self.t, self.present = 100.0, set(recorders)
        self.sent = {name: self.t for name in recorders}
        self.recorders = {
            name: {
                "state": RecordingState.RECORDING,
                "reason": "",
                "topics": (TOPIC,),
                "count": 0,
                "lost": 0,
                "rate": 1,
            }
            for name in recorders
        }
        self.wait(2 * HEARTBEAT)

    def report(self, name):
        item = self.recorders[name]
        self.sent[name] = self.t
        topics = item["topics"]
        counts, lost = (item["count"],) * len(topics), (item["lost"],) * len(topics)
        self.watch.receive(self.t, RecordingReport(name, item["state"], item["reason"], topics, counts, lost))

    def wait(self, seconds, until=lambda: False):
        for _ in range(round(seconds / 0.01)):
            self.t += 0.01
            for name, item in self.recorders.items():
                item["count"] += item["rate"]
                if name in self.present and self.t - self.sent[name] >= HEARTBEAT:
                    self.report(name)
            self.watch.tick(self.t)
            self.watch.remove_absent(self.t, self.present)
            if until():
                break
        return self

    def change(self, name="/recorder", **values):
        self.recorders[name].update(values)
        self.report(name)

    @property
    def fault(self):
        return self.watch.fault(self.t)

    @property
    def obstacle(self):
        return self.watch.obstacle(self.t)


def killed(bench):
    bench.present.clear()


def full(bench):
    bench.change(state=RecordingState.FAILED, reason="no space left on device")


ENDS = {
    "failed": (full, "/recorder is not recording: failed, no space left on device", 0.02),
    "stopped": (lambda b: b.change(state=RecordingState.FINISHED), "/recorder is not recording: finished", 0.02),
    "paused": (lambda b: b.change(state=RecordingState.PAUSED), "/recorder is not recording: paused", 0.02),
    "killed": (killed, "/recorder has not reported for 1.", TIMEOUT + 0.05),
    "no messages": (
        lambda b: b.change(rate=0),
        "/recorder records no messages of /joint_states",
        TIMEOUT + HEARTBEAT + 0.05,
    ),
    "lost": (lambda b: b.change(lost=50), "/recorder has lost 50 messages of /joint_states", 0.02),
    "restarted": (lambda b: b.change(count=0), "/recorder has discarded what it recorded", 0.02),
    "other topics": (lambda b: b.change(topics=("/tf",)), "/recorder records /tf, but not /joint_states", 0.02),
}


@pytest.mark.parametrize("policy", [AUTO, REQUIRED, IGNORE])
@pytest.mark.parametrize("end", ENDS)
def test_every_end_of_a_recording_ends_the_motion_and_refuses_the_next(policy, end):
    inject, words, within = ENDS[end]
    bench = Bench(policy).wait(1.0)
    assert bench.obstacle == ""
    bench.watch.begin()
    bench.wait(3.0)
    assert bench.fault == ""
    began = bench.t
    inject(bench)
    bench.wait(3.0, until=lambda: bench.fault)
    assert bench.fault.startswith(words) if policy != IGNORE else not bench.fault
    if policy == IGNORE:
        assert bench.obstacle == ""
        return
    assert bench.t - began <= within
    bench.watch.end()
    if end in ("lost", "restarted"):  # what comes next is recorded
        assert Bench.wait(bench, 0.6).obstacle == ""
    else:
        assert bench.obstacle.startswith(words.split(" 1.")[0])


def test_a_recorder_that_has_left_is_removed_and_only_required_recording_needs_another():
    for policy, words in ((AUTO, ""), (REQUIRED, "nothing is recorded: start a recorder")):
        bench = Bench(policy)
        bench.change(state=RecordingState.FINISHED)
        assert "finished" in bench.wait(5.0).obstacle  # it is still there, and it was not started again
        bench.present.clear()
        assert bench.wait(TIMEOUT + 0.1).obstacle.startswith(words)
        assert (bench.obstacle == "") == (words == "")


def test_without_a_recorder_only_required_recording_refuses():
    for policy, words in ((AUTO, ""), (IGNORE, ""), (REQUIRED, "nothing is recorded")):
        bench = Bench(policy, recorders=())
        assert bench.obstacle[: len("nothing is recorded")] == words
        bench.watch.begin()
        assert bench.wait(3.0).fault == ""
        assert bench.watch.unmonitored() == ("" if policy == IGNORE else "recording, as there is no recorder")


def test_all_recorders_that_are_there_at_the_start_are_watched_and_no_later_one():
    bench = Bench(recorders=("/identifier", "/recorder"))
    bench.change("/identifier", state=RecordingState.IDLE)
    assert bench.obstacle.startswith("/identifier is not recording: call its start service")
    bench.change("/identifier", state=RecordingState.RECORDING)
    bench.wait(1.0).watch.begin()
    late = RecordingReport("/late", RecordingState.IDLE, "", (TOPIC,), (0,), (0,))
    bench.watch.receive(bench.t, late)
    assert bench.wait(1.0).fault == ""
    bench.change("/identifier", state=RecordingState.FAILED, reason="disk")
    assert bench.fault == "/identifier is not recording: failed, disk"


def test_a_few_lost_messages_in_many_are_no_reason_to_brake():
    bench = Bench()
    bench.watch.begin()
    bench.wait(20.0)
    bench.change(lost=15)
    assert bench.fault == ""


def test_a_process_that_was_held_up_accuses_no_recorder():
    bench = Bench()
    bench.watch.begin()
    bench.wait(1.0)
    for _ in range(3):
        bench.t += 5.0  # neither ticks nor messages
        bench.watch.tick(bench.t)
        assert bench.fault == ""
        bench.wait(1.0)
    bench.present.clear()
    assert bench.wait(TIMEOUT + 0.1).fault


def test_the_states_are_those_of_the_message():
    assert {state.name: state.value for state in RecordingState} == {
        name: getattr(RecordingStatus, name) for name in RecordingState.__members__
    }


def moved(watch, t, seconds, moving=True, fault=""):
    for k in range(round(seconds / 0.1)):
        watch.tick(t + 0.1 * k)
        if moving is not None:
            watch.receive(t + 0.1 * k, moving, fault)
    return t + seconds


def test_a_recording_notes_how_its_motion_ended():
    watch = MotionWatch()
    t = moved(watch, 0.0, 3.0)
    t = moved(watch, t, 3.0, moving=False)
    assert watch.remark == ""  # in order
    t = moved(watch, t, 1.0)
    t = moved(watch, t, 1.0, moving=False, fault="tracking error")
    assert watch.remark == "the excitation ended in a fault: tracking error"
    t = moved(watch, t, 1.0)
    assert watch.remark == ""
    t = moved(watch, t, TIMEOUT - 0.1, moving=None)
    assert watch.remark == ""
    moved(watch, t, 0.5, moving=None)
    assert watch.remark == "the excitation publisher disappeared during the motion"
    watch.begin()
    assert watch.remark == ""
