"""`run.html`: one self-contained page that shows a run, or a run beside the broken one that it repairs.

The page depends only on the run's files: no network, no script, no times, the same bytes for the same files. It
shows evidence and draws no conclusion. Jinja's autoescape escapes all text, whatever the files hold.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from harness.page.charts import number_text
from harness.page.run_charts import chart_sections
from harness.page.run_data import Record, RunFiles, look_up, number, read_run
from harness.workspace import RUN_PAGE

TEMPLATES = Path(__file__).parent / "templates"
MISSING = "—"  # an em dash: nothing was recorded
_MESSAGES_SHOWN = 8
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


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
    runs = [read_run(folder) for folder in (compare_with, run_dir) if folder is not None]
    subject = {key: runs[-1].provenance.get(key) for key in ("recipe", "experiment", "dataset", "seed")}
    return render(
        "run.html.j2",
        title=title,
        subject=[(key, str(value)) for key, value in subject.items() if value is not None],
        names=[run.name for run in runs],
        views=[_view(run) for run in runs],
        headline=_headline(runs),
        sections=[section for section in chart_sections(runs) if section.charts],
        sheets=_sheets(runs),
        provenance=_provenance(runs),
    )


def render(template: str, **values: Any) -> str:
    """Return a page made of a template, our style sheet and these values, which it escapes."""
    style = Markup((TEMPLATES / "run.css").read_text(encoding="utf-8"))
    return page_environment(TEMPLATES).get_template(template).render(values, policy=_POLICY, style=style)


@cache
def page_environment(*folders: Path, finalize: Callable[[object], object] | None = None) -> Environment:
    """Return the environment of templates: it escapes everything, and refuses unknown names.

    finalize: changes each value before it is escaped.
    """
    return Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


# --- what each run has on its own


@dataclass(frozen=True)
class Matrix:
    """A confusion matrix: rows are true classes, columns predicted ones.

    A cell is its count, and its share of the row, so that classes of unequal size compare. `tall` turns the column
    heads upright.
    """

    classes: list[str]
    rows: list[list[tuple[int, float]]]
    summary: str
    tall: bool


@dataclass(frozen=True)
class RunView:
    """One run: its name, its outcome in a sentence, and what its guardrails said (level, first step, text, times)."""

    name: str
    outcome: str
    messages: list[tuple[str, str, str, int]]
    more_messages: int
    matrix: Matrix | None


def _view(run: RunFiles) -> RunView:
    said = _messages(run)
    matrix = confusion_matrix(run.result.get("confusion"), run.result.get("class_names"))
    return RunView(
        run.name, _outcome(run), said[:_MESSAGES_SHOWN], max(0, len(said) - _MESSAGES_SHOWN), matrix
    )


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


def _messages(run: RunFiles) -> list[tuple[str, str, str, int]]:
    """Return what the guardrails said, each message once, in the order of its first step."""
    findings = run.result.get("guardrails")
    said = (
        [finding for finding in findings if isinstance(finding, dict)] if isinstance(findings, list) else []
    )
    keys = [(str(finding.get("level", "")), str(finding.get("message", ""))) for finding in said]
    return [
        (level, str(said[keys.index((level, text))].get("step", "")), text, times)
        for (level, text), times in Counter(keys).items()
    ]


def confusion_matrix(counts: object, class_names: object) -> Matrix | None:
    """Lay out a square table of counts, (classes, classes) with true classes in rows; None for anything else."""
    if not (isinstance(counts, list) and counts and all(_is_row(row, len(counts)) for row in counts)):
        return None
    names = [str(index) for index in range(len(counts))]
    if isinstance(class_names, list) and len(class_names) == len(counts):
        names = [str(name) for name in class_names]
    right = sum(row[index] for index, row in enumerate(counts))
    return Matrix(
        names,
        [[(count, count / max(sum(row), 1)) for count in row] for row in counts],
        f"{right} of {sum(map(sum, counts))} on the diagonal",
        tall=max(map(len, names)) > 3,
    )


def _is_row(row: object, length: int) -> bool:
    return isinstance(row, list) and len(row) == length and all(isinstance(n, int) and n >= 0 for n in row)


def _sheets(runs: list[RunFiles]) -> list[tuple[str, RunFiles]]:
    """Return the input sheets to show, each with the names of its runs; two equal ones are shown once."""
    if len(runs) > 1 and runs[0].images and runs[0].images == runs[1].images:
        return [(f"{runs[0].name} and {runs[1].name}: the same", runs[0])]
    return [(run.name if len(runs) > 1 else "", run) for run in runs]


# --- tables: a label, and a column for each run

Fact = tuple[str, ...]
Read = Callable[[RunFiles], str]


def _headline(runs: Sequence[RunFiles]) -> list[Fact]:
    facts = [(label, *(read(run) for run in runs)) for label, read in _HEADLINE]
    return [fact for fact in facts if set(fact[1:]) != {MISSING}]


def _text(value: float | None) -> str:
    return MISSING if value is None else number_text(value)


def _last(signal: str, epochs: bool = True) -> Read:
    def read(run: RunFiles) -> str:
        records = run.epochs if epochs else run.batches
        return _text(look_up(records[-1], signal)) if records else MISSING

    return read


def _first_non_finite_text(run: RunFiles) -> str:
    step = _first_non_finite_step(run)
    return "none" if step is None else str(step)


_HEADLINE: list[tuple[str, Read]] = [
    ("Final training loss", _last("loss", epochs=False)),
    ("Validation loss", _last("val_loss")),
    ("… same weights, evaluated again", _last("val_loss_repeated")),
    ("… same weights, in eval mode", _last("val_loss_eval_mode")),
    ("Validation accuracy", _last("val_accuracy")),
    ("… same weights, evaluated again", _last("val_accuracy_repeated")),
    ("… same weights, in eval mode", _last("val_accuracy_eval_mode")),
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
    return [(name, *(one.get(name, MISSING) for one in flat)) for name in names]


def _flatten(record: Record, prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in record.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = MISSING if value is None else str(value)
    return flat
