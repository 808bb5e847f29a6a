"""A baseline: a file with the known findings of a project, so that a report has only the new ones."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from trainwreck.finding import Finding
from trainwreck.source import relative_path, source_lines
from trainwreck.usage import UsageError

_FORMAT = 1


@dataclass(frozen=True, order=True)
class Known:
    """A known finding.

    file: relative to the folder of the baseline. source: the text of the line without spaces around it, so that the
    line may move; "" for a finding without a line, which belongs to the script.
    """

    file: str
    check: str
    outcome: str
    source: str


@dataclass(frozen=True)
class Baseline:
    """The known findings. Their files are relative to `folder`."""

    folder: Path
    known: frozenset[Known] = frozenset()

    def drop_known(self, findings: Iterable[Finding], script: str) -> list[Finding]:
        """Return the findings that are new."""
        return [finding for finding in findings if _known(finding, script, self.folder) not in self.known]


def read_baseline(path: Path) -> Baseline:
    """Read a baseline.

    Raises `UsageError` if the file does not exist or is damaged.
    """
    damaged = UsageError(
        f"{path} is not a baseline: it must be a JSON object with `format` and with `findings`, each with"
        f" {', '.join(field.name for field in fields(Known))}.\nWrite it again with --write-baseline {path}"
    )
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        form, known = found["format"], frozenset(Known(**one) for one in found["findings"])
    except FileNotFoundError:
        raise UsageError(f"There is no baseline {path}: write it with --write-baseline {path}") from None
    except OSError as error:
        raise UsageError(f"The baseline {path} cannot be read: {error.strerror}.") from None
    except (ValueError, LookupError, TypeError, RecursionError):
        raise damaged from None
    if form != _FORMAT or not all(isinstance(value, str) for one in known for value in asdict(one).values()):
        raise damaged
    return Baseline(path.parent, known)


def to_baseline(findings: Iterable[Finding], script: str, folder: Path) -> str:
    """Return the text of a baseline in a folder. The same findings give the same text."""
    entries = sorted({_known(finding, script, folder) for finding in findings})
    return json.dumps({"format": _FORMAT, "findings": [asdict(entry) for entry in entries]}, indent=2)


def _known(finding: Finding, script: str, folder: Path) -> Known:
    line, file = finding.place.line, finding.place.file if finding.place.line else script
    lines = source_lines(file)[line - 1 : line] if line else []
    return Known(relative_path(file, folder), finding.check, finding.outcome, "".join(lines).strip())
