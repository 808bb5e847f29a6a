"""Statements of a function in the order that another source has them in, where the order makes no difference."""

import ast
from collections.abc import Sequence, Set

from grader.syntax.effects import Surroundings, may_swap

# The longest block of an experiment has 7 statements.
_MOST = 24


def sink(block: list[ast.stmt], single: Set[str], around: Surroundings) -> None:
    """Move each name in `single`, set here and read once, down to the statement that reads it; in place."""
    if len(block) > _MOST:
        return
    for index in range(len(block) - 2, -1, -1):
        match block[index]:
            case ast.Assign(targets=[ast.Name(id=name)]) if name in single:
                place = index
                while place + 2 < len(block) and may_swap(block[place], block[place + 1], around):
                    block[place : place + 2] = [block[place + 1], block[place]]
                    place += 1


def in_order_of(block: Sequence[ast.stmt], other: Sequence[ast.stmt], around: Surroundings) -> list[ast.stmt]:
    """Return the statements of a block with those that `other` has too in its order, as far as they may move.

    Two that set the same name are the same one. What `other` has not stays before what it stood before.
    """
    if not 1 < len(block) <= _MOST or len(other) > _MOST:
        return list(block)
    places: dict[str, list[int]] = {}
    for index, statement in enumerate(other):
        places.setdefault(_about(statement), []).append(index)
    wanted: list[tuple[int, int]] = []
    following = len(other)
    for statement in reversed(block):
        known = places.get(_about(statement))
        if known:
            following = known.pop()
            wanted.append((following, 1))
        else:
            wanted.append((following, 0))
    wanted.reverse()
    left = list(range(len(block)))
    order: list[int] = []
    while left:
        ready = [
            index
            for index in left
            if all(before >= index or may_swap(block[before], block[index], around) for before in left)
        ]
        order.append(min(ready, key=lambda index: (wanted[index], index)))
        left.remove(order[-1])
    return [block[index] for index in order]


def _about(statement: ast.stmt) -> str:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return ast.dump(statement)
