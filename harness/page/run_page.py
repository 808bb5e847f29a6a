"""`run.html`: one self-contained page that shows a run, alone or together with the broken run.

The page depends only on the run's files: it uses no network and shows no times, so equal files give equal bytes. It
shows evidence and draws no conclusions. It also works without scripts. Jinja's autoescape escapes all text from the
files.
"""

import base64
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from harness.errors import UserError
from harness.page.charts import COMPACT, DASHES, LineChart, Series, extent_of, line_chart
from harness.page.live_charts import charts_data, live_script, live_style
from harness.page.run_data import PageRecord, RunFiles, read_run
from harness.run.files import RUN_PAGE
from harness.run.signals import number_text, place_of
from harness.workspace.workspace import RUNS

TEMPLATES = Path(__file__).parent / "templates"
MISSING = "—"  # an em dash, which means that the value was not recorded
PageFact = tuple[str, ...]
Read = Callable[[RunFiles], str]
Keys = tuple[str, ...]  # the keys that lead to a number in nested records


def write_run_page(run_dir: Path, *, title: str, compare_with: Path | None = None) -> Path:
    """Write `run.html` into the run's folder and return its path.

    title: the page's heading. compare_with: the folder of the broken run, which is drawn in the same charts.
    Raises `UserError` if a file of a run is invalid.
    """
    page = render_run_page(run_dir, title=title, compare_with=compare_with)
    path = run_dir / RUN_PAGE
    path.write_text(page, encoding="utf-8", newline="\n")
    return path


def render_run_page(run_dir: Path, *, title: str, compare_with: Path | None = None) -> str:
    """Return the page of a run as HTML. The arguments are as for `write_run_page`."""
    runs = [read_run(folder) for folder in (compare_with, run_dir) if folder is not None]
    try:
        return _render_runs(runs, title)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        if compare_with is None:
            raise
        raise UserError(f"{compare_with} contains data that no run writes ({error!r}): make that run again.") from None


def _render_runs(runs: Sequence[RunFiles], title: str) -> str:
    sections = [section for section in chart_sections(runs) if section.charts]
    subject = [(key, runs[-1].provenance[key]) for key in ("recipe", "experiment", "dataset", "seed")]
    return render(
        "run.html.j2",
        title=title,
        subject=subject,
        names=[run.label for run in runs],
        views=[RunView(run.label, _outcome(run), run.result["guardrails"]) for run in runs],
        headline=_headline(runs),
        sections=sections,
        charts=charts_data(chart for section in sections for chart in section.charts),
        confusions=[ConfusionTable.of(run) for run in runs if run.confusion is not None],
        sheets=_sheets(runs),
        provenance=_provenance(runs),
    )


def render(template: str, **values: Any) -> str:
    """Return a page from a template, with the style sheet and the script of all pages. The values are escaped."""
    style, script, policy = _fixed_parts()
    return page_environment(TEMPLATES).get_template(template).render(values, policy=policy, style=style, script=script)


@cache
def _fixed_parts() -> tuple[Markup, Markup, str]:
    """Return the style sheet, the script and the content security policy, which are the same in every page."""
    style = (TEMPLATES / "run.css").read_text(encoding="utf-8") + live_style()
    return Markup(style), Markup(live_script()), content_policy(style, live_script(), pictures=True)


def content_policy(
    style: str, script: str = "", *, pictures: bool = False, forms: bool = False, requests: bool = False
) -> str:
    """Return the content security policy for a page that contains this style sheet and script and loads no other files.

    The policy allows both by their SHA-256, so browsers do not run injected code. pictures: whether to allow pictures
    whose data is in the page. forms: whether to allow forms that are sent to the server of the page. requests: whether
    the script may send requests to this server.
    """
    target = "'self'" if forms else "'none'"
    policy = f"default-src 'none'; base-uri 'none'; form-action {target}; style-src {_hash_of(style)}"
    policy += f"; script-src {_hash_of(script)}" if script else ""
    policy += "; img-src data:" if pictures else ""
    return policy + ("; connect-src 'self'" if requests else "")


@cache
def _hash_of(source: str) -> str:
    digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
    return f"'sha256-{digest}'"


