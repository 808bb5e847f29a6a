"""Make the replays and run the checks that `grader selfcheck` needs. Their results are stored in the replay cache."""

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from grader.progress import ProgressBar, shown_progress
from grader.replay.replay import Replay
from grader.replay.replayer import Replayer, open_sandbox
from grader.replay.replays import Cache, Replays, default_folder, local_executor, trim
from grader.replay.request import Request, data_state, machine_state, time_limit
from grader.syntax.program import program_digest, tree_digest
from harness.checks.core.child import start
from harness.data.loading import default_cache
from harness.errors import UserError
from harness.formats.toml_file import StrictModel
from harness.recipes.recipe import Recipe
from harness.run.provenance import ABOVE_CHECKS, harness_hash
from harness.run.settings import RunSettings

# The number of experiments that one process checks. Starting a process and importing torch takes as long as checking a
# small experiment.
_TOGETHER = 10


class SubjectChecks(NamedTuple):
    """A source, its settings, and the checks to run on it."""

    source: str
    settings: RunSettings
    checks: tuple[str, ...]


class OutcomesByCheck(StrictModel):
    """The result of running checks on one experiment: {check: outcome}."""

    outcomes: dict[str, str]


class Runs:
    """Makes replays and runs checks, up to `jobs` at the same time, unless the cache contains their results."""

    def __init__(self, replayer: Replayer, folder: Path, progress: ProgressBar, *, jobs: int) -> None:
        self.replayer = replayer
        self.jobs = jobs
        self._replays = Replays(local_executor(replayer, jobs), folder)
        self._outcomes = Cache(folder / "checks", OutcomesByCheck)
        self._progress = progress

    def replays(self, label: str, requests: Iterable[Request]) -> Mapping[Request, Replay]:
        """Return {request: replay} for all requests. label: the name of this stage on the progress bar."""
        wanted = list(dict.fromkeys(requests))
        self._replays.make(label, list(wanted), self._progress)
        return {request: self._replays.of(request) for request in wanted}

    def outcomes(self, label: str, subjects: Sequence[SubjectChecks]) -> Mapping[SubjectChecks, Mapping[str, str]]:
        """Run the checks on each subject, and return {subject: {check: outcome}} for the subjects that do not fail."""
        keys = {subject: _key(subject) for subject in dict.fromkeys(subjects)}
        known = {subject: self._outcomes.get(key) for subject, key in keys.items()}
        found = {subject: kept.outcomes for subject, kept in known.items() if kept is not None}
        missing = sorted((subject for subject in keys if subject not in found), key=attrgetter("checks"))
        groups = [
            part for _, alike in groupby(missing, attrgetter("checks")) for part in _split_evenly([*alike], self.jobs)
        ]
        self._progress.begin(label, len(groups))
        with ThreadPoolExecutor(self.jobs) as pool:
            for made in pool.map(_outcomes, groups):
                self._progress.done()
                for subject, outcomes in made.items():
                    found[subject] = outcomes
                    self._outcomes.put(keys[subject], OutcomesByCheck(outcomes=outcomes))
        return found


def _split_evenly(alike: Sequence[SubjectChecks], jobs: int) -> list[Sequence[SubjectChecks]]:
    """Return groups of about equal size, the same number of groups for each job, so that all jobs end together."""
    count = min(jobs * math.ceil(len(alike) / (jobs * _TOGETHER)), len(alike))
    return [alike[first::count] for first in range(count)]


def _outcomes(group: Sequence[SubjectChecks]) -> dict[SubjectChecks, dict[str, str]]:
    try:
        findings = start([(one.source, one.settings) for one in group], group[0].checks)
    except UserError:  # the replay of the experiment reports the reason
        return {} if len(group) == 1 else dict(chain.from_iterable(_outcomes([one]).items() for one in group))
    outcomes = ({name: finding.outcome for name, finding in found.items()} for found in findings)
    return dict(zip(group, outcomes, strict=True))


@contextmanager
def open_runs(*, jobs: int) -> Iterator[Runs]:
    """Yield a `Runs` with a sandbox and the default cache of replays."""
    folder = default_folder()
    trim(folder)
    with shown_progress(Console(stderr=True)) as progress, open_sandbox("warm", jobs) as sandbox:
        yield Runs(Replayer(sandbox, default_cache()), folder, progress, jobs=jobs)


def request_of(
    recipe: Recipe, source: str, settings: RunSettings, *, trusted: bool = True, repetition: int = 0
) -> Request:
    """Return a request to replay a source. trusted: whether the source is from the suite, not from a student."""
    tree, seconds = tree_digest(source), time_limit(recipe)
    return Request(recipe, settings, source, tree, trusted=trusted, repetition=repetition, seconds=seconds)


def _key(subject: SubjectChecks) -> str:
    settings = asdict(subject.settings)
    parts = [
        program_digest(subject.source),
        settings,
        subject.checks,
        harness_hash("experiments", *ABOVE_CHECKS),
        data_state(),
        machine_state(),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
