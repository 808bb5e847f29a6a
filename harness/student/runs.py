"""Start the runs of a workspace, and single runs without a workspace."""

import dataclasses
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import Recipe, experiment_source
from harness.run.files import CHECKPOINT
from harness.run.launch import Child, ChildJob, launch_child
from harness.run.options import DEFAULT_EXPERIMENT
from harness.run.settings import RunJob, RunName, RunSettings
from harness.workspace.workspace import Workspace, read_source

MODULE = "harness.student.run_process"


def launch(job: RunJob, *, resumable: bool = True, bar: bool = True, child: Child | None = None) -> dict[str, Any]:
    """Make one run in a child process and return the content of its `result.json`.

    resumable: False if the caller deletes the folder of the run. Messages then do not suggest --resume. child, and the
    errors: as in `launch_child`.
    """
    name = job.experiment if job.recipe == "none" else job.recipe
    child_job = ChildJob(
        module=MODULE,
        line=job.to_json(),
        numerics=job.settings.numerics,
        label=f"{job.run} run of {name}",
        what="run",
        place=job.source_path or "The experiment",
        checkpoint=Path(f"{job.folder}.partial", CHECKPOINT) if resumable else None,
    )
    return launch_child(child_job, bar=bar, child=child)


def workspace_job(
    workspace: Workspace, recipe: Recipe, run: RunName, source: str, *, resume: bool = False, folder: Path | None = None
) -> RunJob:
    """Return the job of one run of a workspace. The run writes into `folder`, by default a folder in the workspace."""
    fixed = run == "fixed"
    return RunJob(
        settings=workspace.settings,
        recipe=recipe.id,
        experiment=recipe.experiment,
        title=recipe.title,
        run=run,
        source=source,
        folder=str((folder or workspace.run_folder(run)).resolve()),
        source_path=str(workspace.experiment.resolve()) if fixed else None,
        resume=resume,
        compare_with=str(workspace.run_folder("broken").resolve()) if fixed else None,
    )


def single_run_job(
    break_id: str,
    settings: RunSettings,
    folder: Path,
    *,
    experiment: str | None = None,
    script: Path | None = None,
    resume: bool = False,
) -> RunJob:
    """Return the job of a run without a workspace.

    It runs `script` if given, else the broken experiment of the recipe `break_id` or, for "none", a healthy experiment.
    """
    run: RunName = "healthy"
    if break_id == "none":
        name, title = experiment or DEFAULT_EXPERIMENT, "Healthy run"
        source = experiment_source(name)
    else:
        recipe = load_recipe(break_id)
        if experiment not in (None, recipe.experiment):
            raise UserError(f"{break_id} breaks {recipe.experiment}, not {experiment}: remove --experiment.")
        name, title, source, run = recipe.experiment, recipe.title, recipe.broken_source(), "broken"
    job = RunJob(settings, break_id, name, title, run, source, str(folder.resolve()), resume=resume)
    if script is None:
        return job
    return dataclasses.replace(job, run="fixed", source=read_source(script), source_path=str(script.resolve()))
