"""Shows what became of the submissions: a column for each tool, on a terminal and in `docs/benchmarks.md`."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.peers.measure import LIMIT_SECONDS, Measured, Outcome
from benchmarks.peers.submissions import Kind
from benchmarks.peers.tool import TOOL_LIMIT_SECONDS, Lost
from benchmarks.table import Machine

TITLE = "Against the tools that people use today"
HOW = Path(__file__).with_name("how.md")


def outcome_cell(outcome: Outcome) -> str:
    """Return what became of one submission in a few words."""
    if not outcome.returned:
        return f"never returned: ended after {LIMIT_SECONDS:g} s, no result"
    verdict = outcome.verdict
    if isinstance(verdict, Lost):
        return f"no result: {verdict.says}"
    if verdict.points is None:
        return "no points: left to the instructor"
    return f"{verdict.points:g} of {verdict.maximum:g}"


def full_points(outcomes: Sequence[Outcome]) -> int:
    """Return how many of these submissions were given all points."""
    return sum(not isinstance(one.verdict, Lost) and one.verdict.full for one in outcomes)


def lost(measured: Measured) -> list[str]:
    """Return what a tool lost: results by the kind of submission, and all points to one that cheats."""
    missing = [one.kind for one in measured.outcomes if not one.returned or isinstance(one.verdict, Lost)]
    given = ["all points, to the one that cheats"] if full_points(measured.of("cheats")) else []
    return [f"the result of: {kind}" for kind in dict.fromkeys(missing)] + given


def rows(columns: Sequence[Measured]) -> list[tuple[str, ...]]:
    """Return the table's rows: what is told, and each tool's cell."""

    def full(kind: Kind) -> list[str]:
        return [f"{full_points(one.of(kind))} of {len(one.of(kind))}" for one in columns]

    def hostile(kind: Kind) -> list[str]:
        return ["; ".join(map(outcome_cell, one.of(kind))) for one in columns]

    cells = {
        "isolates a submission from its checks": ["yes" if one.isolates else "no" for one in columns],
        "what is around a submission": [one.around for one in columns],
        "how it grades": [one.grades for one in columns],
        "wall time a submission": [f"{one.first:.2f} s" for one in columns],
        "the same again, unchanged": [f"{one.again:.2f} s" for one in columns],
        "points": [one.points for one in columns],
        "right fixes with all points": full("right"),
        "wrong fixes with all points": full("wrong"),
        "exits early": hostile("exits"),
        "loops for ever": hostile("loops"),
        "cheats": hostile("cheats"),
        "lost": ["; ".join(lost(one)) or "nothing" for one in columns],
    }
    return [(what, *of_tools) for what, of_tools in cells.items()]


def findings(columns: Sequence[Measured]) -> list[str]:
    """Return who is the fastest, of all and of those that isolate, and who lost nothing."""
    fastest = min(columns, key=lambda one: one.first)
    lines = [f"The fastest of all: {fastest.name}, {fastest.first:.2f} s a submission."]
    isolating = sorted((one for one in columns if one.isolates), key=lambda one: one.first)
    if isolating:
        many = "the only one here" if len(isolating) == 1 else f"one of {len(isolating)}"
        lines.append(
            f"The fastest that isolates: {isolating[0].name}, {isolating[0].first:.2f} s; it is {many}."
        )
    whole = [one.name for one in columns if not lost(one)]
    lines.append(f"With nothing lost: {', '.join(whole) or 'none'}.")
    return lines


def kept(ours: str, columns: Sequence[Measured]) -> bool:
    """Whether the tool of that name is the fastest that isolates, and the only one that lost nothing."""
    isolating = [one for one in columns if one.isolates]
    fastest = min(isolating, key=lambda one: one.first, default=None)
    whole = [one.name for one in columns if not lost(one)]
    return fastest is not None and fastest.name == ours and whole == [ours]


def show(columns: Sequence[Measured], notes: Sequence[str], console: Console) -> None:
    """Print the table, and what follows from it."""
    table = Table(title=TITLE, title_justify="left", show_lines=True)
    for heading in ("", *(one.name for one in columns)):
        table.add_column(heading, overflow="fold")
    for row in rows(columns):
        table.add_row(*row)
    console.print(table)
    for line in (*findings(columns), *notes):
        console.print(line, markup=False, highlight=False)


def as_markdown(columns: Sequence[Measured], notes: Sequence[str], machine: Machine, date: str) -> str:
    """Return the section of `docs/benchmarks.md`."""
    table = [
        ("", *(one.name for one in columns)),
        tuple("---" for _ in range(len(columns) + 1)),
        *rows(columns),
    ]
    lines = [
        f"## {TITLE}",
        "",
        "Made by `make bench-peers` (`python -m benchmarks.peers --write`).",
        "",
        *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in table),
        "",
        *(f"- {line}" for line in findings(columns)),
        *(f"- {line}" for line in notes),
        "",
        f"Measured on {date}: {machine.describe()}.",
        "",
        HOW.read_text(encoding="utf-8").format(tool_limit=TOOL_LIMIT_SECONDS, limit=f"{LIMIT_SECONDS:g}"),
    ]
    return "\n".join(lines)
