"""What one part of the self-check found, and how it is shown: in a terminal, and as a page."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table as RichTable


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    cells: tuple[str, ...]
    agrees: bool = True


@dataclass(frozen=True)
class Table:
    """Rows under headings."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Section:
    """One part: `says` what was compared with what; `figures` is its one line of result.

    A part has passed where there are no `disagreements`; `notes` tell what was left out, and why.
    """

    title: str
    says: str
    tables: tuple[Table, ...]
    figures: str
    disagreements: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def show(section: Section, console: Console) -> None:
    """Print a section: its tables, what disagrees, the figures."""
    for number, table in enumerate(section.tables):
        shown = RichTable(title=None if number else section.title)
        for column in table.columns:
            shown.add_column(column, no_wrap=True)
        for row in table.rows:
            shown.add_row(*row.cells, style=None if row.agrees else "bold red")
        console.print(shown)
    for line in (*section.notes, *section.disagreements):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print(f"{section.title}: {section.figures}", markup=False, highlight=False, soft_wrap=True)


def page(sections: Sequence[Section], command: str) -> str:
    """Return the page `docs/calibration.md`, which says the command that made it."""
    lines = [
        "# Calibration",
        "",
        f"Written by `{command}`. Every part ends with its figures; what disagrees is listed below its table.",
    ]
    for section in sections:
        lines += ["", f"## {section.title}", "", section.says]
        lines += [line for note in section.notes for line in ("", note)]
        for table in section.tables:
            lines += ["", _line(table.columns), _line(["---"] * len(table.columns))]
            lines += [_line(row.cells) for row in table.rows]
        lines += ["", f"**{section.figures}**"]
        if section.disagreements:
            lines += ["", *(f"- {_escaped(line)}" for line in section.disagreements)]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_escaped, cells)) + " |"


def _escaped(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
