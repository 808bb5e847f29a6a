"""`grader score`: read the submissions, replay what is distinct, score each, write the reports."""

import hashlib
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter

from rich.console import Console

import harness
from grader.course.decisions import Decision, all_decisions, apply_decisions
from grader.intake.names import Rejected, printable
from grader.intake.submission import Answer, Submission, read_submission, submission_name
from grader.replay.cache import NO_SANDBOX, default_folder, trim
from grader.replay.folder_lock import locked
from grader.replay.replay import Replay
from grader.replay.replayer import Engine, Replayer, Sandbox, open_sandbox
from grader.replay.replays import Replays, local_executor
from grader.replay.request import Role, canary_requests, recipe_of, requests_of, second_requests
from grader.report.progress import Progress, shown_progress
from grader.report.scores_file import SCORES, read_scores
from grader.report.write import INDEX, check_reports_folder, write_reports
from grader.sandbox import run_in_sandbox, run_trusted, sandbox_problem
from grader.score.canaries import canary_problem
from grader.score.evidence import must_agree
from grader.score.scoring import WITHOUT_SANDBOX, Score, score_submission, unscored
from grader.score.verdict import Scores, SubmissionScore
from grader.score.weights import DEFAULT, Weights, load_weights
from grader.workers import Workers
from grader.written.grade import AnswerGrader
from harness.data import DATASETS
from harness.data.loading import default_cache
from harness.errors import UserError, naming
from harness.submission.archive import SUFFIX
from harness.written.exercise import exercise_ids, load_exercise

_DIED = "The grader's process ended, twice, while it worked on this submission."


@dataclass(frozen=True)
class ScoreOptions:
    """The options of `grader score`."""

    out: Path
    jobs: int
    only: tuple[str, ...] = ()
    rubric: Path | None = None
    overrides: Path | None = None
    fresh: bool = False
    trust_submissions: bool = False
    engine: Engine = "warm"
    cluster: str | None = None
    cache: Path | None = None
    replays: Path | None = None


@dataclass(frozen=True)
class Grading:
    """What grading needs: replays, a replayer for written answers, the cache folder, and the weights."""

    replays: Replays
    replayer: Replayer
    cache: Path
    weights: Weights
    jobs: int
    fresh: bool = False
    sandboxed: bool = True


def score_folder(folder: Path, options: ScoreOptions) -> int:
    """Score every tarball in a folder, write all reports, and return the exit status: 0, or 1 if one is not judged.

    Raises `UserError` for wrong use: no such folder, no tarball, no sandbox, an unusable rubric or overrides.
    """
    paths = tarballs(folder, options.only)
    weights = load_weights(options.rubric or DEFAULT)
    overrides = all_decisions(options.out, options.overrides)
    console = Console(stderr=True)
    with (
        _grading(options, weights, console) as grading,
        _reports_folder(options.out),
        shown_progress(console) as progress,
    ):
        others = _rows_that_stay(options)
        graded = grade(paths, grading, progress)
        scores = Scores(provenance=_provenance(options), submissions=tuple(item.row for item in graded))
        scores = _with_others(apply_decisions(scores, _applicable(overrides, options)), others)
        exhibits = {item.row.submission: item.exhibits for item in graded}
        titles = _titles()
        write_reports(scores, exhibits, options.out, titles=titles, progress=progress)
    with naming(Path("standard output")):  # an error would name the reports, which are written
        return _summarize(scores, options.out)


