"""Run commands, turn their errors into messages, and define the options that several commands share.

The exit status is 0 for success, 2 for a user's mistake (with a one-sentence message), and 3 for a bug in trainwreck
(with a traceback).
"""

import contextlib
import getpass
import io
import os
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TextIO

import click

from harness.console.terminal import fold, terminal_width
from harness.errors import CommandError, from_os_error
from harness.recipes.suite import as_typed
from harness.run.settings import GRADIENT_BOUND, MOST_BATCH_SIZE, MOST_EPOCHS, GuardrailPolicy, OptOut

FAULT = "This is a bug in trainwreck, not your mistake. Please report this bug, with the lines above."
_STOPPED = "Stopped. No file is incomplete: run the same command again."
HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}
ClickCommand = Callable[..., Any]


def run_command(command: click.Command, program: str) -> NoReturn:
    """Run a command and end this process with the exit status of the command."""
    _reopen_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # The terminal's encoding may lack the check mark (✓), and a file name may not be valid text.
            stream.reconfigure(errors="replace")
    try:
        _run(command, program)
        sys.stdout.flush()  # if the disk is full, flush fails here, where the error can still be reported
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.exit(2)
    except click.UsageError as error:
        _fail(f"Error: {_usage(error, program)}")
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.exceptions.Abort:
        _fail(_STOPPED)
    except click.ClickException as error:
        _fail(f"Error: {error}")
    except BrokenPipeError:  # the program that reads our output, such as head, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (Exception, KeyboardInterrupt) as error:
        if (found := describe_error(error, program)) is None:
            traceback.print_exc()
            click.echo(FAULT, err=True)
            sys.exit(3)
        _fail(*found)
    sys.exit(0)


def describe_error(error: BaseException, program: str) -> tuple[str, int] | None:
    """Return the message about an error that ended a command, and the exit status. Return None for a bug."""
    if isinstance(error, KeyboardInterrupt):
        return _STOPPED, CommandError.exit_code
    mistake = from_os_error(error) if isinstance(error, OSError) else error
    if isinstance(mistake, CommandError):
        return as_typed(mistake.shown(program)), mistake.exit_code
    return None


def _run(command: click.Command, program: str) -> None:
    try:
        command.main(prog_name=program, standalone_mode=False)
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # rich would exit with status 1
            raise error.__context__ from None
        raise


def _usage(error: click.UsageError, program: str) -> str:
    message = re.sub(r"(?<![.?])$", ".", error.format_message())
    if "MAKELEVEL" in os.environ:  # users of make see variables, such as LEVEL=1, instead of options
        return re.sub(r"'--([a-z-]+)'", lambda found: found[1].upper(), message) + " See make help."
    return f"{message} See {error.ctx.command_path if error.ctx else program} --help."


