# SPDX-License-Identifier: Apache-2.0
"""Parameter sets check themselves, part by part."""

from dataclasses import replace

import numpy as np
import pytest
from support.altered import altered
from support.parameter_sets import identified_lift

from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import InputError
from robot_dyn_id.parameters.bodies import TermState
from robot_dyn_id.parameters.judgment import FitFor
from robot_dyn_id.parameters.parameter_set import check_format_version
from robot_dyn_id.parameters.provenance import Fingerprint


@pytest.mark.slow
def test_arrays_of_a_set_cannot_be_written_and_those_that_it_was_made_of_can():
    whole = identified_lift()
    values = whole.estimate.values.copy()
    made = altered(whole, estimate={"values": values})
    values[0] = 5.0
    assert made.estimate.values.tobytes() == whole.estimate.values.tobytes()
    for array in (made.estimate.values, made.base.independent, made.provenance.fingerprint.digests):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize(
    ("part", "name", "wrong", "words"),
    [
        ("estimate", "prior_strength", -1.0, "prior_strength holds -1.0, expected 0 or more"),
        ("estimate", "prior_strength", np.inf, "prior_strength holds inf"),
        ("residuals", "deviations", np.full((2, 12), -1.0), "deviations holds -1.0"),
        ("residuals", "speeds", np.full((2, 12), 0.5), "speeds does not ascend from 0"),
        ("residuals", "speeds", np.zeros((2, 11)), "deviations has shape"),
        ("residuals", "speeds", np.zeros(0), "deviations has shape"),
        (
            "provenance",
            "fingerprint",
            Fingerprint(np.zeros(0, np.uint32), np.zeros(1), np.zeros(0)),
            "different lengths",
        ),
    ],
)
def test_parts_that_no_identification_writes_are_refused(part, name, wrong, words):
    assert identified_lift().residuals.speeds.shape == (2, 12)
    with pytest.raises(InputError, match=words):
        altered(identified_lift(), **{part: {name: wrong}})


STATE = TermState("dahl.deflection", "lift", (0.0,), ("breakaway_displacement",), (1e-3,))
FIT = FitFor("payload", "limited", 0.4, "N m", 0.3, ("noise",), ("turn",))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"effort": {"kind": "volts"}}, "effort.kind is 'volts'"),
        ({"judgment": {"held_out_method": "guess"}}, "held_out_method is 'guess'"),
        ({"effort": {"robot_compensates": ("gravitation",)}}, "robot_compensates is 'gravitation'"),
        ({"effort": {"robot_compensates": ("unknown", "gravity")}}, "unknown and other words"),
        ({"effort": {"robot_compensates": ("gravity", "none")}}, "none and other words"),
        ({"effort": {"robot_compensates": ("none",), "kind": "gravity_compensated"}}, "contradict each other"),
        ({"terms": {"states": (replace(STATE, initial_values=()),)}}, "must have 1 to"),
        ({"terms": {"states": (replace(STATE, initial_values=(float("nan"),)),)}}, "not finite"),
        ({"terms": {"states": (replace(STATE, parameter_values=()),)}}, "one value for each"),
        ({"terms": {"states": (replace(STATE, joint="a\nb"),)}}, "one printable line"),
        ({"judgment": {"fit_for": (replace(FIT, use="tea"),)}}, "use is 'tea'"),
        ({"judgment": {"fit_for": (replace(FIT, answer="perhaps"),)}}, "answer is 'perhaps'"),
        ({"judgment": {"fit_for": (FIT, FIT)}}, "one use twice"),
        ({"judgment": {"fit_for": (replace(FIT, because=("x",) * 1001),)}}, "at most 1000"),
    ],
    ids=str,
)
def test_states_uses_and_efforts_that_nothing_writes_are_refused(changes, words):
    with pytest.raises(InputError, match=words):
        altered(identified_lift(), **changes)


def test_states_that_are_not_those_of_the_terms_are_refused():
    assert identified_lift().terms.states == ()
    with pytest.raises(InputError, match="states is not that of its URDF and terms"):
        Regressor.from_parameters(altered(identified_lift(), terms={"states": (STATE,)}))


def test_a_set_whose_urdf_was_edited_is_refused():
    whole = identified_lift()
    with pytest.raises(InputError, match="its URDF is not the one it was identified with"):
        altered(whole, robot={"urdf": whole.robot.urdf.replace("LIFT", "lift") + " "})


@pytest.mark.parametrize(("version", "words"), [(0, "is missing"), (2, "is 2")])
def test_a_set_of_another_format_version_is_refused(version, words):
    with pytest.raises(InputError, match=f"format_version {words}, this version of robot_dyn_id reads") as error:
        check_format_version(version)
    assert error.value.action.startswith("identify the robot again")
