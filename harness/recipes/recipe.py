"""A recipe is an exercise: a healthy experiment and the small edit that breaks it (`exercises/<id>/recipe.toml`)."""

import base64
import difflib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from harness.errors import UserError, suggestion
from harness.formats.toml_file import StrictModel, read_record
from harness.recipes import suite
from harness.recipes.personal import personal_draw, personal_seed

ROOT = suite.ROOT
EXERCISES = ROOT / "exercises"
SOLUTIONS = ROOT / "solutions"
EXPERIMENTS = suite.PACKAGES / "harness" / "experiments"
# A folder with this file contains an exercise in which nothing is trained (`harness.written.exercise`).
FILE_EXERCISE = "judge.toml"
GOAL = "goal.toml"
BEHAVIOUR = "behaviour.txt"  # the file with the measured behaviour of an exercise's correct programs
LEVELS = 5
HEALTHY = "healthy"  # the cause of a run that is not broken
NO_HINTS = ("", "", "")  # the hints of a case if its course gives no hints

Area = Literal["data", "pipeline", "model", "loss", "optimizer", "loop", "evaluation", "deployment"]
SYMPTOM_SIGNALS = (
    "loss", "lr", "grad_norm", "grad_zero_fraction", "stale_grad_ratio", "optimizer_steps", "val_loss", "val_accuracy",
    "val_accuracy_served", "eval_buffer_change", "eval_mode_gain", "eval_disagreement",
)  # fmt: skip


def _known_signal(name: str) -> str:
    """Return the name of a signal; scripts have validation figures of their own. Raises `ValueError` for others."""
    if name not in SYMPTOM_SIGNALS and not name.startswith("val_"):
        raise ValueError(f"it must be one of {', '.join(SYMPTOM_SIGNALS)}, or begin with val_")
    return name


Signal = Annotated[str, AfterValidator(_known_signal)]
Triage = Literal["outcomes", "figures", "off"]
Reducer = Literal["first", "last", "min", "max", "mean", "median"]


# `grader new-recipe` writes this placeholder where the author must write a text.
PLACEHOLDER = "..."


def _one_line(text: str) -> str:
    if text.strip() == PLACEHOLDER:
        raise ValueError(f"still {PLACEHOLDER}: write it")
    return " ".join(text.split())


def _decode(hints: Any) -> Any:
    """Decode the hints in the recipe of a course kit. Raises `ValueError` if a hint is not base64."""
    if not isinstance(hints, list):
        return hints
    return [base64.b64decode(str(hint), validate=True).decode() for hint in hints]


# A list in TOML becomes a tuple. No other type is converted, so that seed = "42" is refused.
_LIST = Field(strict=False)
Text = Annotated[str, Field(min_length=1)]
Sentence = Annotated[Text, AfterValidator(_one_line)]


class Edit(StrictModel):
    """One replacement in a source text. The text in `find` must occur exactly once in the source."""

    find: Text
    replace: str


def edit_of(pair: Any) -> Any:
    """Return the `Edit` for a list [find, replace]. Raises `ValueError` for any other value."""
    if isinstance(pair, list) and len(pair) == 2:
        return Edit.model_validate({"find": pair[0], "replace": pair[1]})
    raise ValueError("an edit is a list of two strings, [find, replace]")


class Symptom(StrictModel):
    """A statement about the log of a run. It is true for every broken run and false for every healthy run.

    `reduce` turns the values of `signal` in the range `steps` (without its end) into one number. `steps` counts
    batches, or epochs for a validation signal. The symptom is present if the number is greater than `above` and less
    than `below`. If `dataset` is given, the symptom is judged only on this data set, because the scale of some signals
    depends on the data.
    """

    signal: Signal
    reduce: Reducer
    steps: Annotated[tuple[int, int] | None, _LIST] = None
    above: float | None = None
    below: float | None = None
    dataset: str | None = None
    says: Text

    @model_validator(mode="after")
    def _has_a_bound(self) -> "Symptom":
        if self.above is None and self.below is None:
            raise ValueError("a symptom needs `above`, `below` or both")
        return self


class Goal(StrictModel):
    """The criteria that a fixed run must meet, and the difficulty from 1 to 5.

    This is the content of `goal.toml`, which `grader selfcheck` writes. All `checks` must find nothing wrong, and the
    last validation metric must reach a bound that was measured on healthy experiments.
    """

    format_version: Literal[1]
    level: Annotated[int, Field(ge=1, le=LEVELS)]
    checks: Annotated[tuple[str, ...], _LIST]
    least_accuracy: float | None = None
    greatest_loss: float | None = None


