"""Looks at every entry: is it whole, and does it hold what its kind must hold?"""

from collections.abc import Iterable, Iterator, Mapping

from grader.graded import Graded
from grader.replay.memory.entries import Entry
from grader.replay.memory.kinds import Holds
from grader.replay.replay import Replay
from grader.replay.store import Damaged, read_record
from grader.score.canary_check import CanaryPassed
from grader.score.verdict import Model
from grader.selfcheck.runs import Outcomes
from grader.written.answers.examination import Examination

MODELS: Mapping[Holds, type[Model]] = {
    "replay": Replay,
    "examination": Examination,
    "score": Graded,
    "canary": CanaryPassed,
    "trial": Outcomes,
}


def damaged(entries: Iterable[Entry]) -> Iterator[tuple[Entry, str]]:
    """Yield each entry that cannot be used, and what is wrong with it. Looking at an entry is no use of it."""
    for entry in entries:
        try:
            read_record(entry.path.read_bytes(), MODELS[entry.kind.holds])
        except FileNotFoundError:
            continue  # another grader has just removed it
        except OSError as error:
            yield entry, f"it cannot be read ({error.strerror})"
        except Damaged as error:
            yield entry, str(error)
