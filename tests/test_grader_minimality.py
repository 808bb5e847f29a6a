"""Minimality: every known fix gets points within its verdict; some edits are free, others cost points."""

import pytest
from helpers.fix_styles import HONEST, honest_fixes, styled_fixes
from helpers.mini_experiments import edited
from helpers.sampling import every_recipe

from grader.score.fix import judge_minimality
from grader.score.verdict import RubricItem
from harness.recipes.catalogue import load_recipe
from harness.recipes.known_edits import known_fixes
from harness.recipes.recipe import Recipe
from harness.submission.limits import EXPERIMENT_BYTES

# Points out of 8. Only correct fixes are judged, so the other verdicts have no bounds here.
BOUNDS = {"full": (8, 8), "overreach": (0, 5.5)}
RATE = ("lr=10.0", "lr=0.1")
BACK = "    loss.backward()\n"


def judged(recipe: Recipe, source: str) -> RubricItem:
    return judge_minimality(recipe.broken_source(), source, recipe.healthy_source())


def huge_lr(*edits: tuple[str, str]) -> RubricItem:
    recipe = load_recipe("huge_lr")
    return judged(recipe, edited(recipe.broken_source(), *edits))


@pytest.mark.parametrize("recipe", every_recipe())
def test_a_known_fix_earns_what_its_verdict_allows(recipe: Recipe) -> None:
    for fix in known_fixes(recipe)[0]:
        check = judged(recipe, fix.source)
        low, high = BOUNDS.get(fix.verdict, (0, 8))
        assert check.points is not None
        assert low <= check.points <= high, fix.id
        assert (check.points == 8) == (check.outcome == "passed") == (check.remedy == "")


@pytest.mark.parametrize("recipe", every_recipe())
def test_a_fix_of_the_cause_is_minimal_in_any_style(recipe: Recipe) -> None:
    sources = dict(styled_fixes(recipe)) | {source: source for source in honest_fixes(recipe, HONEST)}
    assert {name: judged(recipe, source).reason for name, source in sources.items()
            if judged(recipe, source).points != 8} == {}  # fmt: skip


@pytest.mark.parametrize(("edits", "points", "says"), [
    ([RATE], 8, "Your edit changes 1 node of the syntax tree in build_optimizer."
                " The reference fix changes 1 node in build_optimizer."),
    ([RATE, ("nn.ReLU()", "nn.GELU()")], 4, "Your edit also changes build_model, which was not broken."),
    ([RATE, ("EPOCHS = 5", "EPOCHS = 6")], 4, "Your edit also changes EPOCHS, which"),
    ([RATE, ("EPOCHS = 5", "torch.manual_seed(7)\nEPOCHS = 5")], 4, "also changes statements outside functions"),
    ([RATE, ("float() / 255, data.train", "float() / 9, data.train"), ("    model.eval()\n", "")], 2,
     "Your edit also changes evaluate and load_data, which were not broken."),
    ([RATE, ("    return None\n", "    print(total_steps)\n    return None\n")], 8, "1 node of"),
    ([("    return torch", "    model.train()\n" * 8 + "    return torch"), RATE], 5, "25 nodes"),
    ([], 8, "Your edit changes nothing"),
])  # fmt: skip
def test_what_else_an_edit_changes_costs_points(edits: list[tuple[str, str]], points: float, says: str) -> None:
    check = huge_lr(*edits)
    assert (check.points, says in check.reason) == (points, True), check.reason


MIRROR = """    if AUGMENT:
        mirrored = torch.rand(len(inputs), generator=rng) < 0.5
        mirrored = mirrored.to(inputs.device).view(-1, 1, 1, 1)
        inputs = torch.where(mirrored, inputs.flip(3), inputs)
"""
MIXED = """    others = torch.randperm(len(inputs), generator=rng)
    return 0.5 * inputs + 0.5 * inputs[others], labels
"""
MIRROR_HELPER = """    return (mirror(inputs, rng) if AUGMENT else inputs), labels


def mirror(images, rng):
    chosen = torch.rand(len(images), generator=rng) < 0.5
    return torch.where(chosen.to(images.device).view(-1, 1, 1, 1), images.flip(3), images)
"""


def test_a_block_that_moves_to_a_helper_is_no_larger_edit() -> None:
    recipe = load_recipe("mixup_hard_label")
    check = judged(recipe, edited(recipe.broken_source(), (MIRROR + MIXED, MIRROR_HELPER)))
    assert check.points == 8, check.reason
    assert "nodes of the syntax tree in prepare_batch." in check.reason


def test_what_does_not_parse_waits_for_the_instructor() -> None:
    check = judged(load_recipe("huge_lr"), "x = " + "-" * 5000 + "1")
    assert (check.outcome, check.points) == ("could not judge", None)
    assert "nested too deeply" in check.reason


@pytest.mark.parametrize("text", ["def f{}(): return f(1)\n", "a{} = 1\n", "f(x, 1)\n", "    a{} = a\n"])
def test_the_largest_text_is_judged(text: str) -> None:
    recipe = load_recipe("huge_lr")
    lines = "".join(text.format(index) for index in range(1400))
    source = f"{recipe.healthy_source()}if a:\n    a = 1\n{lines}"
    assert len(source) < EXPERIMENT_BYTES
    assert judged(recipe, source).reason.isprintable()
