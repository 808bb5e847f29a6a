"""`make trial`: judge the labelled fixes, which people wrote who have not seen the rules, and print a table.

`data/labelled/<set>/<recipe>.toml` has the tables `right`, `masking` and `wrong`, each with entries
`id = [[find, replace], ...]` that edit the broken experiment. The edits of the set `red` leave the fault in on
purpose. A right fix may wait for the instructor, but never fail. A masking or wrong one, and the tricks of
`data/tricks`, may get the points of a masked cause, and no more.
"""

import argparse
import json
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from attacks.score_tricks import tricks

from grader.score.fix import CORRECT, MASKED
from grader.selfcheck.fixes import judge_fixes
from grader.selfcheck.runs import open_runs
from harness.canonical_setup import usable_cores
from harness.recipes.catalogue import load_recipe
from harness.recipes.known_edits import KnownFix, Verdict
from harness.recipes.recipe import Edit, apply_edits

LABELLED = Path(__file__).parent / "data" / "labelled"
_VERDICTS: dict[str, Verdict] = {"right": "full", "masking": "masking", "wrong": "wrong"}
_POINTS = ("0", "4", "12", "waits")
LEAST_FULL = 0.9
Row = dict[str, Any]


def labelled_fixes(only: Iterable[str] = (), folder: Path = LABELLED) -> Iterator[tuple[str, KnownFix]]:
    """Yield the labelled fixes of these recipes, or of all. Raises `ValueError` if an edit does not fit."""
    for path in sorted(folder.rglob("*.toml")):
        if only and path.stem not in only:
            continue
        recipe = load_recipe(path.stem)
        found = tomllib.loads(path.read_text(encoding="utf-8"))
        for label, verdict in _VERDICTS.items():
            for name, pairs in found.get(label, {}).items():
                edits = [Edit(find=find, replace=replace) for find, replace in pairs]
                source = apply_edits(recipe.broken_source(), edits, where=f"{path.name} {name}")
                yield label, KnownFix(recipe, name, verdict, source)


def problem_of(row: Row) -> str:
    """Return in what a fix was judged otherwise than its label says, or ""."""
    points = row["correct"]
    if row["label"] == "right":
        return "a right fix fails" if points is not None and points < CORRECT else ""
    return "it gets the points of a right fix" if points is not None and points > MASKED else ""


def table(rows: Iterable[Row]) -> str:
    """Return the table of docs/trial.md: how many fixes of each label got how many points for correctness."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for row in rows:
        points = "waits" if row["correct"] is None else f"{row['correct']:g}"
        for name in (row["recipe"], "all"):
            counts.setdefault((row["label"], name), Counter()).update([points, "fixes"])
    lines = ["| label | recipe | fixes | 0 | 4 | 12 | waits |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for (label, name), found in sorted(counts.items(), key=lambda item: (item[0][0], item[0][1] == "all", item[0])):
        cells = (label, name, found["fixes"], *(found[points] for points in _POINTS))
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> int:
    """Judge the fixes; exit 1 if one is judged otherwise than its label says, or too many right ones wait."""
    parser = argparse.ArgumentParser(prog="make trial", description=__doc__)
    parser.add_argument("recipes", nargs="*", help="these recipes alone")
    parser.add_argument(
        "--set", dest="part", default="", help="one set alone, without the tricks: first, second, red ..."
    )
    parser.add_argument("--json", type=Path, help="write what each fix got to this file")
    parser.add_argument("--jobs", type=int, default=usable_cores())
    asked = parser.parse_args()
    labels = {fix: label for label, fix in labelled_fixes(asked.recipes, LABELLED / asked.part)}
    for name, recipe, _, source in () if asked.part else tricks():
        if not asked.recipes or recipe in asked.recipes:
            labels[KnownFix(load_recipe(recipe), name, "masking", source)] = "trick"
    rows: list[Row] = []
    with open_runs(jobs=asked.jobs) as runs:
        for fix, (correct, minimal) in judge_fixes(list(labels), runs):
            row: Row = {"recipe": fix.recipe.id, "id": fix.id, "label": labels[fix]}
            row |= {"correct": correct.points, "reason": correct.reason}
            rows.append(row | {"minimal": minimal.points, "why": minimal.reason})
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    wrong = [(row, problem) for row in rows if (problem := problem_of(row))]
    for row, problem in wrong:
        print(f"{row['recipe']} {row['id']} ({row['label']}): {problem}: {row['reason']}")
    print(table(rows))
    right = [row["correct"] for row in rows if row["label"] == "right"]
    enough = right.count(CORRECT) >= LEAST_FULL * len(right)
    print(f"{right.count(CORRECT)} of {len(right)} right fixes have full points without the instructor.")
    return 0 if enough and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
