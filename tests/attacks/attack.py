"""The record of an attack: a submission made from an honest one, and its expected result."""

import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from grader.score.verdict import RowStatus
from harness.submission.archive import deterministic_tar_gz

Family = Literal["archive", "sandbox", "score", "reader"]
Baseline = Literal["untouched", "wrong", "masked", "reference", "stub", "script"]
RECIPE = "huge_lr"
# An attack that succeeds prints this word. The attack joins the word at run time (`"-".join(("wreck", "breached"))`),
# so no source contains it. The grader's output must never contain it.
BREACHED = "wreck-breached"
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Base:
    """Honest tarballs of one recipe, from which attacks are made, and facts about the grader's machine.

    reference: the correct fix, 100 points. masked: clipping hides the symptom, at most 4 points for the fix. untouched:
    the broken experiment, handed in as if it were fixed. wrong: an edit that fixes nothing, with its own reproducible
    run, which earns the points for reproducibility. canary: a file in the grader's home folder. secret: the content of
    this file, which must not appear in any output. submissions: the folder of the class. script: a broken script that
    is handed in as if it were fixed, or b"" if no attack needs it.
    """

    reference: bytes
    masked: bytes
    untouched: bytes
    wrong: bytes
    canary: Path
    secret: str
    submissions: Path
    script: bytes = b""


@dataclass(frozen=True)
class Expected:
    """The expected result of an attack.

    status: the allowed values of the row's status. because: a regular expression that must match the row's reason, the
    reason of an item, or a flag ("": no condition). gains_over: the name of an honest submission in the same class. The
    attack must not get a higher total or more points for the fix than this submission.
    """

    status: tuple[RowStatus, ...]
    because: str = ""
    gains_over: Baseline = "untouched"


@dataclass(frozen=True)
class Attack:
    """One hostile tarball.

    build: makes its bytes. file_name: the name of the tarball, if the name is part of the attack (default:
    `<id>_<recipe>.tar.gz`). place: puts the tarball into the folder of the class, if it is not a normal file. slow:
    whether the attack runs until a time limit. in_suite: whether the tests run it in addition to `make redteam`.
    """

    id: str
    family: Family
    says: str
    expected: Expected
    build: Callable[[Base], bytes]
    file_name: str | None = None
    place: Callable[[Path, bytes], object] = Path.write_bytes
    slow: bool = False
    in_suite: bool = True
    recipe: str = RECIPE

    @property
    def tarball(self) -> str:
        """The file name of the tarball."""
        return self.file_name or f"{self.id}_{self.recipe}.tar.gz"


def members_of(data: bytes) -> dict[str, bytes]:
    """Return the files in an honest tarball."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        files = {item.name: archive.extractfile(item) for item in archive.getmembers()}
        return {name: file.read() for name, file in files.items() if file is not None}


def with_members(base: bytes, changed: Mapping[str, bytes | None], *, student: str) -> bytes:
    """Return an honest tarball of a student in which these members are added, replaced, or (for None) removed.

    The manifest matches the members, unless `changed` contains another manifest.
    """
    members = members_of(base)
    before = members.pop(MANIFEST)
    files = {name: content for name, content in {**members, **changed}.items() if content is not None}
    files.setdefault(MANIFEST, manifest_for(files, before, student=student))
    return deterministic_tar_gz(files)


def manifest_for(members: Mapping[str, bytes], before: bytes, **fields: Any) -> bytes:
    """Return the manifest `before` with the hashes of these members and with other values for `fields`."""
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(members.items())}
    record = {**json.loads(before), "files": digests, **fields}
    return (json.dumps(record, indent=1) + "\n").encode()
