# SPDX-License-Identifier: Apache-2.0
"""Settings of the design of an excitation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from robot_dyn_id.errors import UsageError, suggest_known
from robot_dyn_id.excitation.collision.obstacles import DEFAULT_CLEARANCE_M
from robot_dyn_id.excitation.design.objectives import OBJECTIVES
from robot_dyn_id.excitation.design.optimizers import OPTIMIZERS, SearchEffort
from robot_dyn_id.excitation.design.torques import DEFAULT_FRICTION_SHARE
from robot_dyn_id.excitation.limits import DEFAULT_EFFORT_SCALE, DEFAULT_POSITION_MARGIN, DEFAULT_VELOCITY_SCALE
from robot_dyn_id.excitation.parametrization import Demand

STAND_INS = ("capsules", "none")
"""Approximations of links without shapes in the collision check."""

PURPOSES: dict[str, dict[str, Any]] = {
    "links": {},
    "computed_torque": {"objective": "joint_inertias"},
    "actuators": {"form": "sweep_steps", "period": 20.0},
}
"""Purposes of a motion, and the defaults of its settings that they change."""

FEWEST_SAMPLES = 10
"""Fewest samples of a recording in the fastest wave of a motion."""

DEMAND_KEYS = (
    "period",
    "periods",
    "harmonics",
    "degree",
    "control_points",
    "frequencies",
    "blend",
    "closed",
    "free_center",
    "moving",
    "window",
    "free_period",
    "postures",
)
"""Keys of a design file that are fields of `Demand`."""


@dataclass(frozen=True)
class DesignSettings:
    """Settings of a design; all have defaults.

    Attributes:
        joints: names of the moving joints, the others are locked; by default all joints identified by the
            configuration.
        purpose: parameters that the motion identifies, a key of `PURPOSES`: `links`, with the friction of joints, the
            same for `computed_torque`, above all the inertias that feedback acts through, or `actuators` under position
            commands, whose links are known.
        form: form of the motion, a key of `FORMS`.
        demand: requirements on the motion; its posture and amplitude are set once the robot is known.
        posture: center configuration by joint name [rad or m]; by default the middle of the position limits, or where
            it has no free space around it a configuration that has, see `choose_center`.
        amplitude: fixed amplitudes by joint name [rad or m].
        acceleration, jerk: limits by joint name [rad/s^2 or m/s^2; rad/s^3 or m/s^3]; `all` applies to the joints that
            are not named.
        velocity_limit, effort_limit: limits by joint name that narrow those of the URDF or replace its placeholders.
        velocity_scale: usable fraction of the velocity limits.
        margin: distance kept to the position limits [rad or m].
        effort_scale: usable fraction of the effort limits; 0: efforts are not limited.
        friction: assumed dry friction of joints without friction in the URDF, relative to their effort limits; without
            an identified model, efforts include it.
        payload: point mass carried during the motion, `{link: tool0, mass: 2.0, position: [x, y, z]}` [kg, m].
        clearance: minimum distance between links, and between links and obstacles [m]; 0: collisions are not checked.
        stand_ins: approximation of links without shapes, one of `STAND_INS`.
        ground: whether the ground at z = 0 of the base frame is an obstacle, or its height [m]; see `Clearance`.
        obstacles: obstacles as in a file; see `parse_obstacles`.
        allowed: pairs of links or obstacles that may touch.
        srdf: path of a MoveIt SRDF with pairs that may touch.
        folders: folders in which meshes are searched.
        workspace: box in the base frame for a link's frame, `{link: tool0, lower: [x, y, z], upper: [x, y, z]}` [m].
        quiet_band: ends of the excluded frequency band [Hz].
        noise: standard deviation of the efforts by joint name [N m or N]; `all` as above.
        rate: sampling rate of the recording [Hz].
        identified: names or patterns (`fv*`) of the base parameters to be identified; the others are taken as known.
            All by default.
        objective: key of `OBJECTIVES` to be minimized; by default d_optimal, or after an earlier recording a_optimal
            of the parameters with the largest relative errors.
        parameters: parameters included in a_optimal; all by default.
        optimizer: key of `OPTIMIZERS`.
        search: effort spent on the search.
        seed: seed of all random numbers.
    """

    joints: tuple[str, ...] = ()
    purpose: str = "links"
    form: str = "fourier"
    demand: Demand = field(default_factory=Demand)
    posture: Mapping[str, float] = field(default_factory=dict)
    amplitude: Mapping[str, float] = field(default_factory=dict)
    acceleration: Mapping[str, float] = field(default_factory=dict)
    jerk: Mapping[str, float] = field(default_factory=dict)
    velocity_limit: Mapping[str, float] = field(default_factory=dict)
    effort_limit: Mapping[str, float] = field(default_factory=dict)
    velocity_scale: float = DEFAULT_VELOCITY_SCALE
    margin: float = DEFAULT_POSITION_MARGIN
    effort_scale: float = DEFAULT_EFFORT_SCALE
    friction: float = DEFAULT_FRICTION_SHARE
    payload: Mapping[str, Any] = field(default_factory=dict)
    clearance: float = DEFAULT_CLEARANCE_M
    stand_ins: str = "capsules"
    ground: Any = True
    obstacles: tuple[Any, ...] = ()
    allowed: tuple[Any, ...] = ()
    srdf: str = ""
    folders: tuple[str, ...] = ()
    workspace: Mapping[str, Any] = field(default_factory=dict)
    quiet_band: tuple[float, ...] = ()
    noise: Mapping[str, float] = field(default_factory=dict)
    rate: float = 100.0
    identified: tuple[str, ...] = ()
    objective: str = ""
    parameters: tuple[str, ...] = ()
    optimizer: str = "gradient"
    search: SearchEffort = field(default_factory=SearchEffort)
    seed: int = 1

    def __post_init__(self) -> None:
        """Check the settings.

        Raises:
            UsageError: a setting is invalid; names its key.
        """
        for key, known in (("objective", OBJECTIVES), ("optimizer", OPTIMIZERS), ("stand_ins", STAND_INS)):
            if getattr(self, key) not in ("", *known):
                raise UsageError(f"{key}: unknown value; {suggest_known(getattr(self, key), list(known))}")
        if self.purpose not in PURPOSES:
            raise UsageError(f"purpose: unknown value; {suggest_known(self.purpose, list(PURPOSES))}")
        if not self.stand_ins:
            raise UsageError(f"stand_ins: must be one of {', '.join(STAND_INS)}")
        if 0.0 < self.rate * self.demand.period < FEWEST_SAMPLES:
            raise UsageError(
                f"period {self.demand.period:g} s has {self.rate * self.demand.period:.2g} samples at the rate of "
                f"{self.rate:g} Hz, fewer than {FEWEST_SAMPLES}: choose a longer one, or give your rate (rate)"
            )
        if self.seed < 0:
            raise UsageError(f"seed: {self.seed} is negative; give 0 or more")
        if self.parameters and self.objective != "a_optimal":
            raise UsageError("parameters is only used by the objective a_optimal: set it, or remove parameters")
        for key in ("effort_scale", "friction"):
            if not 0.0 <= getattr(self, key) <= 1.0:
                raise UsageError(f"{key} must be within 0 and 1, not {getattr(self, key):g}")
        if self.quiet_band and (len(self.quiet_band) != 2 or self.demand.free_period):
            raise UsageError("quiet_band needs the two ends of the band [Hz] and free_period: false")
        for key, wanted in (("payload", ("link", "mass", "position")), ("workspace", ("link", "lower", "upper"))):
            given = getattr(self, key)
            if given and set(given) != set(wanted):
                raise UsageError(f"{key}: needs exactly the keys {', '.join(wanted)}, not {', '.join(given)}")
