# SPDX-License-Identifier: Apache-2.0
"""Machine code on disk follows every file that a kernel is made of."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.processes import run_python

from robot_dyn_id.kernels import compiled

HELPER = "from compiled import inlined\n@inlined\ndef scaled(x):\n    return {factor} * x\n"
KERNEL = (
    "from compiled import compiled\nfrom helper import scaled\n@compiled\ndef run(x):\n    return scaled(x) + 1.0\n"
)
RUN = (
    "import compiled, kernel\nkept = compiled.is_on_disk(kernel.run)\n"
    "print(kernel.run(2.0), sum(kernel.run.stats.cache_hits.values()), kept)"
)


def run(folder):
    done = run_python(RUN, cwd=folder, check=True)
    value, hits, kept = done.stdout.split()
    return float(value), int(hits), kept == "True"


@pytest.mark.slow
@pytest.mark.skipif(not compiled.COMPILED, reason="numba is not installed")
def test_a_change_in_an_inlined_file_compiles_its_callers_again(tmp_path):
    shutil.copy(compiled.__file__, tmp_path)
    (tmp_path / "kernel.py").write_text(KERNEL)
    (tmp_path / "helper.py").write_text(HELPER.format(factor="3.0"))
    assert run(tmp_path) == (7.0, 0, False)
    assert run(tmp_path) == (7.0, 1, True)
    (tmp_path / "helper.py").write_text(HELPER.format(factor="5.0"))
    assert run(tmp_path) == (11.0, 0, False)


@pytest.mark.slow
@pytest.mark.skipif(not compiled.COMPILED, reason="numba is not installed")
def test_of_processes_that_start_at_the_same_time_one_compiles(tmp_path):
    """The first one to read the index finds nothing there; each has its result."""
    shutil.copy(compiled.__file__, tmp_path)
    (tmp_path / "kernel.py").write_text(KERNEL)
    (tmp_path / "helper.py").write_text(HELPER.format(factor="3.0"))
    with ThreadPoolExecutor() as threads:
        found = list(threads.map(run, [tmp_path] * 3))
    assert [value for value, *_ in found] == [7.0] * 3
    assert sorted(hits for _, hits, _ in found) == [0, 1, 1]


def test_every_kernel_is_in_the_folder_whose_sources_count():
    package = Path(compiled.__file__).parents[1]
    outside = [
        path.name
        for path in package.rglob("*.py")
        if path.parent.name != "kernels" and ("@compiled" in path.read_text() or "import compiled" in path.read_text())
    ]
    assert not outside
