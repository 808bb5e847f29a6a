"""Was no more changed than the cause takes? The size of an edit in syntax-tree nodes, against the reference edit.

The rule. With `r` nodes in the reference edit, `max(r + 3, 1.5 r)` nodes are free: the same repair in other words
(measured: `reduction="sum"` kept and divided by `len(labels)` takes 4 nodes for 2, `zero_grad(set_to_none=False)` 6
for 4, a scaler with its first scale written out 18 for 14; the shortest repairs that go another way, another optimizer
or a loss written out by hand, take 4 for 1 and 7 for 2: the first is on the list of ways around). Above that the points
fall as `free / size`. Names, spellings of calls, new constants, helpers and prints are
no edit: both programs are compared in the forms that are closest to each other.
A layer that was not broken, or one in place of the broken one, costs half of them, more such layers three
quarters; a repair that the recipe lists as a way around the cause costs a quarter. What a repair never needs
(`grader.syntax.tampering`) costs all of them.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

from grader.score.verdict import Check, full, lost, open_check
from grader.syntax.edit_size import Changes, ComparedProgram, compare_programs, edit_sizes
from grader.syntax.normal_form import prepare_broken, prepare_edited
from grader.syntax.parse import Unparsable, parse_experiment
from grader.syntax.tampering import tampering
from harness.recipe import Recipe

_ID, _TITLE = "minimal", "No more was changed than the cause takes"
_ONE_LAYER, _MORE_LAYERS, _WAY_AROUND = 0.5, 0.25, 0.75
# An edit whose distance to a listed way around is at most this part of the whole way, or one node of it
# (another number, another name), is that one.
_SAME, _SAME_NODES = 0.25, 1
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
    ours, wanted = _known(broken), _known(reference)
    try:
        parsed = parse_experiment(student)
    except Unparsable as error:
        return open_check(_ID, _TITLE, maximum, f"Your experiment cannot be compared with ours: {error}.")
    theirs, beside = prepare_edited(parsed, ours)
    changes, needed = compare_programs(beside, theirs), compare_programs(ours, wanted)
    sizes = f"changes {_told(changes)}; the reference edit changes {_told(needed, of='')}."
    reason = f"Your edit {sizes}"
    allowed = needed.areas | {recipe.area}

    tampered = tampering(ours.tree, theirs.tree, wanted.tree, changes, allowed)
    if tampered:
        reason = f"Your edit changes {_listed(tampered)}, which no repair of this exercise needs. In all it {sizes}"
        remedy = f"Undo what changes {_listed(tampered)}, and keep what mends the {recipe.area}."
        return lost(_ID, _TITLE, maximum, reason, remedy)

    share = min(1.0, _free(needed.total) / max(changes.total, 1))
    remedies = []
    if share < 1.0:
        remedies.append(
            f"An edit of at most {_free(needed.total)} nodes of the syntax tree earns all points."
        )
    foreign = [f"the {layer}" for layer in sorted(changes.areas - allowed)]
    if foreign:
        share *= _ONE_LAYER if len(foreign) == 1 else _MORE_LAYERS
        reason += (
            f" It touches {_listed(foreign)}, which {'was' if len(foreign) == 1 else 'were'} not broken."
        )
        remedies.append(f"Mend the {recipe.area} and leave {_listed(foreign)} alone.")
    to_reference = _apart(theirs, wanted)
    # The reference edit itself, which most hand in, is no way around: those need not be read.
    if to_reference and any(
        _is_same(ours, theirs, to_reference, _known_edit(source, broken)) for source in ways_around
    ):
        share *= _WAY_AROUND
        reason += " It mends the run in another way than by mending what was broken."
        remedies.append("Mend the very place that was broken.")
    if share == 1.0:
        return full(_ID, _TITLE, maximum, reason)
    points = math.floor(maximum * share / _STEP) * _STEP
    return lost(_ID, _TITLE, maximum, reason, " ".join(remedies), points=points)


def _free(reference_size: int) -> int:
    """Return how many nodes an edit may change and still count as about as large as the reference edit."""
    return max(reference_size + 3, reference_size * 3 // 2)


@lru_cache(maxsize=64)
def _known(source: str) -> ComparedProgram:
    """Read a source of ours, once for a whole class."""
    return prepare_broken(parse_experiment(source))


@lru_cache(maxsize=64)
def _known_edit(source: str, broken: str) -> ComparedProgram:
    """Read an edited source of ours as a student's is read."""
    return prepare_edited(parse_experiment(source), _known(broken))[0]


def _is_same(ours: ComparedProgram, theirs: ComparedProgram, to_reference: int, way: ComparedProgram) -> bool:
    """Say whether an edit is a known one, give or take, and not nearer to the reference edit."""
    apart = _apart(theirs, way)
    return apart < to_reference and apart <= max(_SAME_NODES, _SAME * _apart(ours, way))


def _apart(first: ComparedProgram, second: ComparedProgram) -> int:
    return sum(edit_sizes(first.parts, second.parts).values())


def _told(changes: Changes, *, of: str = " of the syntax tree") -> str:
    """Return "4 nodes of the syntax tree (3 in build_optimizer, 1 in AMP)", the largest first.

    The names are the student's.
    """
    if not changes.sizes:
        return "nothing"
    parts = sorted(changes.sizes.items(), key=lambda item: (-item[1], item[0]))
    told = [f"{size} in {_short(name)}" for name, size in parts[:4]]
    more = f" and {len(parts) - 4} more places" if len(parts) > 4 else ""
    nodes = f"{changes.total} node{'s' if changes.total > 1 else ''}{of}"
    if len(parts) == 1:
        return f"{nodes} in {_short(parts[0][0])}"
    return f"{nodes} ({', '.join(told)}{more})"


def _short(name: str) -> str:
    return (name if len(name) <= 40 else name[:37] + "...") or "statements between the functions"


def _listed(items: Sequence[str]) -> str:
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)
