"""The pytest plugin: a fixture `watched` that runs a training under watch and fails the test if it is not sound."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from trainwreck.finding import DEFAULT_STEPS, Finding, Report, by_level
from trainwreck.places import Place


@dataclass(frozen=True)
class Watched:
    """What the checks found in a training: all findings, and the number of updates that were watched."""

    findings: list[Finding]
    steps: int


class Watcher:
    """The fixture `watched`. Call it with a script and its arguments, or with a function and its arguments."""

    def __init__(self, node: Any) -> None:
        self._node = node

    def __call__(
        self,
        training: str | Path | Callable[..., object],
        *arguments: Any,
        steps: int = DEFAULT_STEPS,
        allow: Collection[str] = (),
    ) -> Watched:
        """Watch the first `steps` updates of a training, and return the findings.

        training: the path of a script, which runs in a process of its own, or a function, which runs in this one.
        allow: outcomes that do not fail the test, such as "modes/trains-in-eval-mode".

        Raises `trainwreck.Unsound`, whose message is the alarms, if a check found an alarm that is not allowed. Raises
        `FileNotFoundError` without a script, `RuntimeError` if the script fails or nothing was trained, and
        `ValueError` for an unknown outcome or less than one step. A function raises its own exceptions.
        """
        __tracebackhide__ = True
        _require_outcomes(allow)
        if steps < 1:
            raise ValueError(f"steps is {steps}: watch at least 1 update")
        if callable(training):
            found, errors = _watch_function(training, arguments, steps)
        else:
            found, errors = _watch_script(Path(training), arguments, steps)
        from trainwreck.session import raise_alarms, report_text

        text = report_text(Report(str(training), found.findings, errors, found.steps))
        self._node.add_report_section("call", "trainwreck", text)
        raise_alarms(finding for finding in found.findings if f"{finding.check}/{finding.outcome}" not in allow)
        return found


@pytest.fixture
def watched(request: pytest.FixtureRequest) -> Watcher:
    """Watch a training: `watched("train.py", "--epochs", "1")`. The test fails if a check finds an alarm."""
    return Watcher(request.node)


def _require_outcomes(names: Collection[str]) -> None:
    __tracebackhide__ = True
    from trainwreck.checks import ALL

    known = [f"{check.name}/{outcome}" for check in ALL for outcome in check.outcomes]
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"allow has unknown outcomes: {', '.join(unknown)}. There are: {', '.join(known)}")


def _watch_function(
    function: Callable[..., object], arguments: Sequence[Any], steps: int
) -> tuple[Watched, dict[str, str]]:
    __tracebackhide__ = True
    from trainwreck.session import watch

    with watch(steps, quiet=True) as state:
        function(*arguments)
    if not state.step:
        raise RuntimeError("the function ended without an update of an optimizer")
    return Watched(state.findings, state.step), state.errors


def _watch_script(script: Path, arguments: Sequence[Any], steps: int) -> tuple[Watched, dict[str, str]]:
    __tracebackhide__ = True
    from trainwreck.runs import watch_script

    if not script.is_file():
        raise FileNotFoundError(f"There is no file {script.absolute()}: name a training script.")
    # The child needs a real file for its output, which pytest's own streams need not be.
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        with redirect_stderr(output):
            found = watch_script(script, [str(argument) for argument in arguments], steps)
        output.seek(0)
        sys.stderr.write(output.read())
    if found is None:
        raise RuntimeError(f"The process that watched {script} ended without a result.")
    if found["failure"] or not found["steps"]:
        why = found["failure"].strip() or "the script ended without an update of an optimizer"
        raise RuntimeError(f"{script} could not be watched to the end: {why}")
    names = {field.name for field in fields(Finding)} - {"place"}
    findings = [
        Finding(place=Place(**one["place"]), **{name: one[name] for name in names}) for one in found["findings"]
    ]
    return Watched(by_level(findings), found["steps"]), found["errors"]
