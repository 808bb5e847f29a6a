"""Was no more changed than the cause takes? The size of an edit in syntax-tree nodes, against the reference edit.

The rule. With `r` nodes in the reference edit, `max(r + 2, 1.5 r)` nodes are free: the same repair in other words
(measured: `reduction="sum"` kept and divided by the batch size takes 4 nodes for 2, `zero_grad(set_to_none=True)`
6 for 4, a scaler with its first scale written out 18 for 14; the shortest repairs that go another way, another
optimizer or a loss written out by hand, take 4 for 1 and 7 for 2). Above that the points fall as `free / size`.
A layer that was not broken, or one in place of the broken one, costs half of them, more such layers three
quarters; a repair that the recipe lists as a way around the cause costs a quarter. What a repair never needs
(`grader.syntax.tampering`) costs all of them.
"""

import ast
import math
from collections.abc import Sequence

from grader.score import Check, full, lost, open_check
from grader.syntax.constants import inline_constants
from grader.syntax.edit_size import bound_names
from grader.syntax.layers import Changes, compare_trees
from grader.syntax.parse import Unparsable, parse_experiment
from grader.syntax.tampering import tampering
from harness.recipe import Recipe

_ID, _TITLE = "minimal", "No more was changed than the cause takes"
_ONE_LAYER, _MORE_LAYERS, _WAY_AROUND = 0.5, 0.25, 0.75
# An edit this near to a listed way around (another number, another name) is that one.
_SAME = 2
_STEP = 0.5


def judge_minimality(
    recipe: Recipe,
    broken: str,
    student: str,
    reference: str,
    *,
    maximum: float = 8.0,
    ways_around: Sequence[str] = (),
) -> Check:
    """Judge how much a correct fix changes; call it for no other.

    `broken`, `student` and `reference` are sources; `ways_around` are the sources of repairs that are right and
    known to leave the cause in place. Raises `Unparsable` for a source of ours that does not parse.
    """
    ours = parse_experiment(broken)
    try:
        theirs = parse_experiment(student)
    except Unparsable as error:
        return open_check(_ID, _TITLE, maximum, f"Your experiment cannot be compared with ours: {error}.")
    kept = {name for statement in ours.body for name in bound_names(statement)}
    theirs = inline_constants(theirs, kept)
    wanted = parse_experiment(reference)
    changes, needed = compare_trees(ours, theirs), compare_trees(ours, wanted)
    reason = f"Your edit changes {_told(changes)}; the reference edit changes {_told(needed)}."
    allowed = needed.layers | {recipe.layer}

    tampered = tampering(ours, theirs, wanted, changes, allowed)
    if tampered:
        remedy = f"Leave {_listed(tampered)} as it was handed out: no repair of this exercise needs that."
        return lost(_ID, _TITLE, maximum, f"Your edit changes {_listed(tampered)}. {reason}", remedy)

    share = min(1.0, _free(needed.total) / max(changes.total, 1))
    remedies = [] if share == 1.0 else [f"An edit of at most {_free(needed.total)} nodes earns all points."]
    foreign = sorted(changes.layers - allowed)
    if foreign:
        share *= _ONE_LAYER if len(foreign) == 1 else _MORE_LAYERS
        reason += (
            f" It touches the {_listed(foreign)}, which {'was' if len(foreign) == 1 else 'were'} not broken."
        )
        remedies.append(f"Mend the {recipe.layer} and leave the {_listed(foreign)} alone.")
    if _goes_around(theirs, wanted, ways_around):
        share *= _WAY_AROUND
        reason += " It makes up for the cause and leaves it in place."
        remedies.append("Take away the cause itself.")
    if share == 1.0:
        return full(_ID, _TITLE, maximum, reason)
    points = math.floor(maximum * share / _STEP) * _STEP
    return lost(_ID, _TITLE, maximum, reason, " ".join(remedies), points=points)


def _free(reference_size: int) -> int:
    """Return how many nodes an edit may change and still count as about as large as the reference edit."""
    return max(reference_size + 2, reference_size * 3 // 2)


def _goes_around(theirs: ast.Module, wanted: ast.Module, ways_around: Sequence[str]) -> bool:
    to_reference = compare_trees(wanted, theirs).total
    distances = [compare_trees(parse_experiment(source), theirs).total for source in ways_around]
    return any(distance <= _SAME and distance < to_reference for distance in distances)


def _told(changes: Changes) -> str:
    """Return "4 nodes (3 in build_optimizer, 1 in LEARNING_RATE)", the largest first; names are the student's."""
    if not changes.sizes:
        return "nothing"
    parts = sorted(changes.sizes.items(), key=lambda item: (-item[1], item[0]))
    told = [f"{size} in {_short(name)}" for name, size in parts[:4]]
    more = f" and {len(parts) - 4} more places" if len(parts) > 4 else ""
    nodes = "1 node" if changes.total == 1 else f"{changes.total} nodes"
    if len(parts) == 1:
        return f"{nodes} in {_short(parts[0][0])}"
    return f"{nodes} ({', '.join(told)}{more})"


def _short(name: str) -> str:
    return (name if len(name) <= 40 else name[:37] + "...") or "statements between the functions"


def _listed(items: Sequence[str]) -> str:
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)
