# SPDX-License-Identifier: Apache-2.0
"""The demands on an excitation, from one file: read and checked key by key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from robot_dyn_id.errors import UsageError, suggestion
from robot_dyn_id.excitation.collision.obstacles import CLEARANCE
from robot_dyn_id.excitation.design.objectives import OBJECTIVES
from robot_dyn_id.excitation.design.optimizers import OPTIMIZERS, SearchEffort
from robot_dyn_id.excitation.limits import DEFAULT_POSITION_MARGIN, DEFAULT_VELOCITY_SCALE
from robot_dyn_id.excitation.parametrization import Demand

STAND_INS = ("capsules", "none")
"""What may take the place of links without shapes."""

DEMANDED = (
    "period", "periods", "harmonics", "degree", "control_points", "frequencies", "blend", "closed", "free_center",
    "moving", "window", "free_period",
)  # fmt: skip
"""Keys of a design file that are a form's own; see `Demand`."""


@dataclass(frozen=True)
class DesignSettings:
    """Every key of a design file; all may be left out.

    Attributes:
        joints: those that move, the others are held; all that the configuration identifies by default.
        form: of the motion.
        demand: what it takes of `DEMANDED`; posture and amplitude of a demand are not
            known before the robot is.
        posture: its center, by joint name [rad or m].
        amplitude: fixed ones, by joint name [rad or m].
        acceleration, jerk: limits by joint name [rad/s^2 or m/s^2; per s^3]; `all` is for those that are not named.
        velocity_limit, effort_limit: limits by joint name that narrow those of the URDF, or replace its placeholders.
        velocity_scale: share of the velocity limits that is used.
        margin: kept to the position limits [rad or m].
        effort_scale: share of the effort limits that is used; 0 leaves efforts out.
        payload: `{link: tool0, mass: 2.0, position: [x, y, z]}`: carried during the motion [kg, m].
        clearance: distance that is kept from the robot itself and from obstacles [m]; 0 leaves collisions out.
        stand_ins: what takes the place of links without shapes, one of `STAND_INS`.
        ground: true for ground at z = 0 of the base, false for none, or its height [m]; see `Clearance`.
        obstacles: see `obstacles_of`.
        allowed: pairs of links or obstacles that may touch.
        srdf: file of MoveIt's with pairs that may touch.
        folders: where meshes are looked for.
        workspace: `{link: tool0, lower: [x, y, z], upper: [x, y, z]}` in the base frame [m].
        quiet_band: frequencies in which nothing is accelerated [Hz].
        noise: standard deviation of the efforts by joint name [N m or N]; `all` as above.
        rate: samples per second of the recording [Hz].
        identified: base parameters that are to be told, by name or pattern (`fv*`): all others are taken as known. All
            by default.
        objective: what is minimised: by default d_optimal; after an earlier recording, a_optimal of the parameters that
            it tells worst. `parameters` are those that `a_optimal` counts, all by default.
        optimizer: how; `search` is the effort that is spent.
        seed: of everything random.
    """

    joints: tuple[str, ...] = ()
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
    effort_scale: float = 1.0
    payload: Mapping[str, Any] = field(default_factory=dict)
    clearance: float = CLEARANCE
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
        """Refuse what no design can have.

        Raises:
            UsageError: names the key.
        """
        for key, known in (("objective", OBJECTIVES), ("optimizer", OPTIMIZERS), ("stand_ins", STAND_INS)):
            if getattr(self, key) not in ("", *known):
                raise UsageError(f"{key}: unknown value; {suggestion(getattr(self, key), list(known))}")
        if not self.stand_ins:
            raise UsageError(f"stand_ins: must be one of {', '.join(STAND_INS)}")
        if self.seed < 0:
            raise UsageError(f"seed: {self.seed} is negative; give 0 or more")
        if self.parameters and self.objective != "a_optimal":
            raise UsageError("parameters are for the objective a_optimal: choose it, or leave them out")
        if not 0.0 <= self.effort_scale <= 1.0:
            raise UsageError(f"effort_scale must be within 0 and 1, not {self.effort_scale:g}")
        if self.quiet_band and (len(self.quiet_band) != 2 or self.demand.free_period):
            raise UsageError("quiet_band needs the two ends of the band [Hz], and a period that is not free")
        for key, wanted in (("payload", ("link", "mass", "position")), ("workspace", ("link", "lower", "upper"))):
            given = getattr(self, key)
            if given and set(given) != set(wanted):
                raise UsageError(f"{key}: needs {', '.join(wanted)}, and nothing else; it has {', '.join(given)}")
