"""Reading YAML that a person or this tool wrote: one way, and one line for all that can be wrong with the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from robot_dyn_id.errors import InputError, RobotDynIdError

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Ten times as fast, where it was built."""


def read_yaml(path: str | Path, what: str, error: type[RobotDynIdError] = InputError) -> Any:
    """The content of a file; None of an empty one.

    Args:
        path: of the file; `~` is the home folder.
        what: the file should hold, for the message.
        error: raised where it cannot be read.

    Raises:
        RobotDynIdError: the file cannot be opened, or is not YAML.
    """
    try:
        return yaml.load(Path(path).expanduser().read_text(encoding="utf-8"), Loader=Loader)
    except OSError as problem:
        raise error(f"{path}: cannot read the {what} ({problem.strerror})") from None
    except (yaml.YAMLError, UnicodeDecodeError) as problem:
        raise error(f"{path}: not a YAML file ({' '.join(str(problem).split())[:120]})") from None
