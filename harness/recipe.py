"""A recipe: a healthy experiment plus the smallest edit that breaks it, as data in `exercises/<id>/recipe.toml`."""

import difflib
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from harness.errors import UserError

ROOT = Path(__file__).resolve().parent.parent
EXERCISES = ROOT / "exercises"
EXPERIMENTS = Path(__file__).resolve().parent / "experiments"
# What lies in the folder of an exercise that is no broken run (`harness.written.file_exercise`).
FILE_EXERCISE = "exercise.toml"

Layer = Literal["data", "pipeline", "model", "loss", "optimizer", "loop", "evaluation", "deployment"]
Signal = Literal[
    "loss",
    "lr",
    "grad_norm",
    "grad_zero_fraction",
    "stale_grad_ratio",
    "val_loss",
    "val_accuracy",
    "eval_buffer_change",
    "eval_mode_gain",
    "eval_disagreement",
]
Reducer = Literal["first", "last", "min", "max", "mean", "median"]
ProbeKind = Literal[
    "batch_pairing",
    "learning_rate",
    "stale_gradient",
    "loss_gradient",
    "gradient_underflow",
    "evaluation_mode",
    "evaluation_repeats",
]


# A list of TOML becomes a tuple; nothing else is converted: seed = "42" is no number.
_LIST = Field(strict=False)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Edit(_Strict):
    """One replacement in a source text; `find` must occur exactly once."""

    find: Annotated[str, Field(min_length=1)]
    replace: str


class Symptom(_Strict):
    """What must be seen in the log of the broken run and, of a symptom, not in that of a healthy one.

    `dataset` limits a symptom to one data set, where the scale of the signal is that of its data.
    `signal` is reduced over the half-open range `steps` (batches, or epochs for a validation signal) by
    `reduce`; the symptom is there if the result is above `above` and below `below`, where they are given.
    """

    signal: Signal
    reduce: Reducer
    steps: Annotated[tuple[int, int] | None, _LIST] = None
    above: float | None = None
    below: float | None = None
    dataset: str | None = None
    says: Annotated[str, Field(min_length=1)]

    @model_validator(mode="after")
    def _has_a_bound(self) -> "Symptom":
        if self.above is None and self.below is None:
            raise ValueError("a symptom needs `above`, `below` or both")
        return self


class Probe(_Strict):
    """A mechanism probe (`harness.checks.probes`): the cause is gone where what it measures stays below the bound."""

    kind: ProbeKind
    below: float


class Recipe(_Strict):
    """The whole of one `recipe.toml`; `id` is the name of its folder."""

    id: str
    format_version: Literal[1]
    title: str
    experiment: str
    dataset: str
    layer: Layer
    seed: int
    breaks: Annotated[tuple[Edit, ...], Field(alias="break", min_length=1, strict=False)]
    symptoms: Annotated[tuple[Symptom, ...], Field(alias="symptom", min_length=1, strict=False)]
    # True of the broken run, and of a healthy one too: they rule something out, or tell nothing.
    observations: Annotated[tuple[Symptom, ...], Field(alias="observation", strict=False)] = ()
    probes: Annotated[tuple[Probe, ...], Field(alias="probe", min_length=1, strict=False)]

    def on(self, dataset: str) -> "Recipe":
        """Return the recipe with only those symptoms and observations that are declared for this data set."""
        kept = {
            name: tuple(item for item in getattr(self, name) if item.dataset in (None, dataset))
            for name in ("symptoms", "observations")
        }
        return self.model_copy(update=kept)

    def healthy_source(self) -> str:
        """Return the source of the healthy experiment."""
        return experiment_source(self.experiment)

    def broken_source(self) -> str:
        """Return the source of the experiment with this recipe's break in it."""
        return apply_edits(self.healthy_source(), self.breaks, where=f"recipe {self.id}")


class WrittenOut(Recipe):
    """A recipe in a student's kit: the broken experiment itself, in place of everything that tells what broke it."""

    breaks: tuple[()] = ()
    symptoms: tuple[()] = ()
    observations: tuple[()] = ()
    probes: tuple[()] = ()
    source: str

    def healthy_source(self) -> str:
        """Raise `UserError`: it would be the answer."""
        raise UserError(_not_in_a_kit(self.experiment))

    def broken_source(self) -> str:
        """Return the source of the broken experiment, as it is written out."""
        return self.source


def apply_edits(source: str, edits: Sequence[Edit], *, where: str) -> str:
    """Apply the edits in order. Raises `ValueError` where a `find` does not occur exactly once."""
    for edit in edits:
        count = source.count(edit.find)
        if count != 1:
            raise ValueError(f"{where}: {edit.find!r} occurs {count} times, not once")
        source = source.replace(edit.find, edit.replace)
    return source


def suggestion(name: str, known: Sequence[str]) -> str:
    """Return "; did you mean X?" for a close match among the known names, else all of them."""
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else f"choose from {', '.join(known)}."


def experiment_source(name: str) -> str:
    """Return the source of the healthy experiment of this name. Raises `UserError` for an unknown one."""
    known = sorted(path.stem for path in EXPERIMENTS.glob("*.py") if path.stem != "__init__")
    if not known:
        raise UserError(_not_in_a_kit(name))
    if name not in known:
        raise UserError(f"There is no experiment {name!r}: {suggestion(name, known)}")
    return (EXPERIMENTS / f"{name}.py").read_text(encoding="utf-8")


def _not_in_a_kit(experiment: str) -> str:
    return (
        f"The healthy {experiment} is not in a student's kit: say which exercise to run (--break huge_lr),"
        " and which file in its place (--script experiment.py)."
    )


def recipe_ids(exercises: Path = EXERCISES) -> list[str]:
    """Return the names of all recipes, sorted: every folder with a `recipe.toml` is one."""
    return sorted(path.parent.name for path in exercises.glob("*/recipe.toml"))


def load_recipe(recipe_id: str, exercises: Path = EXERCISES) -> Recipe:
    """Return one recipe; where `experiment.py` lies beside `recipe.toml`, as in a student's kit, a `WrittenOut`.

    Raises `UserError` for an unknown name, an unknown key or a wrong value.
    """
    known = recipe_ids(exercises)
    if recipe_id not in known:
        if (exercises / recipe_id / FILE_EXERCISE).is_file():
            raise UserError(
                f"{recipe_id} trains nothing, so there is no run of it: make check judges what you wrote."
            )
        raise UserError(f"There is no exercise {recipe_id!r}: {suggestion(recipe_id, known)}")
    path = exercises / recipe_id / "recipe.toml"
    written = path.with_name("experiment.py")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        if "id" in table:
            raise UserError(f"{path} is not a recipe: id: the folder's name is the id; remove this line.")
        if written.is_file():
            source = written.read_text(encoding="utf-8")
            return WrittenOut.model_validate({"id": recipe_id, **table, "source": source})
        return Recipe.model_validate({"id": recipe_id, **table})
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise UserError(f"{path} is not a recipe: {problems}.") from None
    except (ValueError, RecursionError) as error:  # no UTF-8, a number of 5,000 digits, brackets 1,000 deep
        raise UserError(f"{path} is not TOML: {error}.") from None
