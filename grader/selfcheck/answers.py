"""Part `answers`: the known answers of every exercise whose answer is a file, examined, against their verdicts."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from grader.replay.replayer import Replayer
from grader.score.verdict import total_of
from grader.selfcheck.progress import counting
from grader.selfcheck.section import Row, Section, Table
from grader.written.answers.kinds import KINDS
from grader.written.answers.known import KnownAnswer, complaint, reference
from grader.written.answers.points import with_points
from harness.written.exercise import FileExercise


def answers_section(
    wanted: Sequence[tuple[FileExercise, KnownAnswer]], replayer: Replayer, *, jobs: int
) -> Section:
    """Examine every answer, and compare what it loses with what was declared."""
    rows, wrong = [], []
    with ThreadPoolExecutor(jobs) as pool, counting("answers") as progress:
        try:
            examined = pool.map(
                lambda item: KINDS[item[0].kind](item[0], item[1].source(reference(item[0])), replayer),
                wanted,
            )
            for done, ((exercise, answer), examination) in enumerate(
                zip(wanted, examined, strict=True), start=1
            ):
                said = complaint(answer, examination)
                total = None if examination.fault else total_of(with_points(examination, exercise.id))
                declared = ", ".join((*answer.loses, *(f"{name} (open)" for name in answer.waits)))
                cells = (
                    exercise.id,
                    answer.id,
                    declared or "nothing",
                    "open" if total is None else f"{total:g}",
                )
                rows.append(Row(cells, agrees=not said))
                if said:
                    wrong.append(f"{exercise.id} {answer.id}: {said}")
                progress(done, len(wanted))
        except BaseException:
            replayer.stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return Section(
        title="Answers",
        says="Every answer of `solutions/<id>/answers.toml`, called in the sandbox and judged: which checks it loses,"
        " against which were declared.",
        tables=(Table(("exercise", "answer", "loses", "total"), tuple(rows)),),
        figures=f"{sum(row.agrees for row in rows)} of {len(rows)} agree.",
        disagreements=tuple(wrong),
    )
