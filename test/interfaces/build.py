# SPDX-License-Identifier: Apache-2.0
"""Build the interface packages of this folder into the virtual environment whose Python runs this file.

    .venv/bin/python test/interfaces/build.py

They stand in for packages that no package index has; a ROS 2 distribution has the real ones.
"""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

FOLDER = Path(__file__).resolve().parent


def build(source, folder):
    """Configure, build and install the package in `source`; the output of a step explains its failure."""
    path = os.pathsep.join([f"{sys.prefix}/bin", os.environ.get("PATH", os.defpath)])  # cmake is a wheel too
    shell = {**os.environ, "PATH": path, "AMENT_PREFIX_PATH": sys.prefix, "CMAKE_PREFIX_PATH": sys.prefix}
    options = [f"-DCMAKE_INSTALL_PREFIX={sys.prefix}", f"-DPython3_EXECUTABLE={sys.executable}", "-DBUILD_TESTING=OFF"]
    for command in (
        ["cmake", "-S", source, "-B", folder, *options],
        ["cmake", "--build", folder, "--parallel", str(os.cpu_count())],
        ["cmake", "--install", folder],
    ):
        done = subprocess.run(command, env=shell, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{source.name}: {' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}")


def main():
    if sys.prefix == sys.base_prefix:
        raise SystemExit("no virtual environment: where ROS 2 is installed, install the real packages")
    for manifest in sorted(FOLDER.glob("*/package.xml")):
        with TemporaryDirectory() as folder:
            build(manifest.parent, Path(folder))
        print(f"Built {manifest.parent.name} for tests")


if __name__ == "__main__":
    main()
