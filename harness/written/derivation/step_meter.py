"""Counts the operations of Python that a call takes: what grows with the data is a loop over the data.

The count is of instructions of the interpreter, in every Python function that the call enters, NumPy's own and those
that NumPy calls back included. It is the same on every machine with the same Python, unlike a time.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy._core.arrayprint

# Writing an array out, to print it, is a loop of NumPy's own in Python.
_NOT_COUNTED = numpy._core.arrayprint.__file__


class TooManySteps(BaseException):
    """A call took more instructions than it may; no `except Exception` of an answer stops it."""


class StepMeter:
    """Counts the instructions of one call at a time; `watched` are functions whose calls are counted besides."""

    def __init__(self, most: int, watched: tuple[Callable[..., Any], ...] = ()) -> None:
        self.steps = 0
        self.entries = 0
        self.exceeded = False
        self._most = most
        self._watched = {function.__code__ for function in watched if hasattr(function, "__code__")}

    def call(self, function: Callable[[], Any]) -> Any:
        """Return what the function returns. Raises `TooManySteps` above the limit, and whatever it raises."""
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            return function()
        finally:
            sys.settrace(before)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename == _NOT_COUNTED:
            return None
        self.entries += frame.f_code in self._watched
        frame.f_trace_lines = False
        frame.f_trace_opcodes = True
        return self._step

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode":
            self.steps += 1
            if self.steps > self._most:
                self.exceeded = True
                raise TooManySteps
        return self._step
