"""Decision trees: read with the line of every mistake, looked at as a whole, and walked."""

import re
import textwrap

import pytest

from harness.checks import check_names, load_check
from harness.errors import UserError
from harness.plain_yaml import LIMIT
from harness.recipe import EXERCISES, recipe_ids
from harness.written.decision_tree.shape import loop, no_tree, unreachable
from harness.written.decision_tree.tree import MOST_PROBLEMS, Tree, conclusions, parse_tree
from harness.written.decision_tree.walk import walk
from harness.written.file_exercise import find_file_exercise, stub

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
"""


def tree(text: str = TEXT) -> Tree:
    return parse_tree(text)


def graph(**edges: str) -> Tree:
    """Return a tree of `overfit` alone: of each node what follows on its three outcomes; capitals conclude."""
    nodes = []
    for name, places in edges.items():
        steps = zip(("reaches", "stalls", "diverges"), places, strict=True)
        ends = {"H": "conclude: healthy", "U": "conclude: unknown", "L": "conclude: huge_lr"}
        lines = [f"      {outcome}: {{means: abc, {ends.get(to, f'go: {to}')}}}" for outcome, to in steps]
        nodes.append("\n".join([f"  {name}:", "    check: overfit", "    outcomes:", *lines]))
    return parse_tree(f"start: {next(iter(edges))}\nnodes:\n" + "\n".join(nodes))


# --- read -------------------------------------------------------------------------------------------------


def test_a_tree_is_what_its_text_says() -> None:
    found = tree()
    assert found.start == "learns"
    step = found.nodes["learns"].outcomes["diverges"]
    assert (step.means, step.go, step.conclude) == ("it gets worse", None, "huge_lr")
    assert parse_tree("\ufeff" + TEXT.replace("\n", "\r\n")) == found


def test_what_may_be_concluded_is_an_exercise_with_a_run_or_one_of_two_words() -> None:
    assert conclusions() == [*recipe_ids(), "healthy", "unknown"]


@pytest.mark.parametrize(
    ("find", "replace", "line", "said"),
    [
        ("start: learns", "start: learn", 1, "there is no node 'learn': did you mean learns?"),
        ("start: learns", "start: huge_lr", 1, "`huge_lr` is no node, and a conclusion takes a check before it"),
        ("start: learns", "begin: learns", 1, "`start` is missing: write the name of a node."),
        ("start: learns", "start: learns\nend: x", 2, "there is no key `end` here: choose from start, nodes."),
        ("start: learns", "start: [learns]", 1, "`start` must be the name of a node."),
        ("  learns:", "  Learns:", 3, "'Learns' is no name for a node"),
        ("check: overfit", "check: overfits", 4, "there is no check 'overfits': did you mean overfit?"),
        ("    check: overfit\n", "", 3, "`check` is missing: write the id of one check."),
        ("      stalls: {means: \"it cannot\", go: marks}\n", "", 5, "there is no step for stalls of overfit"),
        ("      stalls:", "      stall:", 7, "overfit has no outcome 'stall': did you mean stalls?"),
        ("stalls: {means: \"it cannot\", go: marks}", "stalls: marks", 7, "`stalls` must hold means, and go or"),
        ("go: marks}\n      stalls", "go: mark}\n      stalls", 6, "there is no node 'mark': did you mean marks?"),
        ("go: marks}\n      stalls", "conclude: marks}\n      stalls", 6, "'marks' cannot be concluded"),
        ("conclude: huge_lr", "conclude: hugelr", 10, "did you mean huge_lr?"),
        ("conclude: huge_lr", "conclude: [huge_lr, loss_sum]", 10, "what names several has found none"),
        ("conclude: huge_lr", "conclude: huge_lr, loss_sum", 10, "cannot be concluded"),
        ("conclude: huge_lr", "conclude:", 8, "`diverges` needs either go or conclude, and not both."),
        ("conclude: huge_lr", "conclude: huge_lr\n        go: marks", 8, "needs either go or conclude, and not both"),
        ("means: \"it gets worse\"", "means: \"\"", 9, "`means` must be what the outcome tells you, in 3 to 200"),
        ("        means: \"it gets worse\"\n", "", 8, "`means` is missing: write what the outcome tells you"),
        ("means: \"it gets worse\"", "means: \"" + "x" * 201 + '"', 9, "`means` must be what the outcome tells"),
        ("check: modes", "check: [modes]", 12, "`check` must be the id of one check."),
        ("conclude: unknown", "conclude: *all", 16, "anchors and aliases"),
        ("conclude: unknown", "conclude: !!python/name:os.system x", 16, "tags (!) are not allowed"),
        ("  marks:", "  learns:", 11, "`learns` is there twice"),
        ("conclude: unknown}", "conclude: unknown", 16, "the tree is not YAML"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_line(find: str, replace: str, line: int, said: str) -> None:
    assert TEXT.count(find) == 1
    with pytest.raises(UserError) as refusal:
        parse_tree(TEXT.replace(find, replace), "work/tree.yaml")
    assert f"work/tree.yaml, line {line}: " in str(refusal.value)
    assert said in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must hold start and nodes"),
        ("- a", "must hold start and nodes"),
        ("start: " + "[" * 5000, "brackets within brackets"),
        ("#" * (LIMIT + 1), f"the tree has {LIMIT + 1} characters, and may have {LIMIT}"),
        ("start: a\nnodes: b", "`nodes` must be nodes, each under its name."),
        ("start: a\nnodes: {a: b}", "`a` must hold check and outcomes, each with a value."),
        ("start: a\nnodes: {a: {check: overfit, outcomes: [reaches]}}", "`outcomes` must be the outcomes of"),
        ("start: \x07", "is not YAML"),
    ],
)
def test_what_is_no_tree_at_all_is_refused(text: str, said: str) -> None:
    with pytest.raises(UserError) as refusal:
        parse_tree(text)
    assert said in str(refusal.value)


def test_all_mistakes_are_told_up_to_a_few() -> None:
    wrong = TEXT.replace("check: overfit", "check: a").replace("check: modes", "check: b")
    with pytest.raises(UserError) as refusal:
        parse_tree(wrong)
    assert re.findall(r"line (\d+)", str(refusal.value)) == ["4", "12"]
    with pytest.raises(UserError) as refusal:
        parse_tree(TEXT.replace("means", "mean"))
    assert str(refusal.value).count("line ") == MOST_PROBLEMS
    assert str(refusal.value).endswith("\nand 7 more")


def test_the_example_of_the_prompt_is_a_tree() -> None:
    prompt = (EXERCISES / "decision_tree" / "PROMPT.md").read_text(encoding="utf-8")
    example = textwrap.dedent("\n".join(line for line in prompt.splitlines() if line.startswith("    ")))
    assert no_tree(parse_tree(example)) == ""
    assert unreachable(parse_tree(example)) == ()


# --- as a whole -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "names"),
    [
        (graph(a="HLU"), ()),
        (graph(a="bbb", b="HLU"), ()),
        (graph(a="bcd", b="ddH", c="bdH", d="HLU"), ()),
        (graph(a="aHL"), ("a", "a")),
        (graph(a="bHL", b="HcL", c="HLa"), ("a", "b", "c", "a")),
        (graph(a="bHL", b="HcL", c="HLb"), ("b", "c", "b")),
        (graph(a="HHL", b="cHL", c="bHL"), ()),  # it loops where nobody comes
    ],
)
def test_a_loop_is_found_where_the_start_leads_to_it(found: Tree, names: tuple[str, ...]) -> None:
    assert loop(found) == names
    assert bool(names) == ("loops" in no_tree(found))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (graph(a="HHH"), "ends in `healthy`, whatever the checks find"),
        (graph(a="bbH", b="HHH"), "ends in `healthy`"),
        (graph(a="bbL", b="LLL", c="HHH"), "ends in `huge_lr`"),
        (graph(a="HHU"), ""),
    ],
)
def test_one_that_always_concludes_the_same_has_no_evidence(found: Tree, said: str) -> None:
    assert said in no_tree(found)
    assert bool(said) == bool(no_tree(found))


def test_what_no_outcome_leads_to_is_named() -> None:
    assert unreachable(graph(a="HLb", b="HHH", c="dHL", d="HHH")) == ("c", "d")
    assert unreachable(tree()) == ()


def test_what_is_handed_out_can_be_read_and_says_nothing_yet() -> None:
    exercise = find_file_exercise("decision_tree")
    assert exercise is not None
    begun = parse_tree(stub(exercise))
    assert len(begun.nodes) == 2
    assert "ends in `unknown`" in no_tree(begun)
    assert unreachable(begun) == ()


# --- walked -----------------------------------------------------------------------------------------------


def test_a_walk_follows_the_outcomes_and_pays_for_its_checks() -> None:
    walked = walk(tree(), {"overfit": "stalls", "modes": "unrepeatable"}.__getitem__)
    assert walked.path == "overfit: stalls → modes: unrepeatable"
    assert [step.means for step in walked.steps] == ["it cannot", "two marks"]
    assert walked.conclusion == "forgotten_eval"
    assert walked.minutes == load_check("overfit").minutes + load_check("modes").minutes
    assert walk(tree(), {"overfit": "diverges"}.__getitem__).minutes == load_check("overfit").minutes


def test_a_check_is_made_once_and_paid_once() -> None:
    log: list[str] = []

    def outcome_of(check: str) -> str:
        log.append(check)
        return "stalls"

    walked = walk(graph(a="HbL", b="HcL", c="HUL"), outcome_of)
    assert (log, walked.conclusion, len(walked.steps)) == (["overfit"], "unknown", 3)
    assert walked.minutes == load_check("overfit").minutes


def test_every_check_has_a_price() -> None:
    assert all(0 < load_check(name).minutes <= 10 for name in check_names())
