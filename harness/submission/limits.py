"""The limits for the files of a submission.

`make check` reports files that exceed a limit, and the grader refuses them.

Further limits for a report are in the modules that read it: for words in `harness.submission.report`, for characters in
`harness.submission.document`, for front matter and decision trees in `harness.formats.plain_yaml`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

KIB, MIB = 1024, 1024 * 1024

# Typical sizes: a manifest of 20 files has 2 KiB, an experiment 3 KiB, and the facts about a run 2 KiB.
MANIFEST_BYTES = 64 * KIB
EXPERIMENT_BYTES = 64 * KIB
COMMANDS_BYTES = 64 * KIB
META_BYTES = 64 * KIB
# The text of a report (500 words) has only a few KiB, but a report may contain pictures.
REPORT_BYTES = 256 * KIB
# The longest log of an unchanged recipe has 0.1 MiB. Parsing a log of the largest allowed size takes 3 s and 260 MB.
LOG_BYTES = 8 * MIB
# The brackets of a batch record are nested 5 deep. A few hundred levels would crash recursive readers.
LINE_BRACKETS = 100
# The decision tree in our solution, which distinguishes all recipes, has 80 KiB.
ANSWER_BYTES = 128 * KIB
# The limit for each single file, and for all files together. A submission with the runs of an MLP has 2 MiB.
FILE_BYTES = 32 * MIB
FILES_BYTES = 63 * MIB
# The limit for a tarball, both before and after unpacking, because `make submit` does not compress. The additional MiB
# is enough for the headers of 20 files, the manifest and the commands.
TARBALL_BYTES = FILES_BYTES + MIB
# A submission has 20 files. The headers of folders and of long names also count here. `make submit` chooses all names.
MEMBERS = 200
NAME_BYTES = 255  # the most that file systems allow in one part of a path
# The size of an additional header, which tar needs for a long name, and which some tar programs write for times.
EXTENSION_BYTES = 4096
# So a file name that also contains the exercise's name and `.tar.gz.sha256` has at most 255 bytes.
STUDENT_CHARACTERS, STUDENT_BYTES = 64, 128
# Limits for the syntax tree of an experiment. The longest healthy experiment has 500 nodes and a depth of 12. The
# slowest known text of the allowed size (an f-string of 60,000 nodes) takes CPython 3.11 0.9 s. The parser limits its
# own depth, so text that is nested too deeply raises an ordinary exception.
NODES = 8_000
DEPTH = 100
INTEGER_BITS = 4096  # Python cannot print much longer integers (its limit is 4,300 digits)
DOTS = 100

_AGAIN = "make the run again, and do not edit its files"
_SMALLER = "use a smaller network, and write smaller files"
_PACKED = "make submit writes a complete archive"
_LOG = (LOG_BYTES, "log too large", "train for fewer epochs, or with larger batches")
_META = (META_BYTES, "meta too large", _AGAIN)
# Maps each file of a submission to its limit in bytes, a code for programs, and a remedy.
_SIZES = {
    "manifest.json": (MANIFEST_BYTES, "manifest", _PACKED),
    "experiment.py": (EXPERIMENT_BYTES, "text too large", "shorten it"),
    "report.md": (REPORT_BYTES, "text too large", "shorten it, or shrink the pictures in it"),
    "command.txt": (COMMANDS_BYTES, "text too large", _PACKED),
    **{f"runs/{run}/metrics.log": _LOG for run in ("broken", "fixed")},
    **{f"runs/{run}/checkpoint.pt.meta.json": _META for run in ("broken", "fixed")},
}
_ANY = (FILE_BYTES, "file too large", _SMALLER)


@dataclass(frozen=True)
class Excess:
    """An exceeded limit: a code for programs, a clause that says what is too large, and the remedy."""

    code: str
    says: str
    cure: str


def size_excess(name: str, size: int) -> Excess | None:
    """Return the limit that a file of `size` bytes exceeds, or None.

    name: the file's path in the submission, or "" for the limit that applies to every file.
    """
    limit, code, cure = _SIZES.get(name, _ANY)
    return Excess(code, f"is larger than {_size(limit)}", cure) if size > limit else None


def total_excess(sizes: Iterable[int]) -> Excess | None:
    """Return the limit that the files of a submission exceed together, or None."""
    if sum(sizes) <= FILES_BYTES:
        return None
    return Excess("archive too large", f"have more than {_size(FILES_BYTES)} together", _SMALLER)


def line_excess(log: bytes) -> Excess | None:
    """Return the limit that a line of a log exceeds because it has too many brackets, or None."""
    if all(line.count(b"{") + line.count(b"[") <= LINE_BRACKETS for line in log.split(b"\n")):
        return None
    return Excess("no log", f"has a line with more than {LINE_BRACKETS} brackets, which no run writes", _AGAIN)


def _size(limit: int) -> str:
    return f"{limit // MIB} MiB" if limit >= MIB else f"{limit // KIB} KiB"
