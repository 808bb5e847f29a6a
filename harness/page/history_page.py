"""`history.html`: a page that draws the attempts at an exercise together, and shows the result and the edit of each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.page.live_charts import charts_data
from harness.page.run_data import read_run
from harness.page.run_page import chart_sections, render

MOST_DRAWN = 7  # the most attempts in one chart, in addition to the broken run; more lines would be hard to distinguish
_SECTIONS = ("loss", "gradients")


@dataclass(frozen=True)
class AttemptView:
    """An attempt on the page: its number, its folder, the cells of its table row, and the lines of its diff."""

    number: int
    folder: Path
    cells: Sequence[str]
    edit: Sequence[str]


def write_history_page(
    path: Path, title: str, broken: Path, columns: Sequence[str], attempts: Sequence[AttemptView]
) -> None:
    """Write the page with a table of all attempts, and with charts of the last attempts and the broken run.

    columns: the headings of the table's columns. Raises `UserError` if a file of a run is invalid.
    """
    drawn = attempts[-MOST_DRAWN:]
    runs = [read_run(broken), *(replace(read_run(one.folder), name=f"attempt {one.number}") for one in drawn)]
    sections = [one for one in chart_sections(runs) if one.charts and one.identifier in _SECTIONS]
    page = render(
        "history.html.j2",
        title=title,
        columns=columns,
        attempts=attempts,
        drawn=len(drawn),
        sections=sections,
        charts=charts_data(chart for section in sections for chart in section.charts),
    )
    path.write_text(page, encoding="utf-8", newline="\n")
