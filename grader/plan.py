"""What has to be replayed for a submission that was taken in: all that the class as a whole needs to know of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from grader.replay.replay import Replay
from grader.replay.requests import Requests, requests_for
from grader.taken import Taken
from harness.run.provenance import same_class
from harness.run.settings import RunSettings


@dataclass(frozen=True)
class Plan:
    """A submission without its logs and texts; `platforms` are those on which it says that it was made."""

    name: str
    recipe: str
    student: str
    settings: RunSettings
    source: str
    tree: str
    platforms: tuple[Mapping[str, Any], ...]

    @cached_property
    def requests(self) -> Requests:
        """The replays that its score rests on."""
        return requests_for(self.recipe, self.settings, self.source, self.tree)

    def same_class(self, broken: Replay) -> bool:
        """Say whether its bytes must be those of our replays."""
        ours = broken.platform
        return ours is None or all(_agree(platform, ours) for platform in self.platforms)


def plan_of(taken: Taken) -> Plan:
    """Return the plan for a submission."""
    platforms = (claim.platform for claim in taken.claims.values())
    return Plan(
        name=taken.name,
        recipe=taken.recipe,
        student=taken.student,
        settings=taken.settings,
        source=taken.source,
        tree=taken.tree,
        platforms=tuple(platform for platform in platforms if platform is not None),
    )


def _agree(claimed: Mapping[str, Any], ours: Mapping[str, Any]) -> bool:
    """Say whether a run of the platform class that a student claims must have our bytes."""
    return "golden" in claimed and "device" in claimed and same_class(claimed, ours)
