"""Attacks with decision trees, which the grader's own process parses, follows and shows."""

import re

from attacks.attack import Attack, Base, Expected
from attacks.reader_texts import LAUGHS
from attacks.score_deriving import handed_in
from grader.written.known_answers import solution_of
from harness.written.exercise import DecisionTree, load_exercise

EXERCISE = "decision_tree"
_LOADED = load_exercise(EXERCISE)
assert isinstance(_LOADED, DecisionTree)
_REFERENCE = solution_of(_LOADED)
# The mark is split, because it must not appear anywhere as a whole.
_TOUCH = "touch /tmp/wreck-''breached-tree"


def _meaning(meaning: str) -> str:
    """Return the reference tree with another meaning of its first outcome."""
    first = re.compile(r"means: .*?(?=\n +(?:go|conclude):)", re.DOTALL)  # a long meaning takes two lines
    return first.sub(lambda _: f'means: "{meaning}"', _REFERENCE, count=1)


def _ring(length: int) -> str:
    """Return a tree whose nodes form a loop."""
    steps = "{reaches: {means: abc, go: n%d}, stalls: {means: abc, go: n%d}, diverges: {means: abc, conclude: healthy}}"
    nodes = [
        f"  n{n}: {{check: overfit, outcomes: {steps % ((n + 1) % length, (n + 1) % length)}}}" for n in range(length)
    ]
    return "start: n0\nnodes:\n" + "\n".join(nodes) + "\n"


_START = _REFERENCE.split()[1]
# By name: the description, the expected reason, and the text of the tree.
_TREES = {
    "laughs": ("an alias of aliases of aliases: 10 ** 9 words", "anchors and aliases", LAUGHS),
    "cycle": ("nodes that hold themselves", "anchors and aliases", "start: a\nnodes: &n {a: *n}\n"),
    "apply": ("a tag that runs a command", "tags", f'start: !!python/object/apply:os.system ["{_TOUCH}"]\n'),
    "deep": ("8,000 brackets", "brackets are nested too deeply", "start: " + "[" * 8000 + "\n"),
    "ring": ("a hundred nodes that go round", "The tree has a loop", _ring(100)),
    "many_keys": ("1,800 nodes of nothing", "Input should be a valid dictionary", "start: a\nnodes:\n" + "".join(
        f" k{n}:\n" for n in range(1800))),
    "markup": ("names and meanings of markup and escapes", "cannot name a node",
        _meaning("<img src=x onerror=alert(2)>\\e[31m").replace(
            _START, '"<script>alert(1)</script>\\e[2J\\u202e"')),
    "every_name": ("all causes at once", "Input should be a valid string",
        re.sub("conclude: .*", f"conclude: [{', '.join(_LOADED.experiments)}]", _REFERENCE, count=1)),
    "always": (
        "healthy, whatever the checks find",
        "the tree ignores the outcomes",
        "start: a\nnodes: {a: {check: repeat, outcomes: {same: {means: abc, conclude: healthy},"
        " differs: {means: abc, conclude: healthy}}}}\n",
    ),
}  # fmt: skip


def _attack(name: str, says: str, because: str, text: str, expected: Expected | None = None) -> Attack:
    def build(base: Base) -> bytes:
        return handed_in(text, f"tree_{name}", EXERCISE)

    expected = expected or Expected(("graded",), because, gains_over="stub")
    return Attack(f"tree_{name}", "reader", says, expected, build, recipe=EXERCISE)


ATTACKS = (
    *(_attack(name, *parts) for name, parts in _TREES.items()),
    _attack("ten_megabytes", "a tree of 10 MB", "", "# " + "x" * 10_000_000 + "\n" + _REFERENCE,
        Expected(("rejected",), "larger than")),
    _attack("escapes", "a right tree whose meanings move the cursor", "",
        _meaning("\\e[31m\\u202e=1+1<script>alert(1)</script>"), Expected(("graded",), gains_over="reference")),
)  # fmt: skip
