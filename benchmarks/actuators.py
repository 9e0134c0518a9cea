# SPDX-License-Identifier: Apache-2.0
"""Actuators from position commands: measured Go2 and Z1, simulated arms with known truth, and MuJoCo's own sysid.

`ROBOT_DYN_ID_DATA=<measured recordings> python benchmarks/actuators.py [PART]...` with the parts go2, types, few, runs,
z1, simulated, sysid, all by default. Each replaces its rows in actuators.md. `sysid` needs MuJoCo's extra of
that name.
"""

import os
import sys
import tempfile
import time
from dataclasses import replace
from importlib import metadata
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from robot_dyn_id.actuators.identification import KnownDrives, identify
from robot_dyn_id.actuators.model import ActuatorModel
from robot_dyn_id.actuators.motion import CommandedMotion
from robot_dyn_id.actuators.rollout import simulate_commands, split_into_limbs
from robot_dyn_id.actuators.start import MECHANICAL, EffortRows, solve_limb
from robot_dyn_id.actuators.validation import validate
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.export.actuators import make_position_mjcf
from robot_dyn_id.kernels.actuators import ARMATURE, COULOMB, DELAY, KD, KINDS, KP, LIMIT, OFFSET, VISCOUS
from robot_dyn_id.model.robot import RobotModel

PAGE = Path(__file__).with_suffix(".md")

TYPES = ("hip", "thigh", "calf")

TRAINED, HELD_OUT = range(6), (6, 7)

FEW = (1, 4)
"""Runs that MuJoCo's sysid, whose slopes are finite differences, is compared on."""

ARMS = {
    "ur5": ("ur5_robot.urdf", ()),
    "panda": ("panda.urdf", ("panda_finger_joint1", "panda_finger_joint2")),
    "xarm7": ("xarm7.urdf", ()),
    "z1": ("z1.urdf", ()),
    "kinova": ("kinova.urdf", ("j2s6s200_joint_finger_1", "j2s6s200_joint_finger_2", "j2s6s200_joint_finger_3")),
    "so101": ("so101.urdf", ()),
}
"""URDFs of the wheel example-robot-data, and joints that are locked."""

ENCODER_BITS = (12, 16, 20)

SINGLE = (0, 2, 5, 7)
"""Runs that are identified one by one."""

DELAYS_S = (0.0, 0.005, 0.012, 0.02)

TRIED_DELAYS_S = (0.0, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04)
"""Delays of the linear fit to Z1."""

TRIED_LAGS_S = (0.0, 0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.05, 0.06, 0.08)
"""Times by which the effort of all drives of Z1 acts late, in another linear fit."""

FINE = 20
"""Steps of a simulated truth per sample of 5 ms."""

