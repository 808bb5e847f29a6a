"""Watch a part of a program: install the hooks, remove them after the watched updates, and show the findings."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from trainwreck.checks import ALL
from trainwreck.finding import DEFAULT_STEPS
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

    Raises `Unsound` at the end of the block if `strict` is true and a check found an alarm.
    """
    state = Watch(ALL, steps)
    hooks = Hooks(state, on_update=lambda: _look(state, hooks))
    hooks.install()
    try:
        yield state
    finally:
        _end(state, hooks)
    if not quiet:
        print(*report_lines(state.findings, state.errors, state.step), sep="\n", file=sys.stderr)
    alarms = [finding for finding in state.findings if finding.level == "alarm"]
    if strict and alarms:
        raise Unsound("\n".join(text_lines(alarms)).rstrip())


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
