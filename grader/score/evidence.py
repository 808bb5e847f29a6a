"""Everything that is known of one submission before it is scored: what it claims, and what the replays gave."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from grader.replay.replay import Replay
from grader.syntax.plain_code import Suspicion
from harness.recipe import Recipe, load_recipe
from harness.run.settings import RunSettings

# Read once a process.
recipe_of = cache(load_recipe)

Run = Literal["broken", "fixed"]
RUNS: tuple[Run, ...] = ("broken", "fixed")


@dataclass(frozen=True)
class Claim:
    """What a submission says of one run: its log, its checkpoint's SHA-256, and where it was made."""

    log: bytes | None
    checkpoint_sha256: str | None
    platform: Mapping[str, Any] | None


@dataclass(frozen=True)
class Evidence:
    """One submission, replayed. The student's texts in it are untrusted; the replays are our own.

    `same_class` says whether the student's machine must agree with ours to the byte; where it need not,
    `again` holds a second replay of each run. `command_problem` is "" where the commands are recorded.
    """

    recipe: Recipe
    settings: RunSettings
    command_problem: str
    missing: tuple[str, ...]
    claims: Mapping[Run, Claim]
    source: str
    report: str | None
    broken: Replay
    fixed: Replay
    reference: Replay
    same_class: bool
    suspicions: tuple[Suspicion, ...] = ()
    again: Mapping[Run, Replay] = field(default_factory=dict)

    def replay(self, run: Run) -> Replay:
        """Return our replay of one of the student's runs."""
        return self.broken if run == "broken" else self.fixed
