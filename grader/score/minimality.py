"""Judge the size of a correct fix: its syntax-tree nodes, compared with the reference edit's.

If the reference edit has `r` nodes, an edit of up to `max(r + 3, 1.5 r)` nodes gets all points; above that the points
fall as that limit over the size. Measured: the same fix in other words takes 4 nodes for 2 (`reduction="sum"` divided
by `len(labels)`), 6 for 4 (`zero_grad(set_to_none=False)`), 18 for 14; the shortest fixes of another kind take 4 for 1
and 7 for 2. Names, spellings of calls, new constants, helpers, prints and further metrics do not count; the order of
statements does.
An edit of one area that was not broken keeps half of the points, of more areas a quarter. A fix that works around the
cause (a known edit of the verdict `alternative`) keeps three quarters. Code that no fix needs
(`grader.syntax.tampering`) costs all points.
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
_ONE_AREA, _MORE_AREAS, _WAY_AROUND = 0.5, 0.25, 0.75
# An edit is a known workaround if its distance to it is at most this share of the workaround's size, or one node.
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
    """Judge the size of a correct fix.

    `broken`, `student` and `reference` are sources; `ways_around` are the sources of known workarounds. Raises
    `Unparsable` if a source of ours does not parse.
    """
    ours, wanted = _known(broken), _known(reference)
    try:
        parsed = parse_experiment(student)
    except Unparsable as error:
        return open_check(_ID, _TITLE, maximum, f"Your experiment cannot be compared with ours: {error}.")
    theirs, beside = prepare_edited(parsed, ours)
    changes, needed = compare_programs(beside, theirs), compare_programs(ours, wanted)
    sizes = f"changes {_described(changes)}; the reference edit changes {_described(needed, of='')}."
    reason = f"Your edit {sizes}"
    allowed = needed.areas | {recipe.area}

    tampered = tampering(ours.tree, theirs.tree, wanted.tree, changes, allowed)
    if tampered:
        reason = (
            f"Your edit changes {_listed(tampered)}, which no fix of this exercise needs. In all it {sizes}"
        )
        remedy = f"Undo what changes {_listed(tampered)}, and keep the fix of the {recipe.area}."
        return lost(_ID, _TITLE, maximum, reason, remedy)

    share = min(1.0, _free(needed.total) / max(changes.total, 1))
    remedies = []
    if share < 1.0:
        remedies.append(
            f"An edit of at most {_free(needed.total)} nodes of the syntax tree earns all points."
        )
    foreign = [f"the {area}" for area in sorted(changes.areas - allowed)]
    if foreign:
        share *= _ONE_AREA if len(foreign) == 1 else _MORE_AREAS
        reason += (
            f" It touches {_listed(foreign)}, which {'was' if len(foreign) == 1 else 'were'} not broken."
        )
        remedies.append(f"Fix the {recipe.area} and leave {_listed(foreign)} alone.")
    to_reference = _apart(theirs, wanted)
    # Most submissions are the reference edit itself: spare them the comparison.
    if to_reference and any(
        _is_same(ours, theirs, to_reference, _known_edit(source, broken)) for source in ways_around
    ):
        share *= _WAY_AROUND
        reason += " The symptom is gone, but the bug is still there: your edit works around it."
        remedies.append("Fix the place that was broken.")
    if share == 1.0:
        return full(_ID, _TITLE, maximum, reason)
    points = math.floor(maximum * share / _STEP) * _STEP
    return lost(_ID, _TITLE, maximum, reason, " ".join(remedies), points=points)


def _free(reference_size: int) -> int:
    """Return how many nodes an edit may change without losing points."""
    return max(reference_size + 3, reference_size * 3 // 2)


@lru_cache(maxsize=64)
def _known(source: str) -> ComparedProgram:
    """Parse a source of ours, once for a whole class."""
    return prepare_broken(parse_experiment(source))


@lru_cache(maxsize=64)
def _known_edit(source: str, broken: str) -> ComparedProgram:
    """Parse an edited source of ours as a student's."""
    return prepare_edited(parse_experiment(source), _known(broken))[0]


def _is_same(ours: ComparedProgram, theirs: ComparedProgram, to_reference: int, way: ComparedProgram) -> bool:
    """Return whether an edit is a known one or nearly so, and not nearer to the reference edit."""
    apart = _apart(theirs, way)
    return apart < to_reference and apart <= max(_SAME_NODES, _SAME * _apart(ours, way))


def _apart(first: ComparedProgram, second: ComparedProgram) -> int:
    return sum(edit_sizes(first.parts, second.parts).values())


def _described(changes: Changes, *, of: str = " of the syntax tree") -> str:
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
