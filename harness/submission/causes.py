"""The causes that a report may name, and whether a value of a log contradicts one of them."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from harness.recipe import Symptom, load_recipes
from harness.run.metrics_log import Record
from harness.submission.log_values import LogValues
from harness.submission.report import HEALTHY, Sign
from harness.symptoms import judge_symptom, signal_values

# Only a student's kit has this file; the suite itself has the recipes.
CAUSES = Path(__file__).with_name("causes.toml")
# People count steps from 1, too: a step that is off by one is a slip of the place, not of the finding.
OFF_BY = 1


class Cause(BaseModel):
    """A cause: one sentence, and what every run that has it shows in its log."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    says: str
    symptom: Annotated[tuple[Symptom, ...], Field(strict=False)] = ()

    def on(self, dataset: str) -> tuple[Symptom, ...]:
        """Return what its runs show on a data set."""
        return tuple(item for item in self.symptom if item.dataset in (None, dataset))


@cache
def load_causes() -> Mapping[str, Cause]:
    """Return every cause that a report may name by its id, `healthy` last."""
    if CAUSES.is_file():
        table = tomllib.loads(CAUSES.read_text(encoding="utf-8"))
        return {name: Cause.model_validate(entry) for name, entry in table.items()}
    found = {
        recipe.id: Cause(says=recipe.cause, symptom=(*recipe.symptoms, *recipe.observations))
        for recipe in load_recipes()[0]
    }
    return {**found, HEALTHY: Cause(says="nothing is wrong with this run")}


def causes_file() -> str:
    """Return the `causes.toml` of a student's kit: it lists the causes, and names the exercise of none."""
    lines = []
    for name, cause in load_causes().items():
        lines += [f"[{name}]", f"says = {_toml(cause.says)}", ""]
        for symptom in cause.symptom:
            lines.append(f"[[{name}.symptom]]")
            values = symptom.model_dump(mode="json", exclude_none=True)
            lines += [*(f"{key} = {_toml(value)}" for key, value in values.items()), ""]
    return "\n".join(lines)


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)  # a string, number or list of JSON is one of TOML


def contradicted(
    sign: Sign, symptoms: Sequence[Symptom], records: Sequence[Record], log: LogValues
) -> Symptom | None:
    """Return the first of a rival's symptoms that a cited value of this run contradicts, or None.

    The run must not show the symptom, and the value must lie beyond its bounds, in the part of the run that it is
    about. For `reduce = "first"` and `"last"` that part is one record. `log` holds the values of `records`.
    """
    for symptom in symptoms:
        if symptom.signal != sign.signal or judge_symptom(records, symptom).present:
            continue
        values = signal_values(records, symptom.signal)
        if symptom.steps is not None:
            values = [item for item in values if symptom.steps[0] <= item[0] < symptom.steps[1]]
        for index, value in {"first": values[:1], "last": values[-1:]}.get(symptom.reduce, values):
            above = symptom.above is None or value > symptom.above
            below = symptom.below is None or value < symptom.below
            is_near = abs(index - sign.index) <= OFF_BY
            if is_near and not (above and below) and log.agrees(sign.value or "", symptom.signal, index):
                return symptom
    return None
