# SPDX-License-Identifier: Apache-2.0
"""Simulated fleets: robots of one type that vary, a few that differ, and their recordings as files."""

from dataclasses import dataclass, field

import numpy as np
import yaml

from robot_dyn_id.dynamics.prior import find_inertial_scales
from robot_dyn_id.dynamics.problem import UnfilteredProblem
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.estimators.row_statistics import RowStatistics
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.fleet.population import VariationModel
from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulate_recording
from support.simulated import Simulated, save_npz

INERTIAL_SPREAD = 0.01
"""Standard deviation of every inertial parameter from robot to robot, as a share of it."""

FRICTION_SPREAD = 0.10
"""The same of every friction parameter."""

PAYLOAD_KG = 0.3
WORN = 1.8
NOISE_NM = 0.2
RATE_HZ = 100.0


@dataclass
class SimulatedFleet:
    """Robots of the three-joint arm; `payload` and `worn` are the numbers of those that differ."""

    robots: int
    seed: int = 0
    payload: tuple[int, ...] = ()
    worn: tuple[int, ...] = ()
    duration: float = 10.0
    arm: Simulated = field(default_factory=Simulated)

    @property
    def serials(self):
        return [f"R{number:04d}" for number in range(self.robots)]

    def parameters(self, robot):
        """True standard and friction parameters of a robot."""
        rng = np.random.default_rng((self.seed, robot))
        values = self.arm.parameters.copy()
        bodies = 10 * len(self.arm.model.body_names)
        values[:bodies] *= 1.0 + INERTIAL_SPREAD * rng.normal(size=bodies)
        values[bodies:] *= 1.0 + FRICTION_SPREAD * rng.normal(size=len(values) - bodies)
        if robot in self.payload:  # a point mass 0.15 m along z of the last link
            values[bodies - 10] += PAYLOAD_KG
            values[bodies - 7] += 0.15 * PAYLOAD_KG
            values[[bodies - 6, bodies - 3]] += 0.15**2 * PAYLOAD_KG
        if robot in self.worn:
            values[bodies : bodies + 2] *= WORN
        return values

    def record(self, robot, number, seed=None):
        """A recording of a robot in memory; motions differ from recording to recording."""
        motion = draw_random_fourier(self.arm.model, seed=1 + number if seed is None else seed)
        sensors = Sensors(np.full(len(self.arm.joints), NOISE_NM), 1e-6, 1e-4)
        noise = 1 + number + 10 * (robot + 10_000 * self.seed)
        t = sample_times(self.duration, RATE_HZ)
        return simulate_recording(self.arm.regressor, self.parameters(robot), motion, t, sensors, noise)

    def write(self, folder, recordings=3, broken=(), manifest=None, motions=None):
        """Write recordings, robot and manifest; `broken` are (robot, recording) whose files are cut off.

        `motions(robot, number)` is the seed of a recording's motion, by default the same for all robots.
        """
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "arm.urdf").write_text(self.arm.text)
        entries = []
        for robot, serial in enumerate(self.serials):
            for number in range(recordings):
                path = save_npz(
                    folder / f"{serial}_{number}.npz", self.record(robot, number, motions and motions(robot, number))
                )
                if (robot, number) in broken:
                    path.write_bytes(path.read_bytes()[:2000])
                day = 1 + number
                entries.append({"robot": serial, "date": f"2026-01-{day:02d}", "recording": path.name})
        content = {"robot_description": "arm.urdf", "recordings": entries, **(manifest or {})}
        (folder / "fleet.yaml").write_text(yaml.safe_dump(content))
        return folder / "fleet.yaml"

    def rows(self, robot, number, rate=10.0, noise=0.06):
        """Statistics of the rows of a recording, without files and filters."""
        regressor, values = self.arm.regressor, self.parameters(robot)
        t = np.arange(int(self.duration * rate)) / rate
        motion = Motion(*draw_random_fourier(self.arm.model, 1 + number).evaluate(t)[:3])
        rng = np.random.default_rng((self.seed, robot, number))
        torque = regressor.torque(motion, values, np.arange(len(values)))
        torque = torque + noise * rng.normal(size=torque.shape)
        problem = UnfilteredProblem.from_samples(regressor, self.arm.base.independent, motion, torque, rate)
        return RowStatistics.from_problem(problem, 6)

    def variation(self, scales):
        """Variation of the parameters by their true sizes."""
        model, regressor, base = self.arm.model, self.arm.regressor, self.arm.base
        inertial = 10 * len(model.body_names)
        sizes = np.append(find_inertial_scales(model), np.abs(self.arm.parameters[inertial:]))
        labels = [f"body {number // 10}" for number in range(inertial)] + list(regressor.names[inertial:])
        single = {p: base.names[p] for p, column in enumerate(base.independent) if column < inertial}
        return VariationModel.from_sizes(base.mapping, sizes, labels, scales, single)
