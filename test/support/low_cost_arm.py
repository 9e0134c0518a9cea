# SPDX-License-Identifier: Apache-2.0
"""An arm without torque sensors that is moved from pose to pose: drives in their own unit, friction, backlash, noise."""

from dataclasses import dataclass, field

import numpy as np

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.loads.gravity import compute_gravity_regressor, list_nominal_bodies
from robot_dyn_id.model.robot import RobotModel

ENCODER_STEP = 2 * np.pi / 4096


@dataclass
class LowCostArm:
    """Truth of an arm: its bodies are not those of the URDF."""

    model: RobotModel
    seed: int = 0
    same_total: bool = False
    backlash: float = np.radians(0.5)
    noise: float = 0.005
    bodies: np.ndarray = field(init=False)
    gains: np.ndarray = field(init=False)
    friction: np.ndarray = field(init=False)

    def __post_init__(self):
        rng = np.random.default_rng(self.seed)
        nominal = list_nominal_bodies(self.model)
        n = len(self.model.joint_names)
        self.bodies = nominal * rng.uniform(0.7, 1.3, (len(nominal), 1))
        if self.same_total:
            self.bodies *= nominal[:, 0].sum() / self.bodies[:, 0].sum()
        lower, upper = self.model.limits.lower, self.model.limits.upper
        peaks = np.abs(self.weight(rng.uniform(lower, upper, (500, n)).T)).max(axis=1)
        # joints with vertical axes have friction, too
        peak = np.where(peaks < 1e-6 * peaks.max(), 0.1 * peaks.max(), peaks)
        self.gains = np.exp(rng.uniform(np.log(1e-3), np.log(1e-2), n)) * rng.choice([-1, 1], n)
        self.friction = 0.15 * peak
        self.full = 1.5 * peak / np.abs(self.gains)

    def weight(self, q, added=0.0):
        return np.einsum("cjk,c->jk", compute_gravity_regressor(self.model, q), (self.bodies + added).ravel())

    def effort(self, q):
        """Gravity in drive units."""
        return self.weight(q) / self.gains[:, None]

    def path(self, poses=20, sides=(-1.0, 1.0), dwell=0.7):
        """Times and positions: every pose from both sides."""
        rng = np.random.default_rng(self.seed + 100)
        lower, upper = self.model.limits.lower, self.model.limits.upper
        middle, reach = (lower + upper) / 2, 0.4 * (upper - lower)
        t, points = [0.0], [middle]
        for pose in middle + rng.uniform(-1, 1, (poses, len(middle))) * reach:
            for side in sides:
                go = max(0.2, np.abs(pose + 0.12 * side - points[-1]).max() / 1.5)
                t += [t[-1] + go, t[-1] + go + 0.3, t[-1] + go + 0.3 + dwell]
                points += [pose + 0.12 * side, pose, pose]
        return np.array(t), np.array(points).T

    def record(self, path=None, added=0.0, fixed=(), limit=np.inf):
        """Recording at 50 Hz along a path of straight lines; `limit` is relative to the peak of gravity."""
        knots, points = self.path() if path is None else path
        t = np.arange(0.0, knots[-1], 0.02)
        q = np.array([np.interp(t, knots, row) for row in points])
        q[list(fixed)] = q[list(fixed), :1]
        direction, last = np.zeros_like(q), np.zeros(len(q))
        for k, change in enumerate(np.gradient(q, axis=1).T):
            last = np.where(np.abs(change) > 1e-6, np.sign(change), last)
            direction[:, k] = last
        link = q.copy()
        for _ in range(3):
            link = q - 0.5 * self.backlash * np.sign(self.weight(link, added))
        torque = self.weight(link, added) + self.friction[:, None] * direction
        full, rng = self.full[:, None], np.random.default_rng(self.seed + 200)
        drive = torque / self.gains[:, None] + self.noise * full * rng.normal(size=q.shape)
        drive = np.clip(drive, -limit * full / 1.5, limit * full / 1.5)
        drive = np.round(drive / (full / 512)) * (full / 512)
        q = np.round(q / ENCODER_STEP) * ENCODER_STEP
        return ArrayRecording("arm", self.model.joint_names, Chunk(t, q.T, tau=drive.T))
