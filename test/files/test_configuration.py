# SPDX-License-Identifier: Apache-2.0
"""The configuration file: every key, and every way to get one wrong."""

from dataclasses import fields

import pytest

from robot_dyn_id.dynamics.terms import Coulomb, Coupling, ImprovedStribeck, Offset, RotorInertia, Viscous
from robot_dyn_id.errors import UsageError
from robot_dyn_id.estimators import Consistent, GeneralizedLeastSquares, OrdinaryLeastSquares, WeightedLeastSquares
from robot_dyn_id.files.configuration import Configuration, JointConfiguration, parse_configuration, read_configuration
from robot_dyn_id.files.flexible_section import ExperimentSettings, FlexibleSettings
from robot_dyn_id.flexible import FlexibleJoint
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.thresholds import Thresholds
from robot_dyn_id.signals.cleaning import Drive

EVERYTHING = """
joints:
  shoulder: {gain: 13.6, sign: -1}
  wrist: {held: 0.5}
  finger: {sign: -1}
  lift: {gain: 1, reversal_speed: 0.02}
identify: [shoulder, elbow]
gravity: [0, 3.0, -9.0]
topic: /arm/joint_states
reference_topic: /arm/wanted
channel_topics: {current: "/motors:effort", temperature: {elbow: /elbow/temperature}}
recorded_joints: [shoulder, elbow]
position_unit: deg
definitions: /opt/messages
cutoff: 4
motion_cutoff: 3
sample_rate: 250
filter_order: 6
velocity: derivative
terms:
  viscous:
  coulomb: {smoothing_width: 0.05}
  rotor_inertia: {}
couplings:
  wrist: {weights: {shoulder: 1, elbow: -0.5}, terms: [rotor_inertia, viscous]}
  waist: {weights: {elbow: 2}, terms: {improved_stribeck: {stribeck_velocity: 0.1, signed_square: true}}}
estimator: {name: generalized, autoregressive_order: 3, passes: 1, method: gram}
pivots: qr
reversal_speed: auto
rest_speed: 0.001
period: 5.0
essential: 0.2
base_tilt: false
bootstrap: 50
thresholds: {bad_nrmse: 0.2, joint_nrmse: 0.4, constant_share: 0.1, nominal_margin: 0, explained: 0.6,
             condition_number: 500, dropped_share: 0.02, outside_share: 0.2}
ignore: [effort_sign, positions_in_degrees]
effort_kind: torque
robot_compensates: [gravity, coriolis]
exclude: {monday.npz: [[5, 6.5], [0, 1]]}
flexible:
  joints: {elbow: {ratio: -101, torque_sensor: false, motor: m2, torque_constant: 0.1}, shoulder: {ratio: 50}}
  smoothing_width: 0.002
  limit: .inf
  scaling: none
  motor_topic: /motors
  experiments: {poses.csv: {static: true}, both.npz: {periodic: true, moving: [elbow]}}
"""


def test_every_key_arrives(tmp_path):
    file = tmp_path / "robot.yaml"
    file.write_text(EVERYTHING)
    configuration = read_configuration(file)
    assert configuration == Configuration(
        joints={
            "shoulder": JointConfiguration(gain=13.6, sign=-1.0),
            "wrist": JointConfiguration(held=0.5),
            "finger": JointConfiguration(sign=-1.0),
            "lift": JointConfiguration(gain=1.0, reversal_speed=0.02),
        },
        identify=("shoulder", "elbow"),
        gravity=(0.0, 3.0, -9.0),
        topic="/arm/joint_states",
        reference_topic="/arm/wanted",
        channel_topics={"current": "/motors:effort", "temperature": {"elbow": "/elbow/temperature"}},
        recorded_joints=("shoulder", "elbow"),
        position_unit="deg",
        definitions="/opt/messages",
        settings=Settings(
            cutoff=4.0,
            motion_cutoff=3.0,
            sample_rate=250.0,
            filter_order=6,
            velocity="derivative",
            terms=(Viscous(), Coulomb(0.05), RotorInertia()),
            couplings=(
                Coupling("wrist", (("shoulder", 1.0), ("elbow", -0.5)), (RotorInertia(), Viscous())),
                Coupling("waist", (("elbow", 2.0),), (ImprovedStribeck(0.1, signed_square=True),)),
            ),
            estimator=GeneralizedLeastSquares(3, 1, "gram"),
            pivots="qr",
            reversal_speed="auto",
            rest_speed=0.001,
            period=5.0,
            essential=0.2,
            base_tilt=False,
            bootstrap=50,
            thresholds=Thresholds(0.2, 0.4, 0.1, 0.0, 0.6, 500.0, 0.02, 0.2),
            ignore=("effort_sign", "positions_in_degrees"),
            effort_kind="torque",
            robot_compensates=("gravity", "coriolis"),
            exclude={"monday.npz": ((5.0, 6.5), (0.0, 1.0))},
            drives={
                "shoulder": Drive(13.6, -1.0),
                "wrist": Drive(None, 1.0),
                "finger": Drive(None, -1.0),
                "lift": Drive(1.0, 1.0),
            },
            reversal_speeds={"lift": 0.02},
        ),
        flexible=FlexibleSettings(
            joints=(FlexibleJoint("elbow", -101.0, False), FlexibleJoint("shoulder", 50.0)),
            motors={"elbow": "m2"},
            torque_constants={"elbow": 0.1},
            smoothing_width=0.002,
            limit=float("inf"),
            scaling="none",
            motor_topic="/motors",
            experiments={
                "poses.csv": ExperimentSettings(static=True),
                "both.npz": ExperimentSettings(periodic=True, moving=("elbow",)),
            },
        ),
    )
    for ours, default in ((configuration, Configuration()), (configuration.settings, Settings())):
        shown = [f.name for f in fields(default) if f.name != "prior"]  # a file: see test_prior
        left_out = [name for name in shown if getattr(ours, name) == getattr(default, name)]
        assert not left_out, "this test shows every key with a value that is not the default"
    assert configuration.held == {"wrist": 0.5}


