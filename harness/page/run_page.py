"""`run.html`: one self-contained page that shows a run, or a run beside the broken one that it repairs.

The page depends only on the run's files: no network, no script, no times, the same bytes for the same files. It
shows evidence and draws no conclusion. Jinja's autoescape escapes all text, whatever the files hold.
"""

import gc
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from harness.page.charts import number_text
from harness.page.run_charts import chart_sections
from harness.page.run_data import Record, RunFiles, look_up, number, read_run

RUN_PAGE = "run.html"
_MESSAGES_SHOWN = 8
_MISSING = "—"  # an em dash: nothing was recorded


def write_run_page(run_dir: Path, *, title: str, compare_with: Path | None = None) -> Path:
    """Write `run.html` into the run's folder and return its path.

    title: the page's heading. compare_with: the folder of the broken run, to draw together with this one.
    Raises `UserError` for a file of a run that does not hold what it should.
    """
    page = render_run_page(run_dir, title=title, compare_with=compare_with)
    path = run_dir / RUN_PAGE
    path.write_text(page, encoding="utf-8", newline="\n")
    return path


def render_run_page(run_dir: Path, *, title: str, compare_with: Path | None = None) -> str:
    """Return the page of a run as HTML; see `write_run_page`."""
    with _collector_paused():
        runs = [read_run(run_dir)]
        if compare_with is not None:
            runs.insert(0, read_run(compare_with))
        subject = {key: runs[-1].provenance.get(key) for key in ("recipe", "experiment", "dataset", "seed")}
        template = page_environment().get_template("run.html.j2")
        return template.render(
            title=title,
            subject=[(key, str(value)) for key, value in subject.items() if value is not None],
            names=[run.name for run in runs],
            views=[_view(run) for run in runs],
            headline=_headline(runs),
            sections=[section for section in chart_sections(runs) if section.charts],
            sheets=_sheets(runs),
            provenance=_provenance(runs),
        )


@cache
def page_environment() -> Environment:
    """Return the environment of the templates: everything is escaped, and an unknown name is an error."""
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Stop the cyclic collector: compiling templates sets it off, and with torch's heap it takes 0.1 s."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


# --- what each run has on its own


@dataclass(frozen=True)
class Message:
    """What a guardrail said: the first step and the number of steps at which it said it."""

    step: str
    level: str
    text: str
    count: int


@dataclass(frozen=True)
class Matrix:
    """A confusion matrix: rows are true classes, columns predicted ones.

    A cell is its count, its share of the row as text, and whether its tint needs light ink. `tall` turns the column
    heads upright.
    """

    classes: list[str]
    rows: list[list[dict[str, Any]]]
    summary: str
    tall: bool


@dataclass(frozen=True)
class RunView:
    """One run, its outcome in a sentence, and what its guardrails said."""

    run: RunFiles
    outcome: str
    messages: list[Message]
    more_messages: int
    matrix: Matrix | None


def _view(run: RunFiles) -> RunView:
    said = _messages(run)
    matrix = _matrix(run.result.get("confusion"), run.result.get("class_names"))
    return RunView(run, _outcome(run), said[:_MESSAGES_SHOWN], max(0, len(said) - _MESSAGES_SHOWN), matrix)


def _outcome(run: RunFiles) -> str:
    """Return one sentence on the course of the loss, without a verdict."""
    if not run.batches:
        return "The log holds no batch."
    first, last = (_text(look_up(run.batches[index], "loss")) for index in (0, -1))
    words = f"The training loss went from {first} to {last} in {len(run.batches)} steps"
    step = _first_non_finite_step(run)
    if step is not None:
        words += f"; at step {step} it was first not finite"
    if run.result.get("status") != "finished":
        words += "; the run has not finished"
    return words + "."


def _first_non_finite_step(run: RunFiles) -> int | None:
    """Return the first step whose loss is not finite: as the run reported it, else from its log."""
    if "first_non_finite_step" in run.result:
        step = number(run.result["first_non_finite_step"])
        return None if step is None else int(step)
    losses = ((record, look_up(record, "loss")) for record in run.batches)
    return next((int(r["step"]) for r, loss in losses if loss is not None and not math.isfinite(loss)), None)


