"""The table that each model report shows of its broken run says what the log says."""

import re
from typing import Any

import pytest
from explanations import whole_log

from grader.score.solutions import SOLUTIONS
from harness.recipe import recipe_ids

_CODE = re.compile(r"^```\n(.*?)^```", re.DOTALL | re.MULTILINE)


def flat(record: dict[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in record.items():
        found |= flat(value, f"{before}{name}.") if isinstance(value, dict) else {before + name: value}
    return found


@pytest.mark.parametrize("recipe", recipe_ids())
def test_every_row_is_in_the_log_of_the_broken_run(recipe: str) -> None:
    (table,) = _CODE.findall((SOLUTIONS / recipe / "report.md").read_text(encoding="utf-8"))
    head, *rows = table.strip().splitlines()
    place, *signals = head.split()
    records = [flat(record) for record in whole_log(recipe)]
    told = signals[0]
    compared = 0
    for row in rows:
        at, *values = row.split()
        record = next(item for item in records if str(item.get(place)) == at and told in item)
        if len(values) != len(signals):  # a cell is empty: which one, only a person sees
            continue
        for signal, value in zip(signals, values, strict=True):
            compared += 1
            assert f"{record[signal]:.{len(value.partition('.')[2])}f}" == value or float(
                value
            ) == pytest.approx(record[signal], rel=0.01 if "e" in value else 1e-9), (
                row,
                signal,
                record[signal],
            )
    assert compared >= len(signals)
