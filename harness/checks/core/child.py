"""The process that makes checks: `start` sends it one job on standard input, and it answers on a pipe."""

import dataclasses
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.checks.core.finding import Finding
from harness.run.launch import ChildJob, Reporter, launch_child, serve
from harness.run.settings import RunSettings


@dataclass(frozen=True)
class CheckJob:
    """An experiment, the settings of its run, and the checks to make; see `harness.checks.run_checks`."""

    settings: RunSettings
    source: str
    names: Sequence[str]
    source_path: str | None = None


def start(job: CheckJob, *, bar: bool) -> dict[str, Finding]:
    """Do a job in a process of its own; return the finding of each check. Raises as `launch_child`."""
    child = ChildJob(
        module="harness.checks.core.child",
        line=json.dumps(dataclasses.asdict(job)),
        numerics=job.settings.numerics,
        label="measuring",
        what="measurement",
        place=job.source_path or "The experiment",
        go_on="give the same command again",
    )
    found = launch_child(child, bar=bar)
    return {name: Finding.from_json(finding) for name, finding in found.items()}


def _execute(line: str, reporter: Reporter) -> None:
    from harness.canonical_setup import apply_numerics
    from harness.checks import make_check
    from harness.checks.core.subject import Subject
    from harness.data.loading import load_dataset

    fields = json.loads(line)
    job = CheckJob(RunSettings(**fields.pop("settings")), **fields)
    apply_numerics(job.settings.numerics, job.settings.device)
    path, data = Path(job.source_path or "experiment.py"), load_dataset(job.settings.dataset)
    subject = Subject(path, job.source, job.settings, data)
    found = {}
    for done, name in enumerate(job.names):
        reporter.send("progress", step=done, steps=len(job.names), says=name)
        found[name] = make_check(subject, name).to_json()
    reporter.send("finished", result=found)


if __name__ == "__main__":
    sys.exit(serve(_execute))
