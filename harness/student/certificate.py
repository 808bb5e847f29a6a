"""The certificate of a level: a page that says which faults a student found, and in what time."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from harness.files import write_whole
from harness.page.run_page import render
from harness.recipes.recipe import HEALTHY, listed_ids, read_recipe
from harness.student.queue import CASES_OF_A_LEVEL, CaseRecord, PracticeQueue, duration
from harness.workspace.progress import noted_student

_COLUMNS = ("case", "fault and symptom", "solved", "time", "attempts", "hints")


def certificate_path(work: Path, level: int) -> Path:
    """Return the path of the certificate of a level."""
    return work / f"certificate-{level}.html"


def write_certificate(work: Path, level: int, queue: PracticeQueue) -> Path | None:
    """Write the certificate of a level and return its path, or return None if the level is not complete."""
    cases = queue.solved_on(level)
    if len(cases) < CASES_OF_A_LEVEL:
        return None
    solved = [one.progress.solved for one in cases if one.progress.solved]
    known = [one.minutes for one in solved if one.minutes is not None]
    sound = sum(one.causes == (HEALTHY,) for one in solved)
    tiles = [
        ("cases solved", str(len(solved))),
        ("faults found", str(sum(len(one.causes) for one in solved if one.causes != (HEALTHY,)))),
        ("healthy runs recognized", str(sound)),
        ("time in all", duration(sum(known)) if known else "not known"),
        ("median time", duration(median(known)) if known else "not known"),
        ("hints", str(sum(one.hints for one in solved))),
    ]
    student = noted_student(work)
    page = render(
        "certificate.html.j2",
        title=f"Level {level} of trainwreck is complete",
        student=student or "",
        first=f"{min(one.at for one in solved):%Y-%m-%d}",
        last=f"{max(one.at for one in solved):%Y-%m-%d}",
        tiles=tiles,
        columns=_COLUMNS,
        rows=[_row(one) for one in cases],
    )
    path = certificate_path(work, level)
    write_whole({path: page.encode()}, durable=False)
    return path


def _row(case: CaseRecord) -> Sequence[str]:
    solved = case.progress.solved
    assert solved is not None
    return (
        case.name, "; ".join(f"{cause}: {title_of(cause)}" for cause in solved.causes), f"{solved.at:%Y-%m-%d}",
        duration(solved.minutes), str(solved.attempts),
        str(solved.hints),
    )  # fmt: skip


def title_of(cause: str) -> str:
    """Return the title of the recipe with this id, or the id of an unknown recipe. `healthy` has a title, too."""
    if cause == HEALTHY:
        return "nothing was broken"
    return read_recipe(cause).title if cause in listed_ids() else cause
