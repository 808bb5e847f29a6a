"""Watch a part of a program: install the hooks, remove them after the watched updates, and show the findings."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from trainwreck.finding import DEFAULT_STEPS, Finding, Report
from trainwreck.hooks import Hooks
from trainwreck.places import here
from trainwreck.selection import choose
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
    strict: bool = False,
    quiet: bool = False,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
) -> Iterator[Watch]:
    """Watch the updates inside the block, at most `steps`, then let the training go on without hooks.

    Weights, random numbers and metrics are the same as without watching. At the end of the block the findings appear
    on standard error, unless `quiet` is true. The yielded `Watch` then has them as `findings`.

    `select` names the checks to run, by default all. `ignore` names checks and outcomes that are left out, such as
    "modes", "modes/trains-in-eval-mode" or only "stale". Comments `# trainwreck: ignore[stale]` suppress findings at
    their line; `# trainwreck: ignore-file[stale]` at the top of the file with the block also those without a line.

    Raises `UsageError`, a `ValueError`, for an unknown name, `ValueError` if `steps` is less than 1, and `Unsound` at
    the end of the block if `strict` is true and a check found an alarm.
    """
    session = Session(select, ignore)
    state = session.begin(steps)
    try:
        yield state
    finally:
        report = session.end()
    if report is not None and not quiet:
        print_message("\n".join(session.remarks), sys.stderr)
        print_lines(report_lines(report, width_of(sys.stderr)), sys.stderr)
    if strict:
        raise_alarms(state.findings)


def raise_alarms(findings: Iterable[Finding]) -> None:
    """Raise `Unsound`, with the alarms as text, if there is an alarm."""
    __tracebackhide__ = True
    alarms = [finding for finding in findings if finding.level == "alarm"]
    if alarms:
        raise Unsound("\n".join(text_lines(alarms)).rstrip())


def report_text(report: Report) -> str:
    """Return the findings as text, with a last line that counts them."""
    return "\n".join(report_lines(report))


class Session:
    """A watch that a call begins and another call ends. It can begin again.

    `select` and `ignore` are the arguments of `watch`. `remarks` says what is wrong with comments that suppress
    findings. Raises `UsageError`, a `ValueError`, for an unknown name.
    """

    def __init__(self, select: Iterable[str] = (), ignore: Iterable[str] = ()) -> None:
        self.watch: Watch | None = None
        self.is_open = False
        self.remarks: list[str] = []
        self._selection = choose(select, ignore)
        self._hooks: Hooks | None = None
        self._script = ""
        self._suppressed = 0

    @property
    def findings(self) -> list[Finding]:
        """The findings of the latest watch."""
        return [] if self.watch is None else self.watch.findings

    @property
    def is_over(self) -> bool:
        """Whether all updates to watch were made, and `end` was not called yet."""
        return self.is_open and self.watch is not None and not self.watch.active

    @property
    def is_trial(self) -> bool:
        """Whether this process is a child that tries something out: it must not write, and `end` ends it."""
        return self.watch is not None and self.watch.trial is not None

    def begin(self, steps: int) -> Watch:
        """Put the hooks in, and return the watch. A watch that is still open ends.

        Raises `ValueError` if `steps` is less than 1.
        """
        if steps < 1:
            raise ValueError(f"steps is {steps}: watch at least 1 update")
        self.end()
        self.watch, self.is_open, self._script = Watch(self._selection.checks, steps), True, here().file
        self._suppressed, self.remarks = 0, []
        self._hooks = Hooks(self.watch, on_update=self._look)
        self._hooks.install()
        return self.watch

    def end(self) -> Report | None:
        """Take the hooks out, and return the report. Return None if no watch is open."""
        if not self.is_open:
            return None
        self._close()
        self.is_open = False
        return self.report()

    def report(self) -> Report | None:
        """Return the findings so far, or None if nothing was watched yet."""
        if self.watch is None:
            return None
        watch = self.watch
        return Report(self._script, watch.findings, watch.errors, watch.step, suppressed=self._suppressed)

    def _look(self) -> None:
        """After an update, end the watch or the trial if it is over."""
        if self.watch is None:
            return
        if self.watch.trial is not None:
            if self.watch.trial.is_over(self.watch.step):
                send_answer(self.watch.answer())
        elif self.watch.is_over:
            self._close()

    def _close(self) -> None:
        """Make the trials, take the hooks out, and drop the findings that the user does not want. Do it once.

        In a child that makes a trial, the script goes on, or the child ends.
        """
        watch = self.watch
        if watch is None or self._hooks is None:
            return
        if watch.trial is not None:
            send_answer(watch.answer())
        if not watch.active:
            return
        watch.end()
        if not watch.run_trials():
            return
        self._hooks.remove()
        # Now, and not at the end of the block: hours later the source file may have other lines.
        kept = self._selection.keep(watch.findings, self._script)
        self._suppressed, self.remarks = kept.suppressed, list(kept.remarks)
        if watch.is_over and not watch.evaluations:
            self.remarks.append(f"No evaluation came in the first {watch.step} updates: watch more to see one.")
        for check in watch.checks:
            check.findings = {name: one for name, one in check.findings.items() if one in kept.findings}