def _messages(run: RunFiles) -> list[Message]:
    """Return what the guardrails said, each message once, in the order of its first step."""
    grouped: dict[tuple[str, str], list[str]] = {}
    findings = run.result.get("guardrails")
    for finding in findings if isinstance(findings, list) else []:
        if isinstance(finding, dict):
            key = (str(finding.get("level", "")), str(finding.get("message", "")))
            grouped.setdefault(key, []).append(str(finding.get("step", "")))
    return [Message(steps[0], level, text, len(steps)) for (level, text), steps in grouped.items()]


def _matrix(counts: object, class_names: object) -> Matrix | None:
    """Lay out a square table of counts, (classes, classes) with true classes in rows; None for anything else.

    Tints are shares of the row, so that classes of unequal size compare.
    """
    if not (isinstance(counts, list) and counts and all(_is_row(row, len(counts)) for row in counts)):
        return None
    names = [str(index) for index in range(len(counts))]
    if isinstance(class_names, list) and len(class_names) == len(counts):
        names = [str(name) for name in class_names]
    rows = []
    for row in counts:
        shares = [count / max(sum(row), 1) for count in row]
        cells = zip(row, shares, strict=True)
        rows.append([{"count": n, "share": f"{share:.2f}", "strong": share > 0.5} for n, share in cells])
    right = sum(row[index] for index, row in enumerate(counts))
    summary = f"{right} of {sum(map(sum, counts))} on the diagonal"
    return Matrix(names, rows, summary, tall=max(map(len, names)) > 3)


def _is_row(row: object, length: int) -> bool:
    return isinstance(row, list) and len(row) == length and all(isinstance(n, int) and n >= 0 for n in row)


def _sheets(runs: list[RunFiles]) -> list[tuple[str, RunFiles]]:
    """Return the input sheets to show, each with the names of its runs; two equal ones are shown once."""
    if len(runs) == 1:
        return [("", runs[0])]
    first, second = runs
    if first.images and first.images == second.images:
        return [(f"{first.name} and {second.name}: the same", first)]
    return [(first.name, first), (second.name, second)]


# --- tables: headline and provenance, one column a run


@dataclass(frozen=True)
class Fact:
    """One row of a table: a label, and the text of each run."""

    label: str
    values: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether two runs disagree."""
        return len(set(self.values)) > 1


Read = Callable[[RunFiles], str]


def _headline(runs: Sequence[RunFiles]) -> list[Fact]:
    facts = [Fact(label, tuple(read(run) for run in runs)) for label, read in _HEADLINE]
    return [fact for fact in facts if set(fact.values) != {_MISSING}]


def _text(value: float | None) -> str:
    return _MISSING if value is None else number_text(value)


def _last(signal: str, epochs: bool = False) -> Read:
    def read(run: RunFiles) -> str:
        records = run.epochs if epochs else run.batches
        return _text(look_up(records[-1], signal)) if records else _MISSING

    return read


def _first_non_finite_text(run: RunFiles) -> str:
    step = _first_non_finite_step(run)
    return "none" if step is None else str(step)


_HEADLINE: list[tuple[str, Read]] = [
    ("Final training loss", _last("loss")),
    ("Validation loss", _last("val_loss", epochs=True)),
    ("Validation accuracy", _last("val_accuracy", epochs=True)),
    ("Steps", lambda run: str(len(run.batches))),
    ("Epochs", lambda run: str(len(run.epochs))),
    ("First step without a finite loss", _first_non_finite_text),
]


def _provenance(runs: Sequence[RunFiles]) -> list[Fact]:
    """Return where the runs come from, nested names joined by dots."""
    flat = []
    for run in runs:
        digest = run.result.get("checkpoint_sha256")
        flat.append(_flatten(run.provenance) | ({"checkpoint_sha256": str(digest)} if digest else {}))
    names = dict.fromkeys(name for one in flat for name in one)
    return [Fact(name, tuple(one.get(name, _MISSING) for one in flat)) for name in names]


def _flatten(record: Record, prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in record.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = _MISSING if value is None else str(value)
    return flat
