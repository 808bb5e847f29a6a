"""Run checks in a separate process, which reads one job from standard input and writes its answer to a pipe."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from harness.checks.core.finding import Finding
from harness.checks.core.library import checks_for, load_check, make_checks, open_subject
from harness.errors import UserError
from harness.recipes.form import is_script
from harness.run.launch import ChildJob, Reporter, launch_child, serve
from harness.run.settings import RunSettings

SayFinding = Callable[[str, Finding], None]


def start(
    subjects: Sequence[tuple[str, RunSettings]],
    names: Sequence[str],
    source_path: Path | None = None,
    *,
    modules: Path | None = None,
    bar: bool = False,
    quiet: bool = False,
    say: SayFinding | None = None,
) -> list[dict[str, Finding]]:
    """Run checks on several experiments (source and settings) in one process, and return the findings of each one.

    All settings must have the same value of `numerics`. `modules`, `quiet` and `say` are as in `run_checks`. Checks
    measure on the CPU, even if the run uses another device. Raises the errors of `launch_child`.
    """
    path = str(source_path.resolve()) if source_path else None
    jobs = [[source, asdict(replace(settings, device="cpu"))] for source, settings in subjects]
    child = ChildJob(
        module="harness.checks.core.child",
        line=json.dumps([jobs, names, path, str(modules.resolve()) if modules else None]),
        numerics=subjects[0][1].numerics,
        label="measuring",
        what="measurement",
        place=path or "The experiment",
        quiet=quiet,
    )

    def hear(event: Mapping[str, Any]) -> None:
        if say is not None:
            say(event["name"], Finding.from_json(event["finding"]))

    return [
        {name: Finding.from_json(finding) for name, finding in findings.items()}
        for findings in launch_child(child, bar=bar, hear=hear)["findings"]
    ]


def run_checks(
    source: str,
    settings: RunSettings,
    names: Sequence[str] | None = None,
    *,
    source_path: Path | None = None,
    modules: Path | None = None,
    bar: bool = False,
    quiet: bool = False,
    say: SayFinding | None = None,
) -> dict[str, Finding]:
    """Run checks (by default all) in a separate process with the numerics of a run, and return their findings.

    Outcomes are the same on all machines of the same platform class. Each check starts again from the seed, so checks
    do not affect each other. Error messages name the file `source_path`. The experiment may import modules from the
    folder `modules`. If `bar` is true, a terminal shows the progress. If `quiet` is true, the output of the experiment
    is discarded. `say` gets the name and the finding of each check as soon as the check is done.

    Raises `UserError` for an unknown check and for a mistake in the experiment, `Stopped` after Ctrl-C, and
    `ChildFault` for a bug of the harness.
    """
    wanted = [load_check(name).name for name in (checks_for(source) if names is None else names)]
    if wrong := [name for name in wanted if name not in checks_for(source)]:
        form = "a script" if is_script(source) else "an experiment with functions"
        name = wrong[0].replace("_", "-")
        raise UserError(f"The check {name} cannot measure {form}: harness checks lists both kinds.")
    (found,) = start([(source, settings)], wanted, source_path, modules=modules, bar=bar, quiet=quiet, say=say)
    return found


def _execute(line: str, reporter: Reporter) -> None:
    from harness.canonical_setup import apply_numerics

    jobs, names, path, modules = json.loads(line)
    if modules:
        sys.path.append(modules)  # behind all others, so that a random.py there does not replace Python's own
    found: list[dict[str, Any]] = []
    for source, fields in jobs:
        settings = RunSettings(**fields)
        apply_numerics(settings.numerics, settings.device)
        found.append({})
        with open_subject(Path(path or "experiment.py"), source, settings) as subject:
            reporter.send("progress", step=0, steps=len(names), says=names[0] if names else "")
            for name, finding in make_checks(subject, names):
                found[-1][name] = finding.to_json()
                reporter.send("found", name=name, finding=found[-1][name])
                reporter.send("progress", step=len(found[-1]), steps=len(names), says=name)
    reporter.send("finished", result={"findings": found})


if __name__ == "__main__":
    sys.exit(serve(_execute))
