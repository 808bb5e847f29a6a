"""Parse the command of a run back into its settings: accept exactly what `RunSettings.command` writes."""

import dataclasses
from collections.abc import Mapping

from pydantic import TypeAdapter, ValidationError

from harness.data import DATASETS
from harness.run.settings import RunSettings

COMMAND_BYTES = 4096
# The largest values. They keep a command from asking for days; the longest experiment has 20 epochs.
_LARGEST: Mapping[str, float] = {
    "seed": 2**32 - 1,
    "epochs": 1000,
    "batch_size": 65536,
    "max_steps": 10_000_000,
    "overfit_batch": 65536,
    "clip_norm": 1e6,
}
_OPTIONS = {
    "--batch" if field.name == "batch_size" else f"--{field.name.replace('_', '-')}": field
    for field in dataclasses.fields(RunSettings)
}
_SETTINGS = TypeAdapter(RunSettings)


def parse_command(command: str, recipe: str, script: str | None) -> RunSettings:
    """Return the settings of a command that runs this recipe, or this script instead.

    Raises `ValueError`, with a sentence, for any other command.
    """
    if len(command.encode("utf-8", "replace")) > COMMAND_BYTES:
        raise ValueError("The command is too long for one that the harness writes.")
    words = [*command.split(" "), ""]
    values = {
        _OPTIONS[word].name: True if _OPTIONS[word].default is False else words[place + 1]
        for place, word in enumerate(words)
        if word in _OPTIONS
    }
    try:
        settings = _SETTINGS.validate_python(values)
    except ValidationError:
        settings = None
    if (
        settings is None
        or settings.command(recipe, script) != command
        or settings.dataset not in DATASETS
        or settings.device not in ("cpu", "cuda")
    ):
        raise ValueError("The command is not one that the harness writes for this exercise.")
    for name, largest in _LARGEST.items():
        value = getattr(settings, name)
        if value is not None and not (0 < value <= largest or (name == "seed" and value == 0)):
            raise ValueError(f"The command has {name.replace('_', ' ')} {value:g}, not 1 to {largest:g}.")
    return settings
