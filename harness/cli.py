"""The `harness` command: thin verbs over `harness.exercise`; each ends by naming the next step."""

import contextlib
import io
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import click

from harness.errors import Stopped, UserError, from_os_error, naming

# Everything else is imported inside the command that needs it: `harness --help` must be instant.

Command = Callable[..., Any]

_breaks = click.argument("recipe", metavar="RECIPE")
_work = click.option(
    "--work", type=click.Path(file_okay=False, path_type=Path), default=Path("work"), show_default=True,
    help="The folder of workspaces.",
)  # fmt: skip
_resume = click.option("--resume", is_flag=True, help="Go on with a run that was stopped.")
_HELP = {"help_option_names": ["-h", "--help"]}


def _whole(low: int, high: int | None = None) -> Callable[[str], int]:
    """Return the type of an option that takes a whole number within bounds; click's own speaks in formulas."""
    bounds = f"of at least {low}" if high is None else f"from {low} to {high}"

    def convert(text: str) -> int:
        with contextlib.suppress(ValueError):
            number = int(text)
            if number >= low and (high is None or number <= high):
                return number
        shown = text if len(str(text)) <= 40 else f"{str(text)[:40]}..."
        raise click.BadParameter(f"{shown!r} is not a whole number {bounds}")

    return convert


def _positive(name: str, parameter: str, text: str) -> Command:
    return click.option(name, parameter, metavar="N", type=_whole(1), help=text)


