"""Which names of files a tarball may hold, and how one is shown."""

import unicodedata
from collections.abc import Iterable

from grader.intake.rejected import Rejected

# Long enough for anything a person names; what a file system takes in one part of a path.
NAME_BYTES = 255
_SHOWN = 80


def printable(text: str) -> str:
    """Return the text with everything that cannot be seen written as an escape, at most 80 characters."""
    shown = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[: _SHOWN + 1])
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…"


def plain_name(name: str) -> str:
    """Return the name without a leading `./`, which `tar czf x.tar.gz .` writes.

    Raises `Rejected` for one that is absolute, leads out of the folder, or is no plain text.
    """
    if len(name.encode("utf-8", "replace")) > NAME_BYTES:
        raise Rejected("name too long", f"A name in the archive is longer than {NAME_BYTES} bytes.")
    if not name.isprintable():
        raise Rejected(
            "unprintable name",
            f"The name {printable(name)} in the archive has characters that cannot be seen.",
        )
    if name.startswith("/") or "\\" in name or name[1:2] == ":":
        raise Rejected(
            "absolute name", f"The name {printable(name)} in the archive is not a plain relative one."
        )
    parts = name.removeprefix("./").rstrip("/").split("/")
    if ".." in parts:
        raise Rejected("path traversal", f"The name {printable(name)} leads out of the archive's folder.")
    if any(part in ("", ".") for part in parts) and name not in (".", "./"):
        raise Rejected(
            "absolute name", f"The name {printable(name)} in the archive is not a plain relative one."
        )
    return "/".join(parts)


def check_distinct(names: Iterable[str]) -> None:
    """Raise `Rejected` where two names are one file, here or on a system that folds case or accents."""
    seen: dict[str, str] = {}
    for name in names:
        key = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
        other = seen.setdefault(key, name)
        if other is name:
            continue
        if other == name:
            raise Rejected("duplicate name", f"The archive holds {printable(name)} twice.")
        raise Rejected(
            "colliding names",
            f"The archive holds both {printable(other)} and {printable(name)}, which are one file on some systems.",
        )
    for key, name in seen.items():
        for end, char in enumerate(key):
            if char == "/" and key[:end] in seen:
                other = printable(seen[key[:end]])
                raise Rejected(
                    "colliding names", f"The archive holds {other} and {printable(name)} below it."
                )
