"""What a tool is to the benchmark: how a class is laid out for it, which commands grade it, what they left."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.peers.submissions import HandedIn

CHECKS = Path(__file__).with_name("checks")
# The limit of time that is given to each tool which has one: many times what the training takes.
TOOL_LIMIT_SECONDS = 60


@dataclass(frozen=True)
class Verdict:
    """What a tool says of one submission: points, or None where it leaves them to a person."""

    points: float | None
    maximum: float

    @property
    def full(self) -> bool:
        """Whether it gives all points."""
        return self.points == self.maximum


@dataclass(frozen=True)
class Lost:
    """A tool has no result for a submission; `says` is what it left in place of one."""

    says: str


@dataclass(frozen=True)
class Command:
    """One command that grades these students' submissions."""

    students: tuple[str, ...]
    words: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]


class Tool(Protocol):
    """A tool that is installed."""

    @property
    def name(self) -> str:
        """The name with the version."""

    @property
    def isolates(self) -> bool:
        """Whether something keeps a submission from the program that grades it, as it is run here."""

    @property
    def around(self) -> str:
        """What is around a submission."""

    @property
    def grades(self) -> str:
        """How it is started, and what it does side by side."""

    @property
    def points(self) -> str:
        """What a `Verdict` counts."""

    def prepare(self, folder: Path, handed_in: Sequence[HandedIn]) -> None:
        """Lay out what the tool needs below an empty folder; raises `BenchmarkError` where that fails."""

    def commands(self, folder: Path, students: Sequence[str]) -> list[Command]:
        """Return the commands that grade these students: one, or one each."""

    def verdict(self, folder: Path, student: str) -> Verdict | Lost:
        """Return what the tool says of a submission, once its command has ended."""