INTRODUCTION = """\
# Actuators from position commands

`ROBOT_DYN_ID_DATA=<measured recordings> python benchmarks/actuators.py` writes the tables of this page; every part
takes minutes. Errors are RMS over joints and time of simulations of whole recordings from position commands alone, the
base fixed, with the gains of the recordings and the links of the robot description, or, from three recordings on, links
near them where these pay. `unitree_go2` and `unitree_z1` are
the recordings of RX-00/sim2real-robot-identification at 1a22bd03a70e (BSD-3-Clause). The errors of a guess (armature
0.01, damping 0.1, friction 0.2) and of the parameters that are published with the data, from PACE and from MuJoCo's
sysid, are those of the same kind of simulation on two other runs of the robot.

What bounds the figures: zero positions of Go2 jump between runs, which the intervals of one run cannot know (the offset
of FL_hip is 0.19 to 0.21 N m in runs 0 to 2 and 0.12 to 0.14 in the others). The estimates that the intervals of `runs`
are to contain have errors of their own: intervals that hold the truth in 95 % hold another estimate in 83 %. The
drive of the gripper of Z1 does not follow references beyond an end, which is found, and its effort is that of the end.
A lag of all efforts, with the positions and velocities that they are computed from (the delay of the model is that of
the references alone), explains the most of the rest: 25 ms remove 40 % of the squared errors of a linear fit on the
second half, which is faster than the first, and simulations with a lag of 25 ms, first order, miss its torque by 12.3 %
and its positions by 6.6 mrad. The model does not have it: simulations of the first half are fitted worse with it, by
7 %, and from 10 ms they go back to 0, so that a choice by parts left out of the first half rejects it. Stribeck
friction, friction by direction and by powers of speed, an integrator, scales of the weight and couplings of joints fit
the first half better and predict the second half no better. Friction by load and presliding are parts of the model
where they pay, and do not here: they remove 2.3 % and 2.6 % of the squared errors of parts left out of the first half
(4.0 % if presliding is fitted), and 5 % are required. Friction by load all the same makes the error of the torque
16.4 % and that of the positions 7.36 mrad, presliding 16.1 % and 6.36 mrad. The simulated torque of the six joints
misses the commanded one by 10 %, the inverse model by 16 %.

On Go2 friction by load pays and is not used, as its recordings do not separate it from Coulomb friction: with legs in
the air the standard deviation of the load is 8 to 13 % of its mean in hips and calves, and the two have correlations of
0.96 to 0.985. With it, the error on the two other runs is 2.10 mrad, and 9.8 % of the squared errors of parts left out
are removed, but 2.2 to 2.4 per load replace the whole Coulomb friction of two calves, and hips with the same motor have
Coulomb friction of 0.01 to 0.19 N m: such a model says nothing about other loads.

The armature of RR_hip_joint ends at 0, and those of the other hips, with the same motor, at 0.005 to 0.008. Zero
positions that jump are not the cause: offsets of its own in each run leave it at 0, as do a delay and gains of its own,
and single runs give 0 to 0.0013. The cause is not known. Where motors of one type share values (`types`), none is at a
bound.

Gains of another scale are found by the links: with gains that are stated twice or half as large as they are,
`actuator_gains_scaled` is found in each of twelve of the simulated arms, and with gains twice as large on Z1 (scale 2.5
to 3.0) and on a run of Go2 (1.6 to 2.0). With the right ones it is not found; the scale of Z1 is 1.1 to 1.5, that of
the six runs of Go2 0.99 to 1.05.
"""


def load(robot, run):
    """A measured motion, and gains of its drives."""
    folder = Path(os.environ["ROBOT_DYN_ID_DATA"], f"unitree_{robot}")
    model = RobotModel.from_file(folder / "model.xml")
    data = np.load(folder / f"run_{run}.npz")
    motion = CommandedMotion(f"run {run}", model.joint_names, data["t"], data["q"], data["reference"])
    return model, motion, KnownDrives(data["kp"], data["kd"], np.full(len(data["kp"]), np.nan))


def mrad(errors):
    return f"{1e3 * errors:.2f} mrad"


def at_bounds(estimate):
    """Names of the values that end at a bound."""
    flat = (estimate.actuators.values == 0.0) & estimate.uncertainty.estimated
    return [
        f"{KINDS[kind]} of {estimate.actuators.joint_names[joint]}"
        for kind, joint in zip(*np.nonzero(flat), strict=True)
    ]


def go2():
    """Six runs of Go2, simulated on two others."""
    return identify_go2(TRAINED)


def types():
    """The same with motors of three types, which share values where the data agree."""
    return identify_go2(TRAINED, typed=True)


def few():
    """Two runs of Go2, those that MuJoCo's sysid is compared on."""
    return identify_go2(FEW)


def identify_go2(trained, typed=False):
    """Rows of an identification of Go2."""
    model, _, drives = load("go2", 0)
    motions = [load("go2", run)[1] for run in trained]
    held_out = [load("go2", run)[1] for run in HELD_OUT]
    groups = [[name for name in model.joint_names if kind in name] for kind in TYPES] if typed else ()
    begin, used = time.perf_counter(), sum(os.times()[:4])
    estimate = identify(model, motions, drives, groups)
    seconds, cpu = time.perf_counter() - begin, sum(os.times()[:4]) - used
    errors = validate(estimate.links.robot, estimate.actuators, held_out)
    rows = [
        ("trained on runs", "", ", ".join(map(str, trained))),
        ("position error on runs 6 and 7", "<= 2.5 mrad (guess 12.2, PACE 7.5, sysid 5.6)", mrad(errors.rms(np.inf))),
        ("the same of simulations of 1 s; 5 s", "", f"{mrad(errors.rms(1.0))}; {mrad(errors.rms(5.0))}"),
        ("values at a bound", "none", ", ".join(at_bounds(estimate)) or "none"),
        ("time on this computer, shared with others; CPU time", "60 s on 2 cores", f"{seconds:.0f} s; {cpu:.0f} s"),
    ]
    if estimate.links.gain:
        rows.append(("squared errors of simulations that other links remove", "", f"{estimate.links.gain:.0%}"))
    for test in estimate.friction:
        if test.joints:
            gain = f"{test.gain:.1%}, of {', '.join(test.joints)}"
            rows.append((f"squared errors of parts left out that {test.kind} removes", "", gain))
    for kind in KINDS:
        agreed = [test.joints[0].split("_")[1] for test in estimate.shared if test.agreed and test.kind == kind]
        if typed and agreed and kind != "delay":
            rows.append((f"types whose {kind} is shared", "", ", ".join(agreed)))
    half = 0.5 * (estimate.uncertainty.high - estimate.uncertainty.low)
    for kind in (ARMATURE, VISCOUS, COULOMB, DELAY):
        pairs = zip(estimate.actuators.values[kind], half[kind], strict=True)
        values = [f"{a:.4f} +- {b:.4f}" if a else f"< {2.0 * b:.4f}" for a, b in pairs]
        rows.append((f"{KINDS[kind]} by joint, SI units", "", ", ".join(dict.fromkeys(values))))
    return rows


