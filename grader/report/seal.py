"""Each page ends with a seal: what it was made of, and that it is whole; so it need not be made again."""

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from grader.replay.provenance import code_state
from grader.report.page_template import TEMPLATE_FOLDERS
from grader.score.verdict import SubmissionScore

_SEAL = "<!-- made of {} and is {} -->\n"
_LENGTH = len(_SEAL.format("0" * 64, "0" * 64))


def made_of(
    row: SubmissionScore, exhibits: bytes, recipe_title: str, provenance: Mapping[str, object]
) -> str:
    """Return the SHA-256 of all that a page of one submission is made of, our programs and templates included.

    exhibits: what it shows, as JSON.
    """
    parts = (
        _makers(),
        row.model_dump_json(),
        hashlib.sha256(exhibits).hexdigest(),
        recipe_title,
        json.dumps(dict(provenance), sort_keys=True),
    )
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def sealed(page: str, made_of: str) -> bytes:
    """Return the bytes of a page with its seal."""
    content = page.encode()
    return content + _seal(made_of, content)


def is_sealed(path: Path, made_of: str) -> bool:
    """Say whether a file is the whole page that is made of this."""
    try:
        data = path.read_bytes()
    except OSError:
        return False
    return data[-_LENGTH:] == _seal(made_of, data[:-_LENGTH])


def _seal(made_of: str, content: bytes) -> bytes:
    return _SEAL.format(made_of, hashlib.sha256(content).hexdigest()).encode()


@cache
def _makers() -> str:
    total = hashlib.sha256(code_state().encode())
    for folder in TEMPLATE_FOLDERS:
        for path in sorted(folder.iterdir()):
            total.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()
