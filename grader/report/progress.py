"""How far a class is: stage by stage, and which submission took longest."""

from typing import Protocol


class Progress(Protocol):
    """Is told what is begun and what is done."""

    def begin(self, stage: str, total: int) -> None:
        """Begin a stage, which consists of so many pieces of work."""

    def done(self, name: str, seconds: float) -> None:
        """Count a piece of work of this stage: for which submission it was done, and how long it took."""


class Silent:
    """Progress that nobody follows."""

    def begin(self, stage: str, total: int) -> None:
        """Begin a stage."""

    def done(self, name: str, seconds: float) -> None:
        """Count a piece of work."""
