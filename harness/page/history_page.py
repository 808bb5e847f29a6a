"""`history.html`: a page that draws the attempts at an exercise together, and shows result and edit of each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.page.live_charts import charts_data
from harness.page.run_data import read_run
from harness.page.run_page import chart_sections, render

MOST_DRAWN = 7  # attempts, drawn with the broken run: nobody could distinguish more lines in one chart
_SECTIONS = ("loss", "gradients")


@dataclass(frozen=True)
class AttemptView:
    """An attempt as the page shows it: its number, its folder, the cells of its row, and the lines of its edit."""

    number: int
    folder: Path
    cells: Sequence[str]
    edit: Sequence[str]


def write_history_page(
    path: Path, title: str, broken: Path, columns: Sequence[str], attempts: Sequence[AttemptView]
) -> None:
    """Write the page. `columns` are the headings of the cells. The last attempts are drawn with the broken run.

    Raises `UserError` if a file of a run is invalid.
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