@cache
def page_environment(*folders: Path, finalize: Callable[[object], object] | None = None) -> Environment:
    """Return a Jinja environment for templates in these folders. It escapes all values and refuses unknown names.

    finalize: a function that is applied to each value before escaping.
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


# --- the parts of the page that describe a single run


@dataclass(frozen=True)
class RunView:
    """The view of one run: its name, a sentence about its loss, and the warnings that were logged during the run."""

    name: str
    outcome: str
    messages: Sequence[PageRecord]


def _outcome(run: RunFiles) -> str:
    """Return a sentence that says how the loss of a run changed, without a verdict."""
    first, last = (_text(run.batches[index]["loss"]) for index in (0, -1))
    words = f"The training loss went from {first} to {last} in {len(run.batches)} steps"
    step = run.result["first_non_finite_step"]
    return f"{words}." if step is None else f"{words}; the first loss that is not finite is at step {step}."


def _head_of(run: RunFiles) -> tuple[object, object]:
    return run.images, run.rows


@dataclass(frozen=True)
class ConfusionTable:
    """A confusion matrix as a table: for each label how often each class was predicted, and the share of hits."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[PageFact]

    @classmethod
    def of(cls, run: RunFiles) -> "ConfusionTable":
        """Return the table of a run that has a confusion matrix."""
        assert run.confusion is not None
        counts, names = run.confusion["confusion"], run.confusion["classes"]
        names = [str(name) for name in (names if len(names) == len(counts) else range(len(counts)))]
        rows = [
            (name, f"{row[index] / sum(row):.1%}" if sum(row) else MISSING, *map(str, row))
            for index, (name, row) in enumerate(zip(names, counts, strict=True))
        ]
        hits = sum(row[index] for index, row in enumerate(counts)) / max(sum(map(sum, counts)), 1)
        caption = f"{run.label}: {hits:.1%} of the validation examples are correct in eval mode"
        return cls(caption, ["Label", "Correct", *names], rows)


def _sheets(runs: Sequence[RunFiles]) -> list[tuple[str, RunFiles]]:
    """Return the input sheets that the page shows, each with the names of its runs.

    If both runs have equal sheets, return one.
    """
    if len(runs) > 1 and (runs[0].images or runs[0].rows) and _head_of(runs[0]) == _head_of(runs[1]):
        return [(f"{runs[0].label} and {runs[1].label} have the same inputs", runs[0])]
    return [(run.label if len(runs) > 1 else "", run) for run in runs]


# --- tables with a label in each row, and a column for each run


def _headline(runs: Sequence[RunFiles]) -> list[PageFact]:
    facts = [(label, *(read(run) for run in runs)) for label, read in _HEADLINE]
    return [fact for fact in facts if set(fact[1:]) != {MISSING}]


def _text(value: float | None) -> str:
    return MISSING if value is None else number_text(value)


def _last(signal: str, epochs: bool = True) -> Read:
    def read(run: RunFiles) -> str:
        records = run.epochs if epochs else run.batches
        return _text(records[-1].get(signal))

    return read


def _first_non_finite(run: RunFiles) -> str:
    step = run.result["first_non_finite_step"]
    return "none" if step is None else str(step)


def _clip_rate(run: RunFiles) -> str:
    found = [record["clipped"] for record in run.details if record["clipped"] is not None]
    return f"{sum(found)} of {len(found)} ({sum(found) / len(found):.0%})" if found else MISSING


def _skipped_steps(run: RunFiles) -> str:
    found = [record["skipped_steps"] for record in run.details if "skipped_steps" in record]
    return f"{sum(found)} of {len(found)}" if found else MISSING


_HEADLINE: list[tuple[str, Read]] = [
    ("Final training loss", _last("loss", epochs=False)),
    ("Validation loss, by evaluate() in its own mode", _last("val_loss")),
    ("Validation loss, by evaluate() again", _last("val_loss_repeated")),
    ("Validation loss, measured again in eval mode", _last("val_loss_eval_mode")),
    ("Validation accuracy, by evaluate() in its own mode", _last("val_accuracy")),
    ("Validation accuracy, by evaluate() again", _last("val_accuracy_repeated")),
    ("Validation accuracy, measured again in eval mode", _last("val_accuracy_eval_mode")),
    ("Validation accuracy, by predict() as served", _last("val_accuracy_served")),
    ("Steps", lambda run: str(len(run.batches))),
    ("Epochs", lambda run: str(len(run.epochs))),
    ("First step with a non-finite loss", _first_non_finite),
    ("Batches whose gradient was clipped", _clip_rate),
    ("Steps that the loss scaler skipped", _skipped_steps),
]


