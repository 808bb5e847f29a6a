"""The commands of the instruments: each holds one to an exercise's experiment, edited or untouched."""

import sys
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from harness.command_line import measure_options, positive_option, whole_number

# Everything else is imported inside the command that needs it: `harness --help` must be instant.

_exercise = click.argument("exercise", metavar="EXERCISE")
_work = click.option(
    "--work", type=click.Path(file_okay=False, path_type=Path), default=Path("work"), show_default=True,
    help="The folder of workspaces.",
)  # fmt: skip
_untouched = click.option(
    "--untouched", is_flag=True, help="The experiment as handed out, not your edited one."
)
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
_html = click.option(
    "--html", "page", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path),
    help="Write a page with curves and tables too.",
)  # fmt: skip


def _shared(command: Callable[..., None]) -> Callable[..., None]:
    for option in (_html, _json, _work, measure_options, _untouched, _exercise):
        command = option(command)
    return command


def _look(
    check: str, exercise: str, untouched: bool, work: Path, as_json: bool, page: Path | None,
    *, options: dict[str, Any] | None = None, **asked: Any,
) -> None:  # fmt: skip
    from harness.checks.session import look_at
    from harness.exercise import Asked

    given = {name: value for name, value in (options or {}).items() if value is not None}
    look_at(
        check, exercise, work, Asked(**asked), untouched=untouched, as_json=as_json, page=page, options=given
    )


@click.command()
@_shared
@click.option("--only", metavar="CHECK", multiple=True, help="This check alone; may be given several times.")
def triage(exercise: str, work: Path, untouched: bool, as_json: bool, page: Path | None, only: tuple[str, ...],
           **asked: Any) -> None:  # fmt: skip
    """Walk the method in order, cheapest check first."""
    from harness.checks.session import walk_through
    from harness.exercise import Asked

    walk_through(exercise, work, Asked(**asked), untouched=untouched, as_json=as_json, page=page, only=only)


@click.command()
@_shared
@positive_option(
    "--steps", "steps", "Give up after N steps; by default 120, or 480 where the loss still falls."
)
@positive_option("--examples", "examples", "Examples to learn; by default one batch.")
def overfit(steps: int | None, examples: int | None, **shared: Any) -> None:
    """Can it learn one batch by heart?"""
    _look("overfit", options={"steps": steps, "examples": examples}, **shared)


@click.command()
@click.argument("name", metavar="EXERCISE|DATASET")
@_untouched
@measure_options
@_work
@_json
@_html
@click.option(
    "--cache", type=click.Path(file_okay=False, path_type=Path), help="Where fetched data sets are kept."
)
def data(name: str, cache: Path | None, **shared: Any) -> None:
    """Show the data of EXERCISE, or fetch DATASET (mnist, cifar10)."""
    from harness.data import DATASETS
    from harness.recipe import recipe_ids

    if name not in DATASETS and get_close_matches(name, recipe_ids(), n=1):
        _look("data", exercise=name, **shared)
        return
    from harness.data.loading import default_cache, fetch_dataset

    fetched = fetch_dataset(name, cache or default_cache())
    click.echo(
        f"{fetched.name}: {len(fetched.train.labels)} training and {len(fetched.validation.labels)} validation images,"
        f" digest {fetched.digest[:16]}. Next: make exercise BREAK=huge_lr DATASET={fetched.name}"
    )


@click.command()
@_shared
@positive_option("--steps", "steps", "Steps to make; by default 6.")
def audit(steps: int | None, **shared: Any) -> None:
    """Every parameter: its optimizer group, and does it move?"""
    _look("audit", options={"steps": steps}, **shared)


@click.command()
@_shared
@positive_option("--steps", "steps", "Steps to make, of which the last is looked at; by default 20.")
def gradients(steps: int | None, **shared: Any) -> None:
    """The gradients that the optimizer uses, by layer."""
    _look("gradients", options={"steps": steps}, **shared)


@click.command()
@_shared
@positive_option("--steps", "steps", "Steps between the two looks; by default 20.")
def activations(steps: int | None, **shared: Any) -> None:
    """What every layer puts out, before and after some steps."""
    _look("activations", options={"steps": steps}, **shared)


@click.command("lr-find")
@_shared
def lr_find(**shared: Any) -> None:
    """The loss at every learning rate: Smith's range test."""
    _look("lr_find", **shared)


@click.command()
@_shared
def gradcheck(**shared: Any) -> None:
    """The gradient against finite differences in float64."""
    _look("gradcheck", **shared)


@click.command()
@_shared
def anomaly(**shared: Any) -> None:
    """Where does it first compute what is no number?"""
    _look("anomaly", **shared)


@click.command()
@_shared
def modes(**shared: Any) -> None:
    """Evaluate one network in training and eval mode, twice."""
    _look("modes", **shared)


@click.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="[B]", required=False)
@_work
@_json
@_html
def compare(first: str, second: str | None, work: Path, as_json: bool, page: Path | None) -> None:
    """Where two runs first differ: folders, or huge_lr/broken.

    Of an exercise alone, its broken and its fixed run.
    """
    from harness.checks.session import compare_runs

    compare_runs(first, second, work, as_json=as_json, page=page)


@click.command()
@_shared
@click.option(
    "--step", metavar="N", type=whole_number(0), help="The failing step; by default it is looked for."
)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), default=Path("repro.tar.gz"), show_default=True,
    help="The tarball to write.",
)  # fmt: skip
def repro(step: int | None, out: Path, exercise: str, work: Path, untouched: bool, as_json: bool, page: Path | None,
          **asked: Any) -> None:  # fmt: skip
    """Pack the failing step, to be gone through elsewhere."""
    from harness.checks.repro_session import pack
    from harness.exercise import Asked

    pack(exercise, work, Asked(**asked), untouched=untouched, as_json=as_json, page=page, step=step, out=out)


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@_json
def reproduce(folder: Path, as_json: bool) -> None:
    """Go through the step in FOLDER, an unpacked repro.tar.gz."""
    from harness.checks.repro_session import go_through

    sys.exit(0 if go_through(folder, as_json=as_json) else 1)


COMMANDS = (
    triage, overfit, data, audit, gradients, activations, lr_find, gradcheck, anomaly, modes, compare, repro, reproduce,
)  # fmt: skip


def add_instruments(group: click.Group) -> None:
    """Add all of them to a group of commands."""
    for command in COMMANDS:
        group.add_command(command)
