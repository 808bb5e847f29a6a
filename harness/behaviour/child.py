"""Measure the behaviour of an experiment on a student's machine, in a child process that `behaviour_of` starts."""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

from harness.behaviour.compare import Behaviour
from harness.run.launch import Child, ChildJob, Reporter, launch_child, serve
from harness.run.settings import RunSettings

MODULE = "harness.behaviour.child"


def behaviour_of(source: str, settings: RunSettings, *, bar: bool = False, child: Child | None = None) -> Behaviour:
    """Measure the behaviour of an experiment on the CPU and return it. `child` and errors are as in `launch_child`."""
    found: Behaviour = launch_child(behaviour_job(source, settings), bar=bar, child=child)["behaviour"]
    return found


def behaviour_job(source: str, settings: RunSettings) -> ChildJob:
    """Return the job of a measurement."""
    return ChildJob(
        module=MODULE,
        line=json.dumps([source, asdict(replace(settings, device="cpu"))]),
        numerics=settings.numerics,
        label="measuring",
        what="measurement",
        place="The experiment",
        quiet=True,  # the functions are called hundreds of times, so their prints would bury the result
    )


def _execute(line: str, reporter: Reporter) -> None:
    from harness.behaviour.measure import measure
    from harness.canonical_setup import apply_numerics
    from harness.checks.core.library import open_subject

    source, fields = json.loads(line)
    settings = RunSettings(**fields)
    apply_numerics(settings.numerics, settings.device)
    with open_subject(Path("experiment.py"), source, settings) as subject:
        reporter.send("finished", result={"behaviour": measure(subject)})


if __name__ == "__main__":
    sys.exit(serve(_execute))
