"""The limits of a submission. The grader refuses files that exceed them, and `make check` reports such files first.

Other limits of a report are next to the functions that read it: words (`harness.submission.report`), characters
(`harness.submission.document`), front matter and decision trees (`harness.formats.plain_yaml`).
"""

from collections.abc import Iterable
from dataclasses import dataclass

KIB, MIB = 1024, 1024 * 1024

# A manifest of 20 files has 2 KiB, an experiment 3 KiB, the platform facts of a run 2 KiB.
MANIFEST_BYTES = 64 * KIB
EXPERIMENT_BYTES = 64 * KIB
COMMANDS_BYTES = 64 * KIB
META_BYTES = 64 * KIB
# 500 words are a few KiB, but a report may contain pictures.
REPORT_BYTES = 256 * KIB
# The longest log of an unchanged recipe has 0.1 MiB. Parsing one at the limit takes 3 s and 260 MB.
LOG_BYTES = 8 * MIB
# A batch record nests 5 deep; a few hundred levels crash recursive readers.
LINE_BRACKETS = 100
# The reference tree, which distinguishes all recipes, has 80 KiB.
ANSWER_BYTES = 128 * KIB
# The limit of any one file, and of all files together. A submission of an MLP takes 2 MiB.
FILE_BYTES = 32 * MIB
FILES_BYTES = 63 * MIB
# The limit of a tarball, before and after unpacking, because `make submit` compresses nothing. The additional MiB is
# enough for the headers of 20 members, the manifest and the commands.
TARBALL_BYTES = FILES_BYTES + MIB
# A submission has 20 members; the headers of folders and of long names count, too. `make submit` chooses all names.
MEMBERS = 200
NAME_BYTES = 255  # a file system allows no more in one part of a path
# A long name, or the times that some tar programs write, need an additional header.
EXTENSION_BYTES = 4096
# Together with the exercise's name and `.tar.gz.sha256`, a file name has at most 255 bytes.
STUDENT_CHARACTERS, STUDENT_BYTES = 64, 128
# The program of an experiment (`harness.submission.program`). The longest healthy one has 500 nodes and a depth of 12.
# The slowest known text of this size takes CPython 3.11 0.9 s (an f-string of 60,000 nodes). The parser limits its own
# depth, so text that is nested too deeply raises an ordinary exception.
NODES = 8_000
DEPTH = 100
INTEGER_BITS = 4096  # Python refuses to print longer integers (its limit is 4,300 digits)
DOTS = 100

_AGAIN = "make the run again, and do not edit its files"
_SMALLER = "keep the network and the files of the run smaller"
_PACKED = "make submit writes a complete archive"
_LOG = (LOG_BYTES, "log too large", "train for fewer epochs, or with larger batches")
_META = (META_BYTES, "meta too large", _AGAIN)
# For each file of a submission: the limit, the code of the refusal, and the remedy.
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
    """An exceeded limit: a code for programs, a clause about the file, and the remedy."""

    code: str
    says: str
    cure: str


def size_excess(name: str, size: int) -> Excess | None:
    """Return the limit that a file of `size` bytes exceeds, or None.

    name: its path in the submission; "" for the limit that holds for every file.
    """
    limit, code, cure = _SIZES.get(name, _ANY)
    return Excess(code, f"is larger than {_size(limit)}", cure) if size > limit else None


def total_excess(sizes: Iterable[int]) -> Excess | None:
    """Return the limit that the files of a submission exceed together, or None."""
    if sum(sizes) <= FILES_BYTES:
        return None
    return Excess("archive too large", f"have more than {_size(FILES_BYTES)} together", _SMALLER)


def line_excess(log: bytes) -> Excess | None:
    """Return the limit that a line of a log exceeds by its brackets, or None."""
    if all(line.count(b"{") + line.count(b"[") <= LINE_BRACKETS for line in log.split(b"\n")):
        return None
    return Excess("no log", f"has a line with more than {LINE_BRACKETS} brackets, which no run writes", _AGAIN)


def _size(limit: int) -> str:
    return f"{limit // MIB} MiB" if limit >= MIB else f"{limit // KIB} KiB"
