"""Parse the command of a run back into its settings; accept only what `RunSettings.command` writes."""

import math
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_args

from grader.intake.names import printable
from harness.canonical_setup import Numerics
from harness.data import DATASETS
from harness.run.settings import GuardrailMode, RunSettings

COMMAND_BYTES = 4096
_PROGRAM = ["python", "-m", "harness.trainer"]


def _whole(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if re.fullmatch(r"0|[1-9][0-9]{0,19}", text, re.ASCII) is None or not low <= int(text) <= high:
            raise ValueError(f"is not a whole number from {low} to {high}")
        return int(text)

    return read


def _one_of(*names: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in names:
            raise ValueError(f"is not one of {', '.join(names)}")
        return text

    return read


def _norm(text: str) -> float:
    try:
        value = float(text) if re.fullmatch(r"[0-9.e+-]{1,32}", text, re.ASCII) else math.nan
    except ValueError:
        value = math.nan
    if not 0 < value <= 1e6:
        raise ValueError("is not a number above 0 and up to 1000000")
    return value


# Field and reader of each option. The bounds keep a command from asking for days; the longest experiment has 20 epochs.
_OPTIONS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "--seed": ("seed", _whole(0, 2**32 - 1)),
    "--dataset": ("dataset", _one_of(*DATASETS)),
    "--device": ("device", _one_of("cpu", "cuda")),
    "--numerics": ("numerics", _one_of(*get_args(Numerics))),
    "--epochs": ("epochs", _whole(1, 1000)),
    "--batch": ("batch_size", _whole(1, 65536)),
    "--max-steps": ("max_steps", _whole(1, 10_000_000)),
    "--overfit-batch": ("overfit_batch", _whole(1, 65536)),
    "--clip-norm": ("clip_norm", _norm),
    "--guardrails": ("guardrails", _one_of(*get_args(GuardrailMode))),
}
_SWITCHES: Mapping[str, str] = {
    "--disable-augment": "disable_augment",
    "--disable-dropout": "disable_dropout",
    "--disable-amp": "disable_amp",
    "--verify": "verify",
}


def parse_command(command: str, recipe: str, script: str | None) -> RunSettings:
    """Return the settings of a command that runs this recipe, or this script instead.

    Raises `ValueError`, with a sentence, for any other command.
    """
    if len(command.encode("utf-8", "replace")) > COMMAND_BYTES:
        raise ValueError("The command is too long for one that the harness writes.")
    try:
        words = shlex.split(command)
    except ValueError:
        raise ValueError("The command has an unclosed quotation mark.") from None
    if words[:3] != _PROGRAM:
        raise ValueError("The command does not begin with python -m harness.trainer.")
    found = dict(_options(iter(words[3:])))
    for option, wanted in (("--break", recipe), ("--script", script)):
        if found.pop(option, None) != wanted:
            expected = f"no {option}" if wanted is None else f"{option} {wanted}"
            raise ValueError(f"The command should have {expected}.")
    for field in ("seed", "dataset"):
        if field not in found:
            raise ValueError(f"The command has no --{field}.")
    return RunSettings(**found)


def _options(words: Iterator[str]) -> Iterator[tuple[str, Any]]:
    """Yield field and value of each option; `--break` and `--script` are their own fields."""
    seen = set()
    for option in words:
        if option in seen:
            raise ValueError(f"The command has {option} twice.")
        seen.add(option)
        if option in _SWITCHES:
            yield _SWITCHES[option], True
            continue
        field, read = _OPTIONS.get(option, ("", str))
        if not field and option not in ("--break", "--script"):
            raise ValueError(f"The command has {printable(option)}, which the harness does not write.")
        text = next(words, None)
        if text is None:
            raise ValueError(f"The command ends after {option}.")
        try:
            value = read(text)
        except ValueError as error:
            raise ValueError(f"The command has {option} {printable(text)}, which {error}.") from None
        yield field or option, value
