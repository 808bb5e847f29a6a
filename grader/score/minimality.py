"""Judge the size of a correct fix: only the functions that the reference fix changes, and few syntax-tree nodes.

What counts as a node: `grader.syntax.edit_size`. If the reference fix has `r` nodes, an edit of up to `r + 16` or `2 r`
nodes gets all points; above that the points fall as that limit over the size. Measured on 90 right fixes in different
styles: the reference fixes have 1 to 13 nodes, nine in ten of the others have at most 12 more, a helper function that
clears the gradients has 16 more, and the loss written out with `gather` has 18 more.
An edit of one function or constant that the reference fix leaves alone keeps half of the points, of several a quarter;
new helpers and constants are no such edit.
"""

import math
from collections.abc import Mapping, Sequence

from grader.intake.program import Unparsable
from grader.score.verdict import Check, full, lost, open_check
from grader.syntax.edit_size import edit_sizes, names_defined

_ID, _TITLE = "minimal", "No more was changed than the cause takes"
_MORE_NODES, _MORE_TIMES = 16, 2
_ONE_PLACE, _MORE_PLACES = 0.5, 0.25
_STEP = 0.5


def judge_minimality(broken: str, student: str, reference: str, *, maximum: float = 8.0) -> Check:
    """Judge the size of a correct fix by the sources. Raises `Unparsable` if a source of ours does not parse."""
    needed, ours = edit_sizes(broken, reference), names_defined(broken)
    try:
        sizes = edit_sizes(broken, student)
    except Unparsable as error:
        return open_check(_ID, _TITLE, maximum, f"Your experiment cannot be compared with ours: {error}.")
    reason = (
        f"Your edit changes {_described(sizes, ' of the syntax tree')}; the reference edit changes"
        f" {_described(needed)}."
    )
    size, limit = sum(sizes.values()), sum(needed.values())
    limit = max(limit + _MORE_NODES, limit * _MORE_TIMES)
    share, remedies = 1.0, []
    if size > limit:
        share = limit / size
        remedies.append(f"An edit of at most {limit} nodes of the syntax tree earns all points.")
    foreign = [_short(name) for name in sizes if name not in needed and (name in ours or not name)]
    if foreign:
        share *= _ONE_PLACE if len(foreign) == 1 else _MORE_PLACES
        places = _listed(foreign)
        reason += f" It touches {places}, which {'was' if len(foreign) == 1 else 'were'} not broken."
        remedies.append(f"Fix {_listed([_short(name) for name in needed])} and leave {places} alone.")
    if share == 1.0:
        return full(_ID, _TITLE, maximum, reason)
    points = math.floor(maximum * share / _STEP) * _STEP
    return lost(_ID, _TITLE, maximum, reason, " ".join(remedies), points=points)


def _described(sizes: Mapping[str, int], of: str = "") -> str:
    """Return "4 nodes of the syntax tree (3 in build_optimizer, 1 in AMP)", the largest first."""
    if not sizes:
        return "nothing"
    parts = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
    total = sum(sizes.values())
    nodes = f"{total} node{'s' if total > 1 else ''}{of}"
    if len(parts) == 1:
        return f"{nodes} in {_short(parts[0][0])}"
    largest = ", ".join(f"{size} in {_short(name)}" for name, size in parts[:4])
    return f"{nodes} ({largest}{', ...' if len(parts) > 4 else ''})"


def _short(name: str) -> str:
    """Return the name of a part, which is the student's."""
    return (name if len(name) <= 40 else name[:37] + "...") or "statements between the functions"


def _listed(items: Sequence[str]) -> str:
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)
