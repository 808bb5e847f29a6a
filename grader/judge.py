"""Judge the files that students handed in: read each file, replay its programs, and score it."""

import sys
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from grader.intake.archive import Rejected
from grader.intake.folder import HandedIn
from grader.intake.submission import Answer, Submission, parse_submission
from grader.private import without_folders
from grader.progress import ProgressBar
from grader.replay.replay import Replay
from grader.replay.replays import Waiting, order_files
from grader.replay.request import Request, Role, in_time, requests_of
from grader.score.evidence import must_agree
from grader.score.fix import further_requests
from grader.score.identity import name_student
from grader.score.scoring import Score, score_as_unjudged, score_as_unread, score_submission
from grader.score.self_test import self_test_problem, self_test_requests
from grader.score.verdict import Flag
from grader.score.work_limit import WorkLimitError, work_limit
from grader.session import Grading
from grader.written.grade import AnswerGrader
from harness.data import DATASETS
from harness.errors import UserError
from harness.recipes.catalogue import Catalogue
from harness.recipes.recipe import Recipe
from harness.written.exercise import file_exercise_ids

Refuse = Callable[[Submission | Answer], Flag | None]


def judge_files(
    files: Sequence[HandedIn], grading: Grading, progress: ProgressBar, refuse: Refuse | None = None
) -> Generator[Score, None, None]:
    """Read, replay and score the files. Yield each score as soon as it is known. Ctrl-C loses no finished replay.

    refuse: a function that returns a flag with the reason if a submission must not be judged, else None.
    """
    arrivals = {file.name: file.arrival for file in files}
    exercises = [*grading.catalogue.ids(), *file_exercise_ids()]
    with closing(_scores(files, grading, progress, refuse)) as scores:
        for score in scores:
            row = name_student(score.row, exercises)
            yield replace(score, row=replace(row, arrival=arrivals[row.submission]))


def _scores(
    files: Sequence[HandedIn], grading: Grading, progress: ProgressBar, refuse: Refuse | None
) -> Generator[Score, None, None]:
    answers: list[Answer] = []
    problems: dict[str, str] = {}

    def attempt(item: HandedIn | Submission) -> Score | Answer | Waiting[HandedIn | Submission]:
        read = _read_one(item, grading.catalogue) if isinstance(item, HandedIn) else item
        if isinstance(read, Score):
            return read
        if refuse is not None and (flag := refuse(read)):
            return score_as_unjudged(read, flag.message, flag)
        if isinstance(read, Answer):
            return read
        found = _judge(read, grading, problems)
        return found if isinstance(found, Score) else Waiting(read, found)

    progress.begin("submissions", len(files))
    judged: Generator[Score | Answer, None, None] = grading.replays.as_ready(order_files(files), attempt)
    with closing(judged):
        for found in judged:
            progress.done()
            if isinstance(found, Answer):
                answers.append(found)
            else:
                yield found
    answer_grader = AnswerGrader(grading.replayer, grading.cache, jobs=grading.jobs, sandboxed=grading.sandboxed)
    yield from answer_grader.grade(answers, progress)


def _read_one(file: HandedIn, catalogue: Catalogue) -> Submission | Answer | Score:
    """Return the submission or the answer in a file, or, if it cannot be graded, a score with the reason."""
    name = file.name
    try:
        with work_limit():
            read = parse_submission(name, file.read(), catalogue)
        if isinstance(read, Answer):
            return read
        try:
            _check_dataset(read, catalogue.find(read.recipe))
        except UserError as error:  # the recipe is invalid
            print(error, file=sys.stderr)
            return score_as_unjudged(read, without_folders(str(error)))
        return read
    except Rejected as refusal:
        reason = f"{refusal.message} ({refusal.code})"
        return score_as_unread(name, reason, student=refusal.student, exercise=refusal.recipe, rejected=True)
    except WorkLimitError as error:
        return score_as_unread(name, str(error))
    except Exception as error:
        traceback.print_exc()
        return score_as_unread(name, f"The grader failed on this file: {type(error).__name__}.")


def _check_dataset(submission: Submission, recipe: Recipe) -> None:
    dataset = submission.manifest.dataset
    if DATASETS.get(dataset) != DATASETS[recipe.dataset]:
        message = f"{recipe.id} does not run on the data set {dataset}."
        raise Rejected("dataset", message, submission.student, submission.recipe)


def _judge(read: Submission, grading: Grading, problems: dict[str, str]) -> Score | list[Request]:
    """Return the score of a submission, or the replays that must be made first.

    A student's code runs only after the self-test of its recipe has passed. problems: for each tested recipe, the
    problem that the self-test found, or "".
    """
    if read.recipe not in problems:
        found = _recipe_problem(read.recipe, grading)
        if not isinstance(found, str):
            return found
        problems[read.recipe] = found
    if problem := problems[read.recipe]:
        return score_as_unjudged(read, f"The exercise {read.recipe} cannot be graded on this machine: {problem}")
    try:
        with work_limit():
            return _score_or_missing(read, grading)
    except WorkLimitError as error:
        return score_as_unjudged(read, str(error))
    except Exception as error:
        traceback.print_exc()
        return score_as_unjudged(read, f"The grader failed on this submission: {type(error).__name__}.")


def _recipe_problem(recipe_id: str, grading: Grading) -> str | list[Request]:
    """Return why a recipe cannot be graded on this machine, "" if it can be graded, or the replays to make first."""
    try:
        recipe = grading.catalogue.find(recipe_id)
        requests = self_test_requests(recipe)
        if unknown := [request for request in requests if not grading.replays.has(request)]:
            return unknown
        return self_test_problem(recipe, [grading.replays.of(item) for item in requests], grading.weights)
    except UserError as error:
        print(error, file=sys.stderr)
        return without_folders(str(error))
    except Exception as error:
        traceback.print_exc()
        return without_folders(str(error)) or type(error).__name__


def _score_or_missing(submission: Submission, grading: Grading) -> Score | list[Request]:
    """Return the score of a submission, or the next replays that must be made.

    All replays of a submission share one time limit, so a later replay must wait until the earlier replays are done.
    """
    replays, recipe = grading.replays, grading.catalogue.find(submission.recipe)
    requests: dict[Role, Request] = {}
    made: dict[Role, Replay] = {}
    while following := _next_requests(submission, recipe, requests, made):
        earlier = {request: made[role] for role, request in requests.items()}
        timely = {role: in_time(request, earlier) for role, request in following.items()}
        if unknown := [request for request in timely.values() if not replays.has(request)]:
            return unknown
        requests |= timely
        made |= {role: replays.of(request) for role, request in timely.items()}
    return score_submission(submission, recipe, made, grading.weights, sandboxed=grading.sandboxed)


def _next_requests(
    submission: Submission, recipe: Recipe, requests: Mapping[Role, Request], made: Mapping[Role, Replay]
) -> Mapping[Role, Request]:
    """Return the next replays that a submission needs after the replays in `made`; {} if it needs no more replays."""
    asked = requests_of(submission, recipe)
    stages: list[tuple[Role, ...]] = [("broken", "reference"), ("fixed",)]
    if "broken" in made and not must_agree(submission, made["broken"]):
        stages += [("broken again",), ("fixed again",)]
    for stage in stages:
        if stage[0] not in made:
            return {role: asked[role] for role in stage}
    return further_requests(requests, made)
