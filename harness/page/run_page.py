"""`run.html`: one self-contained page that shows a run, or a run beside the broken one it repairs.

A pure view of the run's files: no network, no script, no times, the same bytes for the same files. It shows
evidence and draws no conclusion. All text is escaped by Jinja's autoescape, whatever the files hold.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from harness.page.charts import LineChart
from harness.page.heat_map import HeatMap, confusion_heat_map
from harness.page.run_page_charts import (
    activation_charts,
    gradient_charts,
    layer_charts,
    learning_rate_charts,
    loss_charts,
)
from harness.page.run_page_data import RunFiles, number, read_run
from harness.page.run_page_facts import (
    Message,
    figures,
    first_non_finite_step,
    headline,
    messages,
    provenance,
    text_of,
)

RUN_PAGE = "run.html"
_MESSAGES_SHOWN = 8


@dataclass(frozen=True)
class Section:
    """A group of charts under a heading; `note` is a sentence about all of them."""

    identifier: str
    heading: str
    note: str
    grid: str
    charts: list[LineChart]


@dataclass(frozen=True)
class RunView:
    """What the page shows of each run on its own."""

    run: RunFiles
    outcome: str
    messages: list[Message]
    more_messages: int
    matrix: HeatMap | None


def write_run_page(run_dir: Path, *, title: str, compare_with: Path | None = None) -> Path:
    """Write `run.html` into the run's folder and return its path.

    title: the page's heading. compare_with: the folder of the broken run, to be drawn together with this one.
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
        return _render(runs, title)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Hold the cyclic collector: compiling templates sets it off, and beside torch's heap it takes 0.1 s."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _render(runs: list[RunFiles], title: str) -> str:
    return (
        page_environment()
        .get_template("run.html.j2")
        .render(
            title=title,
            subject=_subject(runs[-1]),
            names=[run.name for run in runs],
            views=[_view(run) for run in runs],
            headline=headline(runs),
            sections=[section for section in _sections(runs) if section.charts],
            figures=figures(runs),
            sheets=_sheets(runs),
            provenance=provenance(runs),
        )
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


def _sections(runs: list[RunFiles]) -> list[Section]:
    losses = loss_charts(runs)
    return [
        # The learning rate stands beside the training loss: both run over steps, the others over epochs.
        Section(
            "loss",
            "Loss and learning rate",
            "",
            "grid-2",
            losses[:1] + learning_rate_charts(runs) + losses[1:],
        ),
        Section("gradients", "Gradients", "As the optimizer used them.", "grid-3", gradient_charts(runs)),
        Section(
            "layers",
            "Gradient norm by layer",
            "grad_norm_by_parameter in the log, the 2-norm of each gradient; all panels share one axis.",
            "grid-3",
            layer_charts(runs),
        ),
        Section(
            "activations",
            "Activations",
            "Outputs of the first layer that has parameters, and of the last, while training.",
            "grid-2",
            activation_charts(runs),
        ),
    ]


def _subject(run: RunFiles) -> list[tuple[str, str]]:
    keys = ("recipe", "experiment", "dataset", "seed")
    return [(key, str(run.provenance[key])) for key in keys if run.provenance.get(key) is not None]


def _sheets(runs: list[RunFiles]) -> list[tuple[str, RunFiles]]:
    """Return the input sheets to show, each with the names of its runs; two equal ones are shown once."""
    if len(runs) == 1:
        return [("", runs[0])]
    first, second = runs
    if first.images and first.images == second.images:
        return [(f"{first.name} and {second.name}: the same", first)]
    return [(first.name, first), (second.name, second)]


def _view(run: RunFiles) -> RunView:
    said = messages(run)
    return RunView(
        run=run,
        outcome=_outcome(run),
        messages=said[:_MESSAGES_SHOWN],
        more_messages=max(0, len(said) - _MESSAGES_SHOWN),
        matrix=confusion_heat_map(run.result.get("confusion"), run.result.get("class_names")),
    )


def _outcome(run: RunFiles) -> str:
    """Return one sentence on how the loss went, without a verdict."""
    if not run.batches:
        return "The log holds no batch."
    first, last = (text_of(number(run.batches[index].get("loss"))) for index in (0, -1))
    words = f"The training loss went from {first} to {last} in {len(run.batches)} steps"
    step = first_non_finite_step(run)
    if step is not None:
        words += f"; at step {step} it was first not finite"
    if run.result.get("status") != "finished":
        words += "; the run has not finished"
    return words + "."
