"""Runs a click command: exit 2 and one sentence for a user's mistake, 3 and a traceback for a fault of ours."""

import contextlib
import io
import os
import sys
import traceback
from pathlib import Path
from typing import NoReturn, TextIO

import click

from harness.errors import Stopped, UserError, from_os_error

HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}


def run_command(command: click.Command, program: str) -> NoReturn:
    """Run a command: exit 2 with one sentence for a user's mistake, 3 with a traceback for a fault of ours."""
    _open_closed_streams()
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
        from harness.run.launch import ChildFault

        if not isinstance(error, ChildFault):
            _fault()
        click.echo(f"{program}: {error}. Please report it.", err=True)
        sys.exit(3)
    sys.exit(0)


def _open_closed_streams() -> None:
    """Put nothing where a stream was closed, as by `>&-`: else a file opened later has its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nothing = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115 - to the end of the process
            os.set_inheritable(nothing.fileno(), True)
            setattr(sys, name, nothing)


def _fail(message: str) -> NoReturn:
    with contextlib.suppress(OSError):  # a log on the same full disk
        click.echo(f"Error: {message}", err=True)
    for stream in (sys.stdout, sys.stderr):
        _let_go_of_unwritten(stream)
    sys.exit(2)


def _let_go_of_unwritten(stream: TextIO) -> None:
    """Forget what a stream cannot write: the interpreter would try again at its end, and exit 120."""
    try:
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _fault() -> NoReturn:
    traceback.print_exc()
    click.echo(
        "This is a fault of trainwreck, not of yours. Please report it with the lines above.", err=True
    )
    sys.exit(3)