def test_nothing_given_is_the_default(tmp_path):
    empty = tmp_path / "empty.yaml"
    empty.write_text("# nothing\n")
    assert read_configuration(None) == read_configuration(empty) == Configuration()
    assert Configuration().settings == Settings()
    assert Configuration().settings.chooses_model and Configuration().settings.chooses_terms
    assert Settings(estimator=WeightedLeastSquares()).fixed_terms == (Viscous(), Coulomb(), Offset())


def test_values_replace_keys_of_either_level():
    given = parse_configuration({"joints": {"a": {"gain": 2}}, "cutoff": 4})
    other = given.with_values(cutoff=5.0, topic="/arm/joint_states")
    assert (other.settings.cutoff, other.topic, other.settings.drives) == (5.0, "/arm/joint_states", {"a": Drive(2.0)})
    assert given.settings.cutoff == 4.0
    with pytest.raises(UsageError, match="cut-off frequency must be positive"):
        given.with_values(cutoff=-1.0)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"terms": ["viscous", "offset"]}, (Viscous(), Offset())),
        ({"terms": []}, ()),
        ({"terms": {"coulomb": {"smoothing_width": 0}}}, (Coulomb(0.0),)),
    ],
    ids=str,
)
def test_terms_as_list_or_with_constants(content, expected):
    assert parse_configuration(content).settings.terms == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("ols", OrdinaryLeastSquares()),
        ({"autoregressive_order": 2}, Consistent(autoregressive_order=2)),
        ({"name": "ols", "method": "gram"}, OrdinaryLeastSquares(method="gram")),
    ],
    ids=str,
)
def test_estimator_as_name_or_with_options(value, expected):
    assert parse_configuration({"estimator": value}).settings.estimator == expected


