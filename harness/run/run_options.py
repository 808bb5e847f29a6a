"""Options that several commands share."""

import contextlib
from collections.abc import Callable
from typing import Any

import click

Command = Callable[..., Any]

resume_option = click.option("--resume", is_flag=True, help="Go on with a run that was stopped.")


def whole_number(low: int, high: int | None = None) -> Callable[[str], int]:
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


def positive_option(name: str, parameter: str, text: str) -> Command:
    """Return an option that takes a whole number of at least 1."""
    return click.option(name, parameter, metavar="N", type=whole_number(1), help=text)


_seed = click.option(
    "--seed", metavar="N", type=whole_number(0, 2**32 - 1),
    help="The seed of the run, 0 to 4294967295; by default the recipe's own, 42 where there is none.",
)  # fmt: skip
_dataset = click.option(
    "--dataset", metavar="NAME",
    help="digits, shapes, mnist or cifar10; by default the recipe's own.",
)  # fmt: skip
_device = click.option(
    "--device", type=click.Choice(["cpu", "cuda"]), help="Where to train; by default on the CPU."
)
_epochs = positive_option(
    "--epochs", "epochs", "Passes over the training data; by default the experiment's own."
)
_batch = positive_option("--batch", "batch_size", "Examples in a batch; by default the experiment's own.")


def run_options(command: Command) -> Command:
    """Add what a person may ask of any run: seed, data set, device, epochs, batch size."""
    return _all_of(command, _seed, _dataset, _device, _epochs, _batch)


def measure_options(command: Command) -> Command:
    """Add what a person may ask of any measurement: as of a run, which is measured on the CPU."""
    return _all_of(command, _seed, _dataset, _epochs, _batch)


def _all_of(command: Command, *options: Callable[[Command], Command]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command
