"""Write and read `command.txt`, which contains the commands with which the grader makes both runs again."""

import re
from collections.abc import Mapping
from dataclasses import replace

from harness.run.files import EXPERIMENT
from harness.run.settings import MOST_BATCH_SIZE, MOST_EPOCHS, RunSettings
from harness.workspace.workspace import RUNS, Run

COMMANDS = "command.txt"
_FORM = re.compile(r"# runs/broken\n(?P<broken>[^\n]*)\n\n?# runs/fixed\n(?P<fixed>[^\n]*)\n*")
_MOST = {"epochs": MOST_EPOCHS, "batch": MOST_BATCH_SIZE}


def commands_text(commands: Mapping[Run, object]) -> str:
    """Return the content of `command.txt`."""
    return "\n".join(f"# runs/{run}\n{' '.join(str(commands[run]).split())}\n" for run in RUNS)


def read_commands(text: str, recipe: str, seed: int, dataset: str) -> tuple[RunSettings, str]:
    """Return the settings for making both runs again on the CPU, and a sentence about a problem, or ""."""
    settings = RunSettings(seed=seed, dataset=dataset)
    found = _FORM.fullmatch(text.replace("\r\n", "\n"))
    if found is None:
        return settings, f"{COMMANDS} does not contain the commands of both runs in the form that make submit writes."
    epochs, batch_size = (_option(name, found["fixed"]) for name in _MOST)
    settings = replace(settings, epochs=epochs, batch_size=batch_size)
    scripts: dict[Run, str | None] = {"broken": None, "fixed": EXPERIMENT}
    for run, script in scripts.items():
        # The grader makes a run that used a GPU again on the CPU, and does not expect equal bytes.
        devices = (replace(settings, device=device) for device in ("cpu", "cuda"))
        if found[run] not in [item.command(recipe, script) for item in devices]:
            problem = f"The command of the {run} run in {COMMANDS} does not have the form that the harness writes"
            allowed = (
                f"equal settings in both commands, at most {MOST_EPOCHS} epochs, and at most {MOST_BATCH_SIZE}"
                " examples in a batch"
            )
            return settings, f"{problem} for this seed and data set, with {allowed}."
    return settings, ""


def _option(name: str, command: str) -> int | None:
    """Return the number after `--name` in a command, or None if the option is missing or its number is too large."""
    found = re.search(rf" --{name} ([1-9][0-9]{{0,4}})(?= |$)", command)
    return int(found[1]) if found and int(found[1]) <= _MOST[name] else None
