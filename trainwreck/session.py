"""Watch a part of a program: install the hooks, remove them after the watched updates, and show the findings."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from trainwreck.checks import ALL
from trainwreck.finding import DEFAULT_STEPS, Finding
from trainwreck.hooks import Hooks
from trainwreck.show import report_lines, text_lines
from trainwreck.state import Watch
from trainwreck.trial import send_answer


class Unsound(AssertionError):
    """Raised by `watch(strict=True)` if a check finds an alarm."""


@contextmanager
def watch(steps: int = DEFAULT_STEPS, *, strict: bool = False, quiet: bool = False) -> Iterator[Watch]:
    """Watch the updates inside the block, at most `steps`, then let the training go on without hooks.

    Weights, random numbers and metrics are the same as without watching. At the end of the block the findings appear
    on standard error, unless `quiet` is true. The yielded `Watch` has them as `findings`.

    Raises `Unsound` at the end of the block if `strict` is true and a check found an alarm, and `ValueError` if
    `steps` is less than 1.
    """
    if steps < 1:
        raise ValueError(f"steps is {steps}: watch at least 1 update")
    state = Watch(ALL, steps)
    hooks = Hooks(state, on_update=lambda: _look(state, hooks))
    hooks.install()
    try:
        yield state
    finally:
        _end(state, hooks)
    if not quiet:
        print(report(state), file=sys.stderr)
    if strict:
        raise_alarms(state.findings)


def report(state: Watch) -> str:
    """Return the findings so far as text, with a last line that counts them."""
    return "\n".join(report_lines(state.findings, state.errors, state.step))


def raise_alarms(findings: Iterable[Finding]) -> None:
    """Raise `Unsound`, with the alarms as text, if there is an alarm."""
    alarms = [finding for finding in findings if finding.level == "alarm"]
    if alarms:
        raise Unsound("\n".join(text_lines(alarms)).rstrip())


class Session:
    """A watch that a call begins and another call ends, for callbacks and notebooks. It can begin again."""

    def __init__(self) -> None:
        self.watch: Watch | None = None
        self.is_open = False
        self._stack = ExitStack()

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

    def begin(self, steps: int) -> None:
        """Put the hooks in. A watch that is still open ends. Raises `ValueError` if `steps` is less than 1."""
        self._stack.close()
        self.watch, self.is_open = self._stack.enter_context(watch(steps, quiet=True)), True

    def end(self) -> str:
        """Take the hooks out, and return the report. Return "" if no watch is open."""
        if self.watch is None or not self.is_open:
            return ""
        self._stack.close()
        self.is_open = False
        return report(self.watch)


def _look(state: Watch, hooks: Hooks) -> None:
    """After an update, end the watch or the trial if it is over."""
    if state.trial is not None:
        if state.trial.is_over(state.step):
            send_answer(state.answer())
    elif state.is_over:
        _end(state, hooks)


def _end(state: Watch, hooks: Hooks) -> None:
    """Make the trials, and take the hooks out. In a child that makes a trial, the script goes on, or the child ends."""
    if state.trial is not None:
        send_answer(state.answer())
    if state.active:
        state.end()
        if not state.run_trials():
            return
        hooks.remove()
