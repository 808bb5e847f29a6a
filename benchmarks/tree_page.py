"""Writes docs/decision-tree.md, the method drawn as a tree, from what the checks declare.

python -m benchmarks.tree_page
"""

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.checks import Check, Outcome, check_names, load_check

PAGE = Path(__file__).resolve().parents[1] / "docs" / "decision-tree.md"
_WIDTH = 34  # characters of a line in a box

_BEGINNING = """\
# The decision tree

How `harness triage` goes about it: the cheapest checks first, each of which rules something out or says where to read
on. A box is a check, with its minutes; an arrow is an outcome; a rounded box is where to look, or which checks go on
from there. It is drawn from `harness/checks/` by `python -m benchmarks.tree_page`.

"""
_BETWEEN = """
If everything is ruled out, the walk has cost {minutes:g} minutes. {more} more checks are made if another one points to
them:

"""
_END = """
This is the method, for any experiment that may come: it names no cause, since it knows none. The exercise
`decision_tree` asks for more. Its tree concludes, and pays for each minute; who knows which failures there are can ask
first what parts them best, and leave out what tells none of them apart.
"""


def page() -> str:
    """Return the page that the checks make."""
    checks = [load_check(name) for name in check_names()]
    walk = [check for check in checks if check.in_triage]
    others = [check for check in checks if not check.in_triage]
    drawn = _drawing([line for place, check in enumerate(walk) for line in _check(check, walk[place + 1 :])])
    more = _drawing([line for check in others for line in _check(check, ())])
    minutes = sum(check.minutes for check in walk)
    return _BEGINNING + drawn + _BETWEEN.format(minutes=minutes, more=len(others)) + more + _END


def _drawing(lines: Sequence[str]) -> str:
    body = "\n".join(f"    {line}" for line in lines)
    return f"```mermaid\nflowchart TD\n{body}\n```\n"


def _check(check: Check, behind: Sequence[Check]) -> Iterator[str]:
    """Yield the box of a check and the arrows of its outcomes, those to the same place in one."""
    yield f'{check.name}["{_wrapped(f"{check.question} ({check.name}, {check.minutes:g} min)")}"]'
    places: dict[str, list[str]] = {}
    for outcome in check.outcomes:
        places.setdefault(_place(outcome, behind), []).append(outcome.id)
    for number, (place, names) in enumerate(places.items()):
        arrow = f'{check.name} -->|"{", ".join(names)}"|'
        if behind and place == behind[0].name:
            yield f"{arrow} {place}"
        else:
            yield f'{arrow} {check.name}_{number}("{_wrapped(place)}")'


def _place(outcome: Outcome, behind: Sequence[Check]) -> str:
    """Return where an outcome leads: the check behind this one, a place to read, other checks, or an end."""
    if outcome.sound:
        return behind[0].name if behind else "ruled out"
    words = [outcome.look] if outcome.look else []
    if outcome.next:
        words.append(f"go on with {', '.join(outcome.next)}")
    return "; ".join(words)


def _wrapped(text: str) -> str:
    return "<br/>".join(textwrap.wrap(text.replace('"', "'"), _WIDTH))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
