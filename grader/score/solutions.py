"""What the instructor's half knows of a recipe: `solution.toml`, `variants.toml` and `texts.toml`."""

from pathlib import Path
from typing import Annotated, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from grader.toml_file import read_table
from harness.errors import UserError
from harness.recipe import ROOT, Area, Edit, apply_edits
from harness.submission.cited_numbers import BATCH_SIGNALS, DERIVED_SIGNALS, EPOCH_SIGNALS, NESTED_SIGNALS

SOLUTIONS = ROOT / "solutions"
SIGNALS = (*BATCH_SIGNALS, *NESTED_SIGNALS, *EPOCH_SIGNALS, *DERIVED_SIGNALS)

Verdict = Literal["full", "alternative", "masking", "overreach", "wrong"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

# Wherever a tuple is declared with strict=False, a list of TOML becomes one; nothing else is converted.
Label = Literal[
    "excellent", "terse", "clumsy", "rival beside", "false numbers", "vague",
    "wrong cause", "keyword list", "every bug", "prompt", "empty", "open",
]  # fmt: skip


class StrictModel(BaseModel):
    """A frozen record of a file of `solutions/`: no unknown keys, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Recovery(StrictModel):
    """A number of the fixed run that shows recovery: this signal, above or below a bound, on one data set or all."""

    signal: str
    above: float | None = None
    below: float | None = None
    dataset: str | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> "Recovery":
        if self.above is None and self.below is None:
            raise ValueError("a recovery needs `above`, `below` or both")
        _known(self.signal)
        return self

    def shown_by(self, signal: str, value: float) -> bool:
        """Say whether a number cited of the fixed run shows this recovery. A NaN shows nothing."""
        if not _covers(self.signal, signal):
            return False
        above = self.above is None or value > self.above
        return above and (self.below is None or value < self.below)


class Solution(StrictModel):
    """The whole of one `solution.toml`: which cited numbers show this recipe's symptom, and which its recovery."""

    format_version: Literal[1]
    key_signals: Annotated[tuple[str, ...], Field(min_length=1, strict=False)]
    recoveries: Annotated[tuple[Recovery, ...], Field(alias="recovery", min_length=1, strict=False)]

    @model_validator(mode="after")
    def _signals_exist(self) -> "Solution":
        for signal in self.key_signals:
            _known(signal)
        return self

    def is_key_signal(self, signal: str) -> bool:
        """Say whether a cited signal is a key signal, or a part of one: grad_mean covers grad_mean.1.weight."""
        return any(_covers(key, signal) for key in self.key_signals)

    def recoveries_on(self, dataset: str) -> tuple[Recovery, ...]:
        """Return what shows recovery on a data set; one of them is enough."""
        return tuple(item for item in self.recoveries if item.dataset in (None, dataset))


class Variant(StrictModel):
    """An edit of the *broken* experiment, and the verdict that the grader must give it.

    `full` is the reference fix and its equals, `alternative` is right but not minimal, `masking` removes the
    symptom and leaves the cause, `overreach` also rewires what was not broken, `wrong` mends nothing. One that is
    `held_back` was not looked at while the rules were made: it tests them.
    """

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    verdict: Verdict
    says: Annotated[str, Field(min_length=1)]
    held_back: bool = False
    edits: Annotated[tuple[Edit, ...], Field(alias="edit", min_length=1, strict=False)]

    def source(self, broken_source: str) -> str:
        """Return the broken experiment with this variant's edits in it.

        Raises `ValueError` where a `find` does not occur exactly once.
        """
        return apply_edits(broken_source, self.edits, where=f"variant {self.id}")


class Text(StrictModel):
    """An explanation of the recipe as someone may write it, and the label that says what it must earn.

    The body stands under a front matter with this layer. `grader/selfcheck/labels.py` says what
    each label earns.
    """

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    label: Label
    layer: Area
    held_back: bool = False
    body: str


class _Texts(StrictModel):
    format_version: Literal[1]
    texts: Annotated[tuple[Text, ...], Field(alias="text", min_length=1, strict=False)]


class _Variants(StrictModel):
    format_version: Literal[1]
    variants: Annotated[tuple[Variant, ...], Field(alias="variant", min_length=1, strict=False)]

    @model_validator(mode="after")
    def _begin_with_the_reference(self) -> "_Variants":
        ids = [variant.id for variant in self.variants]
        if len(set(ids)) < len(ids):
            raise ValueError("two variants have the same id")
        if ids[0] != "reference" or self.variants[0].verdict != "full":
            raise ValueError("the first variant must be `reference`, with the verdict `full`")
        return self


def load_solution(recipe_id: str, solutions: Path = SOLUTIONS) -> Solution:
    """Return a recipe's `solution.toml`. Raises `UserError` if it is missing or not one."""
    return read_toml(solutions / recipe_id / "solution.toml", Solution)


def load_variants(recipe_id: str, solutions: Path = SOLUTIONS) -> tuple[Variant, ...]:
    """Return a recipe's variants, the reference fix first. Raises `UserError` if the file is missing or wrong."""
    return read_toml(solutions / recipe_id / "variants.toml", _Variants).variants


def load_texts(recipe_id: str, solutions: Path = SOLUTIONS) -> tuple[Text, ...]:
    """Return a recipe's model explanations. Raises `UserError` if the file is missing or wrong."""
    return read_toml(solutions / recipe_id / "texts.toml", _Texts).texts


_Record = TypeVar("_Record", bound=StrictModel)


def read_toml(path: Path, model: type[_Record]) -> _Record:
    """Return a TOML file as a record. Raises `UserError` that names the file and every key that is wrong."""
    try:
        return model.model_validate(read_table(path))
    except FileNotFoundError:
        raise UserError(f"There is no {path}: every recipe has one in its folder of solutions.") from None
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise UserError(f"{path} cannot be used: {problems}.") from None


def _covers(signal: str, cited: str) -> bool:
    return cited == signal or cited.startswith(f"{signal}.")


def _known(signal: str) -> None:
    if signal.split(".", 1)[0] not in SIGNALS:
        raise ValueError(f"there is no signal {signal!r}; the signals are {', '.join(SIGNALS)}")
