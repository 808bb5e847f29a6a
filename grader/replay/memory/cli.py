"""The verbs of `grader cache`."""

import sys
from pathlib import Path

import click

from harness.command_line import HELP_OPTIONS, whole_number

# Everything else is imported inside the command that needs it: `grader --help` must be instant.

replays_option = click.option(
    "--replays", type=click.Path(file_okay=False, path_type=Path),
    help="Where replays are remembered; by default in your cache folder.",
)  # fmt: skip


@click.group(context_settings=HELP_OPTIONS)
def cache() -> None:
    """Show, verify or clear what is remembered: replays, scores."""


@cache.command()
@replays_option
def show(replays: Path | None) -> None:
    """Show how much is remembered, and when it was last used."""
    from grader.replay.memory.command import show_memory
    from grader.replay.store import default_store

    show_memory(replays or default_store())


@cache.command()
@click.option("--remove", is_flag=True, help="Delete what is of no use.")
@replays_option
def verify(remove: bool, replays: Path | None) -> None:
    """Look at every entry: is it whole, and of the right form?

    Exit status: 0 all of them are, 1 at least one is not, 2 wrong use, 3 our fault.
    """
    from grader.replay.memory.command import verify_memory
    from grader.replay.store import default_store

    sys.exit(verify_memory(replays or default_store(), remove_damaged=remove))


@cache.command()
@click.option(
    "--older-than",
    metavar="DAYS",
    type=whole_number(1, 100_000),
    help="Only what was not used for so many days.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@replays_option
def clear(older_than: int | None, yes: bool, replays: Path | None) -> None:
    """Delete what is remembered, after asking."""
    from grader.replay.memory.command import clear_memory
    from grader.replay.store import default_store

    clear_memory(replays or default_store(), older_than=older_than, yes=yes)
