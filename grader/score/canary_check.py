"""Has the canaries of a class replayed and looked at, before any student's code runs; those that passed are known."""

import hashlib
import json
from collections.abc import Iterable
from functools import partial

from grader.crew import Crew
from grader.desk import Desk
from grader.replay.memory.kinds import CANARIES
from grader.replay.replay import Replay
from grader.replay.replays import Replays
from grader.replay.requests import canary_requests
from grader.replay.store import Store
from grader.report.progress import Progress
from grader.score.canaries import CanaryFailed, check_canaries
from grader.score.code_state import code_state
from grader.score.verdict import Model
from grader.score.weights import Weights

# A recipe, and the replays of its canaries.
_Item = tuple[str, tuple[Replay, ...]]


class CanaryPassed(Model):
    """The canaries of a recipe came out right: of these very replays, by this very code."""

    recipe: str


class CanaryCheck:
    """Looks at the canaries of recipes, for the desk by which a class is scored."""

    def __init__(self, replays: Replays, desk: Desk, crew: Crew) -> None:
        self._replays = replays
        self._desk = desk
        self._crew = crew
        self._store = Store(desk.memory / CANARIES.folder, CanaryPassed)

    def check(self, recipes: Iterable[str], progress: Progress) -> None:
        """Raise `CanaryFailed` where the grader does not grade right here."""
        requests = {f"canary of {recipe}": canary_requests(recipe) for recipe in sorted(recipes)}
        wanted = [(name, item) for name, items in requests.items() for item in items]
        looked_at = self._crew.batch(partial(_check, self._desk.weights), lost=_lost)
        passing: dict[str, CanaryPassed] = {}

        def look(name: str) -> None:
            recipe = requests[name][0].recipe.id
            item = recipe, tuple(map(self._replays.of, requests[name]))
            if self._desk.fresh or self._store.get(self._key(item)) is None:
                looked_at.add(item)
                passing[self._key(item)] = CanaryPassed(recipe=recipe)

        self._replays.make("canaries", wanted, progress, look)
        looked_at.results(lambda item, seconds: None)
        for key, record in passing.items():
            self._store.put(key, record)

    def _key(self, item: _Item) -> str:
        """Return the SHA-256 of all that decides about it: what was replayed, too, as that is read from a disk."""
        recipe, replays = item
        parts = [recipe, code_state(), dict(self._desk.weights), [item.model_dump_json() for item in replays]]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _check(weights: Weights, item: _Item) -> None:
    recipe, (broken, reference, repaired) = item
    check_canaries(recipe, broken, reference, repaired, weights=weights)


def _lost(item: _Item) -> None:
    raise CanaryFailed(
        f"Nothing was scored: the process that looked at the canaries of {item[0]} ended, twice."
    )
