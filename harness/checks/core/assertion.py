"""Assert in your own test that a training is sound; the message of a failure contains the measured values."""

import warnings
from collections.abc import Iterator

from harness.checks.core.finding import Check, Finding, Table, short
from harness.checks.core.library import check_names, load_check, make_check
from harness.checks.core.training import FileNeeded, NotGiven, Training
from harness.errors import UserError

_MOST_ROWS = 12


class NotChecked(UserWarning):
    """Some checks could not run on a training; the warning says which, and why."""


def assert_sound(training: Training, *names: str) -> dict[str, Finding]:
    """Run checks on a training, by default all that apply, and return the finding of each.

    Raises `AssertionError` if a check finds something wrong. Its message shows the values that decided; likely causes
    come before consequences. Raises `UserError` for a mistake in your code, for an unknown check, and for a check that
    you name but that cannot run.

    Without names, checks that cannot run are left out with the warning `NotChecked`. Checks of how an experiment file
    loads its data do not apply and are left out without a warning.
    """
    __tracebackhide__ = True  # pytest shows the line of your test
    checks = [load_check(name.replace("-", "_")) for name in names or check_names()]
    found: dict[Check, Finding] = {}
    left_out: list[str] = []
    for check in checks:
        try:
            with training.subject() as subject:
                found[check] = make_check(subject, check.name)
        except UserError as error:
            raise UserError(str(error)) from error.__cause__  # without our frames: pytest shows yours
        except Exception as error:
            if isinstance(error, FileNeeded) and not names:
                continue
            reason = str(error) if isinstance(error, NotGiven) else f"{type(error).__name__}: {error}"
            if names:
                raise UserError(f"{training.path}: the check {check.name} cannot run: {reason}.") from error
            left_out.append(f"{check.name} ({reason.strip().splitlines()[0]})")
    words = f"Not checked: {'; '.join(left_out)}."
    unsound = {check: finding for check, finding in found.items() if not check.outcome(finding.outcome).sound}
    if unsound:
        lines = [*_message(unsound, len(found)), *([words] if left_out else [])]
        raise AssertionError("\n".join(lines))
    if not found:
        raise UserError(f"{training.path}: no check can run on this training. {words}")
    if left_out:
        warnings.warn(words, NotChecked, stacklevel=2)
    return {check.name: finding for check, finding in found.items()}


def _message(unsound: dict[Check, Finding], made: int) -> Iterator[str]:
    """Yield the lines of a failure: likely causes before consequences; the first check also shows its tables."""
    told = sorted(unsound, key=lambda check: not check.outcome(unsound[check].outcome).mechanism)
    yield f"{len(told)} of {made} checks found something wrong: {', '.join(check.name for check in told)}."
    for check in told:
        finding = unsound[check]
        outcome = check.outcome(finding.outcome)
        yield ""
        yield f"{check.name}: {outcome.id}. {outcome.reading}"
        yield f"  {finding.summary}"
        for name, value in finding.figures.items():
            yield f"    {name}: {short(value)}"
        for table in finding.tables if check is told[0] else ():
            yield from _rows(table)
        if outcome.look:
            yield f"  read: {outcome.look}"
        if further := [name for name in outcome.next if name not in {one.name for one in told}]:
            yield f"  then: {', '.join(further)}"


def _rows(table: Table) -> Iterator[str]:
    lines = list(table.lines())
    more = len(table.rows) - _MOST_ROWS
    yield from (f"  {line}" for line in lines[: _MOST_ROWS + 2])
    if more > 0:
        yield f"    ... and {more} more"