def runs():
    """Intervals of single runs, 0, 2, 5 and 7, against the estimates of the others."""
    model, _, drives = load("go2", 0)
    drives = replace(drives, limit=np.full(len(model.joint_names), np.inf))
    found = [identify(model, [load("go2", run)[1]], drives) for run in SINGLE]
    covered, agree, kinds = [], [], []
    for one in found:
        for other in found:
            if one is other:
                continue
            mask = one.uncertainty.estimated
            own, values = one.actuators.values[mask], other.actuators.values[mask]
            covered.append((one.uncertainty.low[mask] <= values) & (values <= one.uncertainty.high[mask]))
            widths = [0.5 * (each.uncertainty.high - each.uncertainty.low)[mask] for each in (one, other)]
            agree.append(np.abs(own - values) <= np.hypot(*widths))
            kinds.append(np.nonzero(mask)[0])
    covered, agree, kinds = (np.concatenate(part) for part in (covered, agree, kinds))
    by_kind = ", ".join(
        f"{KINDS[kind]} {np.mean(covered[kinds == kind]):.0%}" for kind in (ARMATURE, VISCOUS, COULOMB, OFFSET, DELAY)
    )
    return [
        ("intervals of one run that contain the estimates of the other three", ">= 90 %", f"{np.mean(covered):.1%}"),
        ("by parameter", "", by_kind),
        ("estimates of two runs that agree within the intervals of both", "", f"{np.mean(agree):.1%}"),
    ]


def z1():
    """Z1: the first half of the run, validated on the second."""
    model, motion, drives = load("z1", 0)
    half = len(motion.t) // 2
    training, held_out = motion.part(0, half), motion.part(half, len(motion.t))
    estimate = identify(model, [training], drives)
    errors = validate(estimate.links.robot, estimate.actuators, [held_out])
    arm = [name for name in model.joint_names if "Gripper" not in name]
    own = [model.joint_names.index(name) for name in arm]
    commanded = drives.kp * (held_out.reference - held_out.q)
    weights = np.sqrt(np.mean(commanded**2, axis=0))

    def share(efforts, joints):
        return np.linalg.norm((efforts * weights)[joints]) / np.linalg.norm(weights[joints])

    linear = fit_linear(model, training, held_out, drives)
    late, lag = fit_late(model, training, held_out, drives)
    lagging = f"the same of one whose efforts act {1e3 * lag:.0f} ms late, by the first half"
    ends = [
        f"{KINDS[kind]} of {model.joint_names[joint]} at {estimate.actuators.values[kind, joint]:.3f} rad, for "
        f"{estimate.ended[joint]:.1%} of the time"
        for kind, joint in np.argwhere(estimate.uncertainty.estimated)
        if kind > LIMIT
    ]
    return [
        ("error of the torque of the drives on the second half, all joints", "<= 13 %", f"{errors.all_efforts:.1%}"),
        ("the same without the gripper", "", f"{share(errors.efforts, own):.1%}"),
        ("the same of a linear fit to the commanded torque", "", f"{share(linear, slice(None)):.1%}"),
        ("the same of a linear fit, without the gripper", "", f"{share(linear, own):.1%}"),
        (lagging, "", f"{share(late, own):.1%}"),
        ("ends that are found", "", ", ".join(ends) or "none"),
        ("position error of its simulation, all joints", "", mrad(errors.rms(np.inf))),
        ("the same without the gripper", "", mrad(float(np.sqrt(np.mean(errors.horizons[np.inf][own] ** 2))))),
    ]


