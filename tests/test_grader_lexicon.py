"""Lexicons: every recipe's can be read, its rivals are the other recipes, and a wrong one is refused by name."""

import shutil
from pathlib import Path

import pytest
from explanations import judged, report

from grader.score.lexicon import load_lexicon
from grader.score.solutions import SOLUTIONS
from harness.errors import UserError
from harness.recipe import EXERCISES, recipe_ids

RECIPES = recipe_ids()


@pytest.fixture
def solutions(tmp_path: Path) -> Path:
    """A copy of all lexicons, to be spoilt."""
    for path in [*SOLUTIONS.glob("*/lexicon.toml"), SOLUTIONS / "rivals.toml"]:
        target = tmp_path / path.relative_to(SOLUTIONS)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    return tmp_path


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_other_recipes_are_rivals_and_the_recipe_itself_is_none(recipe: str) -> None:
    lexicon = load_lexicon(recipe)
    ids = [rival.id for rival in lexicon.rivals]
    assert len(ids) == len(set(ids))
    assert set(RECIPES) & set(ids) == set(RECIPES) - {recipe}
    assert "overfitting" in ids
    assert lexicon.prompt.startswith("# ")


def test_words_too_loose_to_accuse_by_are_no_rivals() -> None:
    own = load_lexicon("huge_lr")
    rival = next(rival for rival in load_lexicon("loss_sum").rivals if rival.id == "huge_lr")
    assert 0 < len(rival.causes) < len(own.causes)


def test_a_cause_that_belongs_to_the_recipes_own_story_is_no_rival() -> None:
    assert "vanishing_gradients" not in [rival.id for rival in load_lexicon("amp_no_scaling").rivals]
    assert "vanishing_gradients" in [rival.id for rival in load_lexicon("huge_lr").rivals]


def test_a_recipe_without_a_lexicon_is_no_rival_of_the_others(solutions: Path) -> None:
    (solutions / "loss_sum" / "lexicon.toml").unlink()
    assert "loss_sum" not in [rival.id for rival in load_lexicon("huge_lr", solutions).rivals]
    with pytest.raises(UserError, match="There is no"):
        load_lexicon("loss_sum", solutions)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("format_version = 1", "format_version = 2", "format_version"),
        ("signals = [", "sgnals = [", "sgnals"),
        ("signals = [", 'signals = [\n    "...",', "must begin and end with a word"),
        ("signals = [", 'signals = [\n    "loss ...",', "must begin and end with a word"),
        ("signals = [", 'signals = [\n    "loss ::",', "holds no word"),
        ("signals = [", 'not_rivals = ["overfiting"]\nsignals = [', "did you mean overfitting"),
        ("rival = false", 'rival = "no"', "rival"),
    ],
)
def test_a_wrong_lexicon_is_refused_with_its_name(solutions: Path, old: str, new: str, message: str) -> None:
    path = solutions / "huge_lr" / "lexicon.toml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(UserError, match=message) as error:
        load_lexicon("huge_lr", solutions, EXERCISES)
    assert "huge_lr" in str(error.value)


@pytest.mark.parametrize("recipe", RECIPES)
def test_what_the_lexicon_says_names_the_cause(recipe: str) -> None:
    # The remedy quotes it: a student who writes it down has named the cause.
    lexicon = load_lexicon(recipe)
    checks = judged(report(f"The run is not healthy because {lexicon.says}."), recipe)
    assert "The cause is named" in checks["cause"].reason
