"""Known answers of the exercises whose answer is a file, examined, against the checks that each must lose."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from grader.replay.replayer import Replayer
from grader.score.verdict import total_of
from grader.selfcheck.section import Section
from grader.written.answers.kinds import KINDS
from grader.written.answers.known import KnownAnswer, complaint, reference
from grader.written.answers.points import with_points
from harness.written.file_exercise import FileExercise


def answers_section(
    wanted: Sequence[tuple[FileExercise, KnownAnswer]], replayer: Replayer, *, jobs: int
) -> Section:
    """Examine every answer and compare what it loses with what `solutions/<id>/answers.toml` declares."""
    rows, problems = [], []
    with ThreadPoolExecutor(jobs) as pool:
        try:
            examined = pool.map(
                lambda item: KINDS[item[0].kind](item[0], item[1].source(reference(item[0])), replayer),
                wanted,
            )
            for (exercise, answer), examination in zip(wanted, examined, strict=True):
                total = None if examination.fault else total_of(with_points(examination, exercise.id))
                declared = ", ".join((*answer.loses, *(f"{name} (open)" for name in answer.waits)))
                points = "open" if total is None else f"{total:g}"
                rows.append((exercise.id, answer.id, declared or "nothing", points))
                if said := complaint(answer, examination):
                    problems.append(f"{exercise.id} {answer.id}: {said}")
        except BaseException:
            replayer.stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    columns = ("exercise", "answer", "loses", "total")
    return Section("Answers", (), columns, tuple(rows), tuple(problems))