def fit_linear(model, training, held_out, drives):
    """Errors of the commanded torque of each joint, as a share, by least squares with the best delay of each joint."""
    (limb,) = split_into_limbs(model)
    n = len(model.joint_names)
    values = np.zeros((len(KINDS), n))
    values[KP], values[KD], values[LIMIT] = drives.kp, drives.kd, np.inf
    estimated = np.zeros(values.shape, dtype=bool)
    estimated[[ARMATURE, VISCOUS, COULOMB, OFFSET]] = True
    shares = []
    for values[DELAY] in TRIED_DELAYS_S:
        rows, others = (EffortRows.from_motion(limb, part, values) for part in (training, held_out))
        solved = ActuatorModel.from_values(model.joint_names, solve_limb(rows, values, estimated))
        pairs = (rows.effort(solved), others.effort(solved))
        shares.append([np.linalg.norm(given - taken, axis=1) / np.linalg.norm(given, axis=1) for given, taken in pairs])
    best = np.argmin(np.array(shares)[:, 0], axis=0)
    return np.array(shares)[best, 1, np.arange(n)]


def fit_late(model, training, held_out, drives):
    """Errors as of `fit_linear` without a delay, but of efforts that act late, by one time for all joints, and it.

    An effort is late as a whole, with the position and velocity that it was computed from: not the reference alone.
    """
    (limb,) = split_into_limbs(model)
    n = len(model.joint_names)
    nothing = np.zeros((len(KINDS), n))
    nothing[KP], nothing[KD], nothing[LIMIT] = drives.kp, drives.kd, np.inf
    known = ActuatorModel.from_values(model.joint_names, nothing)
    pairs = [EffortRows.from_motion(limb, part, nothing) for part in (training, held_out)]
    tried = []
    for lag in TRIED_LAGS_S:
        shares = []
        values = None
        for rows in pairs:
            given, _ = rows.effort(known)
            t = np.arange(given.shape[1]) * (rows.t[1] - rows.t[0])
            acting = np.array([np.interp(t - lag, t, row) for row in given])
            left, columns = acting - rows.links, rows.columns[: len(MECHANICAL)].transpose(1, 2, 0)
            if values is None:
                values = [np.linalg.lstsq(*pair, rcond=None)[0] for pair in zip(columns, left, strict=True)]
            missed = left - np.einsum("jtk,jk->jt", columns, np.array(values))
            shares.append((np.linalg.norm(missed, axis=1), np.linalg.norm(given, axis=1)))
        tried.append((np.linalg.norm(shares[0][0]) / np.linalg.norm(shares[0][1]), lag, shares[1][0] / shares[1][1]))
    _, lag, errors = min(tried, key=lambda one: one[0])
    return errors, lag


def make_truth(model, delay, rng):
    """Actuators of a size that suits the links."""
    n = len(model.joint_names)
    inertia = np.diag(np.asarray(Dynamics.from_model(model).mass_matrix(np.zeros(n))))
    armature = inertia.max() * rng.uniform(0.05, 0.3, n)
    total = inertia + armature
    frequency, damping = 2.0 * np.pi * rng.uniform(3.0, 6.0, n), rng.uniform(0.4, 0.9, n)
    kp = total * frequency**2
    friction = 0.02 * kp * rng.uniform(0.5, 1.5, n)
    return ActuatorModel(
        model.joint_names,
        armature,
        0.1 * total * frequency * rng.uniform(0.5, 1.5, n),
        friction,
        friction * rng.uniform(-0.5, 0.5, n),
        np.full(n, delay),
        kp,
        2.0 * damping * total * frequency,
        np.full(n, np.inf),
    )


