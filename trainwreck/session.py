"""Watch a part of a program: install the hooks, remove them after the watched updates, and show the findings."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from trainwreck.finding import DEFAULT_STEPS, Report
from trainwreck.hooks import Hooks
from trainwreck.places import here
from trainwreck.selection import Selection, choose
from trainwreck.show import report_lines, text_lines
from trainwreck.state import Watch
from trainwreck.terminal import print_lines, print_message, width_of
from trainwreck.trial import send_answer


class Unsound(AssertionError):
    """Raised by `watch(strict=True)` if a check finds an alarm."""


@contextmanager
def watch(
    steps: int = DEFAULT_STEPS,
    *,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    strict: bool = False,
    quiet: bool = False,
) -> Iterator[Watch]:
    """Watch the updates inside the block, at most `steps`, then let the training go on without hooks.

    Weights, random numbers and metrics are the same as without watching. At the end of the block the findings appear
    on standard error, unless `quiet` is true. The yielded `Watch` then has them as `findings`.

    `select` names the checks to run, by default all. `ignore` names checks and outcomes that are left out, such as
    "modes", "modes/trains-in-eval-mode" or only "stale". Comments `# trainwreck: ignore[stale]` suppress findings at
    their line; `# trainwreck: ignore-file[stale]` at the top of the file with the block also those without a line.

    Raises `UsageError`, a `ValueError`, for an unknown name, and `Unsound` at the end of the block if `strict` is true
    and a check found an alarm.
    """
    session = _Session(choose(select, ignore), steps, here().file)
    state = session.state
    session.hooks.install()
    try:
        yield state
    finally:
        session.end()
    report = Report(session.script, state.findings, state.errors, state.step, suppressed=session.suppressed)
    if not quiet:
        print_message("\n".join(session.remarks), sys.stderr)
        print_lines(report_lines(report, width_of(sys.stderr)), sys.stderr)
    alarms = [finding for finding in state.findings if finding.level == "alarm"]
    if strict and alarms:
        raise Unsound("\n".join(text_lines(alarms)).rstrip())


class _Session:
    """A watch with its hooks. `script` is the file that opened it."""

    def __init__(self, selection: Selection, steps: int, script: str) -> None:
        self.selection, self.script = selection, script
        self.state = Watch(selection.checks, steps)
        self.hooks = Hooks(self.state, on_update=self.look)
        self.suppressed = 0
        self.remarks: list[str] = []

    def look(self) -> None:
        """After an update, end the watch or the trial if it is over."""
        state = self.state
        if state.trial is not None:
            if state.trial.is_over(state.step):
                send_answer(state.answer())
        elif state.is_over:
            self.end()

    def end(self) -> None:
        """Make the trials, take the hooks out, and drop the findings that the user does not want. Do it once.

        In a child that makes a trial, the script goes on, or the child ends.
        """
        state = self.state
        if state.trial is not None:
            send_answer(state.answer())
        if not state.active:
            return
        state.end()
        if not state.run_trials():
            return
        self.hooks.remove()
        # Now, and not at the end of the block: hours later the source file may have other lines.
        kept = self.selection.keep(state.findings, self.script)
        self.suppressed, self.remarks = kept.suppressed, kept.remarks
        for check in state.checks:
            check.findings = {name: one for name, one in check.findings.items() if one in kept.findings}
