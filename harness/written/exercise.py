"""Exercises in which students write one file, with code or text, instead of fixing a training run.

`exercises/<id>/` contains `judge.toml`, `PROMPT.md` and the file that a student starts from. The exercises with a
broken run are in `harness.recipes.recipe.Recipe`.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from harness.errors import UserError, suggestion
from harness.formats.toml_file import StrictModel, read_record, read_table
from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import EXERCISES, FILE_EXERCISE, Recipe, Text, recipe_ids

_LIST = Field(strict=False)  # a list in TOML becomes a tuple
Name = Annotated[str, Field(pattern=r"^[A-Za-z]\w{0,39}$")]
Size = Name | Annotated[int, Field(ge=1, le=1000)]  # the name of a size, or a number
Shape = Annotated[tuple[Size, ...], _LIST]
CompareKind = Literal[
    "values", "exact", "shapes", "sums", "zeros", "at_most", "at_least", "imports", "repeats", "person"
]
MOST_SIZES = 6


class InputDraw(StrictModel):
    """How an input is drawn.

    draw: `normal` (`mean`, `scale`), `uniform` (`low` to `high`), `whole` numbers as floats and `integers` (`low` to
        `below`, without it), `flags` (booleans, of which the fraction `share` is true), `triangle` (true above the
        diagonal), or `constant` (`value`).
    shape: its sizes; () means one number, which a function gets as a Python number.
    along: draw this shape instead, and repeat its values to fill `shape`.
    """

    draw: Literal["normal", "uniform", "whole", "integers", "flags", "triangle", "constant"]
    shape: Shape = ()
    along: Shape | None = None
    mean: float = 0.0
    scale: float = 1.0
    low: float = 0.0
    high: float = 1.0
    below: Size = 2
    share: Annotated[float, Field(ge=0, le=1)] = 0.5
    value: float | int | bool = 0


class FunctionCall(StrictModel):
    """One call of a function of the answer.

    arguments: names of inputs, sizes or earlier results; a table is a dictionary of them.
    returns: the name of the result; a list if the function returns a tuple; a table {key: name} for a dictionary.
    """

    function: Name
    arguments: Annotated[tuple[Name | dict[str, Name], ...], _LIST]
    returns: Name | list[Name] | dict[str, Name]

    @property
    def needs(self) -> list[str]:
        """The names of all arguments, also inside dictionaries."""
        nested = [[one] if isinstance(one, str) else [*one.values()] for one in self.arguments]
        return [name for names in nested for name in names]

    @property
    def results(self) -> list[str]:
        """The names of all results."""
        if isinstance(self.returns, str):
            return [self.returns]
        return [*self.returns.values()] if isinstance(self.returns, dict) else self.returns


class InputCase(StrictModel):
    """One set of inputs. Messages write `says` after "With".

    sizes and inputs replace the general ones. special: whether the inputs reveal a rare mistake. An item about a
    special case counts only if the same outputs are right in all other cases.
    """

    id: Name
    says: Text
    sizes: dict[Name, int] = Field(default_factory=dict)
    inputs: dict[Name, InputDraw] = Field(default_factory=dict)
    special: bool = False


class GradientRule(StrictModel):
    """Which results are gradients. `by`: {result: input by which it differentiates}.

    They are the derivatives of the result `of`, or of its sum, each entry multiplied by the input `times`.
    """

    of: Name
    times: Name | None = None
    by: dict[Name, Name]


class ExerciseItem(StrictModel):
    """One item of the rubric. id: `criterion.name`. points: its worth. remedy: how to earn the points."""

    id: Annotated[str, Field(pattern=r"^[a-z][a-z_]{0,39}\.[A-Za-z]\w{0,39}$")]
    title: Text
    points: Annotated[float | int, Field(ge=0, le=100, allow_inf_nan=False)]
    remedy: str = ""

    @property
    def criterion(self) -> str:
        """The criterion of the rubric that the item belongs to."""
        return self.id.partition(".")[0]

    @property
    def name(self) -> str:
        """The id of the item within its criterion."""
        return self.id.partition(".")[2]


class JudgeItem(ExerciseItem):
    """An item that compares outputs. The remedy is used if no known mistake says more.

    compare: `values` or `shapes` of the `outputs` with the right ones; `exact` whole numbers; `sums` along `axis` with
        `to`; `zeros` where the input `where` is true; each entry with `bound` (`at_most`, `at_least`); the `imports` of
        the file; whether a second call `repeats`; or `person`: the instructor reads the text in `constant`.
    cases: the cases in which the item compares; by default all that are not special.
    tolerance: the largest relative error.
    """

    compare: Literal[
        "values", "exact", "shapes", "sums", "zeros", "at_most", "at_least", "imports", "repeats", "person"
    ] = "values"
    outputs: Annotated[tuple[Name, ...], _LIST] = ()
    cases: Annotated[tuple[Name, ...], _LIST] = ()
    tolerance: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    axis: int = -1
    to: float = 1.0
    where: Name | None = None
    bound: float = 0.0
    constant: Name | None = None


class FileExercise(StrictModel):
    """The fields that both kinds of exercise have. id: the name of the folder. file: the name of the file to write."""

    id: str
    format_version: Literal[1]
    kind: str
    title: Text
    file: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*\.[a-z]+$")]
    item: Annotated[tuple[ExerciseItem, ...], _LIST]

    @property
    def points(self) -> dict[str, dict[str, float]]:
        """The points of each item: {criterion: {name: points}}."""
        points: dict[str, dict[str, float]] = {}
        for item in self.item:
            points.setdefault(item.criterion, {})[item.name] = float(item.points)
        return points

    @property
    def by_person(self) -> set[str]:
        """The ids of the items for which a person reads a text."""
        return set()

    @model_validator(mode="after")
    def _adds_up(self) -> "FileExercise":
        ids = [item.id for item in self.item]
        if twice := [one for one in ids if ids.count(one) > 1]:
            raise ValueError(f"two items have the id {twice[0]}: rename one")
        if round(total := sum(item.points for item in self.item), 6) != 100:
            raise ValueError(f"the points of all items add up to {total:g}, not to 100: change some of them")
        return self


class FunctionExercise(FileExercise):
    """An exercise to write functions in NumPy. `judge.toml` says how they are called and what is compared."""

    kind: Literal["functions"]
    sizes: Annotated[tuple[Name, ...], Field(strict=False, max_length=MOST_SIZES)] = ()
    inputs: dict[Name, InputDraw]
    item: Annotated[tuple[JudgeItem, ...], _LIST]
    call: Annotated[tuple[FunctionCall, ...], Field(strict=False, min_length=1)]
    case: Annotated[tuple[InputCase, ...], Field(strict=False, min_length=1)]
    gradients: Annotated[tuple[GradientRule, ...], _LIST] = ()

    @property
    def ordinary(self) -> list[str]:
        """The ids of the cases that are not special."""
        return [case.id for case in self.case if not case.special]

    @property
    def outputs(self) -> list[str]:
        """The names of the results that are compared, in the order of the items."""
        known = (item.outputs for item in self.item)
        return [*dict.fromkeys(name for names in (*known, *self._gradient_names()) for name in names)]

    @property
    def differentiates(self) -> dict[str, str]:
        """{gradient: input by which it differentiates}."""
        return {name: by for rule in self.gradients for name, by in rule.by.items()}

    @property
    def by_person(self) -> set[str]:
        """The ids of the items for which a person reads a text."""
        return {item.id for item in self.item if item.compare == "person"}

    def _gradient_names(self) -> list[list[str]]:
        return [[rule.of, *rule.by] for rule in self.gradients]

    @property
    def compared(self) -> list[str]:
        """The names of the results whose values are compared with the right ones."""
        return [*dict.fromkeys(name for item in self.item if item.compare == "values" for name in item.outputs)]

    def cases_of(self, item: JudgeItem) -> list[str]:
        """Return the ids of the cases in which an item compares outputs."""
        return list(item.cases) or self.ordinary

    @model_validator(mode="after")
    def _names_exist(self) -> "FunctionExercise":
        for problem in self._unknown_names():
            raise ValueError(problem)
        return self

    def _unknown_names(self) -> Iterator[str]:
        given = {*self.inputs, *self.sizes}
        results = [name for call in self.call for name in call.results]
        for case in self.case:
            yield from _unknown_problems(f"the case {case.id}", "size", case.sizes, self.sizes)
            yield from _unknown_problems(f"the case {case.id}", "input", case.inputs, self.inputs)
        for name, drawn in [*self.inputs.items(), *(one for case in self.case for one in case.inputs.items())]:
            sizes = [one for one in (*drawn.shape, *(drawn.along or ()), drawn.below) if isinstance(one, str)]
            yield from _unknown_problems(f"the input {name}", "size", sizes, self.sizes)
        known = set(given)
        for call in self.call:
            yield from _unknown_problems(f"the call of {call.function}", "input or earlier result", call.needs, known)
            known |= {*call.results}
        if len(self.ordinary) == 0:
            yield "every case is special: leave out `special` for at least one"
        for rule in self.gradients:
            yield from _unknown_problems("gradients", "result", [rule.of, *rule.by], results)
            yield from _unknown_problems(
                "gradients", "input", [*filter(None, [rule.times]), *rule.by.values()], self.inputs
            )
        for item in self.item:
            yield from _unknown_problems(f"the item {item.id}", "result", item.outputs, results)
            yield from _unknown_problems(f"the item {item.id}", "case", item.cases, [case.id for case in self.case])
            alone = item.compare in ("imports", "repeats", "person")
            if alone == bool(item.outputs):
                yield f"the item {item.id}: {'remove' if alone else 'write'} `outputs`"
            if item.compare == "person" and item.constant is None:
                yield f"the item {item.id}: write `constant`, the name of the text that a person reads"
            if item.compare == "zeros":
                yield from _unknown_problems(f"the item {item.id}", "input", [str(item.where)], self.inputs)


def _unknown_problems(
    place: str, what: str, names: Sequence[str] | Mapping[str, object], known: object
) -> Iterator[str]:
    there = [*known] if isinstance(known, (list, tuple, dict, set)) else []
    for name in names:
        if name not in there:
            yield f"{place}: there is no {what} {name!r}: {suggestion(name, sorted(there))}"


class DecisionTree(FileExercise):
    """An exercise to write a decision tree of checks in YAML (`harness.written.decision_tree`).

    experiments: the exercises that a tree must tell apart. slowest: a tree gets no points for its cost if it takes
    this many times the minutes of the reference tree.
    """

    kind: Literal["decision_tree"]
    experiments: Annotated[tuple[str, ...], _LIST]
    slowest: Annotated[float, Field(gt=1)]


KINDS: Mapping[str, type[FileExercise]] = {"functions": FunctionExercise, "decision_tree": DecisionTree}


def file_exercise_ids(exercises: Path = EXERCISES) -> list[str]:
    """Return the sorted names of all exercises in which students write a file."""
    return sorted(path.parent.name for path in exercises.glob(f"*/{FILE_EXERCISE}"))


def exercise_ids(exercises: Path = EXERCISES) -> list[str]:
    """Return the names of all exercises, beginning with the broken runs."""
    return [*recipe_ids(exercises), *file_exercise_ids(exercises)]


def load_exercise(exercise_id: str, exercises: Path = EXERCISES) -> Recipe | FileExercise:
    """Return the exercise with this name. Raises `UserError` for an unknown name and for an invalid file."""
    if exercise_id not in file_exercise_ids(exercises):
        return load_recipe(exercise_id, exercises)
    path = exercises / exercise_id / FILE_EXERCISE
    name = str(read_table(path).get("kind"))
    if name not in KINDS:
        raise UserError(f"{path} has an unknown kind: {suggestion(name, [*KINDS])}")
    return read_record(path, KINDS[name], id=exercise_id)


def find_file_exercise(exercise_id: str, exercises: Path = EXERCISES) -> FileExercise | None:
    """Return the exercise with this name if students write a file in it, and None for every other name."""
    if exercise_id not in file_exercise_ids(exercises):
        return None
    found = load_exercise(exercise_id, exercises)
    assert isinstance(found, FileExercise)
    return found


def stub(exercise: FileExercise, exercises: Path = EXERCISES) -> str:
    """Return the original text of the file that the student edits."""
    return (exercises / exercise.id / exercise.file).read_text(encoding="utf-8")
