"""Define the commands that run checks: one command for each check, plus `triage` and `checks`."""

import ast
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from harness.checks import Check, check_names, every_check, load_check, script_checks
from harness.console.command_line import measure_options, work_option
from harness.console.terminal import fold, terminal_width
from harness.recipes.form import has_functions

# Each command imports its other modules inside its function, so that `harness --help` is fast.

_target = click.argument("target", metavar="EXERCISE|SCRIPT.py")
_json = click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")


def _on_a_target(command: Callable[..., None]) -> Callable[..., None]:
    for option in (_json, work_option, measure_options, _target):
        command = option(command)
    return command


def add_check_commands(group: click.Group) -> None:
    """Add a command for each check, and `triage` and `checks`, to a command group."""
    for name in every_check():
        group.add_command(_command_of(load_check(name)))
    for command in (triage, checks):
        group.add_command(command)


def _command_of(check: Check) -> click.Command:
    @_on_a_target
    def run(**given: Any) -> None:
        _measure((check.name,), **given)

    words = f"{check.question}\n\n{check.documentation}"
    return click.command(check.verb, help=words, short_help=check.question)(run)


def _measure(names: Sequence[str], *, target: str, work: Path, as_json: bool, **options: Any) -> None:
    """Run the named checks, or all of triage, on an exercise or a file, and print the results as text or JSON."""
    from harness.data import DATASETS
    from harness.errors import UserError
    from harness.run.options import RunOptions
    from harness.student.show_checks import find_target, measure, print_json, show, show_heading
    from harness.workspace.workspace import find_work

    found = find_target(target, work, RunOptions(**options))
    # The suggested next commands repeat the options of this command.
    given = [f"--{name.removesuffix('_size')} {value}" for name, value in options.items() if value is not None]
    given += [f"--work {shlex.quote(str(work))}"] if work != find_work() and not target.endswith(".py") else []
    if not as_json:
        show_heading(found.words)
    try:
        reports = measure(found, names, options=tuple(given), early=not as_json)
    except UserError as error:
        if not target.endswith(".py") or options["dataset"] or "load_data" not in str(error):
            raise
        raise UserError(
            f"{error}\nload_data received the data set digits. To use another one, add --dataset with one"
            f" of {', '.join(DATASETS)}."
        ) from None
    if as_json:
        print_json(found, reports)
    else:
        show(reports, found.triage, source=found.source, edited=found.edited)


@click.command()
@_on_a_target
def triage(**given: Any) -> None:
    """Run nearly all checks on an experiment, and say where to look for the fault.

    First come the checks that tell most, not the shortest ones; harness checks shows the minutes that each takes you.

    SCRIPT.py may be a file with the functions of an experiment (load_data, build_model, build_optimizer,
    build_scheduler, prepare_batch, compute_loss, train_step, evaluate) and the constants EPOCHS and BATCH_SIZE. Any
    other script, or a notebook, is run as it is and watched; python -m trainwreck has more options for it.
    """
    if (script := Path(given["target"])).is_file() and _is_ordinary(script):
        _watch(script, **given)
        return
    _measure((), **given)


def _is_ordinary(script: Path) -> bool:
    """Return whether a file is a notebook, or a script without the functions of an experiment."""
    if script.suffix == ".ipynb":
        return True
    if script.suffix != ".py":
        return False
    try:
        tree = ast.parse(script.read_bytes())
    except (SyntaxError, ValueError):
        return False  # the error message appears when the file is loaded
    return not has_functions(tree)


def _watch(script: Path, *, target: str, work: Path, as_json: bool, **options: Any) -> None:
    """Watch an ordinary script, and end with the exit status of its report. Raises `UserError` for other options."""
    from harness.errors import UserError

    try:
        from trainwreck.command import main
    except ImportError:
        raise UserError(
            f"{target} has no functions of an experiment. To watch any script, install the library trainwreck, too: pip"
            " install ./trainwreck in a clone of the repository."
        ) from None
    if given := [name for name, value in options.items() if value is not None]:
        raise UserError(
            f"{target} has no functions of an experiment, so --{given[0].removesuffix('_size')} does not apply to it."
            f" To pass it arguments of its own: python -m trainwreck {shlex.quote(str(script))} ARGUMENTS"
        )
    sys.exit(main([*(["--json"] if as_json else []), target]))


@click.command()
@click.option(
    "--write", "page", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path),
    help="Write the documentation of all checks into FILE.",
)  # fmt: skip
def checks(page: Path | None) -> None:
    """List all checks, or write their documentation."""
    if page is not None:
        page.write_text(documentation(), encoding="utf-8", newline="\n")
        return
    width = max(map(len, every_check()))
    click.echo(
        "In the order of triage, which begins with the checks that tell most. You need the given minutes for a result."
    )
    of_functions = [load_check(name) for name in check_names()]
    for title, listed in (
        ("Of experiments with functions", of_functions),
        ("Of experiments that are scripts", [*script_checks().values()]),
    ):
        click.secho(title, bold=True)
        for check in listed:
            line = f"{check.name.replace('_', '-'):<{width}}  {check.minutes:g} min  {check.question}"
            click.echo(fold(line, terminal_width(), hang=width + 9))
    click.echo("Next: to run nearly all of them, harness triage EXERCISE, or harness triage SCRIPT.py")


def documentation() -> str:
    """Return the Markdown page that documents all checks. Links in the page are relative to docs/."""
    every = [load_check(name) for name in check_names()]
    glance = [f"- [ ] `{check.command('huge_lr')}` {check.question} {check.minutes:g} min" for check in every]
    introduction = (Path(__file__).parent / "templates" / "checks.md").read_text(encoding="utf-8")
    introduction = introduction.replace("](../../../docs/", "](")
    return "\n".join([introduction, *glance, *(line for check in every for line in _section(check))]) + "\n"


def _section(check: Check) -> Iterator[str]:
    marks = [mark for mark, set in (("in triage", check.in_triage), ("mechanism", check.mechanism)) if set]
    unit = "minute" if check.minutes == 1 else "minutes"
    yield f"\n## {check.name.replace('_', '-')}\n"
    yield f"**{check.question}** About {check.minutes:g} {unit}{''.join(f', {mark}' for mark in marks)}.\n"
    yield f"{check.documentation}\n"
    yield "| outcome | | what it means | next |"
    yield "| --- | --- | --- | --- |"
    for outcome in check.outcomes:
        further = [f"`{name.replace('_', '-')}`" for name in outcome.next]
        place = [f"read {outcome.look}"] if outcome.look else []
        kind = ("sound" if outcome.judged else "nothing to judge") if outcome.sound else "**unsound**"
        yield f"| `{outcome.id}` | {kind} | {outcome.reading} | {'; '.join((*place, *further))} |"
