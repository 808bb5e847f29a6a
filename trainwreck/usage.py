"""Wrong use: the error that carries a message for the user, and the nearest known name."""

import difflib
from collections.abc import Iterable

_NEAR = 0.75  # "nonsense" is not near to "none", whose ratio is 0.67


class UsageError(ValueError):
    """The user made a mistake. The message says what is wrong and what to do."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a message, `; did you mean modes?`, or "" if no known name is near."""
    near = difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=_NEAR)
    return f"; did you mean {near[0]}?" if near else ""
