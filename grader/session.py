"""Open the resources for grading a class: the sandbox or cluster, the cache of replays, the folder of the reports."""

import fcntl
import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

from rich.console import Console

import harness
from grader.private import private_files
from grader.replay.replayer import Engine, Replayer, Sandbox, open_sandbox
from grader.replay.replays import NO_SANDBOX, Replays, default_folder, local_executor, trim
from grader.report.write import check_reports_folder
from grader.sandbox import run_in_sandbox, run_unsandboxed, sandbox_problem
from grader.score.rubric import DEFAULT_RUBRIC, Weights
from grader.score.scoring import WITHOUT_SANDBOX
from grader.score.verdict import Scores
from harness.data.loading import default_cache
from harness.errors import UserError, printable
from harness.recipes.catalogue import SUITE, Catalogue
from harness.run.provenance import harness_hash

# If one of these parts changes, the points of a folder may change. For each part: its key in the provenance, its name
# in messages, and whether messages show its value.
_OF_SUITE = (
    ("grader", "version", True),
    ("torch", "torch", True),
    ("harness_sha256", "harness", False),
    ("rubric_sha256", "rubric", False),
)


@dataclass(frozen=True)
class ScoreOptions:
    """The options of `grader score`."""

    out: Path
    jobs: int
    rubric: Path | None = None
    trust_submissions: bool = False
    engine: Engine = "warm"
    cluster: str | None = None
    course: Path | None = None
    assignment: str | None = None
    times: Path | None = None
    trust_file_dates: bool = False


@dataclass(frozen=True)
class Grading:
    """The resources for grading a class.

    replayer: runs the answers to written exercises. cache: the folder of the cache. weights: the points in the rubric.
    """

    replays: Replays
    replayer: Replayer
    catalogue: Catalogue
    cache: Path
    weights: Weights
    jobs: int
    sandboxed: bool = True


@contextmanager
def open_grading(
    options: ScoreOptions, weights: Weights, console: Console, catalogue: Catalogue = SUITE
) -> Iterator[Grading]:
    """Open the sandbox or the cluster, and yield the resources for grading the exercises of a catalogue.

    Answers to written exercises take little time, so they run on this machine, even if there is a cluster.
    """
    folder = default_folder()
    trim(folder)
    folder = folder / NO_SANDBOX if options.trust_submissions else folder
    data = default_cache()
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
            replays=Replays(executor, folder),
            replayer=replayer,
            catalogue=catalogue,
            cache=folder,
            weights=weights,
            jobs=options.jobs,
            sandboxed=not options.trust_submissions,
        )


@contextmanager
def _sandbox(options: ScoreOptions, console: Console) -> Iterator[Sandbox]:
    if options.trust_submissions:
        message = "WITHOUT A SANDBOX: students' code runs with all your rights. Every report will say so."
        console.print(message, style="bold red")
        yield run_unsandboxed
        return
    problem = sandbox_problem()
    if problem is not None:
        raise UserError(f"{problem} No code was run. (--trust-submissions runs students' code without a sandbox.)")
    with open_sandbox(options.engine, options.jobs) as sandbox:
        yield sandbox


@contextmanager
def lock_folder(folder: Path, *, wait: bool = False) -> Iterator[bool]:
    """Try to lock a folder, and yield whether this process got the lock.

    wait: whether to wait while another process has the lock. The kernel releases the lock when the process ends, for
    any reason. If the file system has no locks, yield True. Raises `OSError` if the folder is missing or cannot be
    read.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            held = True
        except BlockingIOError:
            held = False
        except OSError:  # ENOLCK, ENOSYS, EOPNOTSUPP: the file system has no locks
            held = True
        yield held
    finally:
        os.close(descriptor)


@contextmanager
def hold_reports_folder(out: Path) -> Iterator[None]:
    """Create and lock the folder of the reports. Raises `UserError` if the folder cannot be used.

    Call this function before the replays. Otherwise, the user would see the error only after hours.
    """
    with private_files():
        out.mkdir(parents=True, exist_ok=True)
    with lock_folder(out) as alone:
        if not alone:
            raise UserError(
                f"Another grader command is writing reports to {out} now: wait until it has finished, or choose another"
                " folder with --out."
            )
        check_reports_folder(out)
        yield


def refuse_other_scores(before: Scores | None, now: Scores, out: Path) -> None:
    """Raise `UserError` if the scores in a folder belong to another assignment or course, or to a newer suite."""
    if before is None:
        return
    if (before.course, before.assignment) != (now.course, now.assignment):
        of, wanted = _whose(before), _whose(now)
        raise UserError(
            f"{out} contains the scores of {of}, which the scores of {wanted} must not overwrite. Choose another folder"
            " with --out, or remove --out: then each assignment has its own folder."
        )
    theirs, ours = str(before.provenance.get("grader", "")), harness.__version__
    if _numbers(theirs) > _numbers(ours):
        raise UserError(
            f"Version {printable(theirs)} of the suite wrote {out}, but you use the older version {ours}: use the newer"
            " version, or choose another folder with --out."
        )


def upgrade_between(before: Scores | None, now: Scores) -> str:
    """Describe how the suite and the rubric have changed since the previous scores; return "" if they have not."""
    changed = [
        f"{words} {old} -> {new}" if is_shown else f"a different {words}"
        for name, words, is_shown in _OF_SUITE
        if before and (old := before.provenance.get(name)) != (new := now.provenance.get(name))
    ]
    return ", ".join(changed)


def _whose(scores: Scores) -> str:
    if not scores.assignment:
        return "submissions without an assignment"
    return f"{printable(scores.assignment)} of {printable(scores.course)}"


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall("[0-9]{1,9}", version)]


def provenance_of(options: ScoreOptions) -> dict[str, str | int | float | bool | None]:
    """Return the provenance of `scores.json`: versions, hashes, and whether students' code runs in a sandbox."""
    warning = {"warning": WITHOUT_SANDBOX} if options.trust_submissions else {}
    return {
        **warning,
        "grader": harness.__version__,
        "harness_sha256": harness_hash(),
        "torch": version("torch"),
        "rubric_sha256": hashlib.sha256((options.rubric or DEFAULT_RUBRIC).read_bytes()).hexdigest(),
        "sandbox": not options.trust_submissions,
    }
