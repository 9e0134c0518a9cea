# SPDX-License-Identifier: Apache-2.0
"""Write the tables of docs/papers/ from runs of `robot-dyn-id reproduce --full`, and the number of each verdict.

    python benchmarks/paper_pages.py [NAME ...] [--seeds N]

A page has the lines BEGIN and END; what is between them is replaced. The overview has the verdicts counted on all
pages. Searches run with fixed seeds and one thread. The
computing time of each run is printed: that of the table in docs/papers/README.md.
"""

import argparse
import itertools
import os
import re
import time
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"

from robot_dyn_id.cli import show_progress
from robot_dyn_id.papers import PAPERS
from robot_dyn_id.papers.figures import MIN_DRAWS, WORDS, Extent, Reproduction

PAGES = Path(__file__).resolve().parents[1] / "docs" / "papers"

BEGIN, END = "<!-- begin: written by benchmarks/paper_pages.py -->", "<!-- end -->"


def page_with(page: str, result: Reproduction, command: str) -> str:
    """Replace what is between the two marks of a page by the table of a run."""
    table = "\n".join(f"    {line}" for line in result.table())
    return replace_marked(page, f"`{command}`:\n\n{table}")


def replace_marked(page: str, content: str) -> str:
    """Replace what is between the two marks of a page."""
    text, count = re.subn(f"{BEGIN}.*?{END}", lambda _: f"{BEGIN}\n{content}\n{END}", page, count=1, flags=re.S)
    if count != 1:
        raise ValueError(f"the page has no lines {BEGIN} and {END}")
    return text


def read_verdicts(page: str) -> list[tuple[str, bool]]:
    """Verdict of each figure of a page's table, and whether it has a reason: a condition, or a line below it."""
    table = page.partition(BEGIN)[2].partition(END)[0].splitlines()
    known = re.compile(rf"^    \S.*  ({'|'.join(WORDS)})([ :].*)?$")
    return [
        (found[1], bool(found[1] == "other conditions" or following.startswith(" " * 8)))
        for line, following in itertools.pairwise(table)
        if (found := known.match(line))
    ]


def count_verdicts(pages: dict[str, str]) -> str:
    """Table of the number of figures with each verdict, by paper."""
    counts = {name: [word for word, _ in read_verdicts(page)] for name, page in pages.items()}
    rows = ["| verdict | " + " | ".join(counts) + " | all |", "|---" * (len(counts) + 2) + "|"]
    for word in WORDS:
        each = [words.count(word) for words in counts.values()]
        if sum(each):
            rows.append(f"| {word} | " + " | ".join(map(str, (*each, sum(each)))) + " |")
    each = [len(words) for words in counts.values()]
    return "\n".join([*rows, "| figures | " + " | ".join(map(str, (*each, sum(each)))) + " |"])


def main() -> None:
    import importlib

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("papers", nargs="*", metavar="NAME", default=list(PAPERS))
    parser.add_argument("--seeds", type=int, default=MIN_DRAWS)
    given = parser.parse_args()
    for name in given.papers:
        module = importlib.import_module(f"robot_dyn_id.papers.{name}.reproduction")
        begin = time.process_time()
        result = module.reproduce(Extent(given.seeds, full=True), show_progress)
        print(f"{name}: {(time.process_time() - begin) / 60.0:.1f} min of computing", flush=True)
        seeds = "" if given.seeds == MIN_DRAWS else f" --seeds {given.seeds}"
        path = PAGES / f"{name}.md"
        path.write_text(page_with(path.read_text(), result, f"robot-dyn-id reproduce {name} --full{seeds}"))
    overview = PAGES / "README.md"
    pages = {name: (PAGES / f"{name}.md").read_text() for name in PAPERS}
    overview.write_text(replace_marked(overview.read_text(), count_verdicts(pages)))


if __name__ == "__main__":
    main()