def _reopen_closed_streams() -> None:
    """Open /dev/null for each closed standard stream (`>&-`).

    Otherwise the next opened file gets the stream's descriptor.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nothing = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115 - open until the process ends
            os.set_inheritable(nothing.fileno(), True)
            setattr(sys, name, nothing)


def _fail(message: str, status: int = 2) -> NoReturn:
    with contextlib.suppress(OSError):  # standard error may be a file on the disk that is full
        width = terminal_width(sys.stderr)
        for line in as_typed(message).split("\n"):
            # An indented line quotes the user's program, so do not wrap it.
            click.echo(line if line.startswith(" ") else fold(line, width, hang=2), err=True)
    for stream in (sys.stdout, sys.stderr):
        _drop_unwritten(stream)
    sys.exit(status)


def _drop_unwritten(stream: TextIO) -> None:
    """Discard the output that a stream cannot write. Otherwise Python tries again at exit, and ends with status 120."""
    try:
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def whole_number(low: int, high: int | None = None) -> Callable[[str], int]:
    """Return an option type for whole numbers from `low` to `high`.

    Its errors are sentences; click's `IntRange` prints formulas.
    """
    bounds = f"of at least {low}" if high is None else f"from {low} to {high}"

    def convert(text: str) -> int:
        with contextlib.suppress(ValueError):
            number = int(text)
            if number >= low and (high is None or number <= high):
                return number
        shown = text if len(str(text)) <= 40 else f"{str(text)[:40]}..."
        raise click.BadParameter(f"{shown!r} is not a whole number {bounds}")

    return convert


def confirm(question: str, otherwise: str) -> None:
    """Ask a yes-or-no question.

    Raises `Stopped(otherwise)` if the answer is no, and `UserError` if there is no terminal.
    """
    from harness.errors import Stopped, UserError

    if not sys.stdin.isatty():
        raise UserError(f"{question} There is no terminal for your answer: add --yes (YES=1) to answer yes.")
    if not click.confirm(question):
        raise Stopped(otherwise)


def positive_option(name: str, parameter: str, text: str, most: int | None = None) -> ClickCommand:
    """Return an option that takes a whole number of at least 1."""
    return click.option(name, parameter, metavar="N", type=whole_number(1, most), help=text)


resume_option = click.option("--resume", is_flag=True, help="Continue a run that was stopped.")


def _find_work() -> Path:
    from harness.workspace.workspace import find_work  # `harness --help` must be instant

    return find_work()


work_option = click.option(
    "--work", type=click.Path(file_okay=False, path_type=Path), default=_find_work,
    show_default="work, or the work folder around the current folder", help="The folder that contains your workspaces.",
)  # fmt: skip
kind_option = click.option(
    "--kind", metavar="NAME", default="tabular", show_default=True,
    help="classifier, ddp, gpt, segmentation or tabular.",
)  # fmt: skip
minutes_option = click.option(
    "--minutes", metavar="N", type=whole_number(1, 24 * 60), default=45, show_default=True,
    help="The time on the clock of an interview.",
)  # fmt: skip
_seed = click.option(
    "--seed", metavar="N", type=whole_number(0, 2**32 - 1),
    help="The seed of the run, 0 to 4294967295. Default: the recipe's own seed, or 42.",
)  # fmt: skip
_dataset = click.option(
    "--dataset", metavar="NAME", help="A data set to use instead, with inputs of the same form, such as mnist."
)
_device = click.option("--device", type=click.Choice(["cpu", "cuda"]), help="The device to train on. Default: cpu.")
_epochs = positive_option(
    "--epochs",
    "epochs",
    "The number of passes over the training data. Default: the experiment's own number.",
    MOST_EPOCHS,
)
_batch = positive_option(
    "--batch", "batch_size", "The number of examples in a batch. Default: the experiment's own number.", MOST_BATCH_SIZE
)


def measure_options(command: ClickCommand) -> ClickCommand:
    """Add the options of a check to a command: seed, data set, epochs, batch size. Checks run on the CPU."""
    return _seed(_dataset(_epochs(_batch(command))))  # type: ignore[no-any-return]


def run_options(command: ClickCommand) -> ClickCommand:
    """Add the options of a run to a command: seed, data set, device, epochs, batch size."""
    return _seed(_dataset(_device(_epochs(_batch(command)))))  # type: ignore[no-any-return]


def guardrail_options(command: ClickCommand) -> ClickCommand:
    """Add the options of the guardrails to a command. `read_policy` reads their values."""
    mode = click.option(
        "--guardrails", type=click.Choice(["strict", "warn", "off"]), default="warn", show_default=True,
        help="strict: end the run at a hard finding, before the optimizer changes the weights. warn: report findings.",
    )  # fmt: skip
    allow = click.option(
        "--allow", "allowed", nargs=2, multiple=True, metavar="KIND REASON",
        help="Ignore a kind of finding, such as batch-norm-small. The run records the kind, your login and your"
        " reason. May be repeated.",
    )  # fmt: skip
    bound = click.option(
        "--gradient-bound", metavar="NORM", type=click.FloatRange(min=0, min_open=True), default=GRADIENT_BOUND,
        show_default=True, help="The largest gradient norm that --guardrails strict accepts.",
    )  # fmt: skip
    return mode(allow(bound(command)))


def read_policy(options: dict[str, Any]) -> GuardrailPolicy:
    """Remove the options of the guardrails from the options of a command, and return their policy.

    Raises `UserError` for an unknown kind, and for an empty reason.
    """
    from harness.errors import UserError, suggestion
    from harness.run.guardrails import KINDS

    mode, bound, allowed = (options.pop(name) for name in ("guardrails", "gradient_bound", "allowed"))
    for kind, reason in allowed:
        if kind not in KINDS:
            raise UserError(f"There is no guardrail {kind!r}: {suggestion(kind, list(KINDS))}")
        if not reason.strip():
            raise UserError(f"--allow {kind} has no reason: say in a few words why the run may go on.")
    return GuardrailPolicy(mode, bound, tuple(OptOut(kind, reason.strip(), _login()) for kind, reason in allowed))


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may have no name for the user
        return "unknown"