def grade(paths: Sequence[Path], grading: Grading, progress: Progress) -> list[Score]:
    """Read, replay and score these tarballs; return their scores, sorted by name. Ctrl-C keeps finished replays."""
    with Workers(grading.jobs) as workers:
        read = _read(paths, workers, progress)
        submissions = {path: item for path, item in read.items() if isinstance(item, Submission)}
        problems = _check_canaries({item.recipe for item in submissions.values()}, grading, progress)
        sound = {path: item for path, item in submissions.items() if item.recipe not in problems}
        scores = [item for item in read.values() if isinstance(item, Score)]
        scores += [
            unscored(item.name, problems[item.recipe], student=item.student, exercise=item.recipe)
            for item in submissions.values()
            if item.recipe in problems
        ]
        scores += _score(sound, _replay(sound, grading, progress), grading, workers, progress)
    answers = [item for item in read.values() if isinstance(item, Answer)]
    scores += _grade_answers(answers, grading, progress)
    return sorted(scores, key=lambda item: item.row.submission)


# --- Read ---


def tarballs(folder: Path, only: Sequence[str] = ()) -> list[Path]:
    """Return the tarballs in a folder, sorted. Raises `UserError` if there are none, or not those in `only`."""
    if not folder.is_dir():
        raise UserError(f"There is no folder {folder}: name the one that holds the students' .tar.gz files.")
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if not path.name.endswith(SUFFIX):
            continue
        other = found.setdefault(submission_name(path), path)
        if other is not path:
            raise UserError(
                f"{folder} holds two files that are both called {printable(submission_name(path))}: rename one."
            )
    if not found:
        raise UserError(
            f"{folder} holds no .tar.gz file: put the students' tarballs there, as make submit wrote them."
        )
    for name in only:
        if name not in found:
            raise UserError(
                f"There is no {folder / name}{SUFFIX}: --only takes a tarball's name without its ending."
            )
    return [path for name, path in found.items() if not only or name in only]


def _read(
    paths: Sequence[Path], workers: Workers, progress: Progress
) -> Mapping[Path, Submission | Answer | Score]:
    """Read the tarballs; one that cannot be graded becomes its score."""
    progress.begin("reading", len(paths))
    read = {}
    for path, item in workers.each(_read_one, paths, lambda path: unscored(submission_name(path), _DIED)):
        read[path] = item
        progress.done(submission_name(path), 0.0)
    return {path: read[path] for path in paths}


def _read_one(path: Path) -> Submission | Answer | Score:
    name = submission_name(path)
    try:
        read = read_submission(path)
        if isinstance(read, Answer):
            return read
        try:
            _check_dataset(read)
        except UserError as error:  # the recipe cannot be used
            return unscored(name, str(error), student=read.student, exercise=read.recipe)
        # Logs and checkpoints of a whole class take too much memory: they are read again for scoring.
        light = read.light()
        _ = light.tree, light.settings  # computed here, in parallel
        return light
    except Rejected as refusal:
        reason = f"{refusal.message} ({refusal.code})"
        return unscored(name, reason, student=refusal.student, exercise=refusal.recipe, rejected=True)
    except Exception as error:
        traceback.print_exc()
        return unscored(name, f"The grader failed on it: {type(error).__name__}.")


def _check_dataset(submission: Submission) -> None:
    recipe, dataset = recipe_of(submission.recipe), submission.manifest.dataset
    if DATASETS.get(dataset) != DATASETS[recipe.dataset]:
        message = f"{recipe.id} cannot be run on {dataset}."
        raise Rejected("dataset", message, submission.student, submission.recipe)


# --- Replay ---


def _check_canaries(recipes: set[str], grading: Grading, progress: Progress) -> Mapping[str, str]:
    """Return what is wrong with each recipe that cannot be graded here, before any student's code runs."""
    problems: dict[str, str] = {}
    requests = {}
    for recipe in sorted(recipes):
        with _noting(problems, recipe):
            requests[recipe] = canary_requests(recipe)
    wanted = [(recipe, request) for recipe, items in requests.items() for request in items]
    grading.replays.make("checking recipes", wanted, progress)
    for recipe, items in requests.items():
        with _noting(problems, recipe):
            problem = canary_problem(recipe, [grading.replays.of(item) for item in items], grading.weights)
            if problem:
                raise UserError(problem)
    return problems


