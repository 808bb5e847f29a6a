"""`python -m harness.trainer`: make one run without a workspace."""

import dataclasses
from pathlib import Path
from typing import Any, NoReturn

import click

from harness.console.command_line import (
    HELP_OPTIONS,
    guardrail_options,
    positive_option,
    read_policy,
    resume_option,
    run_command,
    run_options,
)
from harness.errors import name_place

_folder = click.Path(file_okay=False, path_type=Path)
_file = click.Path(dir_okay=False, path_type=Path)
_norm = click.FloatRange(min=0, min_open=True)
_numerics = click.Choice(["portable", "native"])


# fmt: off
@click.command(context_settings=HELP_OPTIONS)
@run_options
@click.option("--break", "break_id", metavar="RECIPE", default="none", show_default=True,
              help="The recipe whose broken experiment runs, or none for a healthy experiment.")
@click.option("--experiment", metavar="NAME",
              help="The healthy experiment that runs with --break none. Default: digits_mlp.")
@click.option("--script", type=_file, help="An experiment.py that runs instead of the recipe's experiment.")
@click.option("--out", type=_folder, help="The folder of the run. Default: run_<break>_<seed>.")
@click.option("--tarball", type=_file, help="A .tgz file into which the files of the run are packed.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
@resume_option
@positive_option("--overfit-batch", "overfit_batch", "Train on the first N examples only, in every step.")
@positive_option("--overfit-examples", "overfit_examples", "Train on the first N examples only, in batches, without"
    " augmentation and dropout.")
@click.option("--keep-last", is_flag=True, help="Train on an incomplete last batch of an epoch, which is dropped by"
    " default.")
@positive_option("--max-steps", "max_steps", "Stop the training after N steps.")
@click.option("--disable-augment", is_flag=True, help="Switch augmentation off: set the experiment's constant AUGMENT"
    " to False.")
@click.option("--disable-dropout", is_flag=True, help="Switch dropout off: set every dropout probability to 0.")
@click.option("--disable-amp", is_flag=True, help="Train without automatic mixed precision.")
@click.option("--verify", is_flag=True, help="Compute in float64 instead of float32.")
@click.option("--clip-norm", metavar="NORM", type=_norm, help="Clip the global gradient norm to this value.")
@click.option("--numerics", type=_numerics, default="portable", show_default=True,
              help="portable: every CPU gives the same bytes. native: faster, but the bytes depend on the CPU.")
@guardrail_options
def trainer(
    break_id: str, experiment: str | None, script: Path | None, out: Path | None, tarball: Path | None,
    as_json: bool, resume: bool, seed: int | None, dataset: str | None, device: str | None, **options: Any,
) -> None:
    # fmt: on
    """Run a recipe's broken experiment, a healthy experiment, or a script once."""
    from harness.recipes.catalogue import load_recipe
    from harness.run.options import DEFAULT_SEED, check_dataset, default_dataset
    from harness.run.settings import RunSettings
    from harness.student.runs import launch, single_run_job
    from harness.student.summary import show_single_run

    policy = read_policy(options)
    if seed is None:
        seed = DEFAULT_SEED if break_id == "none" else load_recipe(break_id).seed
    default = default_dataset(break_id, experiment)
    check_dataset(dataset or default, default)
    settings = RunSettings(seed=seed, dataset=dataset or default, device=device or "cpu", **options)
    folder = out or Path(f"run_{break_id}_{seed}")
    job = single_run_job(break_id, settings, folder, experiment=experiment, script=script, resume=resume)
    result = launch(dataclasses.replace(job, guardrails=policy))
    if tarball is not None:
        from harness.submission.archive import pack_folder

        with name_place(tarball):
            pack_folder(folder, tarball)
    show_single_run(result, folder, as_json=as_json)


def trainer_command() -> NoReturn:
    """Run `python -m harness.trainer`."""
    run_command(trainer, "python -m harness.trainer")
