"""Decision trees: parse them with the line of every mistake, check them as a whole, and follow them."""

import re
import textwrap
from pathlib import Path

import pytest

from harness.checks import load_check
from harness.errors import UserError
from harness.recipes.recipe import EXERCISES
from harness.written.decision_tree import MOST_PROBLEMS, Tree, walk
from harness.written.decision_tree import parse_tree as parse_tree_of
from harness.written.exercise import DecisionTree, load_exercise, stub
from harness.written.workspace import check_file, start_file_exercise

TEXT = """\
start: learns
nodes:
  learns:
    check: overfit
    outcomes:
      reaches: {means: "it can", go: marks}
      stalls: {means: "it cannot", go: marks}
      diverges:
        means: "it gets worse"
        conclude: huge_lr
  marks:
    check: modes
    outcomes:
      agree: {means: "all is well", conclude: healthy}
      unrepeatable: {means: "two marks", conclude: forgotten_eval}
      other-mode: {means: "the wrong mark", conclude: unknown}
      partial: {means: "some marks", conclude: 'unknown'}
      other-inputs: {means: "other inputs", conclude: 'unknown'}
      old-statistics: {means: "old figures", conclude: 'unknown'}
      scaled: {means: "another scale", conclude: 'unknown'}
"""


def graph(**edges: str) -> Tree:
    """Return a tree that uses only `overfit`. edges: the next steps after its three outcomes; capitals conclude."""
    nodes = []
    for name, places in edges.items():
        steps = zip(("reaches", "stalls", "diverges"), places, strict=True)
        ends = {"H": "conclude: healthy", "U": "conclude: unknown", "L": "conclude: huge_lr"}
        lines = [f"      {outcome}: {{means: abc, {ends.get(to, f'go: {to}')}}}" for outcome, to in steps]
        nodes.append("\n".join([f"  {name}:", "    check: overfit", "    outcomes:", *lines]))
    return parse_tree(f"start: {next(iter(edges))}\nnodes:\n" + "\n".join(nodes))


def exercise() -> DecisionTree:
    found = load_exercise("decision_tree")
    assert isinstance(found, DecisionTree)
    return found


def parse_tree(text: str, source: str = "tree.yaml") -> Tree:
    return parse_tree_of(text, exercise().experiments, source)


def test_a_tree_is_what_its_text_says() -> None:
    found = parse_tree(TEXT)
    assert found.start == "learns"
    step = found.nodes["learns"].outcomes["diverges"]
    assert (step.means, step.go, step.conclude) == ("it gets worse", None, "huge_lr")
    assert parse_tree("\ufeff" + TEXT.replace("\n", "\r\n")) == found