@contextmanager
def _noting(problems: dict[str, str], recipe: str) -> Iterator[None]:
    """Note what is wrong with a recipe, so that the others are graded."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, UserError):
            traceback.print_exc()
        problems[recipe] = f"The exercise {recipe} cannot be graded here: {error or type(error).__name__}"


def _replay(
    submissions: Mapping[Path, Submission], grading: Grading, progress: Progress
) -> Mapping[Path, Mapping[Role, Replay]]:
    """Make the replays of all submissions, each distinct program once; a second time if bytes need not agree."""
    replays = grading.replays
    requests = {path: requests_of(item) for path, item in submissions.items()}

    def make(paths: Sequence[Path]) -> None:
        wanted = [(submissions[path].name, item) for path in paths for item in requests[path].values()]
        replays.make("replays", wanted, progress)

    make(list(requests))
    again = [
        path
        for path, item in submissions.items()
        if not must_agree(item, replays.of(requests[path]["broken"]))
    ]
    for path in again:
        requests[path] |= second_requests(requests[path])
    make(again)
    return {
        path: {role: replays.of(request) for role, request in wanted.items()}
        for path, wanted in requests.items()
    }


# --- Score ---


@dataclass(frozen=True)
class _Job:
    """One submission to score: as it was read, where it lies, and its replays."""

    path: Path
    light: Submission
    replays: Mapping[Role, Replay]
    weights: Weights
    sandboxed: bool


def _score(
    submissions: Mapping[Path, Submission],
    replays: Mapping[Path, Mapping[Role, Replay]],
    grading: Grading,
    workers: Workers,
    progress: Progress,
) -> list[Score]:
    progress.begin("scoring", len(submissions))
    jobs = [
        _Job(path, item, replays[path], grading.weights, grading.sandboxed)
        # Equal programs one after the other: a worker parses their log once.
        for path, item in sorted(submissions.items(), key=lambda pair: (pair[1].recipe, pair[1].tree))
    ]
    scores = []
    begun = perf_counter()
    for job, score in workers.each(_score_one, jobs, lambda job: _unscored(job, _DIED)):
        scores.append(score)
        progress.done(job.light.name, perf_counter() - begun)
    return scores


def _score_one(job: _Job) -> Score:
    try:
        submission = read_submission(job.path)
        if not isinstance(submission, Submission) or submission.sha256 != job.light.sha256:
            return _unscored(job, "The file has changed while the class was graded: score it again.")
        return score_submission(submission, job.replays, job.weights, sandboxed=job.sandboxed)
    except Exception as error:
        traceback.print_exc()
        return _unscored(job, f"The grader failed on it: {type(error).__name__}.")


def _unscored(job: _Job, reason: str) -> Score:
    return unscored(job.light.name, reason, student=job.light.student, exercise=job.light.recipe)


def _grade_answers(answers: Sequence[Answer], grading: Grading, progress: Progress) -> list[Score]:
    grader = AnswerGrader(
        grading.replayer, grading.cache, jobs=grading.jobs, sandboxed=grading.sandboxed, fresh=grading.fresh
    )
    return grader.grade(answers, progress)


# --- Report ---


@contextmanager
def _reports_folder(out: Path) -> Iterator[None]:
    """Hold the reports' folder. Raises `UserError`, before hours of replays, if reports cannot be written there."""
    out.mkdir(parents=True, exist_ok=True)
    with locked(out) as alone:
        if not alone:
            raise UserError(
                f"Another grader writes its reports to {out} right now: wait until it has ended, or name another"
                " folder with --out."
            )
        check_reports_folder(out)
        yield


def _rows_that_stay(options: ScoreOptions) -> tuple[SubmissionScore, ...]:
    """Return the rows of earlier reports that stay if only some submissions are scored."""
    if not options.only or not (options.out / SCORES).exists():
        return ()
    earlier = read_scores(options.out)
    if earlier.provenance != _provenance(options):
        raise UserError(
            f"{options.out} holds scores by another grader or rubric, which do not fit together: score the whole"
            " class, or name another folder with --out."
        )
    return tuple(row for row in earlier.submissions if row.submission not in options.only)


