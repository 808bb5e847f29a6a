from pathlib import Path

import pytest
from run_files import BROKEN, FIXED, make_workspace

from harness.checks.target import find_target, run_folder
from harness.errors import UserError
from harness.exercise import Asked
from harness.recipe import load_recipe


def test_without_a_workspace_it_is_the_experiment_as_handed_out(tmp_path: Path) -> None:
    target = find_target("huge_lr", tmp_path / "work", Asked())
    recipe = load_recipe("huge_lr")
    assert target.source == recipe.broken_source()
    assert (target.edited, target.source_path, target.workspace, target.checkpoint) == (
        False,
        None,
        None,
        None,
    )
    assert (target.settings.seed, target.settings.dataset) == (recipe.seed, recipe.dataset)
    assert not (tmp_path / "work").exists()


def test_of_a_workspace_it_is_the_edited_one_or_the_untouched_one(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    edited = find_target("huge_lr", tmp_path, Asked())
    assert (edited.source, edited.edited, edited.source_path) == (FIXED, True, workspace.experiment)
    assert edited.checkpoint == workspace.run_folder("fixed") / "checkpoint.pt"
    assert str(workspace.experiment) in edited.words
    untouched = find_target("huge_lr", tmp_path, Asked(), untouched=True)
    assert (untouched.source, untouched.edited, untouched.source_path) == (BROKEN, False, None)
    assert untouched.checkpoint == workspace.run_folder("broken") / "checkpoint.pt"


def test_a_workspace_that_nobody_edited_is_untouched(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    workspace.experiment.write_text(BROKEN)
    target = find_target("huge_lr", tmp_path, Asked())
    assert (target.edited, target.source) == (False, BROKEN)


def test_other_settings_or_another_edit_have_no_checkpoint(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    asked = find_target("huge_lr", tmp_path, Asked(seed=7))
    assert (asked.settings.seed, asked.checkpoint) == (7, None)
    workspace.experiment.write_text(FIXED + "\n# once more\n")
    assert find_target("huge_lr", tmp_path, Asked()).checkpoint is None


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="did you mean huge_lr"):
        find_target("hugelr", tmp_path, Asked())
    with pytest.raises(UserError, match="28x28 images"):
        find_target("huge_lr", tmp_path, Asked(dataset="cifar10"))


def test_a_run_is_named_by_its_folder_or_by_its_exercise(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    assert run_folder("huge_lr/broken", tmp_path) == workspace.run_folder("broken")
    assert run_folder(str(workspace.run_folder("fixed")), Path("elsewhere")) == workspace.run_folder("fixed")
    for name in ("huge_lr", "huge_lr/other", "nothing/broken", str(tmp_path)):
        with pytest.raises(UserError, match="There is no finished run"):
            run_folder(name, tmp_path)
