"""One part of the self-check's result, and its two views: the terminal and `docs/calibration.md`."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Section:
    """A title, sentences, a table and the problems found; a part without problems has passed."""

    title: str
    says: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    problems: tuple[str, ...] = ()


def show(section: Section, console: Console) -> None:
    """Print a section."""
    table = Table(title=section.title, title_justify="left")
    for column in section.columns:
        table.add_column(column, no_wrap=True)
    for row in section.rows:
        table.add_row(*row)
    console.print(table if section.rows else section.title)
    for line in section.says:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for line in section.problems:
        console.print(f"WRONG: {line}", style="bold red", markup=False, highlight=False, soft_wrap=True)


def page(sections: Sequence[Section], command: str) -> str:
    """Return `docs/calibration.md`, which names the command that made it."""
    lines = ["# Calibration", "", f"Written by `{command}`. Ranges are over all seeds."]
    for section in sections:
        lines += ["", f"## {section.title}"]
        if section.rows:
            lines += ["", _row(section.columns), _row(["---"] * len(section.columns))]
            lines += [_row(row) for row in section.rows]
        lines += [text for line in section.says for text in ("", line)]
        if section.problems:
            lines += ["", *(f"- **wrong:** {_cell(line)}" for line in section.problems)]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
