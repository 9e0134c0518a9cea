# SPDX-License-Identifier: Apache-2.0
"""The stand-ins of test/interfaces are the types of the real packages: hashes of the definitions that these publish."""

import json
from pathlib import Path

import pytest

HASHES = {
    "control_msgs/action/FollowJointTrajectory": "738ebcb7a2d7cfa42f9f1001cc99ce3a4383d1cfe508015d9be8485e4b1c66f6",
    "control_msgs/msg/DynamicJointState": "18024c98a62697680f581108eeed40b28fb4542fa0ac5a8e36f56c62b6813d26",
    "control_msgs/msg/InterfaceValue": "74a12144ef6b7af67533195cb30f7f607d3301b66950208a72d280695f3e190c",
    "control_msgs/msg/JointComponentTolerance": "739ea7566931944d33830fa10f1bf5e7a7fbdc3172bce7a7eaac642bd6e3ffa4",
    "control_msgs/msg/JointTolerance": "c254f9cece0f3b733017b6990fd46d1326e25242d6b8844398c97d9a88e7d648",
    "control_msgs/msg/JointTrajectoryControllerState": "51d8dd89cc624cbe9daaeeb4d80d6de9b86168ffdc3be41fefc0953e3c26e480",
    "control_msgs/msg/MultiDOFStateStamped": "08e47e3e734a7d08131b57e14e9f740782f3bf9a1aadabd2a16b54d27e551f0a",
    "control_msgs/msg/SingleDOFState": "fe8365f86265bddfefbd26698975a818bf024a1c267c8ce577cd366ef06d7163",
    "franka_msgs/msg/CollisionIndicators": "17d02113f0e8ec3768433baafd4f27fe5eaacf95d6c21f591bf3473e541e0840",
    "franka_msgs/msg/Elbow": "f54141b92a05447bfa2f993ac28c289b477358a3d543ad099e1a34c10d70d9bb",
    "franka_msgs/msg/Errors": "eaf7a9752f64efac239306101020545cebebff8b5130875d95bf0ed4d8bb774d",
    "franka_msgs/msg/FrankaRobotState": "fd225b337bab54d06047858c866442b98e3a882a4717cefc6ddd783fcbf17332",
    "franka_msgs/srv/SetLoad": "e1f4caf6d410a1deaf51380d2180e341e68c9da27d1885aa10d5da9f79551db7",
    "ur_msgs/msg/RobotStateRTMsg": "d1c2cf9d2d747927002735a7f8e4bb37c764cac706c248f76cedae884aa7ad5d",
    "ur_msgs/msg/ToolDataMsg": "b9fab3f6257c542e53779892ad0e511248ea491ac6327e8a7f0a67cad02090c4",
    "ur_msgs/srv/SetPayload": "df915561bb907314eb22eaa7ed5b748041d1fe70e560b952137298a486accd74",
    "lbr_fri_idl/msg/LBRState": "fd177ecc6baa43da48eb4def81ca8527febc5f5d5c9b6a0fcd8b27933377e3e0",
}
"""From control_msgs 5 (Jazzy), franka_msgs 2.5, ur_msgs 2.0 and lbr_fri_idl 1.5 (FRI 2)."""


@pytest.mark.parametrize("name", HASHES)
def test_the_hash_is_that_of_the_real_package(name):
    package, kind = name.split("/", 1)
    module = pytest.importorskip(package, reason=f"{package} is not installed")
    share = Path(module.__file__).parents[4] / "share"  # <prefix>/lib/python3.x/site-packages/<package>/__init__.py
    described = json.loads((share / package / f"{kind}.json").read_text(encoding="utf-8"))
    hashes = {entry["type_name"]: entry["hash_string"] for entry in described["type_hashes"]}
    assert hashes[name] == f"RIHS01_{HASHES[name]}"