@pytest.mark.parametrize(
    ("find", "replace", "line", "said"),
    [
        ("start: learns", "start: learn", 1, "there is no node 'learn': did you mean learns?"),
        ("start: learns", "begin: learns", 1, "start: Field required."),
        ("start: learns", "start: learns\nend: x", 2, "end: Extra inputs are not permitted."),
        ("  learns:", "  Learns:", 3, "'Learns' cannot name a node"),
        ("check: overfit", "check: overfits", 4, "there is no check 'overfits': did you mean overfit?"),
        ("      stalls: {means: \"it cannot\", go: marks}\n", "", 5, "the outcome stalls of overfit has no step"),
        ("      stalls:", "      stall:", 7, "no outcome of overfit 'stall': did you mean stalls?"),
        ("stalls: {means: \"it cannot\", go: marks}", "stalls: marks", 7, "nodes.learns.outcomes.stalls: Input"),
        ("go: marks}\n      stalls", "go: mark}\n      stalls", 6, "there is no node 'mark': did you mean marks?"),
        ("conclude: huge_lr", "conclude: hugelr", 10, "there is no conclusion 'hugelr': did you mean huge_lr?"),
        ("conclude: huge_lr", "conclude: huge_lr\n        go: marks", 8, "must have exactly one of go and conclude"),
        ("means: \"it gets worse\"", "means: \"\"", 9, "means: String should have at least 3 characters."),
        ("conclude: unknown}", "conclude: unknown", 17, "the tree is not YAML"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_line(find: str, replace: str, line: int, said: str) -> None:
    assert TEXT.count(find) == 1
    with pytest.raises(UserError) as refusal:
        parse_tree(TEXT.replace(find, replace), "work/tree.yaml")
    assert f"work/tree.yaml, line {line}: " in str(refusal.value)
    assert said in str(refusal.value)


def test_a_hyphen_in_the_name_of_a_check_is_an_underscore() -> None:
    node = "  a:\n    check: {}\n    outcomes:\n"
    steps = "".join(f"      {one.id}: {{means: abc, conclude: unknown}}\n" for one in load_check("lr_find").outcomes)
    one, other = (parse_tree("start: a\nnodes:\n" + node.format(name) + steps) for name in ("lr-find", "lr_find"))
    assert one == other


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no keys with values"),
        ("- a", "has no keys with values"),
        ("start: a\nnodes: {a: b}", "nodes.a: Input should be a valid dictionary"),
        ("start: a\nnodes: {a: {check: overfit, outcomes: [reaches]}}", "outcomes: Input should be a valid"),
        ("start: \x07", "is not YAML"),
    ],
)
def test_a_text_that_is_no_tree_is_refused(text: str, said: str) -> None:
    with pytest.raises(UserError) as refusal:
        parse_tree(text)
    assert said in str(refusal.value)


def test_a_message_names_a_few_problems_and_counts_the_others() -> None:
    with pytest.raises(UserError) as refusal:
        parse_tree(TEXT.replace("check: overfit", "check: a").replace("check: modes", "check: b"))
    assert re.findall(r"line (\d+)", str(refusal.value)) == ["4", "12"]
    with pytest.raises(UserError) as refusal:
        parse_tree(TEXT.replace("means", "mean"))
    assert str(refusal.value).count("line ") == MOST_PROBLEMS
    assert str(refusal.value).endswith("\nand 15 more")


def test_the_example_of_the_prompt_is_a_tree_and_the_original_file_earns_nothing() -> None:
    prompt = (EXERCISES / "decision_tree" / "PROMPT.md").read_text(encoding="utf-8")
    example = textwrap.dedent("\n".join(line for line in prompt.splitlines() if line.startswith("    ")))
    assert parse_tree(example).flaw() == ""
    assert "ends in `unknown`" in parse_tree(stub(exercise())).flaw()


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (graph(a="HLU"), ""),
        (graph(a="bcd", b="ddH", c="bdH", d="HLU"), ""),
        (graph(a="aHL"), "The tree has a loop: a -> a."),
        (graph(a="bHL", b="HcL", c="HLb"), "The tree has a loop: "),
        (graph(a="HHH"), "ends in `healthy`, so the tree ignores"),
        (graph(a="bbL", b="LLL"), "ends in `huge_lr`"),
    ],
)
def test_a_tree_that_loops_or_always_concludes_the_same_is_flawed(found: Tree, said: str) -> None:
    assert said in found.flaw()
    assert bool(said) == bool(found.flaw())


def test_a_walk_follows_the_outcomes_and_pays_for_its_checks() -> None:
    walked = walk(parse_tree(TEXT), {"overfit": "stalls", "modes": "unrepeatable"}.__getitem__)
    assert walked.path == "overfit: stalls → modes: unrepeatable"
    assert walked.conclusion == "forgotten_eval"
    assert walked.minutes == load_check("overfit").minutes + load_check("modes").minutes


def test_a_check_is_made_once_and_paid_once() -> None:
    log: list[str] = []

    def outcome_of(check: str) -> str:
        log.append(check)
        return "stalls"

    walked = walk(graph(a="HbL", b="HcL", c="HUL"), outcome_of)
    assert (log, walked.conclusion, len(walked.steps)) == (["overfit"], "unknown", 3)
    assert walked.minutes == load_check("overfit").minutes


# --- make check ---


def test_make_check_names_what_is_wrong_with_a_tree(tmp_path: Path) -> None:
    workspace, _ = start_file_exercise(exercise(), tmp_path)
    workspace.answer.write_text(TEXT, encoding="utf-8")
    assert [item.outcome for item in check_file(workspace)] == ["passed", "passed"]
    workspace.answer.write_text(TEXT.replace("check: overfit", "check: overfits"), encoding="utf-8")
    *_, item = check_file(workspace)
    assert item.outcome == "failed"
    assert f"{workspace.answer}, line 4: there is no check 'overfits'" in item.message
