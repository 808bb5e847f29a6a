"""A replay: what the grader itself saw when it ran an experiment, and the key under which it is remembered."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, Literal

from pydantic import JsonValue

from grader.exhibits import Number
from grader.score import Model
from harness.metrics_log import Record, log_lines, parse_log
from harness.provenance import harness_hash
from harness.recipe import Recipe
from harness.settings import RunSettings

Status = Literal["OK", "RE", "SG", "TO", "OL", "ML", "XX"]
# Raise it when a replay holds something else than before.
_FORMAT = 1


class ProbeFigure(Model):
    """What a mechanism probe measured."""

    kind: str
    value: Number


class SplitFigures(Model):
    """Loss and accuracy (None for a regression) on one split."""

    loss: Number
    accuracy: Number


class Evaluation(Model):
    """What the trusted evaluator found about replayed weights; `problem` says why they could not be evaluated."""

    heldout: SplitFigures | None = None
    validation: SplitFigures | None = None
    problem: str = ""


class Replay(Model):
    """One experiment, run by the grader. Where `status` is not OK, `message` says why and there are no figures.

    `XX` is a fault of ours or of the machine; every other status is the experiment's own doing.
    """

    status: Status
    message: str = ""
    log: str = ""
    log_sha256: str | None = None
    checkpoint_sha256: str | None = None
    probes: tuple[ProbeFigure, ...] = ()
    platform: dict[str, JsonValue] | None = None
    evaluation: Evaluation | None = None

    def records(self) -> Sequence[Record]:
        """Return the records of the log; they are shared, so nobody may change them."""
        return _records(self.log)


@lru_cache(maxsize=8)
def _records(log: str) -> Sequence[Record]:
    return tuple(parse_log(log_lines(log), "the replayed metrics.log"))


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
        parts: Mapping[str, Any] = {
            "format": _FORMAT,
            "recipe": self.recipe.id,
            "probes": [probe.model_dump() for probe in self.recipe.probes],
            "healthy": hashlib.sha256(self.recipe.healthy_source().encode()).hexdigest(),
            "settings": asdict(self.settings),
            "tree": self.tree,
            "trusted": self.trusted,
            "repetition": self.repetition,
            "code": _code_hash(),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@cache
def _code_hash() -> str:
    from importlib.metadata import version

    from grader.inside import sources_hash

    return f"{harness_hash()} {sources_hash()} torch {version('torch')} numpy {version('numpy')}"
