# SPDX-License-Identifier: Apache-2.0
"""The health gate: each check fires on its own fault, and on nothing else."""

from dataclasses import replace

import numpy as np
import pytest
from support.simulated import Simulated, changed

from robot_dyn_id.errors import UnsafeDataError
from robot_dyn_id.excitation import random_fourier
from robot_dyn_id.signals.diagnosis import delay, nominal_agreement
from robot_dyn_id.signals.health import CHECKS, compare_with_nominal, examine, refuse
from robot_dyn_id.signals.survey import survey
from robot_dyn_id.signals.trials import FilteredTrials, plan_signals

ROBOT = Simulated()
FREE = replace(ROBOT.model, limits=replace(ROBOT.model.limits, lower=np.full(3, -np.inf), upper=np.full(3, np.inf)))


@pytest.fixture(scope="module")
def healthy():
    return ROBOT.record(duration=30.0, noise=0.05)


def findings(recording, model=ROBOT.model):
    return examine(survey([recording], recording.joint_names, {}), model)


def scaled(*factors):
    return lambda values: values * factors


def shifted(*amounts):
    return lambda values: values + amounts


def late_velocity(recording):
    return random_fourier(ROBOT.model, 1).evaluate(recording.samples.t - 0.13)[1].T


def loses_rows(share):
    def lose(tau):
        tau[: int(share * len(tau))] = np.nan
        return tau

    return lose


FAULTS = {
    "zero": ({"tau": scaled(1, 0, 1)}, "effort", True, "effort of elbow is constant or zero"),
    "constant": ({"tau": lambda tau: np.column_stack([tau[:, :2], np.full(len(tau), 2.5)])}, "effort", True, "of wrist"),
    "counts": ({"tau": lambda tau: np.column_stack([np.round(tau[:, 0]), tau[:, 1:]])}, "effort", False, "of shoulder"),
    "posture": ({"q": scaled(0, 0, 0), "dq": scaled(0, 0, 0)}, "motion", True, "no joint moves"),
    "one still": ({"q": scaled(1, 0, 1), "dq": scaled(1, 0, 1)}, "motion", False, "elbow hardly moves"),
    "degrees": ({"q": scaled(*[57.29578] * 3), "dq": scaled(*[57.29578] * 3)}, "degrees", True, "look like degrees"),
    "limits": ({"q": shifted(0, 0.8, 0)}, "limits", False, "positions of elbow leave the URDF's limits"),
    "rows": ({"tau": loses_rows(0.3)}, "dropped", True, "30% of the rows are unusable (900 effort missing"),
    "gap": ({"t": lambda t: t + (t > 15)}, "dropped", False, "1 gaps in the time stamps"),
    "velocity": ({"dq": None}, "velocity", False, "late by 1"),
}  # fmt: skip


def faulty(healthy, name):
    changes = dict(FAULTS[name][0])
    return changed(healthy, **(changes if name != "velocity" else {"dq": late_velocity(healthy)}))


def test_healthy_data_have_no_findings(healthy):
    assert findings(healthy) == ()
    assert findings(changed(healthy, dq=None)) == ()
    assert findings(changed(healthy, tau=loses_rows(0.1))) == ()
    noise = 0.05 * np.random.default_rng(0).normal(size=healthy.samples.q.shape)
    assert findings(changed(healthy, dq=lambda dq: dq + noise)) == ()  # the derivative is taken, and nothing is wrong


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found_and_no_other(healthy, name):
    _, check, refuses, words = FAULTS[name]
    (finding,) = findings(faulty(healthy, name))
    assert (finding.check, finding.refuses) == (check, refuses)
    assert finding.check in CHECKS
    assert words in finding.text
    assert "\n" not in finding.text


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault[2]])
def test_what_refuses_can_be_overruled_by_name(healthy, name):
    found, check = findings(faulty(healthy, name)), FAULTS[name][1]
    with pytest.raises(UnsafeDataError, match=rf"bag: .*\(health check: {check}\)") as error:
        refuse(found, ignore=(), sources=("bag",))
    assert FAULTS[name][3] in str(error.value)
    with pytest.raises(UnsafeDataError):
        refuse(found, [other for other in CHECKS if other != check], ("bag",))
    assert refuse(found, [check], ("bag",)) == tuple(finding.text for finding in found)


def test_what_warns_is_passed_on(healthy):
    found = findings(faulty(healthy, "gap"))
    assert refuse(found, (), ("bag",)) == (found[0].text,)


def test_degrees_need_limits_to_be_seen(healthy):
    turned = faulty(healthy, "degrees")
    assert findings(turned, FREE) == ()


def agreement(recording):
    plan = plan_signals(survey([recording], recording.joint_names, {}), None, 4, "auto")
    trials = FilteredTrials([recording], recording.joint_names, {}, plan)
    return trials, nominal_agreement(ROBOT.regressor, trials)


def against_nominal(recording):
    return compare_with_nominal(ROBOT.joints, *agreement(recording)[1])


def test_efforts_are_compared_with_the_urdf(healthy):
    slope, correlation, rms = agreement(healthy)[1]
    heavy = rms > 0.1 * rms.max()
    assert heavy.sum() >= 2
    np.testing.assert_allclose(slope[heavy], 1.15, atol=0.25)  # the true robot is that much heavier, and has friction
    assert np.all(correlation[heavy] > 0.8)
    assert against_nominal(healthy) == ()


def test_a_wrong_sign_is_found_with_its_joint(healthy):
    (finding,) = against_nominal(changed(healthy, tau=scaled(1, -1, 1)))
    assert (finding.check, finding.refuses) == ("sign", True)
    assert "effort of elbow has the wrong sign" in finding.text


def test_amperes_are_found_unless_one_joint_is_right(healthy):
    (finding,) = against_nominal(changed(healthy, tau=scaled(0.05, 0.08, 0.06)))
    assert (finding.check, finding.refuses) == ("amperes", True)
    assert "look like amperes; give gains" in finding.text
    assert against_nominal(changed(healthy, tau=scaled(0.05, 1.0, 0.05))) == ()


@pytest.mark.parametrize("milliseconds", [-20, 0, 3, 20])
def test_a_delay_of_the_effort_is_told_with_its_size(milliseconds):
    exact = ROBOT.record(duration=30.0, rate=1000.0)
    tau = np.roll(exact.samples.tau, milliseconds, axis=0)
    moved = changed(exact, rows=slice(100, -100, 10), tau=tau[100:-100:10])
    trials, _ = agreement(moved)
    warnings = delay(ROBOT.regressor, ROBOT.base.independent, ROBOT.base_values, trials)
    if abs(milliseconds) < 5:
        assert warnings == ()
    else:
        word = "late" if milliseconds > 0 else "early"
        assert len(warnings) == 3
        for warning, name in zip(warnings, ROBOT.joints, strict=True):
            assert warning.startswith(f"joint {name}: ")
            told = float(warning.split("about ")[1].split(" ms")[0])
            assert 0.85 < told / milliseconds < 1.15
            assert f"ms {word} against" in warning
