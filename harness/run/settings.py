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
    overfit_examples: int | None = None
    keep_last: bool = False

    @property
    def overfits(self) -> bool:
        """Whether the run trains on few examples on purpose. Then augmentation and dropout are off."""
        return self.overfit_batch is not None or self.overfit_examples is not None

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


GuardrailMode = Literal["strict", "warn", "off"]
GRADIENT_BOUND = 100.0


@dataclass(frozen=True)
class OptOut:
    """A kind of guardrail finding that somebody allowed for a run: the kind, the reason, and the login."""

    kind: str
    reason: str
    by: str


@dataclass(frozen=True)
class GuardrailPolicy:
    """How a run reacts to guardrail findings. It never changes the bytes of a log or a checkpoint.

    mode: "strict" ends the run at a hard finding, before the step of the optimizer; "warn" reports it; "off" ignores
    it. gradient_bound: the largest gradient norm that strict mode accepts. allowed: kinds that the run ignores.
    """

    mode: GuardrailMode = "warn"
    gradient_bound: float = GRADIENT_BOUND
    allowed: tuple[OptOut, ...] = ()

    def allows(self, kind: str) -> bool:
        """Return whether the run ignores findings of this kind."""
        return self.mode == "off" or any(one.kind == kind for one in self.allowed)


DEFAULT_POLICY = GuardrailPolicy()


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
    guardrails: GuardrailPolicy = DEFAULT_POLICY

    def to_json(self) -> str:
        """Return the job as one line of JSON."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "RunJob":
        """Return the job that `to_json` wrote."""
        fields: dict[str, Any] = json.loads(text)
        policy = fields["guardrails"]
        allowed = tuple(OptOut(**one) for one in policy["allowed"])
        return cls(
            **{
                **fields,
                "settings": RunSettings(**fields["settings"]),
                "guardrails": GuardrailPolicy(**{**policy, "allowed": allowed}),
            }
        )
