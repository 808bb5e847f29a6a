"""Hints: shown one by one, recorded in the manifest, and shown to the instructor. They cost no points."""

import json
import re
from pathlib import Path

import pytest
from helpers.commands import mistake, succeed
from helpers.intake_archives import packed, parsed, whole
from helpers.made_up_runs import make_workspace

from grader.intake.archive import Rejected
from grader.replay.replay import Replay
from grader.replay.request import Role
from grader.score.rubric import load_weights
from grader.score.scoring import score_submission
from harness.errors import UserError
from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import recipe_ids
from harness.student.hints import give_hint
from harness.submission.archive import build_submission
from harness.workspace.progress import MOST_HINTS, progress_of
from harness.workspace.workspace import remove_workspace


@pytest.mark.parametrize("recipe_id", recipe_ids())
def test_hints_lead_from_a_command_to_a_function_and_never_give_the_line_to_type(recipe_id: str) -> None:
    recipe = load_recipe(recipe_id)
    first, second, third = recipe.hints
    assert "`harness " in first
    assert recipe_id in first
    functions = re.findall(r"^def (\w+)", recipe.broken_source(), re.MULTILINE)
    assert not any(name in first.replace(recipe_id, "") for name in functions if name not in ("evaluate", "load_data"))
    defined = re.findall(r"^ *(?:def|class) (\w+)", recipe.broken_source(), re.MULTILINE)
    assert any(name in second for name in defined)
    for edit in recipe.breaks:
        for code in filter(None, (edit.find.strip(), edit.replace.strip())):
            assert code not in " ".join((first, second, third))


def test_a_hint_comes_after_the_one_before_it_and_is_noted(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    assert progress_of(workspace.folder).hints == 0
    with pytest.raises(UserError, match=r"so hint 2 is not shown: first run make hint BREAK=huge_lr LEVEL=1"):
        give_hint(workspace, 2)
    assert progress_of(workspace.folder).hints == 0
    texts = load_recipe("huge_lr").hints
    assert [give_hint(workspace, level) for level in (1, 2, 1)] == [texts[0], texts[1], texts[0]]
    assert progress_of(workspace.folder).hints == 2
    remove_workspace(tmp_path, "huge_lr")
    assert progress_of(make_workspace(tmp_path).folder).hints == 2


@pytest.mark.parametrize("note", ["", "[]", '{"hints": true}', '{"hints": 4}', "[" * 100_000])
def test_an_unreadable_note_counts_as_no_hint(note: str, tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    give_hint(workspace, 1)
    (path,) = (tmp_path / ".progress").iterdir()
    path.write_text(note)
    assert progress_of(workspace.folder).hints == 0


def test_the_manifest_holds_the_number_of_hints(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    assert "hints" not in json.loads(build_submission(workspace, "ada")["manifest.json"])
    for level in range(1, MOST_HINTS + 1):
        give_hint(workspace, level)
        assert json.loads(build_submission(workspace, "ada")["manifest.json"])["hints"] == level


def test_the_command_shows_a_hint_and_the_command_for_the_next(tmp_path: Path) -> None:
    make_workspace(tmp_path / "work")
    texts = load_recipe("huge_lr").hints
    said = succeed("hint", "huge_lr", "--level", "1", cwd=tmp_path)
    assert "Hint 1 of 3, where to look:\n" in said
    assert texts[0] in " ".join(said.split())
    assert texts[1] not in " ".join(said.split())
    assert "  make hint BREAK=huge_lr LEVEL=2  # which function to read\n" in said
    assert "You have not seen hint 2 yet" in mistake("hint", "huge_lr", "--level", "3", cwd=tmp_path)
    assert "There is no workspace" in mistake("hint", "loss_sum", "--level", "1", cwd=tmp_path)


def test_the_instructor_sees_how_many_and_no_point_is_lost() -> None:
    failed = Replay(status="RE", message="it raised")
    replays: dict[Role, Replay] = {"broken": failed, "fixed": failed, "reference": failed}
    rows = []
    for changed in ({}, {"hints": 2}):
        item = parsed("ada_huge_lr", packed(whole(**changed)))
        rows.append(score_submission(item, load_recipe("huge_lr"), replays, load_weights()).row)
    without, with_two = rows
    assert with_two.criteria == without.criteria
    assert [flag.message for flag in with_two.flags if flag not in without.flags] == [
        "The student used 2 of 3 hints, according to the workspace. Hints cost no points."
    ]
    assert ("hints" in without.provenance, with_two.provenance["hints"]) == (False, 2)


@pytest.mark.parametrize("hints", [-1, 4, True, "2", None, [1], 1.5, 10**400])
def test_a_manifest_with_another_number_of_hints_is_refused(hints: object) -> None:
    with pytest.raises(Rejected, match="hints: "):
        parsed("ada_huge_lr", packed(whole(hints=hints)))
