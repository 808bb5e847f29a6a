"""The commands of the checks, one made from each check's declaration, beside `triage`, `compare` and `checks`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from harness.checks import Check, check_names, load_check
from harness.command_line import measure_options, positive_option

# Everything else is imported inside the command that needs it: `harness --help` must be instant.

_target = click.argument("target", metavar="EXERCISE|SCRIPT.py")
_work = click.option(
    "--work", type=click.Path(file_okay=False, path_type=Path), default=Path("work"), show_default=True,
    help="The folder of workspaces.",
)  # fmt: skip
_untouched = click.option(
    "--untouched", is_flag=True, help="The exercise as handed out, not as you edited it."
)
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
_html = click.option(
    "--html", "page", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path),
    help="Also write a page with curves and tables.",
)  # fmt: skip


def _on_a_target(command: Callable[..., None]) -> Callable[..., None]:
    for option in (_html, _json, _work, measure_options, _untouched, _target):
        command = option(command)
    return command


def add_check_commands(group: click.Group) -> None:
    """Add a command for each check, and those about several, to a group of commands."""
    for name in check_names():
        group.add_command(_command_of(load_check(name)))
    for command in (triage, compare, checks):
        group.add_command(command)


def _command_of(check: Check) -> click.Command:
    @_on_a_target
    def run(**given: Any) -> None:
        options = {option.name: given.pop(option.name) for option in check.options}
        _measure((check.name,), given, {name: value for name, value in options.items() if value is not None})

    for option in check.options:
        run = positive_option(f"--{option.name}", option.name, option.help)(run)
    name = check.name.replace("_", "-")
    return click.command(name, help=f"{check.question}\n\n{check.documentation}", short_help=check.question)(
        run
    )


def _measure(names: tuple[str, ...], given: Mapping[str, Any], options: dict[str, int]) -> None:
    """Find the experiment, make the checks, and show the findings in the way asked for."""
    from harness.checks import run_checks
    from harness.checks.cli.page import write_page
    from harness.checks.cli.report import print_json, report
    from harness.checks.cli.target import find_target
    from harness.checks.cli.terminal import show
    from harness.exercise import Asked

    asked = {key: value for key, value in given.items() if key not in _SHOWN}
    target = find_target(asked.pop("target"), asked.pop("work"), Asked(**asked), untouched=given["untouched"])
    findings = run_checks(
        target.source, target.settings, names, source_path=target.path, checkpoint=target.checkpoint,
        options=options, bar=True,
    )  # fmt: skip
    reports = report(target.name, findings)
    page = given["page"]
    if page is None and len(names) > 1 and not given["as_json"] and "only" not in given:
        page = target.page
    if page is not None:
        what = "triage" if len(names) > 1 else names[0].replace("_", "-")
        write_page(page, f"{target.title}: {what}", target.words, reports)
    if given["as_json"]:
        print_json(target.header(), reports, whole=len(names) > 1)
    else:
        show(reports, target.words, page)


_SHOWN = ("as_json", "page", "untouched", "only")


@click.command()
@_on_a_target
@click.option(
    "--only", metavar="CHECK", multiple=True, help="Make this check alone; may be given several times."
)
def triage(only: tuple[str, ...], **given: Any) -> None:
    """Make the checks in order, cheapest first.

    SCRIPT.py is a file with the functions of an experiment (load_data, build_model, build_optimizer, build_scheduler,
    prepare_batch, compute_loss, train_step, evaluate) and the constants EPOCHS and BATCH_SIZE. It needs no exercise.
    """
    from harness.checks import selected

    if only:
        _measure(selected([name.replace("-", "_") for name in only]), {**given, "only": only}, {})
    else:
        _measure(tuple(name for name in check_names() if load_check(name).in_triage), given, {})


@click.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="[B]", required=False)
@_work
@_json
@_html
def compare(first: str, second: str | None, work: Path, as_json: bool, page: Path | None) -> None:
    """Find where two runs first differ.

    A and B are folders of runs, or names such as huge_lr/broken. With an exercise alone, its broken run is compared
    with its fixed run.
    """
    from harness.checks.cli.compare import compare_runs
    from harness.checks.cli.page import write_page
    from harness.checks.cli.report import print_json
    from harness.checks.cli.terminal import show

    names, report = compare_runs(first, second, work)
    heading = " and ".join(names)
    if page is not None:
        write_page(page, f"{heading} compared", "", [report])
    if as_json:
        print_json({"first": names[0], "second": names[1]}, [report], whole=False)
    else:
        show([report], heading, page)


@click.command()
@click.option(
    "--write", "page", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path),
    help="Write their documentation to FILE.",
)  # fmt: skip
def checks(page: Path | None) -> None:
    """List the checks, or write their documentation."""
    from harness.checks.cli.documentation import documentation

    if page is not None:
        page.write_text(documentation(), encoding="utf-8", newline="\n")
        return
    width = max(map(len, check_names()))
    for check in map(load_check, check_names()):
        click.echo(f"{check.name.replace('_', '-'):<{width}}  {check.question}")
    click.echo("Next: harness triage EXERCISE, or harness triage SCRIPT.py")