class Recipe(StrictModel):
    """The content of a `recipe.toml`. `id` is the name of its folder, and `goal` is from `goal.toml`, if it exists."""

    id: str
    goal: Goal | None = None
    format_version: Literal[2]
    title: Sentence
    experiment: str
    dataset: str
    seed: int
    area: Area
    cause: Sentence
    hints: Annotated[tuple[Sentence, Sentence, Sentence], _LIST]
    breaks: Annotated[tuple[Edit, ...], Field(alias="break", min_length=1, strict=False)]
    # Empty if no signal in the log shows the break. A check must then find it (`solutions/<id>/measured.toml`).
    symptoms: Annotated[tuple[Symptom, ...], Field(alias="symptom", strict=False)] = ()
    # Statements that are true for both broken and healthy runs. An observation can rule out another cause.
    observations: Annotated[tuple[Symptom, ...], Field(alias="observation", strict=False)] = ()
    # The id of the course that gives this recipe to students as a case.
    course: str | None = None
    personal_seeds: bool = False
    # Whether the checks show their outcomes to the student, only measured values, or nothing.
    triage: Triage = "outcomes"
    # Whether the student must predict what the broken run shows before making it.
    predict: bool = False
    # The ids of all cases in the pool of this case: each student gets one case from the pool. () if all students get
    # this case.
    pool: Annotated[tuple[str, ...], _LIST] = ()

    def seed_of(self, student: str) -> int:
        """Return the seed of this student's runs."""
        return personal_seed(self.course or "", student, self.id) if self.personal_seeds else self.seed

    def case_of(self, student: str) -> str:
        """Return the id of the case that this student gets from the pool."""
        return personal_draw(self.course or "", student, self.pool) if self.pool else self.id

    @property
    def causes(self) -> tuple[str, ...]:
        """The ids of the causes that a diagnosis must name."""
        return (self.id,)

    @property
    def measured_seed(self) -> int:
        """The seed with which the behaviour of the correct programs was measured (`BEHAVIOUR`)."""
        return self.seed

    @property
    def is_case(self) -> bool:
        """Whether this is a case: its name does not reveal the break, and it may be healthy."""
        return self.course is not None

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is broken, so that the right fix changes nothing."""
        return self.causes == (HEALTHY,)

    def on(self, dataset: str) -> "Recipe":
        """Return the recipe with the symptoms and observations that apply to this data set."""
        kept = {
            name: tuple(item for item in getattr(self, name) if item.dataset in (None, dataset))
            for name in ("symptoms", "observations")
        }
        return self.model_copy(update=kept)

    def healthy_source(self) -> str:
        """Return the source of the healthy experiment."""
        return experiment_source(self.experiment)

    def broken_source(self) -> str:
        """Return the source of the experiment with this recipe's break applied."""
        return apply_edits(self.healthy_source(), self.breaks, where=f"recipe {self.id}")

    def for_kit(self, *, with_hints: bool = True) -> str:
        """Return the text of `recipe.toml` for a course kit, without cause and break, and with the hints in base64."""
        # The hints are encoded so that nobody reads a hint by accident. Strings and numbers in JSON are also valid
        # TOML.
        hints = [base64.b64encode(hint.encode()).decode() for hint in self.hints]
        keys = ("format_version", "title", "experiment", "dataset", "seed")
        table: dict[str, Any] = {key: getattr(self, key) for key in keys}
        if self.course is not None:
            table |= {"course": self.course, "personal_seeds": self.personal_seeds, "triage": self.triage}
            table |= {"pool": list(self.pool)} if self.pool else {}
            table |= {"predict": True} if self.predict else {}
        if with_hints:
            table["hints"] = hints
        return "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in table.items())


class KitRecipe(Recipe):
    """A recipe in a course kit: it has the broken experiment, but nothing that reveals the answer."""

    hints: Annotated[tuple[Sentence, Sentence, Sentence], BeforeValidator(_decode), _LIST] = NO_HINTS
    area: Any = None
    cause: Any = None
    breaks: tuple[()] = ()
    symptoms: tuple[()] = ()
    observations: tuple[()] = ()
    source: str

    def healthy_source(self) -> str:
        """Raise `UserError`, because the healthy source would be the answer."""
        raise UserError(_not_in_a_kit(self.experiment))

    def broken_source(self) -> str:
        """Return the source of the broken experiment, `experiment.py` in the folder of `recipe.toml`."""
        return self.source


