# SPDX-License-Identifier: Apache-2.0
"""Functions that a process of its own calls: they write its number into the file that `FILE` names."""

import os
import time
from pathlib import Path

FILE = "SECOND_PROCESS_FILE"


def report():
    path = Path(os.environ[FILE])
    path.with_suffix(".part").write_text(f"{os.getpid()} {os.nice(0)}")
    path.with_suffix(".part").rename(path)


def report_and_stay():
    report()
    time.sleep(600.0)


def fail():
    raise RuntimeError("cannot compile")
