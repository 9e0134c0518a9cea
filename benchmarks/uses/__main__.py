# SPDX-License-Identifier: Apache-2.0
"""Answers about uses, and the success of the uses themselves: `python -m uses --out FOLDER`, in `benchmarks/`.

Arms of the mutation suite and four further ones are identified by the plain command from recordings of ten qualities;
each model is then used on the true arm, see `uses.trials`.
"""

from __future__ import annotations

from measuring import append_row, one_thread, read_rows

if __name__ == "__main__":
    one_thread()

import argparse
import time
from pathlib import Path
from typing import Any

from mutation.clean import ARMS, FURTHER_ARMS, Bench

from robot_dyn_id import Settings
from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.identification.pipeline import identify
from uses.recordings import QUALITIES
from uses.table import markdown
from uses.trials import USES, Model, try_use


def run(arm: str, quality: str, seed: int) -> dict[str, Any]:
    """Identify an arm, and try every use of its model.

    Returns:
        The case, the verdict, and for each use its answer, codes, figures and outcome.
    """
    bench = Bench.draw(arm, seed)
    row: dict[str, Any] = {"arm": arm, "quality": quality, "seed": seed}
    begin = time.process_time()
    try:
        result = identify(QUALITIES[quality](bench), [], bench.robot, Settings(), "benchmark")
    except RobotDynIdError as error:
        return {**row, "verdict": "refused", "reason": str(error)[:200], "uses": {}}
    row["verdict"], row["seconds"] = result.evaluation.verdict.word, time.process_time() - begin
    model, uses = Model(bench, result.parameters), {}
    for judgment in result.evaluation.uses:
        fit = judgment.fit
        outcome = try_use(fit.use, model)
        criteria = [
            (one.code, one.joint, one.figure, one.threshold) for one in result.evaluation.criteria if one.use == fit.use
        ]
        uses[fit.use] = {
            "answer": fit.answer,
            "because": list(fit.because),
            "criteria": criteria,
            "figure": outcome.figure,
            "detail": outcome.detail,
        }
    return {**row, "uses": uses}


def main() -> None:
    """Run the cases that have not been run, and write the table of all that have."""
    parser = argparse.ArgumentParser(prog="python -m uses", description=__doc__.splitlines()[0])
    names = [*ARMS, *FURTHER_ARMS]
    parser.add_argument("--arms", nargs="+", choices=names, default=names, metavar="ARM")
    parser.add_argument("--qualities", nargs="+", choices=list(QUALITIES), default=list(QUALITIES), metavar="QUALITY")
    parser.add_argument("--seed", type=int, default=0, help="seed of the arms (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("uses-report"), help="folder of rows.jsonl and the table")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / "rows.jsonl"
    rows = {(row["arm"], row["quality"], row["seed"]): row for row in read_rows(file)}
    for quality in given.qualities:
        for arm in given.arms:
            if (arm, quality, given.seed) in rows:
                continue
            row = run(arm, quality, given.seed)
            rows[arm, quality, given.seed] = row
            append_row(file, row)
            for use in USES:
                of_use = row["uses"].get(use)
                if of_use:
                    print(
                        f"{arm:15}{quality:22}{row['verdict']:8}{use:22}{of_use['answer']:8}"
                        f"{of_use['figure']:9.2f} {of_use['detail']} {' '.join(of_use['because'])}",
                        flush=True,
                    )
            (given.out / "table.md").write_text(markdown(list(rows.values())), encoding="utf-8")
    print(markdown(list(rows.values())))


if __name__ == "__main__":
    main()
