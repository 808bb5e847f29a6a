"""The ten submissions that every tool grades: five right fixes, two wrong ones, three hostile ones."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from grader.course.demo import repacked
from grader.course.examples import broken_workspace, example_submission
from grader.score.known_edits import known_fixes
from harness.recipe import load_recipe
from harness.workspace import EXPERIMENT

RECIPE = "huge_lr"
HOSTILE = Path(__file__).with_name("hostile")
Kind = Literal["right", "wrong", "exits", "loops", "cheats"]

# What each student hands in: a variant of solutions/, or None for the experiment as it was handed out.
_HONEST: dict[str, tuple[Kind, str | None]] = {
    "ada": ("right", "reference"),
    "alan": ("right", "smaller_rate"),
    "barbara": ("right", "adam"),
    "donald": ("right", "constant_schedule"),
    "edsger": ("wrong", "other_weights"),
    "emmy": ("wrong", None),
    "frances": ("right", "high_rate"),
}
_HOSTILE: dict[str, Kind] = {"charles": "cheats", "elliot": "exits", "lucifer": "loops"}
_WITHOUT_RUN = ("exits", "loops")


@dataclass(frozen=True)
class Written:
    """An experiment that a student wrote; hostile: the lines at its top that are meant to harm ("")."""

    student: str
    kind: Kind
    source: str
    hostile: str

    @property
    def honest(self) -> bool:
        """Whether nothing in it is meant to harm."""
        return not self.hostile


@dataclass(frozen=True)
class HandedIn(Written):
    """A submission, in what the tools need of it.

    sha256: what the student says is the hash of the checkpoint of the fixed run, as `sha256sum` writes it; tarball:
    what `make submit` makes.
    """

    sha256: str
    tarball: bytes


def written() -> list[Written]:
    """Return the ten experiments, sorted by student, so that the hostile ones are among the others."""
    broken = load_recipe(RECIPE).broken_source()
    fixes = {fix.id: fix.source for fix in known_fixes(load_recipe(RECIPE))[0]}
    ten = []
    for student, (kind, variant) in _HONEST.items():
        source = broken if variant is None else fixes[variant]
        ten.append(Written(student, kind, source, ""))
    for student, kind in _HOSTILE.items():
        lines = (HOSTILE / f"{kind}.py").read_text(encoding="utf-8")
        ten.append(Written(student, kind, f"{lines}\n\n{broken}", lines))
    return sorted(ten, key=lambda one: one.student)


def make_submissions(folder: Path, jobs: int) -> list[HandedIn]:
    """Make all ten below `folder` as students do, with their runs; in the order of `written`.

    Who ends early or never ends has no run of his own, and claims that of a right fix.
    """
    template = broken_workspace(RECIPE, folder / "template")

    def run(one: Written) -> HandedIn:
        work = folder / one.student
        path = example_submission(RECIPE, one.student, one.source, template, work, folder / "submissions")
        digest = work / RECIPE / "runs" / "fixed" / "checkpoint.pt.sha256"
        return HandedIn(**vars(one), sha256=digest.read_text(encoding="utf-8"), tarball=path.read_bytes())

    ten = written()
    with ThreadPoolExecutor(jobs) as pool:
        made = list(pool.map(run, [one for one in ten if one.kind not in _WITHOUT_RUN]))
    right = next(one for one in made if one.kind == "right")
    for one in ten:
        if one.kind in _WITHOUT_RUN:
            tarball = repacked(right.tarball, student=one.student, change=_with_experiment(one.source))
            made.append(HandedIn(**vars(one), sha256=right.sha256, tarball=tarball))
    return sorted(made, key=lambda one: one.student)


def _with_experiment(source: str) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        members[EXPERIMENT] = source.encode()

    return change
