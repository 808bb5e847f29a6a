"""What is shown of evidence, on a terminal, in the page and as JSON: all of it, escaped, and no answer."""

import base64
import json
import math
from pathlib import Path

import pytest
from page_reader import Page

from harness.checks.evidence import Evidence, Line, Plot, Sheet, Table
from harness.checks.page import render_page
from harness.checks.report import Reported, report, where_next
from harness.checks.target import find_target
from harness.checks.terminal import show_reported, show_triage
from harness.exercise import Asked

Capture = pytest.CaptureFixture[str]
HOSTILE = "<script>alert(1)</script>[bold]"


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")


def evidence(outcome: str, **more: object) -> Evidence:
    return Evidence.model_validate(
        {
            "what": f"what was done {HOSTILE}",
            "outcome": outcome,
            "said": "0.5 of 1",
            "figures": {"a figure": 0.123456, "another": math.inf, "none": None, "whole": 3, "yes": True},
            **more,
        }
    )


PIXELS = base64.b64encode(bytes(range(0, 256, 8))).decode()
FULL = {
    "tables": (Table(caption="A table", columns=("name", "x"), rows=(("first", 1e-9), (HOSTILE, math.nan))),),
    "plots": (
        Plot(
            title="A curve", x_label="rate", y_label="loss", log_x=True, scale="log", marks=((0.1, "used: 0.1"),),
            lines=(
                Line(label="loss", points=((1e-3, 2.0), (1e-2, 1.0), (1e-1, math.nan), (1.0, None))),
                Line(label="level", points=((1e-3, 1.0), (1.0, 1.0))),
            ),
        ),
    ),
    "sheet": Sheet(shape=(2, 1, 4, 4), pixels=PIXELS, labels=("7", HOSTILE)),
}  # fmt: skip


def reported(tmp_path: Path, **found: Evidence) -> list[Reported]:
    return report(find_target("huge_lr", tmp_path, Asked()), found)


def test_the_terminal_shows_every_figure_and_the_next_command(tmp_path: Path, capsys: Capture) -> None:
    (one,) = reported(tmp_path, overfit=evidence("stalls", **FULL))
    show_reported(one, "huge_lr: heading")
    said = capsys.readouterr().out
    for part in (
        "huge_lr: heading", one.question, f"what was done {HOSTILE}", "stalls: 0.5 of 1", "a figure: 0.1235",
        "another: inf", "none: -", "whole: 3", "yes: yes", "A table", "1e-09", HOSTILE, "loss: 2 |", "!", "Next:",
        "  harness data huge_lr\n", one.outcome.reading,
    ):  # fmt: skip
        assert part in said, part
    assert "level:" not in said
    # The darkest and the brightest corner of the first image, and its label below.
    rows = said.partition("with their labels\n")[2].splitlines()
    assert "7" in rows[7]


def test_the_walk_is_shown_on_a_screen(tmp_path: Path, capsys: Capture) -> None:
    walk = reported(
        tmp_path, overfit=evidence("stalls"), data=evidence("unpaired"), first_loss=evidence("chance")
    )
    show_triage(walk, "heading", "page.html")
    said = capsys.readouterr().out
    assert len(said.splitlines()) == 1 + 3 * 3 + 2 + 2
    assert " 1 stalls         harness overfit huge_lr" in said
    assert "6 minutes" in said
    assert "page.html" in said
    # The data were looked at already; where to read comes first.
    assert said.rstrip().splitlines()[-1] == f"  read: {walk[1].outcome.look}"


def test_where_to_go_on_is_not_where_one_has_just_been(tmp_path: Path) -> None:
    (alone,) = reported(tmp_path, overfit=evidence("stalls"))
    assert where_next([alone]) == ["harness data huge_lr", "harness triage huge_lr --only first_loss"]
    both = reported(tmp_path, overfit=evidence("stalls"), data=evidence("sound"))
    assert where_next(both) == ["harness triage huge_lr --only first_loss"]
    sound = reported(tmp_path, overfit=evidence("reaches"), data=evidence("sound"))
    assert where_next(sound) == ["harness triage huge_lr --only first_loss"]


def test_the_page_is_escaped_self_contained_and_the_same_twice(tmp_path: Path) -> None:
    walk = reported(tmp_path, overfit=evidence("stalls", **FULL), data=evidence("sound"))
    page = render_page("a title", HOSTILE, walk)
    assert page == render_page("a title", HOSTILE, walk)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 4
    assert "http://" not in page.replace("http://www.w3.org", "")
    for part in (
        "0.123456",
        "Infinity",
        "1e-09",
        "harness data huge_lr",
        "data:image/png;base64,",
        "used: 0.1",
    ):
        assert part in page, part
    Page(page)


def test_json_is_strict_and_whole(tmp_path: Path) -> None:
    (one,) = reported(tmp_path, overfit=evidence("stalls", **FULL))
    text = json.dumps(one.to_json(), allow_nan=False)
    found = json.loads(text)
    assert found["outcome"] == "stalls"
    assert found["sound"] is False
    assert found["figures"]["another"] == "Infinity"
    assert found["tables"][0]["rows"][1][1] == "NaN"
    assert (
        Evidence.model_validate({key: found[key] for key in Evidence.model_fields})
        .plots[0]
        .lines[0]
        .points[2][1]
        != 0.0
    )
