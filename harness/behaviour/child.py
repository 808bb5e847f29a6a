"""Measure the behaviour of an experiment on a student's machine, in a child process that `behaviour_of` starts."""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

from harness.behaviour.compare import Behaviour
from harness.run.launch import ChildJob, Reporter, launch_child, serve
from harness.run.settings import RunSettings


def behaviour_of(source: str, settings: RunSettings, *, bar: bool = False) -> Behaviour:
    """Measure the behaviour of an experiment on the CPU and return it. Raises as `launch_child` does."""
    child = ChildJob(
        module="harness.behaviour.child",
        line=json.dumps([source, asdict(replace(settings, device="cpu"))]),
        numerics=settings.numerics,
        label="measuring",
        what="measurement",
        place="The experiment",
        quiet=True,  # the functions are called hundreds of times, so their prints would bury the result
    )
    found: Behaviour = launch_child(child, bar=bar)["behaviour"]
    return found


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
