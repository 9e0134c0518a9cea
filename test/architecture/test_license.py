# SPDX-License-Identifier: Apache-2.0
"""Every source file names its license in its first lines, as license scanners read it."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("robot_dyn_id", "launch", "msg", "action", "srv", "cpp", "examples", "benchmarks", "test", ".ci")
SUFFIXES = {".py", ".msg", ".srv", ".action", ".cpp", ".hpp", ".js", ".css", ".sh"}
NAMES = {"CMakeLists.txt", "Makefile", "setup.py", "run"}
GENERATED = {"robot_dyn_id/_built_for.py"}


def sources():
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    paths += [path for path in ROOT.iterdir() if path.is_file()]
    return sorted(
        path
        for path in paths
        if (path.suffix in SUFFIXES or path.name in NAMES)
        and "__pycache__" not in path.parts
        and path.parent.name != "vendor"  # its README names the license
        and path.relative_to(ROOT).as_posix() not in GENERATED
    )


def names_the_license(path):
    lines = path.read_text(encoding="utf-8").splitlines()[:2]
    first = lines[1] if lines and lines[0].startswith("#!") else (lines or [""])[0]
    return "SPDX-License-Identifier: Apache-2.0" in first


def test_the_first_lines_name_the_license():
    assert [path.relative_to(ROOT).as_posix() for path in sources() if not names_the_license(path)] == []
