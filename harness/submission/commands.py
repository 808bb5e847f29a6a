"""`harness causes` and `harness show`: what a report's front matter is made of, ready to copy."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import click

from harness.command_line import whole_number
from harness.errors import UserError

Run = Literal["broken", "fixed"]


def add_report_commands(cli: click.Group) -> None:
    """Add the commands to the `harness` group."""
    cli.add_command(causes)
    cli.add_command(show)


@click.command()
def causes() -> None:
    """List the causes that a diagnosis may name."""
    from harness.submission.causes import load_causes

    known = load_causes()
    width = max(map(len, known))
    for name, cause in known.items():
        click.echo(f"{name.ljust(width)}  {cause.says}")
    click.echo("Next: name one under diagnosis:, and rule out two others, in report.md.")


@click.command()
@click.argument("recipe", metavar="RECIPE")
@click.option("--step", metavar="N", type=whole_number(0, 10**9), help="The step (a batch, counted from 0).")
@click.option("--epoch", metavar="N", type=whole_number(0, 10**9), help="The epoch, counted from 0.")
@click.option(
    "--signal", "signals", multiple=True, help="This signal only, such as grad_mean.1.weight; repeatable."
)
@click.option(
    "--run", type=click.Choice(["broken", "fixed"]), default="broken", show_default=True, help="Of which run."
)
@click.option(
    "--work", type=click.Path(file_okay=False, path_type=Path), default=Path("work"), show_default=True,
    help="The folder of workspaces.",
)  # fmt: skip
def show(
    recipe: str, step: int | None, epoch: int | None, signals: tuple[str, ...], run: Run, work: Path
) -> None:
    """Print values of a log as evidence, to copy into report.md."""
    from harness.recipe import load_recipe
    from harness.workspace import open_workspace

    if (step is None) == (epoch is None):
        raise UserError("Say which place of the log to show: --step N for a batch, or --epoch N.")
    load_recipe(recipe)
    workspace = open_workspace(work, recipe)
    for line in evidence_lines(workspace.run_folder(run), run, step, epoch, signals):
        click.echo(line)
    click.echo(f"Next: copy what you need below evidence: in {workspace.report}")


def evidence_lines(
    folder: Path, run: Run, step: int | None, epoch: int | None, signals: Sequence[str] = ()
) -> Iterator[str]:
    """Yield a line of evidence for each signal that a log has at a step or at an epoch, or for the signals named.

    Without names, nested signals are left out: there is one for each parameter. Raises `UserError` for a signal or a
    place that the log does not have.
    """
    from harness.run.metrics_log import read_metrics_log
    from harness.submission.log_values import LogValues, place_of

    path = folder / "metrics.log"
    log = LogValues(read_metrics_log(path))
    place, index = ("step", step) if step is not None else ("epoch", epoch)
    known = [name for name in log.series if "." not in name and place_of(name) == place]
    at = {index for name in known for index in log.series[name]}
    if index not in at:
        raise UserError(f"{path} has no {place} {index}: choose one from 0 to {max(at, default=0)}.")
    for name in signals or [name for name in known if index in log.series[name]]:
        try:
            value = log.value(name, step, epoch)
        except UserError as error:
            raise UserError(f"In {path}, {error}") from None
        yield f"  - {{run: {run}, signal: {name}, {place}: {index}, value: {value:.6g}}}"
