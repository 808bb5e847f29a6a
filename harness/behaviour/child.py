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
    )
    found: Behaviour = launch_child(child, bar=bar)["behaviour"]
    return found


def _execute(line: str, reporter: Reporter) -> None:
    from harness.behaviour.probes import measure_behaviour
    from harness.canonical_setup import apply_numerics
    from harness.checks.core.subject import Subject
    from harness.data.loading import load_dataset

    source, fields = json.loads(line)
    settings = RunSettings(**fields)
    apply_numerics(settings.numerics, settings.device)
    subject = Subject(Path("experiment.py"), source, settings, load_dataset(settings.dataset))
    reporter.send("finished", result={"behaviour": measure_behaviour(subject)})


if __name__ == "__main__":
    sys.exit(serve(_execute))
