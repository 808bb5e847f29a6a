"""`grader review`: find the items that need a decision, and store decisions.

The module `review_page` shows these items in a browser.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from grader.course.decisions import (
    TOTAL,
    Decision,
    apply_decisions,
    decisions_about,
    entries_about,
    keep_decision,
    load_decisions,
    tarball_of,
)
from grader.report.text import points
from grader.score.verdict import RubricItem, Scores, SubmissionScore, with_criteria
from harness.errors import UserError


@dataclass(frozen=True)
class OpenItem:
    """Something that an instructor can decide: a rubric item, or the total of a submission (`check` is then None)."""

    row: SubmissionScore
    about: str
    check: RubricItem | None = None

    @property
    def most(self) -> float:
        """The maximum points of the item."""
        return 100.0 if self.check is None else self.check.max

    @property
    def accepted(self) -> float | None:
        """The points that the button "Accept" or "On time" gives; None if the page has no such button."""
        if self.check is not None:
            return self.check.max
        return with_criteria(replace(self.row, untimed=False), self.row.criteria).total if self.row.untimed else None

    @property
    def waits(self) -> bool:
        """Whether the item is open.

        A rubric item is open if it has no points. A total is open if its row has no items, or if the row needs a time
        of submission, but the time is unknown.
        """
        return self.row.untimed or not self.row.criteria if self.check is None else self.check.points is None

    @property
    def title(self) -> str:
        """The title of the item, in one line."""
        return self.about if self.check is None else f"{self.about}: {self.check.title}"

    @property
    def reason(self) -> str:
        """The reason for the points, which the grader or the instructor gave."""
        return self.row.reason if self.check is None else self.check.reason

    @property
    def key(self) -> str:
        """The name of the item in URLs, which does not reveal the student."""
        return f"{row_key(self.row)}/{self.about}"


def row_key(row: SubmissionScore) -> str:
    """Return a code for a submission. Neither the code nor its position in a sorted list reveals the student."""
    return hashlib.sha256(row.submission.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def items_of(row: SubmissionScore) -> list[OpenItem]:
    """Return everything that an instructor can decide about a submission: the total, and each rubric item."""
    return [OpenItem(row, TOTAL)] + [
        OpenItem(row, f"{name}.{check.id}", check)
        for name, criterion in row.criteria.items()
        for check in criterion.checks
    ]


def find_open_items(rows: Sequence[SubmissionScore]) -> list[OpenItem]:
    """Return all open items (see `OpenItem.waits`) of submissions that are not judged."""
    every = (item for row in rows if row.status == "not judged" for item in items_of(row))
    return [item for item in every if item.waits]


def read_points(item: OpenItem, words: str) -> tuple[str, float]:
    """Return the key and the value of a decision from the typed words.

    A number with a sign gives the key `add`; without a sign, the key is `points`, or `total` if the item is a total.
    Raises `UserError` if the words are not a number, or if the number exceeds the item's maximum.
    """
    words = words.strip().replace(",", ".").replace("−", "-")
    adds = words[:1] in ("+", "-")
    try:
        given = float(words)
    except ValueError:
        given = math.nan
    if not (abs(given) <= 1000 if adds else 0 <= given <= item.most):
        raise UserError(
            f"Give a number from 0 to {points(item.most)}, or points to add or subtract with a sign, such as +2 or -2."
        )
    return "add" if adds else "total" if item.check is None else "points", given


def seen_of(out: Path, item: OpenItem) -> str:
    """Return a text for a hidden field of the form: the number of decisions so far, and the hash of the tarball."""
    return f"{entries_about(load_decisions(out), item.row.submission, item.about)}.{tarball_of(item.row)[:16]}"


def _entries_seen(seen: str | None, item: OpenItem) -> int | None:
    """Return the number of decisions in `seen`, or None. Raises `UserError` if `seen` names another tarball."""
    if seen is None:
        return None
    count, _, tarball = seen.partition(".")
    if tarball != tarball_of(item.row)[:16] or not count.isdecimal():
        raise UserError("The class was scored again, and the student now has another file: look at the new file first.")
    return int(count)


def decide(out: Path, item: OpenItem, words: str, comment: str, who: str, seen: str | None = None) -> None:
    """Store a decision about an item on the disk.

    words: the typed points, as for `read_points`. who: the name of the instructor. seen: what `seen_of` returned when
    the page was made. Raises `UserError` as `read_points` does, and if the comment is empty, if the decision cannot be
    applied, if somebody else has decided the item since then, or if the decisions file cannot be read.
    """
    after = _entries_seen(seen, item)
    key, given = read_points(item, words)
    if not comment.strip():
        raise UserError("Write a comment: the student sees it.")
    decision = _withdrawal(item, who, comment.strip()).model_copy(update={"withdrawn": None, key: given})
    with_it = [*(one for one in load_decisions(out) if one.submission == item.row.submission), decision]
    note = apply_decisions(Scores(provenance={}, submissions=(item.row,)), with_it).decisions[-1]
    if note.state == "not applied":
        raise UserError(note.why)
    keep_decision(out, decision, after=after)


def undo(out: Path, item: OpenItem, who: str, seen: str | None = None) -> None:
    """Undo the last decision about an item, by storing a new decision.

    The new decision repeats the last decision but one. Without such a decision, it restores the points from the grader.
    A second undo is therefore a redo. seen: as for `decide`. Raises `UserError` if there is no decision about the item,
    or if somebody else has decided the item in the meantime.
    """
    after = _entries_seen(seen, item)
    entries = decisions_about(load_decisions(out), item.row, item.about)
    if not entries:
        raise UserError("There is no decision to undo.")
    again = _withdrawal(item, who, "Undone.")
    if len(entries) > 1:
        again = entries[-2].model_copy(update={"who": again.who, "when": again.when, "sha256": again.sha256})
    keep_decision(out, again, after=after)


def _withdrawal(item: OpenItem, who: str, comment: str) -> Decision:
    """Return a decision with the current time that withdraws the earlier decision about an item."""
    return Decision(
        submission=item.row.submission,
        check=None if item.check is None else item.about,
        withdrawn=True,
        comment=comment,
        who=who,
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        sha256=tarball_of(item.row),
    )
