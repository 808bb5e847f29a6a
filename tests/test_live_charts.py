"""The parts of a run's page for live charts: the data, the library with its licence, and a policy for both."""

import base64
import hashlib
import importlib.util
import itertools
import json
import math
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from helpers.made_up_runs import CNN, make_run, write_json, write_log
from helpers.page_reader import Page

from harness.errors import UserError
from harness.page import live_charts
from harness.page.charts import Series, line_chart
from harness.page.live_charts import charts_data, live_script
from harness.page.run_data import read_run
from harness.page.run_page import chart_sections, render_run_page
from harness.run.metrics_log import read_metrics_log
from harness.submission.log_values import LogValues

# uPlot 1.6.31 as its author released it: dist/uPlot.iife.min.js and dist/uPlot.min.css.
RELEASED = {
    "uplot.iife.min.js": "2d27e8ad3d228164525ce213f9dc716f39b4e3aee0cc773fb3491c96cf4921a2",
    "uplot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
}
BREAKOUT = "</script><script>alert(1)</script><!--<script>&\u2028\"'"


def refused(name: str) -> None:
    raise AssertionError(f"{name} is not strict JSON")


def data_of(page: Page) -> Any:
    """Return the data for the page's script, parsed as strict JSON."""
    data, _ = page.code["script"]
    return json.loads(data, parse_constant=refused)


def lines_of(data: Any) -> Iterator[tuple[str, Any, dict[int, str]]]:
    """Yield (step or epoch, line, values by step or epoch) for each line of the charts."""
    for chart in data["charts"].values():
        places = [place for first, count in chart["x"] for place in range(first, first + count)]
        for line in chart["lines"]:
            values = dict(zip(places, line["values"].split(" "), strict=True))
            yield chart["kind"], line, {place: text for place, text in values.items() if text}


