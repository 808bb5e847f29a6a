"""What the commands of the instruments do: find the experiment, measure, and show it in the way asked for."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.checks import compare
from harness.checks.checks import checked_ids, triage_checks
from harness.checks.evidence import Evidence
from harness.checks.job import InstrumentJob, examine
from harness.checks.page import write_page
from harness.checks.report import Reported, header, report
from harness.checks.target import Target, find_target, run_folder
from harness.checks.terminal import show_reported, show_triage
from harness.errors import UserError, naming
from harness.exercise import Asked


def look_at(
    check: str,
    exercise: str,
    work: Path,
    asked: Asked,
    *,
    untouched: bool,
    as_json: bool,
    page: Path | None,
    options: dict[str, Any],
) -> None:
    """Hold one instrument to an exercise's experiment and show what it saw."""
    target = find_target(exercise, work, asked, untouched=untouched)
    (reported,) = report(target, measured(target, (check,), options))
    if page is not None:
        write(page, f"{exercise}: {check.replace('_', '-')}", target.words, [reported])
    if as_json:
        print_json(header(target) | reported.to_json())
    else:
        show_reported(reported, target.words)


def walk_through(
    exercise: str,
    work: Path,
    asked: Asked,
    *,
    untouched: bool,
    as_json: bool,
    page: Path | None,
    only: Sequence[str],
) -> None:
    """Make the checks of the method, or those asked for, and show the walk; a person gets a page of it, too.

    Where no place for the page is named, it lies in the workspace, or in this folder where there is none.
    """
    ids = checked_ids(only) if only else tuple(check.id for check in triage_checks())
    target = find_target(exercise, work, asked, untouched=untouched)
    reported = report(target, measured(target, ids, {}))
    if page is None and not only and not as_json:
        page = (
            target.workspace.folder / "triage.html" if target.workspace else Path(f"triage_{exercise}.html")
        )
    if page is not None:
        write(page, f"{exercise}: triage", target.words, reported)
    if as_json:
        minutes = sum(one.minutes for one in reported)
        print_json(header(target) | {"minutes": minutes, "checks": [one.to_json() for one in reported]})
    elif len(reported) == 1:
        show_reported(reported[0], target.words)
    else:
        show_triage(reported, target.words, None if page is None else str(page))


def compare_runs(first: str, second: str | None, work: Path, *, as_json: bool, page: Path | None) -> None:
    """Compare two finished runs and show where they part."""
    if second is None:
        if "/" in first:
            raise UserError(f"Compare {first} with which run? Name a second one.")
        first, second = f"{first}/broken", f"{first}/fixed"
    found = compare.measure(run_folder(first, work), run_folder(second, work), (first, second))
    evidence = compare.show(found)
    outcome = compare.OUTCOMES[evidence.outcome]
    reported = Reported(
        id="compare",
        question="Where do the two runs first differ?",
        command=f"harness compare {first} {second}",
        minutes=2,
        evidence=evidence,
        outcome=outcome,
        next_lines=() if outcome.look is None else (f"read: {outcome.look}",),
    )
    heading = f"{first} and {second}"
    if page is not None:
        write(page, f"{heading} compared", "", [reported])
    if as_json:
        print_json({"first": first, "second": second} | reported.to_json())
    else:
        show_reported(reported, heading)


def measured(target: Target, ids: tuple[str, ...], options: dict[str, Any]) -> dict[str, Evidence]:
    """Hold instruments to a target in a process of its own; see `examine`."""
    job = InstrumentJob(
        settings=target.settings,
        source=target.source,
        instruments=ids,
        source_path=None if target.source_path is None else str(target.source_path.resolve()),
        options=options,
        checkpoint=None if target.checkpoint is None else str(target.checkpoint.resolve()),
    )
    return examine(job)


def write(page: Path, title: str, subject: str, reported: Sequence[Reported]) -> None:
    """Write the page; an error of the file system names it."""
    with naming(page):
        write_page(page, title, subject, reported)


def print_json(value: dict[str, Any]) -> None:
    """Print one object of strict JSON."""
    print(json.dumps(value, allow_nan=False))
