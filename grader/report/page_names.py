"""What the page of each submission is called: a safe file name, whatever the submission is called."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable

_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
# No file can have these names on Windows, whatever the ending; index is the page of the class.
_TAKEN = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?|index", re.IGNORECASE)
_DERIVED = re.compile(r".*-[0-9a-f]{16}", re.DOTALL)


def page_stems(submissions: Iterable[str]) -> dict[str, str]:
    """Return the file name, without its ending, of each submission's page.

    It is the submission's own name where that is safe on every file system and no other one differs from it
    in case alone; else its safe characters and 16 hexadecimal digits of its SHA-256, so that the name of one
    submission does not depend on the order of the others. A name that looks derived is derived again: no one
    can choose the name of somebody else's page.
    """
    names = set(submissions)
    alike = Counter(name.lower() for name in names if _is_safe(name))
    return {
        name: name if alike[name.lower()] == 1 and _is_safe(name) else _derived(name)
        for name in sorted(names)
    }


def is_page_name(name: str) -> bool:
    """Say whether a file of this name could be the page of a submission."""
    stem, dot, ending = name.rpartition(".")
    return bool(dot) and ending == "html" and _SAFE.fullmatch(stem) is not None and stem != "index"


def _is_safe(name: str) -> bool:
    return (
        _SAFE.fullmatch(name) is not None
        and not name.endswith(".")
        and _TAKEN.fullmatch(name) is None
        and _DERIVED.fullmatch(name) is None
    )


def _derived(name: str) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    readable = re.sub(r"[^A-Za-z0-9_]+", "-", name).strip("-")[:60] or "submission"
    return f"{readable}-{digest[:16]}"