def cited(template: str, kind: str, line: Any, place: int, value: str) -> str:
    """Return the text that a click copies, as the script makes it."""
    words = {**line, "kind": kind, "place": str(place), "value": value}
    return re.sub(r"%(\w+)%", lambda match: str(words[match[1]]), template)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Return a run that explodes, and a run that does not."""
    return (
        make_run(tmp_path / "broken", explode_at=12, parameters=CNN),
        make_run(tmp_path / "fixed", run="fixed", parameters=CNN),
    )


def test_every_value_that_can_be_clicked_is_copied_as_harness_show_prints_it(pair: tuple[Path, Path]) -> None:
    broken, fixed = pair
    data = data_of(Page(render_run_page(fixed, title="A run", compare_with=broken)))
    logs = {folder.name: LogValues(read_metrics_log(folder / "metrics.log")) for folder in pair}
    signals = set()
    for kind, line, values in lines_of(data):
        signals.add(line["signal"])
        for place, value in values.items():
            where = {"step": place, "epoch": None} if kind == "step" else {"step": None, "epoch": place}
            [printed] = logs[line["run"]].evidence(line["run"], **where, signals=[line["signal"]])
            assert cited(data["evidence"], kind, line, place, value) == printed
    nested = {f"grad_norm_by_parameter.{name}" for name in CNN} | {
        f"activations.{place}.{key}" for place in ("first", "last") for key in ("mean", "var")
    }
    plain = {"loss", "lr", "val_loss", "val_accuracy", "grad_norm", "grad_zero_fraction", "stale_grad_ratio"}
    assert signals == plain | nested


def test_numbers_that_are_not_finite_and_gaps_survive() -> None:
    ys = [1 / 3, math.nan, math.inf, -math.inf, None, 1e-7]
    places = [0, 1, 2, 3, 7, 8]
    chart = line_chart("c", "A", [Series("", list(zip(places, ys, strict=True)))], y_label="y", scale="log")
    assert chart is not None
    found = json.loads(json.dumps(charts_data([chart]), allow_nan=False))["charts"]["c"]
    assert found["x"] == [[0, 4], [7, 2]]
    assert found["lines"][0]["values"] == "0.333333 NaN Infinity -Infinity  1e-07"
    assert found["marks"] == [[1, "first NaN: step 1", 0]]
    assert found["extent"] == [1e-7, 1e-7, 1 / 3]
    assert found["log"]


def test_a_shorter_line_ends_early_and_a_chart_without_a_finite_value_has_no_extent() -> None:
    long, short = Series("long", [(0, 1.0), (1, 2.0), (2, -3.0)]), Series("short", [(1, 5.0)])
    chart = line_chart("c", "A", [long, short], y_label="y")
    nothing = line_chart("n", "A", [Series("", [(4, math.nan)])], y_label="y", scale="log")
    assert chart is not None and nothing is not None
    charts = charts_data([chart, nothing])["charts"]
    assert [line["values"] for line in charts["c"]["lines"]] == ["1 2 -3", " 5 "]
    assert charts["c"]["extent"] == (-3.0, 1.0, 5.0)
    assert (charts["n"]["extent"], charts["n"]["log"]) == (None, False)


def test_a_run_that_no_report_can_name_is_not_cited(tmp_path: Path) -> None:
    data = data_of(Page(render_run_page(make_run(tmp_path / "run", run="by hand"), title="A run")))
    assert {line["signal"] for _, line, _ in lines_of(data)} == {""}


def test_names_of_a_run_cannot_leave_the_data(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", parameters=(f"{BREAKOUT}.weight", "\u2028"))
    meta = folder / "checkpoint.pt.meta.json"
    write_json(meta, json.loads(meta.read_text(encoding="utf-8")) | {"run": BREAKOUT})
    text = render_run_page(folder, title="A run", compare_with=make_run(tmp_path / "broken"))
    page = Page(text)
    assert page.all("script") == [{"type": "application/json", "id": "charts"}, {}]
    assert page.code["script"][1] == live_script()
    data = data_of(page)
    assert f"{BREAKOUT}, weight" in [line["label"] for _, line, _ in lines_of(data)]
    assert text.count(BREAKOUT) == 0


def test_the_policy_allows_this_style_and_this_script_alone(pair: tuple[Path, Path]) -> None:
    page = Page(render_run_page(pair[0], title="A run"))
    codes = page.code["style"][0], page.code["script"][1]
    style, script = (base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in codes)
    assert page.policy.split("; ") == [
        "default-src 'none'", "base-uri 'none'", "form-action 'none'",
        f"style-src 'sha256-{style}'", f"script-src 'sha256-{script}'", "img-src data:",
    ]  # fmt: skip


def test_the_library_is_the_one_that_its_author_released_and_carries_its_licence() -> None:
    spec = importlib.util.find_spec("youplot")
    assert spec is not None and spec.origin is not None
    for name, digest in RELEASED.items():
        assert hashlib.sha256((Path(spec.origin).parent / "vendor" / name).read_bytes()).hexdigest() == digest
    script = live_script()
    assert "Copyright (c) 2022 Leon Sorokin" in script and "Permission is hereby granted" in script
    assert "</script" not in script.lower() and "<!--" not in script and "\r" not in script


def test_a_missing_library_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_charts, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"youplot, which contains uPlot, is missing: install it"):
        live_script()


@pytest.mark.parametrize("count", range(1, 9))
def test_up_to_eight_runs_are_told_apart_in_every_chart(tmp_path: Path, count: int) -> None:
    runs = [
        read_run(make_run(tmp_path / str(n), run=f"attempt {n}", epochs=1, steps_per_epoch=5)) for n in range(count)
    ]
    for chart in itertools.chain.from_iterable(section.charts for section in chart_sections(runs)):
        looks = [(line.tone, line.dash) for line in chart.lines]
        assert len(set(looks)) == len(looks) >= count
        if len(looks) <= 8:
            assert len({dash for _, dash in looks}) == len(looks)
        for one in chart.source.series:
            assert one.label.startswith(one.run if count > 1 else "")


def test_lines_that_coincide_are_seen_below_each_other(tmp_path: Path) -> None:
    folders = [make_run(tmp_path / run, run=run) for run in ("broken", "fixed")]
    records = deepcopy(read_metrics_log(folders[0] / "metrics.log"))
    for record in records:
        if "step" in record:
            record["grad_norm"] *= 100
        elif record["epoch"] > 0:
            record["val_accuracy"] /= 2
    write_log(folders[0], records)
    charts = {
        chart.identifier: {line.label: line for line in chart.lines}
        for section in chart_sections([read_run(folder) for folder in folders])
        for chart in section.charts
    }
    widths = {name: {run: line.width for run, line in lines.items()} for name, lines in charts.items()}
    assert widths["chart-loss"] == {"broken": 1.6, "your run": 4.0}
    assert widths["chart-grad-norm"] == widths["chart-val-accuracy"] == {"broken": 1.6, "your run": 1.6}
    # The two lines share only the first point.
    dots = {run: line.dot_width for run, line in charts["chart-val-accuracy"].items()}
    assert dots["your run"] > dots["broken"]
