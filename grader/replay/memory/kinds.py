"""What is remembered, and where: each kind of record has a folder of its own in the memory."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Holds = Literal["replay", "examination", "score", "canary", "trial"]


@dataclass(frozen=True)
class Kind:
    """Records of one kind: what each holds, and the `folder` where they lie, below the memory."""

    title: str
    holds: Holds
    folder: Path


REPLAYS = Kind("replays", "replay", Path())
EXAMINATIONS = Kind("examinations of answers", "examination", Path("examined"))
SCORES = Kind("scores", "score", Path("graded"))
CANARIES = Kind("canaries that passed", "canary", Path("canaries"))
TRIALS = Kind("outcomes of checks", "trial", Path("trials"))
# What ran without a sandbox is never taken for what ran in one.
NO_SANDBOX = Path("no-sandbox")

KINDS = (
    REPLAYS,
    EXAMINATIONS,
    SCORES,
    CANARIES,
    TRIALS,
    Kind("replays without a sandbox", "replay", NO_SANDBOX / REPLAYS.folder),
    Kind("examinations without a sandbox", "examination", NO_SANDBOX / EXAMINATIONS.folder),
    Kind("scores without a sandbox", "score", NO_SANDBOX / SCORES.folder),
    Kind("canaries that passed without a sandbox", "canary", NO_SANDBOX / CANARIES.folder),
)