def apply_edits(source: str, edits: Sequence[Edit], *, where: str) -> str:
    """Return the source with the edits applied in order. Raises `ValueError` if a `find` does not occur once."""
    for edit in edits:
        count = source.count(edit.find)
        if count != 1:
            raise ValueError(f"{where}: {edit.find!r} occurs {count} times, not once")
        source = source.replace(edit.find, edit.replace)
    return source


def experiment_names() -> list[str]:
    """Return the sorted names of the healthy experiments; the list is empty in a course kit."""
    return sorted(path.stem for path in EXPERIMENTS.glob("*.py") if path.stem != "__init__")


@cache
def experiment_source(name: str) -> str:
    """Return the source of the healthy experiment with this name. Raises `UserError` for an unknown name."""
    known = experiment_names()
    if not known:
        raise UserError(_not_in_a_kit(name))
    if name not in known:
        raise UserError(f"There is no experiment {name!r}: {suggestion(name, known)}")
    return (EXPERIMENTS / f"{name}.py").read_text(encoding="utf-8")


def _not_in_a_kit(experiment: str) -> str:
    return (
        f"A course kit does not contain the healthy experiment {experiment}: name an exercise (--break huge_lr) and the"
        " script to run instead of its experiment (--script experiment.py)."
    )


def listed_ids(exercises: Path = EXERCISES) -> list[str]:
    """Return the sorted names of all folders with a `recipe.toml`, valid or not."""
    return sorted(path.parent.name for path in exercises.glob("*/recipe.toml"))


def load_recipes(exercises: Path = EXERCISES) -> tuple[tuple[Recipe, ...], Mapping[str, str]]:
    """Return all valid recipes, sorted by id, and {id: problem} for the invalid recipes.

    Every folder with a `recipe.toml` is a recipe. An invalid recipe does not affect the other recipes.
    """
    good: list[Recipe] = []
    problems: dict[str, str] = {}
    for recipe_id in listed_ids(exercises):
        try:
            good.append(read_recipe(recipe_id, exercises))
        except UserError as error:
            problems[recipe_id] = str(error)
    return tuple(good), problems


def recipe_ids(exercises: Path = EXERCISES) -> list[str]:
    """Return the sorted ids of all valid recipes."""
    return [recipe.id for recipe in load_recipes(exercises)[0]]


def read_recipe(recipe_id: str, exercises: Path = EXERCISES) -> Recipe:
    """Read the folder of a recipe. In a course kit, it contains `experiment.py`, and the result is a `KitRecipe`.

    Raises `UserError` for an unknown name and for an invalid recipe, which has an unknown key, a wrong value, no
    `PROMPT.md`, or a break that cannot be applied to its experiment.
    """
    path = exercises / recipe_id / "recipe.toml"
    if Path(recipe_id).name != recipe_id or not path.is_file():
        raise _unknown(recipe_id, exercises)
    goal = read_record(path.with_name(GOAL), Goal) if path.with_name(GOAL).is_file() else None
    broken = path.with_name("experiment.py")  # this file exists only in a course kit
    if broken.is_file():
        return read_record(path, KitRecipe, id=recipe_id, goal=goal, source=broken.read_text(encoding="utf-8"))
    recipe = read_record(path, Recipe, id=recipe_id, goal=goal)
    if not path.with_name("PROMPT.md").is_file():
        raise UserError(f"{path.parent} has no PROMPT.md: write this file with the task for the student.")
    try:
        recipe.broken_source()
    except (UserError, ValueError) as error:
        raise UserError(f"the break in {path} cannot be applied to its experiment: {error}") from None
    return recipe


def _unknown(name: str, exercises: Path) -> UserError:
    others = sorted(path.parent.name for path in exercises.glob(f"*/{FILE_EXERCISE}"))
    if name in others:
        return UserError(f"The exercise {name} has no training run: make check checks your answer.")
    if not name:
        return UserError("Name an exercise, as in BREAK=huge_lr: make exercises lists them.")
    close = difflib.get_close_matches(name, [*recipe_ids(exercises), *others], n=1)
    remedy = f"did you mean {close[0]}?" if close else "make exercises lists them."
    return UserError(f"There is no exercise {name!r}: {remedy}")
