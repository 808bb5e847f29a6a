"""Select checks, and drop the findings that the user ignores by name or suppresses by a comment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trainwreck.catalogue import CHECKS, explain_unknown_check, explain_unknown_name, outcomes_named
from trainwreck.check import Check
from trainwreck.finding import Finding
from trainwreck.source import IgnoreComment, ignore_comments
from trainwreck.usage import UsageError


@dataclass(frozen=True)
class Kept:
    """The findings that remain, the number of those that comments suppress, and remarks on wrong comments."""

    findings: list[Finding]
    suppressed: int
    remarks: list[str]


@dataclass(frozen=True)
class Selection:
    """The checks to run, and the outcomes to ignore, by names like `gradients/stale`."""

    checks: tuple[type[Check], ...]
    ignored: frozenset[str] = frozenset()

    def keep(self, findings: Iterable[Finding], script: str) -> Kept:
        """Drop the findings that are not selected, and the findings that a comment suppresses.

        A comment `ignore` belongs to its line. A comment `ignore-file` at the top belongs to its file; in the script
        also to the findings without a line.
        """
        kept, suppressed, remarks = [], 0, dict[str, None]()
        names = {check.name for check in self.checks}
        for finding in findings:
            if finding.check not in names or finding.name in self.ignored:
                continue
            file = finding.place.file if finding.place.line else script
            comments = list(ignore_comments(file))
            remarks.update((f"{file}:{text}", None) for comment in comments if (text := _remark(comment)))
            if any(_suppresses(comment, finding) for comment in comments):
                suppressed += 1
            else:
                kept.append(finding)
        return Kept(kept, suppressed, list(remarks))


def choose(
    select: str | Iterable[str] = (), ignore: str | Iterable[str] = (), labels: tuple[str, str] = ("select", "ignore")
) -> Selection:
    """Return the selection of all checks, or those in `select`, without the names in `ignore`.

    A string holds names with commas between them. `labels` say in messages where the names come from.

    Raises `UsageError` for an unknown name, and if no check is left.
    """
    selected, dropped = _split(select), _split(ignore)
    for name in selected:
        if name not in CHECKS:
            raise UsageError(f"{labels[0]}: {explain_unknown_check(name)}")
    for name in dropped:
        if not outcomes_named(name):
            raise UsageError(f"{labels[1]}: {explain_unknown_name(name)}")
    ignored = frozenset(outcome for name in dropped for outcome in outcomes_named(name))
    checks = tuple(
        check
        for name, check in CHECKS.items()
        if (not selected or name in selected) and not ignored.issuperset(outcomes_named(name))
    )
    if not checks:
        raise UsageError(f"{labels[1]}: no check is left; select another check, or ignore fewer")
    return Selection(checks, ignored)


def _split(names: str | Iterable[str]) -> Sequence[str]:
    listed = names.split(",") if isinstance(names, str) else names
    return [name for name in map(str.strip, listed) if name]


def _suppresses(comment: IgnoreComment, finding: Finding) -> bool:
    fits = comment.at_top if comment.whole_file else comment.line == finding.place.line
    return fits and (comment.names is None or any(finding.name in outcomes_named(name) for name in comment.names))


def _remark(comment: IgnoreComment) -> str:
    """Return the line of a comment and why it has no effect, or "" if it is right."""
    if comment.whole_file and not comment.at_top:
        return f"{comment.line}: `ignore-file` has no effect here; move it above the first statement"
    if comment.alone and not comment.whole_file:
        return f"{comment.line}: `ignore` has no effect on a line of its own; write it behind the code of the line"
    for name in sorted(comment.names or ()):
        if not outcomes_named(name):
            return f"{comment.line}: {explain_unknown_name(name).splitlines()[0]}"
    return ""
