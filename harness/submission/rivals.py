"""The causes that a report may name, and whether a value of a log contradicts one of them."""

from collections.abc import Mapping, Sequence

from harness.recipe import Recipe, Symptom, load_recipe, recipe_ids
from harness.run.metrics_log import Record
from harness.submission.log_values import LogValues
from harness.submission.report import HEALTHY, Sign
from harness.symptoms import judge_symptom, signal_values

# People count steps from 1, too: a step that is off by one is a slip of the place, not of the finding.
OFF_BY = 1


def causes() -> Mapping[str, str]:
    """Return the causes that a report may name: id and one sentence, by id, then `healthy`."""
    found = {recipe.id: recipe.cause for recipe in map(load_recipe, recipe_ids())}
    return {**found, HEALTHY: "nothing is wrong with this run"}


def contradicted(sign: Sign, rival: Recipe, records: Sequence[Record], log: LogValues) -> Symptom | None:
    """Return the symptom or observation of a rival cause that a value of this run's log contradicts, if there is one.

    The run must not show it, and the value must lie beyond its bounds, in the part of the run that it is about. For
    `reduce = "first"` and `"last"` that part is one record.
    """
    for symptom in (*rival.symptoms, *rival.observations):
        if symptom.signal != sign.signal or judge_symptom(records, symptom).present:
            continue
        values = signal_values(records, symptom.signal)
        if symptom.steps is not None:
            values = [item for item in values if symptom.steps[0] <= item[0] < symptom.steps[1]]
        part = {"first": values[:1], "last": values[-1:]}.get(symptom.reduce, values)
        for index, value in part:
            above = symptom.above is None or value > symptom.above
            below = symptom.below is None or value < symptom.below
            if abs(index - sign.index) <= OFF_BY and not (above and below):
                if log.agrees(sign.value or "", symptom.signal, index):
                    return symptom
    return None
