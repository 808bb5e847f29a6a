"""Start the child processes of a verdict early: one makes the run, the other measures the behaviour meanwhile.

One after the other, each would first import torch, which takes longer than the run of a small network.
"""

from types import TracebackType

from harness.behaviour import child as behaviour_child
from harness.behaviour.compare import Behaviour
from harness.canonical_setup import Numerics
from harness.run.launch import Child
from harness.run.settings import RunSettings
from harness.student import runs


class VerdictChildren:
    """Two processes that import torch and wait for the jobs of one verdict.

    Use it as a context manager, which ends them. `start` starts them. Without `start`, the run and the measurement
    start processes of their own, one after the other.
    """

    def __init__(self) -> None:
        self.run: Child | None = None
        self._measurement: Child | None = None
        self._measured: tuple[str, RunSettings] | None = None

    def __enter__(self) -> "VerdictChildren":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        for child in (self.run, self._measurement):
            if child is not None:
                child.close()

    def start(self, numerics: Numerics, *, bar: bool = True) -> None:
        """Start the processes, unless they are there. numerics, bar: of the run."""
        self.run = self.run or Child(runs.MODULE, numerics, bar=bar)
        self._measurement = self._measurement or Child(behaviour_child.MODULE, "portable", bar=True, quiet=True)

    def begin_measurement(self, source: str, settings: RunSettings) -> None:
        """Let the second process measure the behaviour of an experiment with portable numerics."""
        if self._measurement is not None:
            self._measured = source, settings
            self._measurement.begin(behaviour_child.behaviour_job(source, settings))

    def behaviour(self, source: str, settings: RunSettings) -> Behaviour:
        """Return the behaviour of an experiment. Measure it now if it was not begun. Raises as `behaviour_of` does."""
        child = self._measurement if self._measured == (source, settings) else None
        self._measured = None  # a process measures once
        return behaviour_child.behaviour_of(source, settings, bar=True, child=child)
