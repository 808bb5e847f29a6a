"""The answers of a class: the canaries first, then every distinct text is examined once, side by side."""

import hashlib
import json
import traceback
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from time import perf_counter

from grader.intake.submission import Answer
from grader.replay.cache import Cache
from grader.replay.provenance import code_state
from grader.replay.replayer import Replayer
from grader.report.progress import Progress
from grader.sandbox import Stopped
from grader.score.scoring import Score, unscored
from grader.score.solutions import SOLUTIONS
from grader.score.verdict import total_of
from grader.written.answers.examination import Examination
from grader.written.answers.graded import answer_row
from grader.written.answers.kinds import KINDS
from grader.written.answers.points import with_points
from harness.written.file_exercise import FileExercise, stub

# The exercise by its id, and the text.
_Key = tuple[str, str]


class Answers:
    """Examines the answers of one class with one replayer, `jobs` at a time.

    What was examined is remembered in the folder `memory`; with `fresh`, every text is examined anew.
    """

    def __init__(
        self, replayer: Replayer, memory: Path, *, jobs: int, sandboxed: bool, fresh: bool = False
    ) -> None:
        self._replayer = replayer
        self._store = Cache(memory / "examined", Examination)
        self._fresh = fresh
        self._jobs = jobs
        self._sandboxed = sandboxed

    def canary_problem(self, exercise: FileExercise) -> str:
        """Return why an exercise cannot be graded here, or "": the reference must earn 100, the stub nothing."""
        solution = (SOLUTIONS / exercise.id / exercise.file).read_text(encoding="utf-8")
        for what, text, wanted in (
            ("reference solution", solution, 100),
            ("untouched file", stub(exercise), 0),
        ):
            total, lost = _canary(self._examined(exercise, text), exercise)
            if total != wanted:
                return f"{exercise.id} cannot be graded here: the {what} got {total}, not {wanted} ({lost})."
        return ""

    def grade(self, answers: Sequence[Answer], progress: Progress) -> list[Score]:
        """Return the score of each answer; the progress counts distinct texts."""
        exercises = {item.exercise.id: item.exercise for item in answers}
        problems = {id: problem for id, item in exercises.items() if (problem := self.canary_problem(item))}
        rows = [
            unscored(item.name, problems[item.exercise.id], student=item.student, exercise=item.exercise.id)
            for item in answers
            if item.exercise.id in problems
        ]
        answers = [item for item in answers if item.exercise.id not in problems]
        distinct: dict[_Key, list[Answer]] = {}
        for answer in answers:
            distinct.setdefault((answer.exercise.id, answer.text), []).append(answer)
        if not distinct:
            return rows
        progress.begin("answers", len(distinct))
        pool = ThreadPoolExecutor(self._jobs)
        futures: dict[Future[tuple[Examination, float]], list[Answer]] = {}
        try:
            futures |= {
                pool.submit(self._timed, alike[0].exercise, alike[0].text): alike
                for alike in distinct.values()
            }
            for future in as_completed(futures):
                examination, seconds = future.result()
                for answer in futures[future]:
                    rows.append(answer_row(answer, examination, sandboxed=self._sandboxed))
                progress.done(futures[future][0].name, seconds)
        except BaseException:  # Ctrl-C, a full disk: nobody waits for what runs until it ends by itself
            self._replayer.stop()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
        return rows

    def _timed(self, exercise: FileExercise, text: str) -> tuple[Examination, float]:
        begun = perf_counter()
        return self._examined(exercise, text), perf_counter() - begun

    def _examined(self, exercise: FileExercise, text: str) -> Examination:
        """Recall or examine a text; what may be a fault of ours is tried once more, and is not remembered."""
        key = _key(exercise, text)
        if not self._fresh and (known := self._store.get(key)) is not None:
            return known
        examination = self._examined_once(exercise, text)
        if examination.fault:
            examination = self._examined_once(exercise, text)
        if not examination.fault:
            self._store.put(key, examination)
        return examination

    def _examined_once(self, exercise: FileExercise, text: str) -> Examination:
        try:
            examination = KINDS[exercise.kind](exercise, text, self._replayer)
            if not examination.fault:
                with_points(examination, exercise.id)  # another set of checks is a fault, too
        except Stopped:
            raise
        except Exception as error:
            traceback.print_exc()
            return Examination(checks={}, fault=f"The grader failed on it: {type(error).__name__}.")
        return examination


def _key(exercise: FileExercise, text: str) -> str:
    """Return the SHA-256 of all that an examination depends on."""
    return hashlib.sha256(json.dumps([exercise.id, text, code_state()]).encode()).hexdigest()


def _canary(examination: Examination, exercise: FileExercise) -> tuple[float | None, str]:
    """Return the total of a canary, and the first check that is not as it should be."""
    if examination.fault:
        return None, examination.fault
    criteria = with_points(examination, exercise.id)
    reason = next(
        (
            f"{name}.{check.id}: {check.reason}"
            for name, score in criteria.items()
            for check in score.checks
            if check.points != check.max
        ),
        "it lost nothing",
    )
    return total_of(criteria), reason
