# SPDX-License-Identifier: Apache-2.0
"""Hostile robots: `python -m hostile`, in `benchmarks/`."""

from __future__ import annotations

from measuring import append_row, one_thread, read_rows

if __name__ == "__main__":
    one_thread()

import argparse
from pathlib import Path

from hostile.table import Row, markdown


def main() -> None:
    """Run the robots that have not been run, and write the table and the details of all that have."""
    parser = argparse.ArgumentParser(prog="python -m hostile", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, nargs="+", help="run these robots, again if they have been")
    parser.add_argument("--robots", type=int, default=40, help="number of robots (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--again", action="store_true", help="run the plain command again, and keep the references")
    parser.add_argument("--out", type=Path, default=Path("hostile-report"), help="folder of rows.jsonl and the tables")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / "rows.jsonl"
    rows = {summary["seed"]: Row.from_summary(summary) for summary in read_rows(file)}
    repeated = given.again or bool(given.seed)
    for seed in given.seed or range(given.first, given.first + given.robots):
        earlier = rows.get(seed)
        if earlier is not None and not repeated:
            continue
        rows[seed] = Row.from_seed(seed, earlier.reference if earlier and given.again else None)
        append_row(file, rows[seed].summary())
        print(rows[seed].details() if given.seed else rows[seed].line(), flush=True)
        _write(given.out, [rows[key] for key in sorted(rows)])
    if not given.seed:
        print(markdown([rows[key] for key in sorted(rows)]))


def _write(folder: Path, rows: list[Row]) -> None:
    (folder / "table.md").write_text(markdown(rows), encoding="utf-8")
    (folder / "details.txt").write_text("\n\n".join(row.details() for row in rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
