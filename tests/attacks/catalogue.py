"""All attacks."""

from collections.abc import Iterable

from attacks import archive_attacks, reader_attacks, sandbox_attacks, score_attacks
from attacks.attack import Attack

ALL: tuple[Attack, ...] = (
    *archive_attacks.ATTACKS,
    *sandbox_attacks.ATTACKS,
    *score_attacks.ATTACKS,
    *reader_attacks.ATTACKS,
)


def chosen(ids: Iterable[str], family: str | None) -> list[Attack]:
    """Return the attacks with these ids (all, where none is named) of this family. Raises `LookupError`."""
    known = {attack.id: attack for attack in ALL}
    ids = list(ids)
    for id in ids:
        if id not in known:
            raise LookupError(f"There is no attack {id}: tests/attacks/catalogue.py collects them.")
    return [attack for attack in ALL if attack.id in (ids or known) and family in (None, attack.family)]
