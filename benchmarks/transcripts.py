"""Runs the commands in the transcripts of a page, and writes what they print below each.

    python -m benchmarks.transcripts docs/instruments.md docs/walkthrough.md

A transcript is a block fenced as `console`. Its lines that begin with `$ ` are commands, made in bash one after the
other, those of one page in one empty folder; all other lines are what they printed.
"""

import os
import re
import subprocess
import sysconfig
import tempfile
from pathlib import Path

import click

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COLUMNS = 110


def commands(block: str) -> list[str]:
    """Return the commands of a transcript."""
    return [line[2:] for line in block.splitlines() if line.startswith("$ ")]


def transcripts(page: str) -> list[str]:
    """Return the transcripts of a page, without their fences."""
    return [match[1] for match in _BLOCK.finditer(page)]


def printed(block: str) -> dict[str, str]:
    """Return what each command of a transcript printed."""
    found: dict[str, str] = {}
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        found[command] = output
    return found


def rerun(page: str) -> str:
    """Return the page with every transcript made anew. Raises `ClickException` where a command fails."""
    with tempfile.TemporaryDirectory(prefix="trainwreck-") as folder:
        return _BLOCK.sub(lambda match: _made(match[1], Path(folder)), page)


def _made(block: str, folder: Path) -> str:
    lines = []
    for command in commands(block):
        lines += [f"$ {command}\n", _run(command, folder)]
    return "```console\n" + "".join(lines) + "```"


def _run(command: str, folder: Path) -> str:
    click.echo(f"$ {command}", err=True)
    scripts = sysconfig.get_path("scripts")
    environment = {
        **os.environ,
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": str(COLUMNS),
        "NO_COLOR": "1",
    }
    done = subprocess.run(
        ["/bin/bash", "-c", command], cwd=folder, env=environment, check=False, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if done.returncode:
        raise click.ClickException(f"{command} ended with status {done.returncode}:\n{done.stdout}")
    # A fence, or blanks at the end of a line, would be no transcript any more.
    text = "\n".join(line.rstrip() for line in done.stdout.replace("```", "'''").splitlines())
    return f"{text.rstrip()}\n" if text.strip() else ""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument(
    "pages", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
def main(pages: tuple[Path, ...]) -> None:
    """Run the commands in the transcripts of PAGES, and write what they print below each."""
    for page in pages:
        page.write_text(rerun(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
