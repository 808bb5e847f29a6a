"""Takes tarballs of submissions apart and puts them together again."""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping

from harness.submission.archive import MANIFEST, deterministic_tar_gz

Members = dict[str, bytes]


def unpacked(data: bytes) -> Members:
    """Return the members of a submission that was made here, by name."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        files = {item.name: archive.extractfile(item) for item in archive.getmembers()}
        return {name: file.read() for name, file in files.items() if file is not None}


def with_manifest(
    members: Mapping[str, bytes], student: str, *, untrue: Mapping[str, str] | None = None
) -> Members:
    """Return the members under a student's name, with a manifest that agrees with them but for the `untrue` hashes."""
    files = {name: content for name, content in members.items() if name != MANIFEST}
    manifest = json.loads(members[MANIFEST])
    manifest["student"] = student
    manifest["files"] = {name: hashlib.sha256(files[name]).hexdigest() for name in sorted(files)} | dict(
        untrue or {}
    )
    return {**files, MANIFEST: (json.dumps(manifest, indent=1) + "\n").encode()}


def packed(members: Mapping[str, bytes]) -> bytes:
    """Return the tarball of these members, as `make submit` writes it."""
    return deterministic_tar_gz(members)
