"""All attacks."""

from collections.abc import Iterable

from attacks import (
    archive_files,
    archive_manifest,
    archive_members,
    reader_pages,
    reader_programs,
    reader_texts,
    reader_trees,
    sandbox_forked,
    sandbox_outputs,
    sandbox_reach,
    sandbox_resources,
    score_deriving,
    score_forging,
    score_lying,
    score_patching,
)
from attacks.attack import Attack

_MODULES = (
    archive_files, archive_members, archive_manifest,
    sandbox_reach, sandbox_resources, sandbox_outputs, sandbox_forked,
    score_patching, score_lying, score_forging, score_deriving,
    reader_pages, reader_texts, reader_programs, reader_trees,
)  # fmt: skip
ALL: tuple[Attack, ...] = tuple(attack for module in _MODULES for attack in module.ATTACKS)


def chosen(ids: Iterable[str], family: str | None) -> list[Attack]:
    """Return the attacks with these ids (all, where none is named) of this family. Raises `LookupError`."""
    known = {attack.id: attack for attack in ALL}
    ids = list(ids)
    for id in ids:
        if id not in known:
            raise LookupError(f"There is no attack {id}: tests/attacks/catalogue.py collects them.")
    return [attack for attack in ALL if attack.id in (ids or known) and family in (None, attack.family)]
