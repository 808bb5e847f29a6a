"""Grade answers that are one file: test each exercise first, then judge each different text once, in parallel."""

import hashlib
import json
import sys
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from grader.intake.submission import Answer
from grader.private import without_folders
from grader.progress import ProgressBar
from grader.replay.replayer import Replayer
from grader.replay.replays import Cache
from grader.replay.request import code_and_machine_hash
from grader.sandbox import SandboxStopped
from grader.score.attachments import Attachments
from grader.score.scoring import Score, ignored_flags, score_as_unjudged, scored_row
from grader.score.verdict import total_of
from grader.written.decision_tree import judge_tree
from grader.written.functions import judge_functions
from grader.written.judgement import Judgement, RunCommand, with_points
from grader.written.known_answers import solution_of
from harness.errors import UserError
from harness.written.exercise import DecisionTree, FileExercise, FunctionExercise, stub


def grade_answer(answer: Answer, judgement: Judgement, *, sandboxed: bool) -> Score:
    """Return the score of an answer. If the grader failed, the answer waits for the instructor."""
    attachments = Attachments(
        submission=answer.name, fixed_source=answer.text, answer_file=answer.exercise.file, findings=judgement.findings
    )
    exercise, student = answer.recipe, answer.student
    if judgement.fault:
        return Score(score_as_unjudged(answer, judgement.fault).row, attachments)
    flags = (*judgement.flags, *ignored_flags(answer.ignored))
    criteria = with_points(judgement, answer.exercise)
    row = scored_row(answer.name, student, exercise, answer.sha256, criteria, flags, {}, sandboxed=sandboxed)
    return Score(row, attachments)


def judge(exercise: FileExercise, text: str, run: RunCommand) -> Judgement:
    """Judge the text of an answer. `run` runs a command in the sandbox. Raises `SandboxStopped` if it was stopped."""
    match exercise:
        case FunctionExercise():
            return judge_functions(exercise, text, run)
        case DecisionTree():
            return judge_tree(exercise, text)
    raise TypeError(f"there is no judge for answers of kind {exercise.kind}")


class AnswerGrader:
    """Grades the answers of one class, `jobs` at a time, and stores the judgements in the folder `cache`."""

    def __init__(self, replayer: Replayer, cache: Path, *, jobs: int, sandboxed: bool = True) -> None:
        self._replayer = replayer
        self._cache = Cache(cache / "answers", Judgement)
        self._jobs = jobs
        self._sandboxed = sandboxed

    def grade(self, answers: Sequence[Answer], progress: ProgressBar) -> list[Score]:
        """Return the score of each answer. The progress bar counts different texts."""
        problems = {
            item.id: self.self_test_problem(item)
            for item in {answer.exercise.id: answer.exercise for answer in answers}.values()
        }
        scores = []
        distinct: dict[tuple[str, str], list[Answer]] = {}
        for answer in answers:
            id = answer.exercise.id
            if problems[id]:
                scores.append(score_as_unjudged(answer, problems[id]))
            else:
                distinct.setdefault((id, answer.text), []).append(answer)
        if distinct:
            progress.begin("answers", len(distinct))
        pool = ThreadPoolExecutor(self._jobs)
        try:
            futures = {pool.submit(self.judge, alike[0].exercise, alike[0].text): alike for alike in distinct.values()}
            for future in as_completed(futures):
                judgement, alike = future.result(), futures[future]
                scores += [grade_answer(item, judgement, sandboxed=self._sandboxed) for item in alike]
                progress.done()
        except BaseException:  # Ctrl-C or a full disk: do not wait for the running jobs
            self._replayer.stop()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
        return scores

    def self_test_problem(self, exercise: FileExercise) -> str:
        """Return why an exercise cannot be graded, or "". The reference solution must get 100, the original file 0."""
        wrong = f"{exercise.id} cannot be graded on this machine"
        try:
            texts = (("reference solution", solution_of(exercise), 1), ("original file", stub(exercise), 0))
        except UserError as error:
            print(error, file=sys.stderr)
            return f"{wrong}: {without_folders(str(error))}"
        for what, text, share in texts:
            judgement = self.judge(exercise, text)
            if judgement.fault:
                return f"{wrong}: the grader could not judge the {what} ({judgement.fault})."
            criteria = with_points(judgement, exercise)
            checks = [
                check
                for criterion, score in criteria.items()
                for check in score.checks
                if f"{criterion}.{check.id}" not in exercise.by_person
            ]
            for check in checks:
                if check.points != check.max * share:
                    total = total_of(criteria) or 0
                    return f"{wrong}: the {what} got {total:g}, not {100 * share} ({check.reason})."
        return ""

    def judge(self, exercise: FileExercise, text: str) -> Judgement:
        """Return the judgement of a text, from the cache if possible. Do not cache a failure of the grader."""
        # The hash of our code includes the folder `solutions/`.
        determines = json.dumps([exercise.id, text, code_and_machine_hash()])
        key = hashlib.sha256(determines.encode()).hexdigest()
        if (known := self._cache.get(key)) is not None:
            return known
        try:
            judgement = judge(exercise, text, self._replayer.run)
            if not judgement.fault:
                with_points(judgement, exercise)  # raises an error if the rubric has other items
        except SandboxStopped:
            raise
        except Exception as error:
            traceback.print_exc()
            return Judgement(checks={}, fault=f"The grader failed on this answer: {type(error).__name__}.")
        if not judgement.fault:
            self._cache.put(key, judgement)
        return judgement
