"""What is replayed, and the key under which a replay is remembered: everything that determines its result."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property, lru_cache
from typing import Any, Literal

from grader.intake.submission import Submission
from grader.replay.data import HELDOUT_FOLDER
from grader.replay.inside import INSIDE
from grader.replay.provenance import machine_state
from grader.sandbox import Limits
from grader.score.solutions import mechanisms_of
from grader.syntax.program import tree_digest
from harness.recipe import Recipe, load_recipe
from harness.run.provenance import harness_hash
from harness.run.settings import RunSettings

# Measured on one 2.5 GHz core: the slowest recipe takes 13 s and 420 MB, an MLP 4 s. A laptop may be a few times
# slower.
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
# Raise this when the content of a replay changes.
_FORMAT = 3

# The runs that a score rests on; those "again" only if the student's machine need not agree with ours to the byte.
Role = Literal["broken", "reference", "fixed", "broken again", "fixed again"]

recipe_of = cache(load_recipe)


@dataclass(frozen=True)
class Request:
    """One run to make: a source under settings. `trusted` says that the source is the suite's own.

    Programs with equal syntax trees (`tree`) share one replay. A higher `repetition` asks for another replay of the
    same source, which shows whether it repeats.
    """

    recipe: Recipe
    settings: RunSettings
    source: str
    tree: str
    trusted: bool
    repetition: int = 0

    @cached_property
    def key(self) -> str:
        """The SHA-256 of everything that determines the replay of this program."""
        return self._key(tree=self.tree)

    @cached_property
    def text_key(self) -> str:
        """The SHA-256 of everything that determines the replay of exactly this text, line numbers included."""
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
            "code": _environment(),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@cache
def _environment() -> str:
    """Return what all replays on this machine depend on: harness, scripts, held-out data, limits, versions."""
    heldout = hashlib.sha256((HELDOUT_FOLDER / "SHA256SUMS").read_bytes()).hexdigest()
    inside = hashlib.sha256()
    for path in sorted(INSIDE.glob("*.py")):
        inside.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{harness_hash()} {inside.hexdigest()} {heldout} {RUN_LIMITS} {machine_state()}"


@lru_cache(maxsize=256)
def trusted_requests(recipe_id: str, settings: RunSettings | None = None) -> tuple[Request, Request]:
    """Return the broken run and the reference fix under these settings, or the recipe's own.

    Raises `UserError` if the recipe cannot be used.
    """
    recipe = recipe_of(recipe_id)
    settings = settings or RunSettings(seed=recipe.seed, dataset=recipe.dataset)
    broken, reference = (
        Request(recipe, settings, source, tree_digest(source), trusted=True)
        for source in (recipe.broken_source(), recipe.healthy_source())
    )
    return broken, reference


def canary_requests(recipe_id: str) -> tuple[Request, Request, Request]:
    """Return the broken run, the reference fix, and the reference fix run as a student's experiment is."""
    broken, reference = trusted_requests(recipe_id)
    return broken, reference, replace(reference, trusted=False, repetition=1)


def requests_of(submission: Submission) -> dict[Role, Request]:
    """Return our broken run and reference fix under the student's settings, and the student's fix."""
    broken, reference = trusted_requests(submission.recipe, submission.settings)
    fixed = Request(broken.recipe, submission.settings, submission.source, submission.tree, trusted=False)
    return {"broken": broken, "reference": reference, "fixed": fixed}


def second_requests(requests: Mapping[Role, Request]) -> dict[Role, Request]:
    """Return second replays of the student's two runs, which show whether they repeat."""
    return {
        "broken again": replace(requests["broken"], repetition=1),
        "fixed again": replace(requests["fixed"], repetition=1),
    }
