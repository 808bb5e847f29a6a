"""Assert in your own test that checks find nothing wrong with a training; failures show the measured values."""

import warnings

from harness.checks.core.finding import Finding
from harness.checks.core.library import check_names, load_check, make_check
from harness.checks.core.report import CheckReport, failure_lines, unsound
from harness.checks.core.training import FileNeeded, NotGiven, Training
from harness.errors import UserError

_MOST_ROWS = 12


class NotChecked(UserWarning):
    """The warning that some checks could not run on a training; its message says which checks, and why."""


def assert_sound(training: Training, *names: str) -> dict[str, Finding]:
    """Run checks on a training, by default all that apply, and return the finding of each check.

    Raises `AssertionError` if a check finds something wrong. The message shows the measured values, and lists likely
    causes before possible consequences. Raises `UserError` for a mistake in your code, for an unknown check, and for a
    check that you name but that cannot run.

    If you name no checks, checks that cannot run are left out with the warning `NotChecked`. Checks that measure how an
    experiment file loads its data are left out without a warning, because you have no such file.
    """
    __tracebackhide__ = True  # pytest shows the line of your test
    checks = [load_check(name.replace("-", "_")) for name in names or check_names()]
    reports: list[CheckReport] = []
    left_out: list[str] = []
    for check in checks:
        try:
            with training.subject() as subject:
                reports.append(CheckReport(check, str(training.path), make_check(subject, check.name)))
        except UserError as error:
            raise UserError(str(error)) from error.__cause__  # without our frames, so that pytest shows yours
        except Exception as error:
            if isinstance(error, FileNeeded) and not names:
                continue
            reason = str(error) if isinstance(error, NotGiven) else f"{type(error).__name__}: {error}"
            if names:
                raise UserError(f"{training.path}: the check {check.name} cannot run: {reason}.") from error
            left_out.append(f"{check.name} ({reason.strip().splitlines()[0]})")
    words = f"Not checked: {'; '.join(left_out)}."
    if unsound(reports):
        lines = [*map(str, failure_lines(reports, _MOST_ROWS)), *([words] if left_out else [])]
        raise AssertionError("\n".join(lines))
    if not reports:
        raise UserError(f"{training.path}: no check can run on this training. {words}")
    if left_out:
        warnings.warn(words, NotChecked, stacklevel=2)
    return {report.check.name: report.finding for report in reports}
