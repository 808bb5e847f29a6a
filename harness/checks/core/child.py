"""The process that makes checks: `start` sends it one job on standard input, and it answers on a pipe."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from harness.checks.core.finding import Finding
from harness.run.launch import ChildJob, Reporter, launch_child, serve
from harness.run.settings import RunSettings


def start(
    settings: RunSettings, source: str, names: Sequence[str], source_path: Path | None, *, bar: bool
) -> dict[str, Finding]:
    """Make checks in a process of its own; return the finding of each. Raises as `launch_child`."""
    path = str(source_path.resolve()) if source_path else None
    child = ChildJob(
        module="harness.checks.core.child",
        line=json.dumps([asdict(settings), source, names, path]),
        numerics=settings.numerics,
        label="measuring",
        what="measurement",
        place=path or "The experiment",
        go_on="give the same command again",
    )
    return {name: Finding.from_json(finding) for name, finding in launch_child(child, bar=bar).items()}


def _execute(line: str, reporter: Reporter) -> None:
    from harness.canonical_setup import apply_numerics
    from harness.checks import make_check
    from harness.checks.core.subject import Subject
    from harness.data.loading import load_dataset

    fields, source, names, path = json.loads(line)
    settings = RunSettings(**fields)
    apply_numerics(settings.numerics, settings.device)
    subject = Subject(Path(path or "experiment.py"), source, settings, load_dataset(settings.dataset))
    found = {}
    for done, name in enumerate(names):
        reporter.send("progress", step=done, steps=len(names), says=name)
        found[name] = make_check(subject, name).to_json()
    reporter.send("finished", result=found)


if __name__ == "__main__":
    sys.exit(serve(_execute))