def _run_options(command: Command) -> Command:
    options = [
        click.option(
            "--seed", metavar="N", type=_whole(0, 2**32 - 1),
            help="The seed of the run, 0 to 4294967295; by default the recipe's own.",
        ),
        click.option(
            "--dataset", metavar="NAME",
            help="digits, shapes, mnist or cifar10; by default the recipe's own.",
        ),
        click.option(
            "--device", type=click.Choice(["cpu", "cuda"]), help="Where to train; by default on the CPU."
        ),
        _positive("--epochs", "epochs", "Passes over the training data; by default the experiment's own."),
        _positive("--batch", "batch_size", "Examples in a batch; by default the experiment's own."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@click.group(context_settings=_HELP)
@click.version_option(package_name="trainwreck")
def cli() -> None:
    """Break a training run on purpose, find out why, mend it, and hand it in."""


@cli.command()
@_breaks
@_run_options
@_work
@_resume
def exercise(recipe: str, work: Path, resume: bool, **asked: Any) -> None:
    """Make the workspace of RECIPE and run the broken experiment."""
    from harness.exercise import Asked, start_exercise
    from harness.summary import show_broken_run

    workspace, made = start_exercise(recipe, work, Asked(**asked), resume=resume)
    show_broken_run(workspace, made=made)


@cli.command()
@_breaks
@_run_options
@_work
@_resume
def verify(recipe: str, work: Path, resume: bool, **asked: Any) -> None:
    """Run your edited experiment; compare it with the broken run."""
    from harness.exercise import Asked, verify_exercise
    from harness.summary import show_comparison

    show_comparison(verify_exercise(recipe, work, Asked(**asked), resume=resume))


@cli.command()
@_work
def exercises(work: Path) -> None:
    """List all exercises, and how far you are with each."""
    from harness.summary import show_exercises

    show_exercises(work)


@cli.command()
@_breaks
@_work
def check(recipe: str, work: Path) -> None:
    """Judge what can be judged before you hand in."""
    from harness.exercise import check_exercise
    from harness.summary import show_checks

    workspace, items = check_exercise(recipe, work)
    if not show_checks(items, workspace):
        sys.exit(2)


@cli.command()
@_breaks
@_work
@click.option(
    "--student", metavar="NAME", help="Your name, as the course knows you: letters, digits, . _ -  [required]"
)
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("submissions"), show_default=True,
    help="The folder for the tarball.",
)  # fmt: skip
def submit(recipe: str, work: Path, student: str | None, out: Path) -> None:
    """Pack everything into one tarball to hand in."""
    from harness.handin.submission import submit as pack
    from harness.recipe import load_recipe
    from harness.summary import show_submission
    from harness.workspace import open_workspace

    load_recipe(recipe)
    if student is None:
        raise UserError("Say who hands this in: add --student NAME (make submit: STUDENT=NAME).")
    with naming(out):
        show_submission(pack(open_workspace(work, recipe), student, out))


@cli.command()
@click.argument("dataset")
@click.option("--cache", type=click.Path(file_okay=False, path_type=Path), help="Where data sets are kept.")
def data(dataset: str, cache: Path | None) -> None:
    """Fetch DATASET (mnist or cifar10) and verify it."""
    from harness.data.loading import default_cache, fetch_dataset

    fetched = fetch_dataset(dataset, cache or default_cache())
    click.echo(
        f"{fetched.name}: {len(fetched.train.labels)} training and {len(fetched.validation.labels)} validation images,"
        f" digest {fetched.digest[:16]}. Next: make exercise BREAK=huge_lr DATASET={fetched.name}"
    )


@cli.command("clean-work")
@_breaks
@_work
@click.option("--yes", is_flag=True, help="Do not ask.")
def clean_work(recipe: str, work: Path, yes: bool) -> None:
    """Start over: delete the runs, put your own files aside."""
    from harness.recipe import load_recipe
    from harness.workspace import remove_workspace

    load_recipe(recipe)
    if not (work / recipe).is_dir():
        raise UserError(f"There is no workspace {work / recipe}: nothing to start over.")
    if not yes:
        if not sys.stdin.isatty():
            raise UserError(
                f"Starting {recipe} over needs a yes, and there is no terminal to ask at: give --yes (YES=1)."
            )
        question = f"Delete the runs in {work / recipe}, and put experiment.py and report.md aside?"
        if not click.confirm(question):
            raise Stopped("Nothing was changed.")
    kept = remove_workspace(work, recipe)
    click.echo(f"Your experiment.py and report.md lie in {kept}. Next: make exercise BREAK={recipe}")


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def doctor(as_json: bool) -> None:
    """Say whether runs have the same bytes here as everywhere."""
    from harness.doctor import run_doctor

    sys.exit(run_doctor(as_json=as_json))


@click.command(context_settings=_HELP)
@_run_options
@click.option(
    "--break",
    "break_id",
    metavar="RECIPE",
    default="none",
    show_default=True,
    help="The recipe to run broken, or none.",
)
@click.option(
    "--experiment", metavar="NAME",
    help="With --break none, the healthy experiment to run; by default digits_mlp.",
)  # fmt: skip
@_positive("--overfit-batch", "overfit_batch", "Train on the first N examples only, over and over.")
@_positive("--max-steps", "max_steps", "Stop after N steps.")
@click.option("--disable-augment", is_flag=True, help="No augmentation.")
@click.option("--disable-dropout", is_flag=True, help="Every dropout probability 0.")
@click.option("--disable-amp", is_flag=True, help="No automatic mixed precision.")
@click.option("--verify", is_flag=True, help="Compute in float64.")
@click.option(
    "--clip-norm",
    metavar="NORM",
    type=click.FloatRange(min=0, min_open=True),
    help="Clip the global gradient norm.",
)
@click.option(
    "--accumulate",
    metavar="N",
    type=_whole(1),
    default=1,
    help="Split every batch into N parts, with the harness's own step.",
)
@click.option(
    "--numerics",
    type=click.Choice(["portable", "native"]),
    default="portable",
    show_default=True,
    help="The same bytes on every CPU, or speed.",
)
@click.option(
    "--guardrails",
    type=click.Choice(["off", "warn", "strict"]),
    default="warn",
    show_default=True,
    help="What to do about bad signs in the log: nothing, tell, or stop.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder of the run; by default run_<break>_<seed>.",
)
@click.option(
    "--script",
    type=click.Path(dir_okay=False, path_type=Path),
    help="An experiment.py to run in place of the recipe's.",
)
@click.option(
    "--tarball",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Pack the run's files into this .tgz, too.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
@_resume
def trainer(
    break_id: str, experiment: str | None, script: Path | None, out: Path | None, tarball: Path | None,
    as_json: bool, resume: bool,
    seed: int | None, dataset: str | None, device: str | None, **options: Any,
) -> None:  # fmt: skip
    """Make one run: a recipe's broken experiment, or a healthy one."""
    from harness.exercise import DEFAULT_SEED, check_dataset, default_dataset, single_run_job
    from harness.handin.archive import pack_folder
    from harness.launch import launch
    from harness.settings import RunSettings
    from harness.summary import show_single_run

    seed = DEFAULT_SEED if seed is None else seed
    default = default_dataset(break_id, experiment)
    check_dataset(dataset or default, default)
    settings = RunSettings(seed=seed, dataset=dataset or default, device=device or "cpu", **options)
    folder = out or Path(f"run_{break_id}_{seed}")
    job = single_run_job(break_id, settings, folder, experiment=experiment, script=script, resume=resume)
    result = launch(job)
    if tarball is not None:
        with naming(tarball):
            pack_folder(folder, tarball)
    show_single_run(result, folder, as_json=as_json)


def _run(command: click.Command, program: str) -> NoReturn:
    """Run a command: exit 2 with one sentence for a user's mistake, 3 with a traceback for a fault of ours."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(
                errors="replace"
            )  # a terminal that knows no check mark, a name that is no text
    try:
        command.main(prog_name=program, standalone_mode=False)
        sys.stdout.flush()  # here a full disk can still be told
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.exit(2)
    except click.UsageError as error:
        name = error.ctx.command_path if error.ctx else program
        _fail(f"{error.format_message().rstrip('.')}: {name} --help says what there is.")
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except (click.exceptions.Abort, KeyboardInterrupt):
        _fail("Stopped: give the same command again; nothing is half done.")
    except Stopped as error:
        click.echo(str(error), err=True)
        sys.exit(2)
    except (UserError, click.ClickException) as error:
        _fail(str(error))
    except OSError as error:
        mistake = from_os_error(error)
        if mistake is None:
            _fault()
        _fail(str(mistake))
    except Exception as error:
        from harness.launch import ChildFault

        if not isinstance(error, ChildFault):
            _fault()
        click.echo(f"{program}: {error}. Please report it.", err=True)
        sys.exit(3)
    sys.exit(0)


def _fail(message: str) -> NoReturn:
    click.echo(f"Error: {message}", err=True)
    sys.exit(2)


def _fault() -> NoReturn:
    traceback.print_exc()
    click.echo(
        "This is a fault of trainwreck, not of yours. Please report it with the lines above.", err=True
    )
    sys.exit(3)


def main() -> NoReturn:
    """Run `harness`."""
    _run(cli, "harness")


def trainer_command() -> NoReturn:
    """Run `python -m harness.trainer`."""
    _run(trainer, "python -m harness.trainer")
