# SPDX-License-Identifier: Apache-2.0
"""Examples of every command, for its help text; a test parses each of them."""

EXAMPLES: dict[str, tuple[str, ...]] = {
    "try": ("try franka", "try franka --data --out data"),
    "demo": ("demo", "demo --out runs/demo --seed 2"),
    "design": (
        "design --robot arm.urdf --out design",
        "design --robot arm.urdf --config ur5e --limits joint_limits.yaml --out design",
        "design --robot arm.urdf --after run --out design2      # a motion for what is poorly identified in `run`",
    ),
    "identify": (
        "identify monday.mcap --robot arm.urdf --out run",
        "identify train.npz --validate held_out.npz --robot arm.urdf --out run",
        "identify bag --train-range 0 60 --friction stribeck --robot arm.urdf --out run",
        "identify bag --estimator robust --config config.yaml --robot arm.urdf --out run --force",
    ),
    "fleet": (
        "fleet identify manifest.csv --out fleet",
        "fleet identify manifest.csv --out fleet --workers 8",
    ),
    "predict": ("predict bag --robot arm.urdf --parameters run/parameters.yaml --out predicted.npz",),
    "feedforward": (
        "feedforward motion.yaml --robot arm.urdf --parameters run/parameters.yaml --out with_efforts.yaml",
        "feedforward motion.yaml --robot arm.urdf --parameters run/parameters.yaml --robot-compensates gravity "
        "--scale-to-limits --out with_efforts.yaml",
    ),
    "simulate": (
        "simulate --trajectory design/trajectory.yaml --robot arm.urdf --parameters run/parameters.yaml --out twin.npz",
        "simulate bag --restart 1 --robot arm.urdf --parameters run/parameters.yaml --out twin.npz",
    ),
    "export": (
        "export --robot arm.urdf --parameters run/parameters.yaml --format urdf --out identified.urdf",
        "export --robot arm.urdf --parameters run/parameters.yaml --format c --out model.h",
    ),
    "validate": (
        "validate other_day.mcap --robot arm.urdf --parameters run/parameters.yaml",
        "validate other_day.mcap --robot arm.urdf --parameters run/parameters.yaml --out validation",
    ),
    "compare": (
        "compare monday friday",
        "compare monday friday --data friday.mcap --out comparison",
    ),
    "payload": (
        "payload with_tool.mcap --robot arm.urdf --link tool0 --parameters run/parameters.yaml --out payload",
        "payload wrench.mcap --robot arm.urdf --link tool0 --wrench --out payload",
    ),
    "gravity": (
        "gravity --plan --robot arm.urdf --out plan",
        "gravity poses.mcap --robot arm.urdf --trust-urdf-mass --out calibration",
        "gravity poses.mcap --loaded loaded.mcap --known-mass 0.5 --known-link gripper --robot arm.urdf --out gravity",
    ),
    "actuators": (
        "actuators run_0.npz run_1.npz --validate run_2.npz --robot robot.xml --out actuators",
        "actuators bag --config topics.yaml --kp hip=20 thigh=20 calf=40 --kd hip=1 thigh=1 calf=2 "
        "--types hip,thigh,calf --robot go2.urdf --out actuators",
    ),
    "chain": ("chain sensors.npz --robot arm.urdf --out chain",),
    "gains": ("gains --bare bare.mcap --loaded loaded.mcap --robot arm.urdf --payload payload.yaml --out config.yaml",),
    "iterate": ("iterate --robot arm.urdf --trajectory design/trajectory.yaml --out rehearsal",),
    "flexible": (
        "flexible --plan --robot arm.urdf --config flexible.yaml",
        "flexible experiments --robot arm.urdf --config flexible.yaml --out run",
    ),
    "recover": ("recover bag", "recover bag --replace"),
    "base": ("base --robot arm.urdf", "base --robot arm.urdf --json"),
    "reproduce": ("reproduce planar3r", "reproduce space6r --seeds 20 --plots plots"),
    "bench": ("bench --quick", "bench speed --out bench"),
    "node": (
        "node torque_residual_monitor",
        "node recorder --ros-args -p folder:=bag -p start:=true",
    ),
    "doctor": ("doctor", "doctor --json"),
    "watch": ("watch", "watch --namespace /arm1", "watch --once --json"),
    "completion": (
        'completion bash      # eval "$(robot-dyn-id completion bash)" in ~/.bashrc',
        "completion fish      # robot-dyn-id completion fish | source",
    ),
}
"""Command lines without the name of the program; what follows # is a remark."""
