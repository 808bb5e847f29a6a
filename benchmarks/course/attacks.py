"""Hostile submissions of a course: a handful of the kinds that `tests/attacks` has in full, all of which end soon.

Those of `_CODE` run in the sandbox. But for the tampering one each ends without a result, and what it leaves is kept
for its own text alone: so each is run. Those of `_ARCHIVES` are refused by the intake.
"""

import gzip
import io
import tarfile
from collections.abc import Callable

from benchmarks.course.tarballs import Members, packed, with_manifest
from grader.intake.archive import UNPACKED_BYTES
from grader.intake.submission import LOG_BYTES

_TAMPERING = """
import json
_dumps = json.dumps


def _better(value, **options):
    if isinstance(value, dict) and value.get("val_accuracy"):
        value = {**value, "val_accuracy": 0.99}
    return _dumps(value, **options)


json.dumps = _better
"""
_CODE = {
    "early exit": "import os\n\nos._exit(0)\n",
    "crash": "\n\ndef build_model():\n    return no_such_network\n",
    "forks": "import os\n\nwhile True:\n    os.fork()\n",
    "prints": "print('x' * 2**22)\n",
    "tampering": _TAMPERING,
    "loop": "while True:\n    pass\n",
}


def attacking_source(attack: str, source: str) -> str:
    """Return the experiment with the attack's code at its end; as it is where the attack is in the archive."""
    return source + _CODE.get(attack, "")


def attacking_tarball(attack: str, members: Members, student: str) -> bytes:
    """Return the tarball of an attack; `members` are those of an honest submission with its experiment.

    Raises `ValueError` for no such attack.
    """
    if attack in _CODE:
        return packed(with_manifest(members, student))
    if attack not in _ARCHIVES:
        raise ValueError(f"{attack!r} is no attack")
    return _ARCHIVES[attack](members, student)


def _strange(members: Members, student: str, *strange: tarfile.TarInfo) -> bytes:
    """Return a tarball with empty members of any kind beside the honest ones."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in with_manifest(members, student).items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for info in strange:
            archive.addfile(info)
    return gzip.compress(buffer.getvalue(), compresslevel=1, mtime=0)


def _traversal(members: Members, student: str) -> bytes:
    return _strange(members, student, tarfile.TarInfo("../../etc/cron.d/evil"))


def _link(members: Members, student: str) -> bytes:
    info = tarfile.TarInfo("runs/fixed/secret")
    info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
    return _strange(members, student, info)


def _truncated(members: Members, student: str) -> bytes:
    whole = packed(with_manifest(members, student))
    return whole[: len(whole) // 2]


def _zip(members: Members, student: str) -> bytes:
    return b"PK\x03\x04 of " + student.encode()


def _bomb(members: Members, student: str) -> bytes:
    return gzip.compress(student.encode() + bytes(UNPACKED_BYTES), compresslevel=1, mtime=0)


def _huge_log(members: Members, student: str) -> bytes:
    log = members["runs/fixed/metrics.log"]
    long = log * (LOG_BYTES // len(log) + 1)
    return packed(with_manifest({**members, "runs/fixed/metrics.log": long}, student))


_ARCHIVES: dict[str, Callable[[Members, str], bytes]] = {
    "traversal": _traversal,
    "link": _link,
    "truncated": _truncated,
    "zip": _zip,
    "bomb": _bomb,
    "huge log": _huge_log,
}
REFUSED = frozenset(_ARCHIVES)