def _provenance(runs: Sequence[RunFiles]) -> list[PageFact]:
    """Return the rows of the provenance table. The name of a nested value is its keys, joined by dots."""
    digests = [{"checkpoint_sha256": run.result["checkpoint_sha256"]} for run in runs]
    flat = [_flatten(run.provenance) | digest for run, digest in zip(runs, digests, strict=True)]
    names = dict.fromkeys(name for one in flat for name in one)
    return [(name, *(one.get(name, MISSING) for one in flat)) for name in names]


def _flatten(record: PageRecord, prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in record.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = MISSING if value is None else str(value)
    return flat


@dataclass(frozen=True)
class ChartSection:
    """A group of charts under a heading. `note` is a text about all charts of the group."""

    identifier: str
    heading: str
    note: str
    grid: str
    charts: list[LineChart]


def chart_sections(runs: Sequence[RunFiles]) -> list[ChartSection]:
    """Return the charts of the page in sections. There is no chart for a signal that no run recorded.

    runs: up to 8 runs with different names. Each run has its own colour. The last run looks the same as on a page of
    its own.
    """
    wide = partial(_signal_chart, runs)
    small = partial(_signal_chart, runs, width=COMPACT)
    epochs = partial(_signal_chart, runs, x_label="epoch")
    # The learning rate is next to the training loss, because both charts have steps on the x axis, not epochs.
    loss = [
        wide("loss", "Training loss", "loss of the batch", scale="log"),
        wide("lr", "Learning rate", "learning rate", scale="auto"),
        epochs("val_loss", "Validation loss", "loss", scale="log"),
        epochs("val_accuracy", "Validation accuracy", "fraction correct", include=(0, 1)),
    ]
    gradients = [
        small("grad_norm", "Gradient norm", "2-norm over all parameters", scale="log"),
        small("grad_zero_fraction", "Zero gradient entries", "fraction of all", include=(0, 1)),
        small(
            "stale_grad_ratio", "Difference from a recomputed gradient", "relative distance", scale="auto",
            include=(0, 1),
        ),
    ]  # fmt: skip
    activations = [
        line_chart(
            f"activation-{key}",
            f"Activation {word}",
            _series(runs, {f"{place} layer": ("activations", place, key) for place in ("first", "last")}),
            y_label=f"{word} over the batch",
            signal="activations",
            scale="linear" if key == "mean" else "log",
        )
        for key, word in (("mean", "mean"), ("var", "variance"))
    ]
    by_layer = (
        "The 2-norm of each parameter's gradient (grad_norm_by_parameter in the log). All charts have the same"
        " y axis. A parameter that appears in no chart has no gradient."
    )
    layers = (
        "Mean and variance of the outputs of two layers during training: the first layer that has parameters,"
        " and the last layer."
    )
    distributions = (
        "Quantiles of the gradients and of the outputs of up to four layers, at every tenth step (every hundredth after"
        " step 500). The page reads them, the clipping and the loss scale from details.log,"
        " which a report cannot cite."
    )
    return [
        ChartSection(identifier, heading, note, grid, [chart for chart in charts if chart])
        for identifier, heading, note, grid, charts in (
            ("loss", "Loss and learning rate", "", "grid-2", loss),
            ("gradients", "Gradients", "These charts show the gradients that the optimizer used.", "grid-3", gradients),
            ("layers", "Gradient norm by layer", by_layer, "grid-3", _layer_charts(runs)),
            ("activations", "Activations", layers, "grid-2", activations),
            ("clipping", "Clipping, loss scale and weights", "", "grid-3", _clipping_charts(runs)),
            ("distributions", "Distributions over time", distributions, "grid-3", _distribution_charts(runs)),
        )
    ]


def _signal_chart(
    runs: Sequence[RunFiles], signal: str, title: str, y_label: str, *, x_label: str = "step", **options: Any
) -> LineChart | None:
    series = _series(runs, {"": (signal,)}, x_label)
    identifier = f"chart-{signal.replace('_', '-')}"
    return line_chart(identifier, title, series, y_label=y_label, x_label=x_label, signal=signal, **options)


def _layer_charts(runs: Sequence[RunFiles]) -> list[LineChart | None]:
    """Return one chart for each layer, with the gradient norms of its parameters. All charts have the same y axis."""
    names: dict[str, None] = {}
    for run in runs:
        for record in (*run.batches[:1], *run.batches[-1:]):
            names |= dict.fromkeys(record["grad_norm_by_parameter"])
    layers: dict[str, dict[str, Keys]] = {}
    for name in names:
        layer, _, parameter = name.rpartition(".")
        layers.setdefault(layer, {})[parameter] = ("grad_norm_by_parameter", name)
    panels = {}
    for layer, quantities in layers.items():
        title = f"Layer {layer}" if layer else "Parameters"
        most = len(DASHES) // 2  # so a chart of two runs has at most as many lines as there are dash patterns
        parts = [dict([*quantities.items()][at : at + most]) for at in range(0, len(quantities), most)]
        for number, part in enumerate(parts, start=1):
            panels[f"{title}, {number} of {len(parts)}" if len(parts) > 1 else title] = _series(runs, part)
    values = (y for series in panels.values() for one in series for _, y in one.points)
    extent = extent_of(y for y in values if y is not None and math.isfinite(y))
    return [
        line_chart(
            f"layer-{index}",
            title,
            series,
            y_label="2-norm",
            scale="log",
            include=[y for y in extent or () if y is not None],
            width=COMPACT,
        )
        for index, (title, series) in enumerate(panels.items())
    ]


def _clipping_charts(runs: Sequence[RunFiles]) -> list[LineChart | None]:
    """Return the charts of clipping, of the loss scale, and of the norm of the parameters."""
    norms = {"before clipping": ("grad_norm_before_clipping",), "after clipping": ("grad_norm",)}
    clips = any(record["clipped"] is not None for run in runs for record in run.details)
    charts = [
        ("clipped-norm", "Gradient norm and clipping", norms if clips else {}, "2-norm", _all_details),
        ("loss-scale", "Factor of the loss scaler", {"": ("loss_scale",)}, "factor", _all_details),
        ("parameter-norm", "Norm of the parameters", {"": ("parameter_norm",)}, "2-norm", _sampled_details),
    ]
    return [
        line_chart(name, title, _series(runs, keys, read=read), y_label=label, scale="auto", width=COMPACT)
        for name, title, keys, label, read in charts
    ]


def _distribution_charts(runs: Sequence[RunFiles]) -> list[LineChart | None]:
    """Return one chart of quantiles for each recorded gradient, and for the output of each recorded layer."""
    charts = []
    for signal, word in (("gradient_quantiles", "Gradient of"), ("activation_quantiles", "Output of layer")):
        names = dict.fromkeys(name for run in runs for record in run.details for name in record.get(signal) or ())
        for index, name in enumerate(names):
            keys = {f"{quantile} %": (signal, name, quantile) for quantile in ("1", "10", "50", "90", "99")}
            identifier = f"{signal.partition('_')[0]}-quantiles-{index}"
            series = _series(runs, keys, read=_sampled_details)
            title = f"{word} {name}" if name else "Output of the network"
            charts.append(line_chart(identifier, title, series, y_label="value", width=COMPACT, widen=False))
    return charts


def _all_details(run: RunFiles) -> Sequence[PageRecord]:
    return run.details


def _sampled_details(run: RunFiles) -> Sequence[PageRecord]:
    return [record for record in run.details if "parameter_norm" in record]


def _series(
    runs: Sequence[RunFiles],
    quantities: Mapping[str, Keys],
    x: str = "step",
    *,
    read: Callable[[RunFiles], Sequence[PageRecord]] | None = None,
) -> list[Series]:
    """Return a line for each quantity of each run. read: returns the records of a run, if not those in its log.

    Different runs, or the quantities of a single run, have different colours. If there are enough dash patterns, each
    line has a different pattern. Otherwise, lines of the same colour have different patterns.
    """
    series = []
    stride = len(runs) if len(runs) * len(quantities) <= len(DASHES) else 1
    for q, (label, keys) in enumerate(quantities.items()):
        for r, run in enumerate(runs):
            records = read(run) if read else run.batches if x == "step" else run.epochs
            name = ", ".join(word for word in (run.label if len(runs) > 1 else "", label) if word)
            points = [(record[x], _number(record, keys)) for record in records]
            look = len(runs) - 1 - r  # the last run looks the same as on a page of its own
            tone = look if len(runs) > 1 else q
            signal = ".".join(keys)
            series.append(
                Series(
                    name,
                    points,
                    tone,
                    dash=q * stride + look,
                    run=run.name,
                    signal=signal if place_of(signal) and run.name in RUNS else "",
                )
            )
    return series


def _number(record: Any, keys: Keys) -> float | None:
    """Return the number that nested keys lead to in a record, or None if it was not recorded."""
    for key in keys:
        record = None if record is None else record.get(key)
    return record  # type: ignore[no-any-return]
