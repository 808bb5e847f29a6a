"""What no repair needs is found, and what only looks like it is not."""

import pytest
from runs import edited

from grader.syntax.edit_size import compare
from grader.syntax.parse import parse_experiment
from grader.syntax.tampering import tampering
from harness.recipe import Area, experiment_source

SOURCE = experiment_source("shapes_cnn")


def found(edit: tuple[str, str], *allowed: Area, reference: str = SOURCE) -> tuple[str, ...]:
    student = edited(SOURCE, edit)
    trees = [parse_experiment(text) for text in (SOURCE, student, reference)]
    return tampering(trees[0], trees[1], trees[2], compare(SOURCE, student), set(allowed))


@pytest.mark.parametrize(("edit", "told"), [
    (("keepdim=True)\n    deviation", "keepdim=True) + 1\n    deviation"), "the data"),
    (("return inputs, labels", "labels[:] = 0\n    return inputs, labels"), "the inputs"),
    (("return inputs, labels", "labels.zero_()\n    return inputs, labels"), "the inputs"),
    (("    loss.backward()", "    torch.seed()\n    loss.backward()"), "the seed"),
    (("convolution(32, 64)", "convolution(32, 128)"), "the size of the network"),
    (("BATCH_SIZE = 64", "BATCH_SIZE = 65"), "BATCH_SIZE"),
    (("AUGMENT = True", "AUGMENT = True\nEPOCHS += 1"), "EPOCHS"),
    (("outputs.argmax(dim=1)", "labels"), "how the network is evaluated"),
])  # fmt: skip
def test_what_no_repair_needs_is_named(edit: tuple[str, str], told: str) -> None:
    (only,) = found(edit)
    assert only.startswith(told)


@pytest.mark.parametrize("edit", [
    ("lr=0.05", "lr=0.01"), ("nn.Dropout(0.6)", "nn.Dropout(p=0.3)"), ("64 * 4 * 4", "1024"),
    ("nn.Linear(64 * 4 * 4, 10)", "nn.Linear(in_features=1024, out_features=10)"),
    ("    loss.backward()", "    shifted = inputs + 1\n    loss.backward()"),
    ("EPOCHS = 3", "EPOCHS = 3  # enough"),
])  # fmt: skip
def test_what_only_looks_like_it_is_not(edit: tuple[str, str]) -> None:
    assert found(edit) == ()


def test_what_the_recipe_breaks_may_be_changed() -> None:
    batch = ("return inputs, labels", "return inputs + 1, labels")
    assert found(batch) != ()
    assert found(batch, "pipeline") == ()
    epochs = ("EPOCHS = 3", "EPOCHS = 4")
    assert found(epochs) == ("EPOCHS",)
    assert found(epochs, reference=edited(SOURCE, epochs)) == ()
    assert found(("outputs.argmax(dim=1)", "labels"), "evaluation") == ()
