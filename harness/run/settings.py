"""The settings of a run, and the job that the training process receives."""

import dataclasses
import json
from dataclasses import dataclass
from typing import Any, Literal

from harness.canonical_setup import Numerics

RunName = Literal["broken", "fixed", "healthy"]
# These limits prevent runs of several days. The longest of our experiments has 40 epochs.
MOST_EPOCHS, MOST_BATCH_SIZE = 1000, 65536


@dataclass(frozen=True)
class RunSettings:
    """All settings of a run: together with the source, they determine the run.

    None means the experiment's own value.
    """

    seed: int
    dataset: str
    device: str = "cpu"
    numerics: Numerics = "portable"
    epochs: int | None = None
    batch_size: int | None = None
    max_steps: int | None = None
    overfit_batch: int | None = None
    disable_augment: bool = False
    disable_dropout: bool = False
    disable_amp: bool = False
    verify: bool = False
    clip_norm: float | None = None

    def command(self, recipe: str, script: str | None = None) -> str:
        """Return the command that makes this run with the recipe's broken experiment or, if given, with a script."""
        words = ["python -m harness.trainer", "--seed", str(self.seed), "--break", recipe]
        words += ["--dataset", self.dataset]
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name in ("seed", "dataset") or value == field.default:
                continue
            option = {"batch_size": "batch"}.get(field.name, field.name).replace("_", "-")
            words += [f"--{option}"] if value is True else [f"--{option}", str(value)]
        if script is not None:
            words += ["--script", script]
        return " ".join(words)


@dataclass(frozen=True)
class RunJob:
    """One run: its settings, the source to run, and the folder for its files.

    source_path: the file that the student edits, which error messages name, or None.
    """

    settings: RunSettings
    recipe: str
    experiment: str
    title: str
    run: RunName
    source: str
    folder: str
    source_path: str | None = None
    resume: bool = False
    compare_with: str | None = None

    def to_json(self) -> str:
        """Return the job as one line of JSON."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "RunJob":
        """Return the job that `to_json` wrote."""
        fields: dict[str, Any] = json.loads(text)
        return cls(**{**fields, "settings": RunSettings(**fields["settings"])})
