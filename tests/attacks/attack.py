"""The record of an attack: a submission made from an honest one, and the outcome that it must have."""

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
Baseline = Literal["untouched", "wrong", "masked", "reference", "stub"]
RECIPE = "huge_lr"
# An attack that succeeds prints this word. It joins the word while it runs (`"-".join(("wreck", "breached"))`), so that
# no source holds it. No output of the grader may hold it.
BREACHED = "wreck-breached"
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Base:
    """Honest tarballs of one recipe that attacks are made from, and what lies outside of them.

    reference: the right fix, 100 points. masked: the symptom is clipped away, at most 4 points for the fix.
    untouched: the broken experiment, handed in as if it were fixed. wrong: an edit that fixes nothing, with its own
    run: it repeats, which earns the points of a fixed run that repeats. canary: a file in the grader's home
    folder; secret: its content, which must appear in no output. submissions: the folder of the class.
    """

    reference: bytes
    masked: bytes
    untouched: bytes
    wrong: bytes
    canary: Path
    secret: str
    submissions: Path


@dataclass(frozen=True)
class Expected:
    """What must become of an attack.

    status: what its row may be. because: a regular expression that must be found in the row's reason, the reason of
    a check, or a flag ("": nothing special). gains_over: neither its total nor its points for
    the fix may exceed those of this honest submission in the same class.
    """

    status: tuple[RowStatus, ...]
    because: str = ""
    gains_over: Baseline = "untouched"


@dataclass(frozen=True)
class Attack:
    """One hostile tarball.

    build: its bytes. file_name: the tarball's own, if that is the attack (else `<id>_<recipe>.tar.gz`). place: how
    it gets into the folder of the class, if it is no plain file. slow: it ends at a limit of time. in_suite: whether
    the tests run it as well as `make redteam`.
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
        """The name of its file."""
        return self.file_name or f"{self.id}_{self.recipe}.tar.gz"


def members_of(data: bytes) -> dict[str, bytes]:
    """Return the files of an honest tarball."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        files = {item.name: archive.extractfile(item) for item in archive.getmembers()}
        return {name: file.read() for name, file in files.items() if file is not None}


def with_members(base: bytes, changed: Mapping[str, bytes | None], *, student: str) -> bytes:
    """Return an honest tarball with these members added or replaced (None: taken away) under a student's name.

    The manifest agrees with them, unless `changed` brings one of its own.
    """
    members = members_of(base)
    before = members.pop(MANIFEST)
    files = {name: content for name, content in {**members, **changed}.items() if content is not None}
    files.setdefault(MANIFEST, manifest_for(files, before, student=student))
    return deterministic_tar_gz(files)


def manifest_for(members: Mapping[str, bytes], before: bytes, **fields: Any) -> bytes:
    """Return the manifest `before` with the hashes of these members, and other fields in place of its own."""
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(members.items())}
    record = {**json.loads(before), "files": digests, **fields}
    return (json.dumps(record, indent=1) + "\n").encode()