def record(model, truth, bits, seed, duration=12.0, rate=200.0):
    """A simulated motion, with steps 20 times shorter than a sample, and encoders of some bits per turn."""
    rng = np.random.default_rng(seed)
    n, t = len(model.joint_names), np.arange(0.0, duration, 1.0 / rate)
    sweep = 2.0 * np.pi * (0.1 * t + 0.5 * (4.0 - 0.1) / duration * t**2)
    phase, pace, size = rng.uniform(0.0, 2.0 * np.pi, n), rng.uniform(0.8, 1.2, n), rng.uniform(0.2, 0.4, n)
    center = np.clip(np.zeros(n), model.limits.lower + 0.5, model.limits.upper - 0.5)
    reference = center + size * (np.sin(pace * sweep[:, None] + phase) - np.sin(phase))
    fine = np.arange(len(t) * FINE) / (rate * FINE)
    held = np.repeat(reference, FINE, axis=0)
    q = simulate_commands(model, truth, CommandedMotion("truth", model.joint_names, fine, held, held))[::FINE]
    step = 2.0 * np.pi / 2**bits
    return CommandedMotion(f"seed {seed}", model.joint_names, t, step * np.round(q / step), reference)


def find_model(arm):
    name, locked = ARMS[arm]
    files = metadata.files("example-robot-data") or []
    path = next(Path(str(file.locate())) for file in files if file.name == name)
    whole = RobotModel.from_file(path)
    return RobotModel.from_file(path, [name for name in whole.joint_names if name not in locked])


def simulated():
    """Six arms with known truth, encoders of 12, 16 and 20 bits, delays to 20 ms, gains given or not."""
    errors = {kind: [] for kind in (ARMATURE, COULOMB, DELAY)}
    covered, rows, unknown, chosen = [], [], [], []
    for number, arm in enumerate(ARMS):
        model = find_model(arm)
        for place, bits in enumerate(ENCODER_BITS):
            seed = 10 * number + place
            truth = make_truth(model, DELAYS_S[seed % len(DELAYS_S)], np.random.default_rng(seed))
            motion = record(model, truth, bits, seed)
            hidden = np.full(len(model.joint_names), np.nan)
            given = seed % 3 != 2
            drives = KnownDrives(truth.kp if given else hidden, truth.kd if given else hidden, hidden)
            estimate = identify(model, [motion], drives)
            values = truth.values
            if not given:
                values[KD] += values[VISCOUS]
            spread = estimate.uncertainty
            inside = ((spread.low <= values) & (values <= spread.high))[spread.estimated]
            covered.append(inside)
            unknown.append(np.isinf(estimate.actuators.limit).mean())
            chosen.append(any(test.joints for test in estimate.friction))
            found = estimate.actuators.values
            for kind in (ARMATURE, COULOMB):
                errors[kind].append(np.abs(found[kind] / values[kind] - 1.0))
            errors[DELAY].append(np.abs(found[DELAY] - values[DELAY]))
            print(
                arm,
                bits,
                given,
                f"{inside.mean():.2f}",
                [float(np.max(errors[k][-1]).round(5)) for k in errors],
                flush=True,
            )
    worst = {kind: np.concatenate(parts) for kind, parts in errors.items()}
    for kind, goal in ((ARMATURE, "<= 5 %"), (COULOMB, "<= 5 %")):
        share = np.mean(worst[kind] <= 0.05)
        text = (
            f"median {np.median(worst[kind]):.2%}, largest {np.max(worst[kind]):.1%}; within 5 %: {share:.0%} of joints"
        )
        rows.append((f"error of {KINDS[kind]}", goal, text))
    rows.append(("error of the delay, largest", "<= 1 ms", f"{1e3 * np.max(worst[DELAY]):.3f} ms"))
    rows.append(("intervals that contain the truth", "90 to 98 %", f"{np.mean(np.concatenate(covered)):.1%}"))
    rows.append(("effort limits that are not reached and reported as unknown", "all", f"{np.mean(unknown):.0%}"))
    rows.append(("motions in which friction that the truths lack is chosen", "none", f"{sum(chosen)} of {len(chosen)}"))
    return rows


