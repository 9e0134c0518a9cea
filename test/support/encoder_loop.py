# SPDX-License-Identifier: Apache-2.0
"""A two-axis robot under a PD law that reads 12-bit encoders: what its driver would have recorded."""

from functools import cache

import numpy as np

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.prior import make_nominal_prior
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.signals.processing import SignalPlan
from robot_dyn_id.signals.trials import FilteredTrials
from robot_dyn_id.simulation.closed_loop import ControllerModel, quantize
from robot_dyn_id.simulation.plant import Plant
from support.robots import joint, urdf
from support.simulated import Simulated

TWO_AXES = urdf(
    joint("shoulder", "base", "l1", axis="0 1 0", rpy="0 0 0"),
    joint("elbow", "l1", "l2", axis="0 1 0", xyz="0.4 0 0", rpy="0 0 0"),
    links=2,
)
RATE, NOISE, RESOLUTION, VELOCITY_CUTOFF = 500.0, 0.1, 2.0 * np.pi / 4096, 50.0
PROPORTIONAL, DERIVATIVE = np.array([300.0, 150.0]), np.array([20.0, 8.0])

GAINS = (("shoulder", 300.0), ("elbow", 150.0)), (("shoulder", 20.0), ("elbow", 8.0))
IDEAL = ControllerModel("pd", *GAINS, RATE)
LOOP = ControllerModel("pd", *GAINS, RATE, (("all", RESOLUTION),), velocity_cutoff=VELOCITY_CUTOFF)


@cache
def robot():
    return Simulated(TWO_AXES)


@cache
def recorded(seed, resolution=RESOLUTION, noise=NOISE, duration=12.0):
    """The loop written out, tick by tick: readings, torques, reference."""
    known, rng = robot(), np.random.default_rng(seed)
    t = np.arange(round(duration * RATE)) / RATE
    q_wanted, dq_wanted, _, _ = draw_random_fourier(known.model, 5).evaluate(t)
    q_wanted = q_wanted + resolution * rng.uniform(-0.5, 0.5, (2, 1))
    plant = Plant(Dynamics(known.regressor, np.arange(len(known.parameters)), known.parameters), q_wanted[:, 0])
    plant.dq[:] = dq_wanted[:, 0]
    share = 1.0 - np.exp(-2.0 * np.pi * VELOCITY_CUTOFF / RATE)
    speed, before, effort = plant.dq.copy(), quantize(plant.q, resolution).copy(), None
    q, tau = np.empty_like(q_wanted), np.empty_like(q_wanted)
    for k in range(len(t)):
        reading = quantize(plant.q, resolution).copy()
        speed = speed + share * ((reading - before) * RATE - speed) if resolution else plant.dq.copy()
        wanted = PROPORTIONAL * (q_wanted[:, k] - reading) + DERIVATIVE * (dq_wanted[:, k] - speed)
        q[:, k], tau[:, k] = reading, wanted if effort is None else 0.5 * (wanted + effort)
        before, effort = reading, wanted
        plant.advance(wanted, 1.0 / RATE)
    tau += noise * rng.normal(size=tau.shape)
    return ArrayRecording("loop", known.joints, Chunk(t, q.T, tau=tau.T, reference=q_wanted.T))


def loop_problem(recording, cutoff, prior=True):
    """The linear problem of a recording behind a filter."""
    known, plan = robot(), SignalPlan.from_low_pass(RATE, LowPass(cutoff), False)
    trials = FilteredTrials([recording], known.joints, {}, plan)
    known_before = make_nominal_prior(known.model, known.base.mapping) if prior else None
    return trials.problem(known.regressor, known.base.independent, known_before)


@cache
def relative_bias(estimator, cutoff, seeds=(1, 2)):
    """Root mean square over the parameters of the mean error, as a share of the truth."""
    values = [estimator.fit(loop_problem(recorded(seed), cutoff)).values for seed in seeds]
    known = robot().base_values
    return float(np.sqrt(np.mean((np.mean(values, axis=0) / known - 1.0) ** 2)))