def _with_others(scores: Scores, others: Sequence[SubmissionScore]) -> Scores:
    rows = sorted((*scores.submissions, *others), key=lambda row: row.submission)
    return scores.model_copy(update={"submissions": tuple(rows)})


def _applicable(overrides: Sequence[Decision], options: ScoreOptions) -> Sequence[Decision]:
    """Return the overrides for the submissions that are scored today."""
    return [item for item in overrides if not options.only or item.submission in options.only]


def _titles() -> Mapping[str, str]:
    titles = {}
    for exercise in exercise_ids():
        try:
            titles[exercise] = load_exercise(exercise).title
        except UserError:  # named as the reason of its submissions
            titles[exercise] = exercise
    return titles


def _provenance(options: ScoreOptions) -> dict[str, str | int | float | bool | None]:
    from importlib.metadata import version

    from harness.run.provenance import harness_hash

    warning = {"warning": WITHOUT_SANDBOX} if options.trust_submissions else {}
    return {
        **warning,
        "grader": harness.__version__,
        "harness_sha256": harness_hash(),
        "torch": version("torch"),
        "rubric_sha256": hashlib.sha256((options.rubric or DEFAULT).read_bytes()).hexdigest(),
        "sandbox": not options.trust_submissions,
    }


def _summarize(scores: Scores, out: Path) -> int:
    console = Console()
    say = partial(console.print, markup=False, highlight=False, soft_wrap=True)
    statuses = [row.status for row in scores.submissions]
    say(", ".join(f"{statuses.count(status)} {status}" for status in ("graded", "rejected", "not judged")))
    for row in scores.submissions:
        if row.status == "not judged":
            line = f"  {row.submission}: {row.reason}"
            say("".join(character if character.isprintable() else "?" for character in line))
    console.print("Next:", style="bold")
    say(f"  open {out / INDEX} in a browser")
    sys.stdout.flush()
    return 1 if "not judged" in statuses else 0


# --- What makes the replays ---


@contextmanager
def _grading(options: ScoreOptions, weights: Weights, console: Console) -> Iterator[Grading]:
    """Open the sandbox or the cluster. Written answers are quick, and never go to a cluster."""
    folder = options.replays or default_folder()
    trim(folder)
    cache = folder / NO_SANDBOX if options.trust_submissions else folder
    data = options.cache or default_cache()
    with ExitStack() as stack:
        if options.cluster is not None:
            from grader.replay.cluster import open_cluster

            say = partial(console.print, markup=False, highlight=False, soft_wrap=True, style="bold red")
            replayer = Replayer(run_in_sandbox, data)
            executor = stack.enter_context(open_cluster(options.cluster, data, say))
        else:
            replayer = Replayer(stack.enter_context(_sandbox(options, console)), data)
            executor = local_executor(replayer, options.jobs)
        yield Grading(
            replays=Replays(executor, cache, fresh=options.fresh),
            replayer=replayer,
            cache=cache,
            weights=weights,
            jobs=options.jobs,
            fresh=options.fresh,
            sandboxed=not options.trust_submissions,
        )


@contextmanager
def _sandbox(options: ScoreOptions, console: Console) -> Iterator[Sandbox]:
    if options.trust_submissions:
        message = "WITHOUT A SANDBOX: students' code runs with all your rights, and every report will say so."
        console.print(message, style="bold red")
        yield run_trusted
        return
    problem = sandbox_problem()
    if problem is not None:
        raise UserError(f"{problem} Nothing was run. (--trust-submissions runs students' code without it.)")
    with open_sandbox(options.engine, options.jobs) as sandbox:
        yield sandbox
