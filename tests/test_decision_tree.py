"""Decision trees: read with the line of every mistake, looked at as a whole, walked, and checked by `make check`."""

import re
import textwrap
from pathlib import Path

import pytest

from harness.checks import load_check
from harness.errors import UserError
from harness.exercise import Asked, start_exercise
from harness.recipe import EXERCISES, load_recipe
from harness.run.settings import RunSettings
from harness.submission.check_run import CheckItem
from harness.workspace import OUTCOMES, Workspace, remove_workspace
from harness.written import decision_tree_check
from harness.written.decision_tree import (
    MOST_PROBLEMS,
    Tree,
    parse_tree,
    walk,
)
from harness.written.decision_tree_check import CheckedOutcomes, tree_items
from harness.written.exercise import FileExercise, find_file_exercise, stub
from harness.written.workspace import FileWorkspace, check_file, file_items, start_file_exercise

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


@pytest.mark.parametrize(
    ("find", "replace", "line", "said"),
    [
        ("start: learns", "start: learn", 1, "there is no node 'learn': did you mean learns?"),
        ("start: learns", "start: huge_lr", 1, "`huge_lr` is not a node: name a node, which makes a check"),
        ("start: learns", "begin: learns", 1, "`start` is missing: write the name of a node."),
        ("start: learns", "start: learns\nend: x", 2, "there is no key `end` here: choose from start, nodes."),
        ("start: learns", "start: [learns]", 1, "`start` must be the name of a node."),
        ("  learns:", "  Learns:", 3, "'Learns' cannot name a node"),
        ("check: overfit", "check: overfits", 4, "there is no check 'overfits': did you mean overfit?"),
        ("    check: overfit\n", "", 3, "`check` is missing: write the name of one check."),
        ("      stalls: {means: \"it cannot\", go: marks}\n", "", 5, "there is no step for stalls of overfit"),
        ("      stalls:", "      stall:", 7, "overfit has no outcome 'stall': did you mean stalls?"),
        ("stalls: {means: \"it cannot\", go: marks}", "stalls: marks", 7, "`stalls` must hold means, and go or"),
        ("go: marks}\n      stalls", "go: mark}\n      stalls", 6, "there is no node 'mark': did you mean marks?"),
        ("go: marks}\n      stalls", "conclude: marks}\n      stalls", 6, "'marks' is not a conclusion"),
        ("conclude: huge_lr", "conclude: hugelr", 10, "did you mean huge_lr?"),
        ("conclude: huge_lr", "conclude: [huge_lr, loss_sum]", 10, "several names are no conclusion"),
        ("conclude: huge_lr", "conclude: huge_lr, loss_sum", 10, "is not a conclusion"),
        ("conclude: huge_lr", "conclude:", 8, "`diverges` needs either go or conclude, and not both."),
        ("conclude: huge_lr", "conclude: huge_lr\n        go: marks", 8, "needs either go or conclude, and not both"),
        ("means: \"it gets worse\"", "means: \"\"", 9, "`means` must be what the outcome tells you, in 3 to 200"),
        ("        means: \"it gets worse\"\n", "", 8, "`means` is missing: write what the outcome tells you"),
        ("means: \"it gets worse\"", "means: \"" + "x" * 201 + '"', 9, "`means` must be what the outcome tells"),
        ("check: modes", "check: [modes]", 12, "`check` must be the name of one check."),
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
        ("", "holds no keys with values"),
        ("- a", "holds no keys with values"),
        ("start: " + "[" * 5000, "brackets within brackets"),
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
    assert parse_tree(example).flaw() == ""
    assert parse_tree(example).unreachable() == []


# --- as a whole -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "loop"),
    [
        (graph(a="HLU"), ""),
        (graph(a="bbb", b="HLU"), ""),
        (graph(a="bcd", b="ddH", c="bdH", d="HLU"), ""),
        (graph(a="aHL"), "a -> a"),
        (graph(a="bHL", b="HcL", c="HLa"), "a -> b -> c -> a"),
        (graph(a="bHL", b="HcL", c="HLb"), "b -> c -> b"),
    ],
)
def test_a_loop_is_named(found: Tree, loop: str) -> None:
    flaw = found.flaw()
    assert bool(loop) == ("loops" in flaw)
    assert not loop or flaw.partition(": ")[2].partition(". ")[0] in (loop, *_rotations(loop))


def _rotations(loop: str) -> list[str]:
    names = loop.split(" -> ")[1:]
    return [" -> ".join([*names[k:], *names[:k], names[k]]) for k in range(len(names))]


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
    assert said in found.flaw()
    assert bool(said) == bool(found.flaw())


def test_what_no_outcome_leads_to_is_named() -> None:
    assert graph(a="HLb", b="HHH", c="dHL", d="HHH").unreachable() == ["c", "d"]
    assert tree().unreachable() == []


def test_what_is_handed_out_can_be_read_and_says_nothing_yet() -> None:
    exercise = find_file_exercise("decision_tree")
    assert exercise is not None
    begun = parse_tree(stub(exercise))
    assert len(begun.nodes) == 2
    assert "ends in `unknown`" in begun.flaw()
    assert begun.unreachable() == []


# --- walked -----------------------------------------------------------------------------------------------


def test_a_walk_follows_the_outcomes_and_pays_for_its_checks() -> None:
    walked = walk(tree(), {"overfit": "stalls", "modes": "unrepeatable"}.__getitem__)
    assert walked.path == "overfit: stalls → modes: unrepeatable"
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


# --- make check --------------------------------------------------------------------------------------------

# Two checks of a second each tell this recipe from what it breaks.
TREE = """\
start: scale
nodes:
  scale:
    check: first_loss
    outcomes:
      chance: {means: "it guesses, as it should", conclude: healthy}
      low: {means: "it knows too much", conclude: unknown}
      high: {means: "the scale is off", go: form}
      non-finite: {means: "no number", conclude: unknown}
  form:
    check: loss_form
    outcomes:
      agrees: {means: "it is what it should be", conclude: unknown}
      grows: {means: "a sum", conclude: loss_sum}
      bounded: {means: "not logits", conclude: double_softmax}
      differs: {means: "another", conclude: unknown}
      overflows: {means: "another", conclude: unknown}
      no-reference: {means: "its own", conclude: unknown}
"""


def exercise() -> FileExercise:
    found = find_file_exercise("decision_tree")
    assert found is not None
    return found


def tree_in(work: Path, text: str = TREE) -> FileWorkspace:
    workspace, _ = start_file_exercise(exercise(), work)
    workspace.answer.write_text(text, encoding="utf-8")
    return workspace


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return a workspace of `loss_sum` with a broken run."""
    work = tmp_path_factory.mktemp("student") / "work"
    return start_exercise("loss_sum", work, Asked(epochs=1), bar=False)[0]


def told(items: list[CheckItem]) -> dict[str, tuple[str, str]]:
    return {item.id: (item.outcome, item.message) for item in items}


@pytest.mark.slow
def test_a_tree_is_walked_with_what_lies_beside_it_and_what_was_found_is_kept(
    begun: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tree_in(begun.folder.parent)
    begun.experiment.write_text(load_recipe("loss_sum").healthy_source())
    items = check_file(workspace)
    assert {item.outcome for item in items} == {"passed"}
    assert told(items)["walk: loss_sum"][1] == (
        "first_loss: high → loss_form: grows → concludes loss_sum, after 4 minutes."
    )
    assert (
        told(items)["walk: loss_sum, edited"][1] == "first_loss: chance → concludes healthy, after 1 minute."
    )

    def no_process(*_: object, **options: object) -> None:
        raise AssertionError("what is known was measured again")

    monkeypatch.setattr(decision_tree_check, "run_checks", no_process)
    assert check_file(workspace) == items
    # Another conclusion asks for no other check.
    workspace.answer.write_text(TREE.replace("conclude: loss_sum", "conclude: huge_lr"))
    failed = told(tree_items(workspace))["walk: loss_sum"]
    assert failed[0] == "failed"
    assert "concludes huge_lr" in failed[1]
    workspace.answer.write_text(TREE.replace("conclude: healthy", "conclude: huge_lr"))
    edited = told(tree_items(workspace))["walk: loss_sum, edited"]
    assert edited[0] == "could not judge"
    assert "Did you fix " in edited[1]


def test_without_any_exercise_there_is_nothing_to_walk_with(tmp_path: Path) -> None:
    items = told(check_file(tree_in(tmp_path)))
    assert items["walk"][0] == "could not judge"
    assert "make exercise BREAK=huge_lr makes one" in items["walk"][1]
    assert items["tree: form"][0] == "passed"


@pytest.mark.parametrize(
    ("find", "replace", "item", "said"),
    [
        ("check: first_loss", "check: first", "tree: form", "line 4: there is no check 'first'"),
        ("go: form", "go: scale", "tree: form", "The tree loops: scale -> scale"),
        ("go: form", "conclude: loss_sum", "tree: use", "no outcome leads to form"),
    ],
)
def test_what_is_wrong_with_a_tree_is_told(
    find: str, replace: str, item: str, said: str, tmp_path: Path
) -> None:
    workspace = tree_in(tmp_path, TREE.replace(find, replace))
    outcome, message = told([*file_items(workspace), *_use(workspace)])[item]
    assert outcome == "failed"
    assert str(workspace.answer) in message
    assert said in message


def _use(workspace: FileWorkspace) -> list[CheckItem]:
    form = file_items(workspace)[-1]
    return tree_items(workspace) if form.outcome == "passed" else []


def test_the_untouched_file_is_told_to_be_so(tmp_path: Path) -> None:
    [item] = check_file(tree_in(tmp_path, stub(exercise())))
    assert "is still the original file" in item.message


@pytest.mark.parametrize("spoilt", ["", "[", "[]", '{"a": 3}', "[" * 100_000])
def test_a_spoilt_memory_is_as_good_as_none(
    spoilt: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / OUTCOMES).write_text(spoilt)
    asked = []

    def run_checks(*arguments: object, **options: object) -> None:
        asked.append(arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(decision_tree_check, "run_checks", run_checks)
    with pytest.raises(KeyboardInterrupt):
        CheckedOutcomes(tmp_path).of("source", RunSettings(seed=1, dataset="digits"), "overfit")
    assert len(asked) == 1


def test_starting_over_forgets_what_was_found_and_keeps_the_tree(tmp_path: Path) -> None:
    workspace = tree_in(tmp_path)
    (workspace.folder / OUTCOMES).write_text("{}")
    kept = remove_workspace(tmp_path, "decision_tree")
    assert {path.name for path in kept.iterdir()} == {"tree.yaml"}
