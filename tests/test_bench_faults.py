"""`make bench-faults`: the rebuilt reports are whole, and findings are counted as the page says."""

import ast
import json
from typing import Any

from benchmarks.bench_faults import AREAS, HELD_OUT, SCRIPTS, changed_lines, compare, load_faults, rivals, summary
from benchmarks.bench_watch import PAGE
from benchmarks.measure import ROOT, merge, read_table
from trainwreck.checks import ALL

FAULTS, HELD = load_faults(), load_faults(HELD_OUT)


def test_reports_are_many_and_of_many_tasks_and_every_area() -> None:
    assert len(FAULTS) >= 60
    assert len({fault.task for fault in FAULTS}) >= 15
    assert len({fault.area for fault in FAULTS}) == 8
    assert {path.name for path in SCRIPTS.iterdir() if path.is_dir()} == {fault.id for fault in FAULTS}


def test_every_report_has_an_address_and_every_fault_a_cause_of_its_own() -> None:
    sets = json.loads((SCRIPTS / "sets.json").read_bytes())
    assert set(sets["common"]) | set(sets["reviews"]) <= {fault.id for fault in FAULTS}
    assert all(fault.addresses for fault in FAULTS if fault.id not in sets["reviews"])
    assert all(address.startswith("https://") for fault in FAULTS for address in fault.addresses)
    assert len({fault.cause for fault in FAULTS}) == len(FAULTS)


def test_held_out_reports_are_no_reports_that_checks_were_written_for() -> None:
    assert {path.name for path in HELD_OUT.iterdir() if path.is_dir()} == {fault.id for fault in HELD}
    assert len({fault.task for fault in HELD}) >= 15 and all(fault.addresses for fault in HELD)
    for part in ("id", "title", "cause"):
        assert not {getattr(fault, part) for fault in HELD} & {getattr(fault, part) for fault in FAULTS}


def test_both_scripts_of_every_report_are_programs() -> None:
    for fault in (*FAULTS, *HELD):
        broken, corrected = fault.sources(SCRIPTS if fault in FAULTS else HELD_OUT)
        assert changed_lines(broken, corrected)
        for source in (broken, corrected):
            tree = ast.parse(source)
            imported = {
                name.partition(".")[0]
                for node in ast.walk(tree)
                for name in (
                    [alias.name for alias in node.names]
                    if isinstance(node, ast.Import)
                    else [str(node.module)]
                    if isinstance(node, ast.ImportFrom)
                    else []
                )
            }
            assert not imported & {"harness", "grader", "trainwreck"}


def finding(check: str, outcome: str, level: str, line: int = 0) -> dict[str, Any]:
    return {"check": check, "outcome": outcome, "level": level, "place": {"file": "train.py", "line": line}}


def test_a_finding_names_the_fault_by_its_line_or_by_its_area() -> None:
    stale, low = finding("gradients", "stale", "alarm", 7), finding("update-size", "short", "advice")
    sound: dict[str, Any] = {"findings": []}

    def verdict(*found: dict[str, Any], lines: tuple[int, ...] = (40,), area: Any = "loss") -> str:
        return compare("x", area, frozenset(lines), {"findings": found}, sound).verdict

    assert verdict() == "silent"
    assert verdict(stale) == "elsewhere"
    assert verdict(stale, area="loop") == verdict(stale, lines=(9,)) == "named"
    assert verdict(low, area="optimizer") == "named"
    assert verdict(finding("decay", "inside-adam", "note"), area="optimizer") == "silent"
    both = compare("x", "loop", frozenset({7}), {"findings": [stale]}, {"findings": [stale]})
    assert both.verdict == "silent" and both.alarms == ["gradients/stale"]
    heading, *rows = summary([both.cells(), compare("y", "loop", frozenset({7}), {"findings": [stale]}, sound).cells()])
    assert dict(zip(heading, rows[-1], strict=True)) == {
        "area of the cause": "all", "faults": "2", "named": "1", "elsewhere": "0", "silent": "1",
        "alarm on the sound one": "1", "advice on it": "0",
    }  # fmt: skip


def test_lines_that_differ_are_those_of_the_broken_script() -> None:
    assert changed_lines("a\nb\nc\n", "a\nx\nc\n") == {2}
    assert changed_lines("a\nc\n", "a\nb\nc\n") == {1, 2}


def test_areas_are_of_checks_that_exist() -> None:
    names = {check.name for check in ALL}
    assert names - AREAS.keys() == {"overfit"}
    outcomes = {f"{check.name}/{outcome}" for check in ALL for outcome in check.outcomes}
    assert AREAS.keys() <= names | outcomes


def test_the_page_has_the_tables_that_the_benchmark_writes() -> None:
    page = PAGE.read_text(encoding="utf-8")
    head, *_ = summary([])
    assert f"| {' | '.join(head)} |" in page
    assert "<!-- faults: measured -->" in page


def test_rows_that_are_not_measured_again_stay() -> None:
    old = [["a", "loss", "silent", "-", "-"], ["b", "loop", "named", "gradients/stale", "overfit/stalls"]]
    new = [["a", "loss", "elsewhere", "flow/vanishing", "-"], ["c", "loss", "silent", "-", "gradients/stale"]]
    rows = merge(old, new, ["a", "b", "c", "d"])
    assert rows == [new[0], old[1], new[1]]
    assert summary(rows)[-1] == ["all", "3", "1", "1", "1", "1", "1"]


def test_the_tables_of_the_page_are_read_as_they_were_written() -> None:
    rows = read_table("faults", PAGE)
    assert [row[0] for row in rows] == [fault.id for fault in FAULTS]
    assert {len(row) for row in rows} == {7}
    assert summary(rows)[-1] == read_table("fault summary", PAGE)[-1]


def test_tools_are_compared_on_the_same_scripts() -> None:
    records = [
        {"tool": "one", "version": "1", "id": "a", "lines": 3, "broken": ["x", "y"], "corrected": ["x"]},
        {"tool": "one", "version": "1", "id": "b", "lines": 5, "broken": ["x"], "corrected": ["x"]},
        {"tool": "two", "version": "2", "id": "a", "lines": 1, "broken": [], "corrected": []},
    ]
    finding = {"check": "c", "outcome": "o", "level": "alarm", "place": {"line": 1}}
    results = [
        compare("a", "loss", frozenset({1}), {"findings": [finding]}, {"findings": []}),
        compare("b", "loss", frozenset({1}), {"findings": []}, {"findings": [finding]}),
        compare("c", "loss", frozenset({1}), {"findings": [finding]}, {"findings": []}),
    ]
    assert [row[2:] for row in rivals(records, [one.cells() for one in results])[1:]] == [
        ["0", "1", "2", "1"],
        ["4", "1", "2", "2"],
        ["1", "0", "1", "0"],
    ]


def test_other_tools_were_tried_on_scripts_of_this_folder() -> None:
    records = json.loads((ROOT / "benchmarks" / "rivals.json").read_bytes())
    assert {record["id"] for record in records} <= {fault.id for fault in FAULTS}
