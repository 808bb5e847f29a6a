"""`grader score`: from a folder of tarballs to scores and reports, with a progress bar and a summary."""

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

import harness
from grader.classroom import Classroom, scores_of
from grader.course.decisions import Decision, all_decisions, apply_decisions
from grader.crew import Crew
from grader.desk import Desk
from grader.graded import WITHOUT_SANDBOX
from grader.intake.names import printable
from grader.intake.submission import SUFFIX, submission_name
from grader.replay.cluster.session import open_cluster
from grader.replay.engines import Engine
from grader.replay.executor import Executor
from grader.replay.folder_lock import locked
from grader.replay.local_executor import LocalExecutor
from grader.replay.memory.bound import bounded
from grader.replay.memory.kinds import NO_SANDBOX
from grader.replay.replayer import Replayer, Sandbox
from grader.replay.replays import Replays
from grader.replay.sandboxes import open_sandbox
from grader.replay.store import default_store
from grader.report.progress import shown_progress
from grader.report.scores_file import SCORES, read_scores
from grader.report.write import INDEX, check_reports_folder, write_reports
from grader.sandbox import run_in_sandbox, run_trusted, sandbox_problem
from grader.score.canaries import CanaryFailed
from grader.score.exhibits import Exhibits
from grader.score.verdict import Scores, SubmissionScore
from grader.score.weights import DEFAULT, load_weights
from grader.spool import SPOOL, Spool, open_spool
from grader.written.answers.room import Answers
from harness.data.loading import default_cache
from harness.errors import UserError, naming
from harness.written.file_exercise import exercise_ids, load_exercise


@dataclass(frozen=True)
class ScoreOptions:
    """What an instructor asked for."""

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


def score_folder(folder: Path, options: ScoreOptions) -> int:
    """Score every tarball in a folder, write all reports, and return the exit status: 0, or 1 if one is open.

    Raises `UserError` for wrong use: no such folder, no tarball, no sandbox, a rubric or overrides that cannot
    be used.
    """
    console = Console(stderr=True)
    paths = tarballs(folder, options.only)
    weights = load_weights(options.rubric or DEFAULT)
    overrides = all_decisions(options.out, options.overrides)
    memory = options.replays or default_store()
    kept = memory / NO_SANDBOX if options.trust_submissions else memory
    with (
        bounded(memory),
        _workers(options, console) as (executor, replayer),
        _reports_folder(options.out) as spool,
        Crew(options.jobs) as crew,
    ):
        room = Classroom(
            Replays(executor, kept, fresh=options.fresh),
            Answers(
                replayer,
                kept,
                jobs=options.jobs,
                trusted_submissions=options.trust_submissions,
                fresh=options.fresh,
            ),
            Desk(spool, kept, weights, fresh=options.fresh, trusted_submissions=options.trust_submissions),
            crew,
        )
        others = _others(options)
        try:
            with shown_progress(console) as progress:
                scores = scores_of(room.score(paths, progress), _provenance(options))
                scores = _with_others(scores, overrides, others, options)
                titles = {id: load_exercise(id).title for id in exercise_ids()}
                exhibits = {
                    row.submission: Exhibits.model_validate_json(shown)
                    for row in scores.submissions
                    if (shown := spool.exhibits(row.submission)) is not None
                }
                write_reports(scores, exhibits, options.out, titles=titles, progress=progress)
        except CanaryFailed as error:
            console.print(str(error), markup=False, highlight=False, style="bold red")
            return 3
        with naming(Path("standard output")):  # else it would be told of the reports, which are whole
            return _summarize(scores, options.out)


def _with_others(
    scores: Scores, overrides: Sequence[Decision], others: Sequence[SubmissionScore], options: ScoreOptions
) -> Scores:
    """Return the scores with the instructor's decisions, and with the rows that are not scored today."""
    if options.only:  # those of other submissions have nothing to stand on today
        overrides = [item for item in overrides if item.submission in options.only]
    scores = apply_decisions(scores, overrides)
    rows = sorted((*scores.submissions, *others), key=lambda row: row.submission)
    return scores.model_copy(update={"submissions": tuple(rows)})


@contextmanager
def _reports_folder(out: Path) -> Iterator[Spool]:
    """Make the folder, if need be, hold it alone, and give a spool in it; what a killed grader left there goes.

    Raises `UserError`, before hours of replays, where nothing could be written there or another grader writes.
    """
    out.mkdir(parents=True, exist_ok=True)
    if not os.access(out, os.W_OK | os.X_OK):
        raise UserError(
            f"{out} cannot be written to: name another folder with --out, or change its permissions."
        )
    with locked(out) as alone:
        if not alone:
            raise UserError(
                f"Another grader is writing its reports to {out} right now: wait until it has ended, or name"
                " another folder with --out."
            )
        check_reports_folder(out)
        with (
            tempfile.TemporaryDirectory(prefix="trainwreck-") as folder,
            open_spool(Path(folder) / SPOOL) as spool,
        ):
            yield spool


def _others(options: ScoreOptions) -> tuple[SubmissionScore, ...]:
    """Return the rows that are in the reports' folder and stay there, where only some submissions are scored."""
    if not options.only or not (options.out / SCORES).exists():
        return ()
    there = read_scores(options.out)
    if there.provenance != _provenance(options):
        raise UserError(
            f"{options.out} holds scores by another grader or rubric, which would not fit together: score the whole"
            " class, or name another folder with --out."
        )
    return tuple(row for row in there.submissions if row.submission not in options.only)


def tarballs(folder: Path, only: Sequence[str] = ()) -> list[Path]:
    """Return the tarballs in a folder, sorted. Raises `UserError` where there are none, or not the asked for."""
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


@contextmanager
def _workers(options: ScoreOptions, console: Console) -> Iterator[tuple[Executor, Replayer]]:
    """Give what makes replays, and what examines answers, which is quick and never goes to a cluster."""
    cache = options.cache or default_cache()
    if options.cluster is not None:
        say = partial(console.print, markup=False, highlight=False, soft_wrap=True, style="bold red")
        with open_cluster(options.cluster, cache, options.engine, say) as executor:
            yield executor, Replayer(run_in_sandbox, cache)
        return
    with _sandbox(options, console) as sandbox:
        replayer = Replayer(sandbox, cache)
        yield LocalExecutor(replayer, jobs=options.jobs), replayer


@contextmanager
def _sandbox(options: ScoreOptions, console: Console) -> Iterator[Sandbox]:
    if options.trust_submissions:
        console.print(
            "WITHOUT A SANDBOX: students' code runs with all your rights, and every report will say so.",
            style="bold red",
        )
        yield run_trusted
        return
    problem = sandbox_problem()
    if problem is not None:
        raise UserError(f"{problem} Nothing was run. (--trust-submissions runs students' code without it.)")
    with open_sandbox(options.engine, options.jobs) as sandbox:
        yield sandbox


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
    count = {
        status: sum(row.status == status for row in scores.submissions)
        for status in ("graded", "rejected", "not judged")
    }
    console.print(", ".join(f"{number} {status}" for status, number in count.items()), highlight=False)
    for row in scores.submissions:
        if row.status == "not judged":
            line = f"  {row.submission}: {row.reason}"
            console.print(_printable(line), markup=False, highlight=False, soft_wrap=True)
    console.print("Next:", style="bold")
    console.print(f"  open {out / INDEX} in a browser", markup=False, highlight=False, soft_wrap=True)
    sys.stdout.flush()
    return 1 if count["not judged"] else 0


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)
