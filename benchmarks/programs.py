"""`python -m benchmarks.programs FOLDER`: make the folder of public programs that `make bench-watch` watches.

`programs.json` gives, for each program, the address, the commit and the folder of its `source`, its `command`, and
where needed the working folder `cwd`, a folder `path` of modules in it, variables `env`, and the made-up `files` that
replace its data: a path and a kind of `stand_ins/files.py`. The folder gets the programs as they are, a copy of
`stand_ins` and, in `run.json`, how to run each program. It needs an environment `.venv` with the packages of
`programs.txt`.

`injected.json` describes faults, each by edits of one to three lines and without a line of the programs. The folder
gets its own `injected.json`, in which each fault has the texts `old` and `new`; `old` occurs once in its file.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

HERE = Path(__file__).parent
_LARGEST = 1_000_000
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MPLBACKEND": "Agg",
    "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1",  # programs older than this rule of torch.load
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HOME": "cache",
    "WANDB_MODE": "disabled",
    "TOKENIZERS_PARALLELISM": "false",
}


class ProgramsError(click.ClickException):
    """A program cannot be brought."""


def _git(directory: Path, *arguments: str, given: str = "") -> bytes:
    command = ["git", "--git-dir", str(directory), *arguments]
    run = subprocess.run(command, input=given.encode(), capture_output=True, check=False)
    if run.returncode:
        raise ProgramsError(f"git {' '.join(arguments)} failed: {run.stderr.decode().strip()}")
    return run.stdout


def git_directory(address: str, mirrors: Path | None, clones: Path) -> Path:
    """Return the git directory of a repository: a mirror of `mirrors`, or a new clone in `clones`."""
    name = address.removeprefix("https://github.com/").replace("/", "+")
    if mirrors is not None:
        for directory in (mirrors / name / "repo" / ".git", mirrors / name / "repo", mirrors / name):
            if (directory / "HEAD").is_file():
                return directory
    clone = clones / name
    if not clone.is_dir():
        click.echo(f"Cloning {address} ...", err=True)
        subprocess.run(["git", "clone", "--quiet", "--bare", address, str(clone)], check=True)
    return clone


def extract(directory: Path, commit: str, subfolder: str, target: Path) -> None:
    """Write the small files of a commit below a subfolder to `target`, except those that the repository lacks."""
    listed = _git(directory, "ls-tree", "-r", "-z", "--full-tree", commit, *([subfolder] if subfolder else []))
    entries = [line.split("\t", 1) for line in listed.decode().split("\0")[:-1]]
    blobs = [(head.split()[2], name) for head, name in entries if head.split()[1] == "blob"]
    sizes = _git(directory, "cat-file", "--batch-check", given="".join(f"{blob}\n" for blob, _ in blobs))
    answers = [line.split() for line in sizes.decode().splitlines()]
    small = [
        (blob, name)
        for (blob, name), answer in zip(blobs, answers, strict=True)
        if answer[-1] != "missing" and int(answer[2]) <= _LARGEST
    ]
    contents = _git(directory, "cat-file", "--batch", given="".join(f"{blob}\n" for blob, _ in small))
    at = 0
    for _, name in small:
        begin = contents.index(b"\n", at) + 1
        end = begin + int(contents[at:begin].split()[2])
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(contents[begin:end])
        at = end + 1


def make_program(program: dict[str, Any], target: Path, directory: Path, python: Path, stand_ins: Path) -> None:
    """Make the folder of one program."""
    if target.exists():
        shutil.rmtree(target)
    target.mkdir(parents=True)
    _, commit, *subfolder = program["source"].split()
    extract(directory, commit, "".join(subfolder), target)
    cwd = program.get("cwd", "".join(subfolder) or ".")
    path = os.pathsep.join([str(stand_ins), *([program["path"]] if "path" in program else [])])
    environment = {**_ENVIRONMENT, **program.get("env", {}), "PYTHONPATH": path}
    if pairs := [one for path, kind in program.get("files", {}).items() for one in (kind, str(target / cwd / path))]:
        written = subprocess.run(
            [str(python), "-m", "files", *pairs],
            env={**environment, "PATH": "/usr/bin:/bin"},
            cwd=target,
            capture_output=True,
            text=True,
            check=False,
        )
        if written.returncode:
            raise ProgramsError(f"The files of {program['name']} were not written:\n{written.stderr}")
    run = {"command": program["command"], "cwd": cwd, "env": environment, "python": str(python)}
    (target / "run.json").write_text(json.dumps(run, indent=1) + "\n")


def edited(lines: list[str], edits: list[dict[str, Any]]) -> tuple[list[str], int, int]:
    """Return the lines after the edits, and the first and the last line that they change, counted from 0."""
    pieces = [[line] for line in lines]  # what stands at the place of each line
    touched = []
    for edit in edits:
        at = edit["line"] - 1
        touched.append(at)
        indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        if "find" in edit:
            pieces[at] = [one.replace(edit["find"], edit["put"], 1) for one in pieces[at]]
        elif "insert" in edit:
            pieces[at].append(indent + edit["insert"])
        elif "move" in edit:
            target = edit["move"] - 1
            touched.append(target)
            pieces[target].append(pieces[at].pop(0))
        else:
            pieces[at] = []
    return [line for piece in pieces for line in piece], min(touched), max(touched)


def write_faults(folder: Path) -> None:
    """Write the faults of `injected.json` with the texts of the programs that the folder has."""
    faults = []
    for fault in json.loads((HERE / "injected.json").read_bytes()):
        file = folder / fault["program"] / fault["file"]
        if not file.is_file():
            continue
        content = file.read_bytes()
        if not hashlib.sha256(content).hexdigest().startswith(fault["sha256"]):
            raise ProgramsError(f"{file} is not the file that {fault['id']} was written for.")
        lines = content.decode().split("\n")
        changed, first, last = edited(lines, fault["edits"])
        old = lines[first : last + 1]
        while first and content.decode().count("\n".join(old)) > 1:
            first -= 1
            old.insert(0, lines[first])
        new = changed[first : len(changed) - (len(lines) - last - 1)]
        described = {key: fault[key] for key in ("id", "program", "file", "area", "fault")}
        faults.append({**described, "old": "\n".join(old), "new": "\n".join(new)})
    (folder / "injected.json").write_text(json.dumps(faults, indent=1, ensure_ascii=False) + "\n")


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--mirrors", type=click.Path(exists=True, file_okay=False, path_type=Path), help="has git directories")
@click.option("--only", default="", help="names of programs, separated by spaces")
@click.option("--python", type=click.Path(path_type=Path), help="the interpreter  [default: FOLDER/.venv/bin/python]")
def main(folder: Path, mirrors: Path | None, only: str, python: Path | None) -> None:
    """Make a FOLDER with the public programs, each with its made-up data."""
    listed = json.loads((HERE / "programs.json").read_bytes())
    folder = folder.absolute()
    python = (python or folder / ".venv" / "bin" / "python").absolute()
    stand_ins = folder / ".stand_ins"
    shutil.copytree(HERE / "stand_ins", stand_ins, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    failed = False
    with tempfile.TemporaryDirectory() as clones:
        for program in listed:
            if only and program["name"] not in only.split():
                continue
            try:
                directory = git_directory(program["source"].split()[0], mirrors, Path(clones))
                make_program(program, folder / program["name"], directory, python, stand_ins)
            except ProgramsError as error:
                failed = True
                click.echo(f"{program['name']}: {error.message}", err=True)
    write_faults(folder)
    sys.exit(failed)


if __name__ == "__main__":
    main()
