"""`make check` of a tree walks it with the student's other exercises: the broken run, and the edited experiment."""

from pathlib import Path

import pytest

from harness.exercise import Asked, start_exercise
from harness.recipe import load_recipe
from harness.run.settings import RunSettings
from harness.submission.check_item import CheckItem
from harness.workspace import OUTCOMES, Workspace, remove_workspace
from harness.written.decision_tree import outcomes as outcomes_module
from harness.written.decision_tree.outcomes import Outcomes
from harness.written.decision_tree.self_check import tree_items
from harness.written.workspace import check_file
from harness.written.exercise import FileExercise, find_file_exercise, stub
from harness.written.workspace import FileWorkspace, start_file_exercise

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
    assert [item.outcome for item in items] == ["passed"] * 5
    assert told(items)["walk: loss_sum"][1] == (
        "first_loss: high → loss_form: grows → concludes loss_sum, after 4 minutes."
    )
    assert (
        told(items)["walk: loss_sum, edited"][1] == "first_loss: chance → concludes healthy, after 1 minute."
    )

    def no_process(job: object) -> None:
        raise AssertionError("what is known was measured again")

    monkeypatch.setattr(outcomes_module, "examine", no_process)
    assert check_file(workspace) == items
    # Another conclusion asks for no other check.
    workspace.answer.write_text(TREE.replace("conclude: loss_sum", "conclude: huge_lr"))
    failed = told(tree_items(workspace))["walk: loss_sum"]
    assert failed[0] == "failed"
    assert "concludes huge_lr" in failed[1]
    workspace.answer.write_text(TREE.replace("conclude: healthy", "conclude: huge_lr"))
    edited = told(tree_items(workspace))["walk: loss_sum, edited"]
    assert edited[0] == "could not judge"
    assert "Is " in edited[1]


def test_without_any_exercise_there_is_nothing_to_walk_with(tmp_path: Path) -> None:
    items = told(check_file(tree_in(tmp_path)))
    assert items["walk"][0] == "could not judge"
    assert "make exercise BREAK=huge_lr makes one" in items["walk"][1]
    assert items["tree: form"][0] == items["tree: evidence"][0] == "passed"


@pytest.mark.parametrize(
    ("find", "replace", "item", "said"),
    [
        ("check: first_loss", "check: first", "tree: form", "line 4: there is no check 'first'"),
        ("go: form", "go: scale", "tree: evidence", "The tree loops: scale -> scale"),
        ("go: form", "conclude: loss_sum", "tree: use", "no outcome leads to form"),
    ],
)
def test_what_is_wrong_with_a_tree_is_told(
    find: str, replace: str, item: str, said: str, tmp_path: Path
) -> None:
    workspace = tree_in(tmp_path, TREE.replace(find, replace))
    outcome, message = told(tree_items(workspace))[item]
    assert outcome == "failed"
    assert str(workspace.answer) in message
    assert said in message


def test_the_untouched_file_is_told_to_be_so(tmp_path: Path) -> None:
    [item] = check_file(tree_in(tmp_path, stub(exercise())))
    assert "is as it was handed out" in item.message


@pytest.mark.parametrize("spoilt", ["", "[", "[]", '{"a": 3}', "[" * 100_000])
def test_a_spoilt_memory_is_as_good_as_none(
    spoilt: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / OUTCOMES).write_text(spoilt)
    asked = []

    def examine(job: object) -> None:
        asked.append(job)
        raise KeyboardInterrupt

    monkeypatch.setattr(outcomes_module, "examine", examine)
    with pytest.raises(KeyboardInterrupt):
        Outcomes(tmp_path).of("source", RunSettings(seed=1, dataset="digits"), "overfit")
    assert len(asked) == 1


def test_starting_over_forgets_what_was_found_and_keeps_the_tree(tmp_path: Path) -> None:
    workspace = tree_in(tmp_path)
    (workspace.folder / OUTCOMES).write_text("{}")
    kept = remove_workspace(tmp_path, "decision_tree")
    assert {path.name for path in kept.iterdir()} == {"tree.yaml"}
