"""All attacks, from the modules of this package that are named after a family of attacks."""

from collections.abc import Iterable
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import get_args

from attacks.attack import Attack, Family

_MODULES = [path.stem for path in sorted(Path(__file__).parent.glob("*.py")) if path.stem.startswith(get_args(Family))]
_FOUND = (import_module(f"attacks.{name}").ATTACKS for name in _MODULES)
ALL: tuple[Attack, ...] = tuple(chain.from_iterable(_FOUND))


def chosen(ids: Iterable[str], family: str | None) -> list[Attack]:
    """Return the attacks of this family with these ids, by default all. Raises `LookupError` for an unknown id."""
    ids, known = set(ids), {attack.id for attack in ALL}
    if unknown := ids - known:
        raise LookupError(f"There is no attack {', '.join(sorted(unknown))}.")
    return [attack for attack in ALL if attack.id in (ids or known) and family in (None, attack.family)]
