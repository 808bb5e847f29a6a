"""Which replays a score rests on, and the key under which each is remembered: all that determines its result."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property, lru_cache
from typing import Any

from grader.replay.heldout_data import FOLDER
from grader.replay.inside import sources_hash
from grader.replay.machine import machine_state
from grader.sandbox import Limits
from grader.score.evidence import Run, recipe_of
from grader.score.solutions import mechanisms_of
from grader.syntax.parse import tree_digest
from harness.recipe import Recipe
from harness.run.provenance import harness_hash
from harness.run.settings import RunSettings

# Measured on one 2.5 GHz core: the slowest recipe takes 13 s and 420 MB, an MLP 4 s. A laptop may be a few times
# slower; a run at the limit of what the intake takes (EPOCHS) is not expected to fit.
RUN_LIMITS = Limits(
    cpu_seconds=120,
    wall_seconds=240,
    memory_bytes=2 * 2**30,
    processes=64,
    file_bytes=64 * 2**20,
    scratch_bytes=128 * 2**20,
    scratch_files=1000,
    output_bytes=2**20,
    result_bytes=96 * 2**20,
)
# Raise it when a replay holds something else than before.
_FORMAT = 3


@dataclass(frozen=True)
class Request:
    """One replay to make: a source under settings. `trusted` says that the source is the suite's own.

    `tree` stands for the source: the same program, however it is formatted, is replayed once.
    """

    recipe: Recipe
    settings: RunSettings
    source: str
    tree: str
    trusted: bool
    repetition: int = 0  # a second replay of the same source shows that it repeats

    @cached_property
    def key(self) -> str:
        """The SHA-256 of all that determines what the replay gives."""
        return self._key(tree=self.tree)

    @cached_property
    def text_key(self) -> str:
        """The same of what exactly this text gives, its line numbers included."""
        return self._key(text=self.source)

    def _key(self, **program: str) -> str:
        parts: Mapping[str, Any] = {
            "format": _FORMAT,
            "recipe": self.recipe.id,
            "checks": sorted(mechanisms_of(self.recipe.id)),
            "healthy": hashlib.sha256(self.recipe.healthy_source().encode()).hexdigest(),
            "settings": asdict(self.settings),
            **program,
            "trusted": self.trusted,
            "repetition": self.repetition,
            "code": _code_hash(),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@cache
def _code_hash() -> str:
    heldout = hashlib.sha256((FOLDER / "SHA256SUMS").read_bytes()).hexdigest()
    return f"{harness_hash()} {sources_hash()} {heldout} {RUN_LIMITS} {machine_state()}"


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


def canary_requests(recipe_id: str) -> tuple[Request, Request, Request]:
    """Return the broken run, the reference fix, and the reference fix once more as if a student had sent it."""
    broken, reference = trusted_requests(recipe_id)
    return broken, reference, replace(reference, trusted=False, repetition=1)


def requests_for(recipe_id: str, settings: RunSettings, source: str, tree: str) -> Requests:
    """Return what has to be replayed for one fix."""
    fixed = Request(recipe_of(recipe_id), settings, source, tree, trusted=False)
    return Requests(*trusted_requests(recipe_id, settings), fixed)
