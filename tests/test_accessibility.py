"""axe-core finds no violation of WCAG 2.1, levels A and AA, on any page, in light and in dark."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from axe_core_python.selenium import Axe  # type: ignore[import-untyped]
from click.testing import CliRunner
from helpers.made_up_class import TITLES, changed, made_up_class, make_row
from helpers.made_up_runs import make_run
from helpers.reviewing import reviewing
from selenium.webdriver import Chrome
from test_report_pages import hostile_attachments, hostile_row
from test_similarity import copied

from grader.cli import cli
from grader.report.write import write_reports
from grader.score.verdict import Change, Flag, Scores, open_item
from harness.page.run_page import write_run_page

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}


def violations(browser: Chrome, address: str) -> list[str]:
    """Return the violations that axe finds on a page, in light and in dark, one line for each."""
    lines = []
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.get(address)
        found: dict[str, Any] = Axe().run(browser, options=RULES)
        assert len(found["passes"]) > 5, "axe has looked at the page"
        lines += [
            f"{scheme} {one['id']}: {node['html'][:200]}" for one in found["violations"] for node in one["nodes"][:3]
        ]
    return lines


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return reports with all elements that a page can show, their pages for students, and the page of two runs."""
    folder = tmp_path_factory.mktemp("pages")
    hostile = hostile_row()
    scores, attachments = made_up_class(20)
    waits = make_row("wim_steep", "wim", "steep", changed("fix.correct", open_item, "Who knows?"))
    flagged = replace(waits, submission="xan_steep", student="xan", flags=(Flag(id="similar", message="Like wim."),))
    rows = (*scores.submissions, hostile, waits, flagged)
    change = Change(submission="wim_steep", before="missing", after="not judged", why="handed in since then")
    whole = Scores(provenance={"warning": "Careful."}, submissions=rows, changes=(change,), upgrade="another rubric")
    out = folder / "reports"
    write_reports(
        whole, {**attachments, hostile.submission: hostile_attachments()}, out, titles=TITLES, likeness=copied()[0]
    )
    assert CliRunner().invoke(cli, ["export", "--format", "pages", "--out", str(out)]).exit_code == 0
    broken = make_run(folder / "broken", explode_at=12, steps_per_epoch=10)
    write_run_page(make_run(folder / "fixed", run="fixed", steps_per_epoch=10), title="Two", compare_with=broken)
    return folder


@pytest.mark.parametrize(
    "name",
    [
        "reports/index.html",
        "reports/similar.html",
        "reports/wim_steep.html",
        f"reports/{hostile_row().submission}.html",
        "reports/export/pages/wim.html",
        "fixed/run.html",
    ],
)
def test_a_page_has_no_violation(pages: Path, browser: Chrome, name: str) -> None:
    path = pages / name
    assert violations(browser, path.as_uri()) == []


def test_the_review_has_no_violation(tmp_path: Path, browser: Chrome) -> None:
    with reviewing(tmp_path / "reports") as server:
        for item in ("", "?all=1"):
            assert violations(browser, f"{server.address}{item}") == []
        desk = server.desk(everything=False)
        for one in desk.items:
            assert violations(browser, f"{server.address}{one.key}") == []