WRONG = {
    # unknown keys and values, with the nearest known one
    "cutof: 4": "unknown key 'cutof'; did you mean 'cutoff'?",
    "xyz: 4": "unknown key 'xyz'; known are joints, identify,",
    "7: 4": "unknown key 7",
    "joints: {a: {gian: 1}}": "joints.a: unknown key 'gian'; did you mean 'gain'?",
    "thresholds: {bad_nrms: 1}": "thresholds: unknown key 'bad_nrms'; did you mean 'bad_nrmse'?",
    "terms: [viscose]": "terms: unknown value 'viscose'; did you mean 'viscous'?",
    "terms: {coulomb: {width: 1}}": "terms.coulomb: unknown key 'width'; did you mean 'smoothing_width'?",
    "estimator: weigthed": "estimator: unknown value 'weigthed'; did you mean 'weighted'?",
    "estimator: {name: ols, passes: 1}": "estimator.ols: unknown key 'passes'",
    "velocity: measured": "velocity: unknown value 'measured'",
    "pivots: rre": "pivots: unknown value 'rre'; did you mean 'rref'?",
    "ignore: [sign]": "ignore: 'sign' cannot be overruled: the findings that can are channels_equal, ",
    "ignore: [effort_delayed]": "ignore: 'effort_delayed' cannot be overruled: the findings that can are channels_equal, ",
    "flexible: {joint: {a: {ratio: 1}}}": "flexible: unknown key 'joint'; did you mean 'joints'?",
    "flexible: {joints: {a: {ration: 1}}}": "flexible.joints.a: unknown key 'ration'; did you mean 'ratio'?",
    "flexible: {joints: {a: {torque_sensor: true}}}": "flexible.joints.a: ratio is missing",
    "flexible: {joints: {a: {ratio: 0}}}": "flexible: joint a: the gear ratio must be a number other than 0",
    "flexible: {joints: {a: {ratio: 1, torque_constant: 0}}}": "flexible: joints.a: torque_constant must be",
    "flexible: {joints: {a: {ratio: 1, motor: b}, b: {ratio: 1}}}": "flexible: joints: two motors are called b",
    "flexible: {smoothing_width: 1}": "flexible: joints must be given",
    "flexible: {joints: {a: {ratio: 1}}, smoothing_width: -1}": "flexible: smoothing_width must be 0 or positive",
    "flexible: {joints: {a: {ratio: 1}}, limit: 0.5}": "flexible: limit must be 1 or more",
    "flexible: {joints: {a: {ratio: 1}}, scaling: row}": "flexible.scaling: unknown value 'row'",
    "flexible: {joints: {a: {ratio: 1}}, experiments: {b.npz: {static: 1}}}": "experiments.b.npz.static: must be true",
    "flexible: {joints: {a: {ratio: 1}}, experiments: {b.npz: {static: true, periodic: true}}}": "experiments.b.npz: an",
    # wrong types
    "[1, 2]": "must hold keys and values, not [1, 2]",
    "just text": "must hold keys and values, not 'just text'",
    "joints: [a]": "joints: must hold keys and values, not ['a']",
    "joints: {a: 5}": "joints.a: must hold keys and values, not 5",
    "joints: {a: {gain: big}}": "joints.a.gain: must be a number, not 'big'",
    "joints: {a: {held: true}}": "joints.a.held: must be a number, not True",
    "identify: elbow": "identify: must be a list, not 'elbow'",
    "identify: [1]": "identify[0]: must be a string, not 1",
    "gravity: 9.81": "gravity: must be a list of 3 numbers, not 9.81",
    "gravity: [0, -9.81]": "gravity: must be a list of 3 numbers",
    "gravity: [0, 0, down]": "gravity[2]: must be a number, not 'down'",
    "topic: 5": "topic: must be a string, not 5",
    "cutoff: 4 Hz": "cutoff: must be a number, not '4 Hz'",
    "cutoff:": "cutoff: must be a number, not None",
    "filter_order: 4.0": "filter_order: must be an integer, not 4.0",
    "velocity: [recorded]": "velocity: unknown value ['recorded']",
    "terms: viscous": "terms: must be a list, not 'viscous'",
    "terms: {coulomb: 0.1}": "terms.coulomb: must hold keys and values, not 0.1",
    "estimator: 3": "estimator: unknown value 3",
    "estimator: {passes: [2]}": "estimator.consistent: unknown key 'passes'",
    "estimator: {autoregressive_order: 2.5}": "estimator.consistent.autoregressive_order: must be an integer",
    "prior: 1": "prior: must be a string, not 1",
    "thresholds: {explained: half}": "thresholds.explained: must be a number, not 'half'",
    "ignore: effort_sign": "ignore: must be a list, not 'effort_sign'",
    "thresholds: {bad_nrmse: 30}": "bad_nrmse is a ratio from 0 to 1, not 30",
    "thresholds: {joint_nrmse: 1.01}": "joint_nrmse is a ratio from 0 to 1, not 1.01",
    # values that no data could make right
    "cutoff: -1": "cut-off frequency must be positive, not -1.0 Hz",
    "cutoff: .nan": "cut-off frequency must be positive",
    "filter_order: 13": "filter order must be 1 to 12, not 13",
    "couplings: {m: {weights: {a: 1.0e+300}}}": "couplings.m.weights.a: 1e+300 is above 1e+12",
    "gravity: [0, 0, 100000000000000]": "gravity[2]: 1e+14 is above 1e+12",
    "bootstrap: 1000000000": "20 to 100000, not 1000000000",
    "estimator: {name: weighted, autoregressive_order: 1000000}": "between 0 and 1000",
    "joints: {a: {gain: 0}}": "joints.a: gain must be a number other than 0",
    "joints: {a: {gain: 1.0e+9}}": "of a magnitude from 1e-06 to 1e+06",
    "joints: {a: {gain: .inf}}": "joints.a: gain must be a number other than 0",
    "joints: {a: {sign: 2}}": "joints.a: sign must be 1 or -1, not 2",
    "terms: {coulomb: {smoothing_width: -1}}": "coulomb: smoothing_width must be 0 or more, not -1",
    "estimator: {method: svd}": "consistent: method must be one of qr, gram, not 'svd'",
    "estimator: {autoregressive_order: -2}": "autoregressive_order must be between 0 and 1000",
    "estimator: {name: instrumental, controller: pd}": "estimator.instrumental.controller: must hold keys and values",
    "estimator: {name: instrumental, controller: {law: pid}}": "controller: law 'pid' is not known; use one of pd, comp",
    "estimator: {name: output_error, controller: {law: pd}}": "controller: give both the law and the proportional gains",
    "estimator: {name: output_error, controller: {proportional: {a: x}}}": "controller.proportional.a: must be a number",
    # contradictions
    "{joints: {a: {held: 1}}, identify: [a]}": "joint a is both held and to be identified",
    "terms: [coulomb, stribeck]": "terms: coulomb and stribeck cannot be identified together (both have coulomb): choose one",
    "terms: [asymmetric, improved_stribeck]": "(both have the columns of coulomb): choose one",
    "terms: [asymmetric, offset]": "terms: asymmetric and offset cannot be identified together",
    # constants of terms
    "terms: {stribeck: {stribeck_velocity: 0}}": "stribeck: stribeck_velocity must be positive, not 0",
    "terms: {improved_stribeck: {signed_square: 1}}": "improved_stribeck.signed_square: must be true or false, not 1",
    "terms: {asymmetric: {smoothing_width: .nan}}": "asymmetric: smoothing_width must be 0 or more, not nan",
    "terms: {spring: {rest_position: .inf}}": "spring: rest_position must be a finite number, not inf",
    "terms: {temperature_coulomb: {reference_temperature: -300}}": "reference_temperature must be -273.15 or more, not -300",
    # couplings
    "couplings: [wrist]": "couplings: must hold keys and values, not ['wrist']",
    "couplings: {w: {weights: {a: 1}}}": "couplings.w: terms must be given",
    "couplings: {w: {weight: {a: 1}, terms: [viscous]}}": "couplings.w: unknown key 'weight'; did you mean 'weights'?",
    "couplings: {w: {weights: {a: 0}, terms: [viscous]}}": "coupling w: weight of a must be a number other than 0",
    "couplings: {w: {weights: {a: b}, terms: [viscous]}}": "couplings.w.weights.a: must be a number, not 'b'",
    "couplings: {w: {weights: {a: 1}, terms: [coulomb, asymmetric]}}": "coupling w: terms: coulomb and asymmetric",
    # reversals
    "reversal_speed: fast": "reversal_speed: must be a number, not 'fast'",
    "reversal_speed: -0.1": "reversal_speed of all joints must be auto, 0 or a positive speed [rad/s or m/s], not -0.1",
    "rest_speed: -0.1": "rest_speed must be 0 or a positive speed [rad/s or m/s], not -0.1",
    "joints: {a: {reversal_speed: .inf}}": "reversal_speed of a must be",
    # not YAML
    "joints: {a: [}": "not a YAML file",
    "a: b: c": "not a YAML file",
}


@pytest.mark.parametrize("text", WRONG)
def test_every_mistake_is_named_with_the_file_in_one_line(text, tmp_path):
    file = tmp_path / "wrong.yaml"
    file.write_text(text)
    with pytest.raises(UsageError) as error:
        read_configuration(file)
    line = str(error.value)
    assert line.startswith(f"{file}: ")
    assert WRONG[text] in line
    assert "\n" not in line


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(UsageError, match=r"none\.yaml: cannot read the configuration \(No such file"):
        read_configuration(tmp_path / "none.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(UsageError, match="not a text file"):
        read_configuration(tmp_path / "binary.yaml")
    with pytest.raises(UsageError, match="Is a directory"):
        read_configuration(tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("robot_compensates: []", ["robot_compensates is empty", "[none]"]),
        ("robot_compensates: [gravitation]", ["'gravitation'"]),
        ("robot_compensates: [none, gravity]", ["none and other words"]),
        ("{effort_kind: gravity_compensated, robot_compensates: [none]}", ["gravity_compensated", "[none]"]),
    ],
)
def test_what_a_driver_adds_is_checked(text, words, tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text(text)
    with pytest.raises(UsageError) as error:
        read_configuration(file)
    for word in words:
        assert word in str(error.value)