def sysid():
    """MuJoCo's sysid on the same data, links and held-out simulations: box bounds, no delay, offsets as forces."""
    import mujoco
    import mujoco.sysid as toolbox

    model, _, drives = load("go2", 0)
    n = len(model.joint_names)
    start = ActuatorModel(
        model.joint_names,
        *(np.full(n, value) for value in (0.01, 0.1, 0.2, 0.0, 0.0)),
        drives.kp,
        drives.kd,
        np.full(n, np.inf),
    )
    spec = mujoco.MjSpec.from_string(make_position_mjcf(model, start))
    spec.option.timestep, spec.option.integrator = 0.0025, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    for name in model.joint_names:
        spec.add_sensor(
            name=f"{name}_pos", type=mujoco.mjtSensor.mjSENS_JOINTPOS, objtype=mujoco.mjtObj.mjOBJ_JOINT, objname=name
        )
    compiled = spec.compile()
    bounds = {
        "armature": (0.01, 0.0, 0.1),
        "damping": (0.1, 0.0, 2.0),
        "frictionloss": (0.2, 0.0, 3.0),
        "offset": (0.0, -2.0, 2.0),
    }

    def make_modifier(name, key):
        def modify(changed, parameter):
            value = float(parameter.value[0])
            if key == "offset":
                changed.actuator(name).biasprm[0] = -value
            elif key == "damping":
                changed.joint(name).damping[0] = value
            else:
                setattr(changed.joint(name), key, value)

        return modify

    parameters = toolbox.ParameterDict(
        {
            f"{name}_{key}": toolbox.Parameter(f"{name}_{key}", *values, modifier=make_modifier(name, key))
            for name in model.joint_names
            for key, values in bounds.items()
        }
    )
    motions = [load("go2", run)[1] for run in FEW]
    series = [
        (
            toolbox.TimeSeries.from_control_names(motion.t - motion.t[0], motion.reference, compiled),
            toolbox.TimeSeries.from_names(motion.t - motion.t[0], motion.q, compiled),
            toolbox.create_initial_state(compiled, motion.q[0]),
        )
        for motion in motions
    ]
    sequences = toolbox.ModelSequences(
        "go2",
        spec,
        [motion.source for motion in motions],
        [one[2] for one in series],
        [one[0] for one in series],
        [one[1] for one in series],
    )
    residual = toolbox.build_residual_fn(models_sequences=[sequences])
    begin, used = time.perf_counter(), sum(os.times()[:4])
    found, _ = toolbox.optimize(parameters, residual, verbose=False)
    seconds, cpu = time.perf_counter() - begin, sum(os.times()[:4]) - used
    values = start.values
    for kind, key in ((ARMATURE, "armature"), (VISCOUS, "damping"), (COULOMB, "frictionloss"), (OFFSET, "offset")):
        values[kind] = [float(found[f"{name}_{key}"].value[0]) for name in model.joint_names]
    low, high = (np.array([bounds[key][side] for key in bounds]) for side in (1, 2))
    stacked = values[[ARMATURE, VISCOUS, COULOMB, OFFSET]]
    tight = np.isclose(stacked, low[:, None], atol=1e-6) | np.isclose(stacked, high[:, None], atol=1e-6)
    held_out = [load("go2", run)[1] for run in HELD_OUT]
    values[:3] = np.maximum(values[:3], 0.0)
    errors = validate(model, ActuatorModel.from_values(model.joint_names, values), held_out)
    return [
        (
            "armature, damping, frictionloss, offset of each joint from runs 1 and 4: position error on runs 6 and 7",
            "",
            mrad(errors.rms(np.inf)),
        ),
        ("values at a bound", "", str(int(tight.sum()))),
        ("time on this computer; CPU time", "", f"{seconds:.0f} s; {cpu:.0f} s"),
    ]


PARTS = {part.__name__: part for part in (*(go2, types, few, runs, z1), *(simulated, sysid))}


def replace_rows(part, rows):
    """Replace the table of a part in the page."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else INTRODUCTION
    sections = dict(section.split("\n", 1) for section in text.split("\n## ")[1:])
    lines = ["| figure | goal | reached |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)]
    title = f"`{part}`: {PARTS[part].__doc__.rstrip('.')}"
    kept = {name: body for name, body in sections.items() if not name.startswith(f"`{part}`")}
    kept[title] = "\n" + "\n".join(lines) + "\n"
    order = [f"`{name}`" for name in PARTS]
    names = sorted(kept, key=lambda name: order.index(name.split(":")[0]))
    page = INTRODUCTION + "".join(f"\n## {name}\n{kept[name].rstrip()}\n" for name in names)
    with tempfile.NamedTemporaryFile("w", dir=PAGE.parent, delete=False, encoding="utf-8") as file:
        file.write(page)
    Path(file.name).replace(PAGE)


if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        rows = PARTS[part]()
        replace_rows(part, rows)
        print("\n".join(" | ".join(row) for row in rows), flush=True)
