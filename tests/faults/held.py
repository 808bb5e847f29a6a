"""How a fault says that what was seen is not what must come of it, or that it cannot be done here."""


class NotHeld(AssertionError):
    """What was seen is not what must come of a fault."""


class Absent(Exception):
    """This machine cannot do it: the sentence says why."""


def must(condition: bool, words: str) -> None:
    """Raise `NotHeld` with these words unless it is so."""
    if not condition:
        raise NotHeld(words)
