"""The replays that a submission's score rests on: its own fix, and what everybody with its settings shares."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from grader.evidence import Run, recipe_of
from grader.replay import Request
from grader.syntax.parse import tree_digest
from harness.settings import RunSettings


@dataclass(frozen=True)
class Requests:
    """The broken run and the reference fix, which the suite itself brings, and the student's fix."""

    broken: Request
    reference: Request
    fixed: Request

    def again(self) -> Mapping[Run, Request]:
        """Return second replays of the student's two runs, which show whether they repeat."""
        return {
            "broken": replace(self.broken, repetition=1),
            "fixed": replace(self.fixed, repetition=1),
        }


@lru_cache(maxsize=256)
def trusted_requests(recipe_id: str, settings: RunSettings | None = None) -> tuple[Request, Request]:
    """Return the broken run and the reference fix under these settings, or the recipe's own."""
    recipe = recipe_of(recipe_id)
    settings = settings or RunSettings(seed=recipe.seed, dataset=recipe.dataset)
    broken, reference = (
        Request(recipe, settings, source, tree_digest(source), trusted=True)
        for source in (recipe.broken_source(), recipe.healthy_source())
    )
    return broken, reference


def requests_for(recipe_id: str, settings: RunSettings, source: str, tree: str) -> Requests:
    """Return what has to be replayed for one fix."""
    fixed = Request(recipe_of(recipe_id), settings, source, tree, trusted=False)
    return Requests(*trusted_requests(recipe_id, settings), fixed)
