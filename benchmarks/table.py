"""Shows the rows: as a table on a terminal, as a section of `docs/benchmarks.md`, or as JSON."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.timing import Row

HOW = (
    "Wall-clock times. What is compared is timed in turns, round after round, in one run of this program; a ratio is"
    " the median of the rounds' ratios, a time the median of the rounds' times."
)


@dataclass(frozen=True)
class Machine:
    """What the figures were measured on; `load` is the average load of the minute before."""

    processor: str
    cores: int
    python: str
    torch: str
    load: float

    def describe(self) -> str:
        """Return one sentence."""
        return (
            f"{self.processor}, {self.cores} cores, Python {self.python}, torch {self.torch};"
            f" load when it began {self.load:.1f}"
        )


def this_machine() -> Machine:
    """Return what there is to say about this machine, its name excepted."""
    return Machine(
        processor=processor_name(Path("/proc/cpuinfo")),
        cores=os.cpu_count() or 1,
        python=platform.python_version(),
        torch=version("torch"),
        load=os.getloadavg()[0],
    )


def processor_name(cpuinfo: Path) -> str:
    """Return the model name of the processor, or its architecture where the system does not tell."""
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names and names[0] else platform.machine()


def figure(value: float, unit: str) -> str:
    """Return a ratio, a time or a size as people read it."""
    return f"{value:.2f} {unit}" if abs(value) < 100 else f"{value:.0f} {unit}"


def _cells(row: Row) -> tuple[str, str, str, str, str]:
    target = f"at {'least' if row.at_least else 'most'} {figure(row.target, row.unit)}"
    return row.what, figure(row.value, row.unit), target, "yes" if row.met else "NO", row.detail


HEADINGS = ("what", "measured", "target", "met", "how it came about")


def show(
    rows: Sequence[Row],
    machine: Machine,
    console: Console,
    *,
    title: str = "What the harness and the grader cost",
    how: str = HOW,
) -> None:
    """Print the table with the machine below it, and how its figures came about."""
    table = Table(title=title, title_justify="left")
    for heading, justify in zip(HEADINGS, ("left", "right", "right", "center", "left"), strict=True):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*_cells(row), style=None if row.met else "red")
    console.print(table)
    console.print(machine.describe(), markup=False, highlight=False)
    console.print(how, markup=False, highlight=False)


def rows_as_markdown(rows: Sequence[Row], machine: Machine) -> list[str]:
    """Return the lines of a table of rows, and of the machine below it."""
    return [
        "| " + " | ".join(HEADINGS) + " |",
        "| --- | ---: | ---: | :---: | --- |",
        *("| " + " | ".join(cell.replace("|", "\\|") for cell in _cells(row)) + " |" for row in rows),
        "",
        f"Measured on: {machine.describe()}.",
    ]


def as_markdown(rows: Sequence[Row], machine: Machine) -> str:
    """Return the section of `make bench` in `docs/benchmarks.md`."""
    lines = [
        "## The harness and the grader",
        "",
        "Made by `make bench` (`python -m benchmarks.bench --write`).",
        "",
        *rows_as_markdown(rows, machine),
        "",
        HOW,
        "",
        "- The plain script is `benchmarks/plain_mlp.py`: a whole process that imports torch and trains the same"
        " network on the same data with the same loop and the same numerics, and records nothing."
        " `tests/test_bench.py` shows that both end with the same weights, to the bit.",
        "- The training loops are those of `benchmarks/loop.py`: the first steps of the healthy experiment, with hooks,"
        " log and guardrails or without, in one process.",
        "- Whole commands each start in an empty workspace folder, with everything installed and compiled.",
        "- Instruments are held to `huge_lr` as it is handed out; beside each stands a process that imports torch and"
        " does nothing else.",
    ]
    return "\n".join(lines) + "\n"


def as_json(rows: Sequence[Row], machine: Machine) -> str:
    """Return one JSON object with the rows, every round of them, and the machine."""
    return json.dumps({"machine": asdict(machine), "rows": [row.as_dict() for row in rows]}, indent=1)
