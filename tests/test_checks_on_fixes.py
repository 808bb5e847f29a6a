"""The mechanism checks on fixes of real breaks: unsound if a fix hides the symptom, sound if it is correct."""

from typing import Any

import pytest
from helpers.check_subjects import source_subject
from helpers.fix_styles import (
    BACK,
    HONEST,
    LOSS,
    MEAN,
    OTHER_WAYS,
    PERMUTED,
    SOFT,
    STEP,
    ZERO,
    Edits,
    honest_fixes,
)  # fmt: skip

from harness.checks import load_check, make_check
from harness.checks.core.outcomes import mechanisms_of
from harness.recipes.form import is_script
from harness.recipes.recipe import Recipe, load_recipes

pytestmark = pytest.mark.usefixtures("torch_as_found")

CALLED = "    outputs = model(inputs)\n"
CLIP_HARD = (STEP, "    nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n" + STEP)
RATE_UP = "    optimizer.param_groups[0]['lr'] = {}\n"
HALVED = """    for p in model.parameters():
        if p.grad is not None:
            p.grad *= 0.5
"""
HALF_SHUFFLED = """    half = len(labels) // 2
    order = torch.cat([torch.randperm(half, generator=rng), torch.arange(half, len(labels))])
    return inputs, labels[order]
"""
DIVIDED = "    for p in model.parameters():\n        p.grad /= {}\n"
ONLY_NORM = """    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.eval()
"""

# Edits of the broken experiment that hide the symptom, or seem to hide it.
MASKING: dict[str, list[Edits]] = {
    "huge_lr": [
        [CLIP_HARD],
        [(BACK, "    (loss / 100).backward()\n")],
        [("lr=10.0", "lr=0.1"), (STEP, RATE_UP.format(10.0) + STEP + RATE_UP.format(0.1))],
        [(STEP, STEP + "    torch.optim.SGD(model.parameters(), lr=1e-9).step()\n")],
    ],
    "missing_zero_grad": [
        [CLIP_HARD],
        [(LOSS, f"    if not optimizer.state:\n    {ZERO}{LOSS}")],
        [(LOSS, "    model[1].weight.grad = None\n" + LOSS)],
        [(LOSS, HALVED + LOSS)],
    ],
    "loss_sum": [
        [("lr=0.1", "lr=0.1 / 64")],
        [CLIP_HARD],
        [("BATCH_SIZE = 64", "BATCH_SIZE = 8")],
        [("    return loss\n", "    return loss / 64\n")],
        [(STEP, DIVIDED.format(64) + STEP)],
    ],
    "double_softmax": [
        [(MEAN, "F.cross_entropy(outputs * 10, labels)")],
        [("nn.Softmax(dim=1)", "nn.Sigmoid()")],
        [("lr=0.1", "lr=1.0")],
        [(MEAN, f"{MEAN} - 1.4611")],
    ],
    "label_permute": [
        [(PERMUTED, HALF_SHUFFLED)],
        [("labels[order]", "labels"), ("return inputs", "return inputs[order]")],
        [("generator=rng", "generator=torch.Generator().manual_seed(0)")],
    ],
    "amp_no_scaling": [
        [("lr=0.001, fused", "lr=0.001, eps=1e-4, fused")],
        [(BACK, "    (loss * 2).backward()\n" + DIVIDED.format(2))],
    ],
    "forgotten_eval": [
        [(CALLED, "    torch.manual_seed(0)\n" + CALLED)],
        [(CALLED, ONLY_NORM + CALLED)],
        [(CALLED, "    model[4].eval()\n" + CALLED)],
        [(CALLED, "    import copy\n    model = copy.deepcopy(model)\n" + CALLED)],
    ],
}
# Correct fixes that the measure of edits or the grammar of plain edits may question.
UNUSUAL: dict[str, list[Edits]] = {
    "double_softmax": [[(SOFT, "        nn.LogSoftmax(dim=1),\n")]],
    "label_permute": [[(PERMUTED, "    return inputs.roll(2, dims=3) * 0.9 + 0.01, labels\n")]],
    "amp_no_scaling": [[("AMP = True", "AMP = False")]],
    "forgotten_eval": [[(CALLED, "    import copy\n    model = copy.deepcopy(model).eval()\n" + CALLED)]],
}


def unsound(recipe: Recipe, source: str) -> dict[str, str]:
    """Return the outcome of each mechanism check that finds the break and is not sound on a source."""
    subject = source_subject(source, recipe.dataset, recipe.seed)
    found = {name: make_check(subject, name).outcome for name in mechanisms_of(recipe.id)}
    return {name: outcome for name, outcome in found.items() if not load_check(name).outcome(outcome).sound}


RECIPES = [recipe for recipe in load_recipes()[0] if not is_script(recipe.healthy_source())]


def fixes(*tables: dict[str, list[Edits]]) -> list[Any]:
    """Return each recipe with the source after each of its edits."""
    return [
        pytest.param(recipe, source, id=f"{recipe.id} {number}")
        for recipe in RECIPES
        for number, source in enumerate(item for table in tables for item in honest_fixes(recipe, table))
    ]


@pytest.mark.parametrize(("recipe", "source"), fixes(MASKING))
def test_a_fix_that_hides_the_symptom_is_not_sound(recipe: Recipe, source: str) -> None:
    assert unsound(recipe, source)


@pytest.mark.parametrize(("recipe", "source"), fixes(HONEST, OTHER_WAYS, UNUSUAL))
def test_a_right_fix_is_sound_however_it_is_written(recipe: Recipe, source: str) -> None:
    assert unsound(recipe, source) == {}
