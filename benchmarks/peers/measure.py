"""Grades the ten submissions with one tool: the honest ones twice, then the hostile ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.submissions import HandedIn, Kind
from benchmarks.peers.tool import Lost, Tool, Verdict
from benchmarks.peers.watch import run_watched
from benchmarks.timing import BenchmarkError

# For whoever has no limit of time, or a longer one: as much as ours gives a submission of processor time.
LIMIT_SECONDS = 120.0
Say = Callable[[str], None]


@dataclass(frozen=True)
class Outcome:
    """What became of one submission; `returned`: whether its command ended by itself."""

    kind: Kind
    verdict: Verdict | Lost
    returned: bool


@dataclass(frozen=True)
class Measured:
    """A tool's column. first, again: wall seconds a submission of the honest ones, and of the same once more."""

    name: str
    isolates: bool
    around: str
    grades: str
    points: str
    first: float
    again: float
    outcomes: tuple[Outcome, ...]

    def of(self, kind: Kind) -> list[Outcome]:
        """Return what became of the submissions of one kind."""
        return [outcome for outcome in self.outcomes if outcome.kind == kind]


def measure(tool: Tool, handed_in: Sequence[HandedIn], folder: Path, say: Say) -> Measured:
    """Grade all submissions below an empty folder.

    The honest ones come first, so that no time of a hostile one is in theirs. A tool with one command for the class
    then grades all ten in another, new folder: what a hostile submission does to the others can be seen there.
    Raises `BenchmarkError` where one of the honest has no result among themselves: the tool is not set up as it is
    meant to be.
    """
    honest = [one for one in handed_in if one.honest]
    hostile = [one for one in handed_in if not one.honest]
    alone, mixed = folder / "alone", folder / "mixed"
    tool.prepare(alone, honest)
    seconds, found = _graded(tool, alone, honest, say)
    for one, outcome in zip(honest, found, strict=True):
        if isinstance(outcome.verdict, Lost):
            raise BenchmarkError(f"{tool.name} has no result for {one.student}: {outcome.verdict.says}")
    seconds_again, _ = _graded(tool, alone, honest, say)
    together = len(tool.commands(alone, [one.student for one in honest])) == 1
    late = list(handed_in) if together else hostile
    tool.prepare(mixed, late)
    _, rest = _graded(tool, mixed, late, say)
    outcomes = rest if together else found + rest
    return Measured(
        tool.name,
        tool.isolates,
        tool.around,
        tool.grades,
        tool.points,
        seconds / len(honest),
        seconds_again / len(honest),
        tuple(outcomes),
    )


def seconds_alone(tool: Tool, handed_in: Sequence[HandedIn], folder: Path, say: Say) -> float:
    """Return the wall seconds a submission of the honest ones alone, below an empty folder."""
    honest = [one for one in handed_in if one.honest]
    tool.prepare(folder, honest)
    return _graded(tool, folder, honest, say)[0] / len(honest)


def _graded(tool: Tool, folder: Path, handed_in: Sequence[HandedIn], say: Say) -> tuple[float, list[Outcome]]:
    """Return the wall seconds of all commands together, and the outcomes in the order of the submissions."""
    total = 0.0
    returned: dict[str, bool] = {}
    for command in tool.commands(folder, [one.student for one in handed_in]):
        ended = run_watched(
            command.words, command.folder, command.environment, limit=LIMIT_SECONDS * len(command.students)
        )
        total += ended.seconds
        how = "did not return" if ended.status is None else f"status {ended.status}"
        say(f"{tool.name}: {', '.join(command.students)}: {ended.seconds:.1f} s, {how}")
        (folder / f"{'_'.join(command.students)}.log").write_text(ended.output, encoding="utf-8")
        returned |= dict.fromkeys(command.students, ended.status is not None)
    return total, [
        Outcome(one.kind, tool.verdict(folder, one.student), returned[one.student]) for one in handed_in
    ]
