"""What an edit changes: what counts as a node, and which functions and areas differ."""

import pytest
from mini_experiments import edited

from grader.syntax.edit_size import AREAS, changed_areas, edit_sizes, functions_changed
from harness.recipe import experiment_source
from harness.run.experiment import CONSTANTS, FUNCTIONS

CNN = experiment_source("shapes_cnn")
BACK, STEP = "    loss.backward()\n", "    optimizer.step()\n"
TOP = "AUGMENT = True\n"

FREE = [
    [(BACK, BACK + "    print('loss', loss.item())\n")],
    [(BACK, BACK + "    norm = sum(p.grad.norm() for p in model.parameters())\n    print(norm ** 0.5)\n")],
    [(BACK, BACK + "    for p in model.parameters():\n        if p.grad is None:\n            print(p)\n")],
    [(BACK, BACK + "    assert torch.isfinite(loss), loss\n")],
    [(BACK + STEP, STEP + BACK)],
    [("lr=0.05, momentum=0.9", "momentum=0.9, lr=0.05")],
    [(TOP, TOP + "RATE: float = 0.05\n"), ("lr=0.05", "lr=RATE")],
    [(TOP, TOP + "DEBUG = False\n\n\ndef show(x):\n    print(x.shape)\n"),
     (BACK, "    if DEBUG:\n        print(loss)\n" + BACK)],
    [("from torch import nn\n", "from torch import nn, optim\n"), ("torch.optim.SGD", "optim.SGD")],
    [("def train_step(model, optimizer,", "def train_step(net: nn.Module, optimizer: 'Any',"),
     ("(model(inputs), labels)\n    loss.", "(net(inputs), labels)\n    loss.")],
    [('"val_accuracy": accuracy.item()}', '"val_accuracy": accuracy.item(), "count": len(inputs)}')],
    [("    model.eval()\n", "    '''Evaluate.'''\n    model.eval()\n")],
]  # fmt: skip
SIZES = [
    ([("lr=0.05", "lr=0.1")], {"build_optimizer": 1}),
    ([(TOP, "AUGMENT = False\n")], {"AUGMENT": 1, "prepare_batch": 1}),
    ([(BACK, BACK + BACK)], {"train_step": 4}),
    ([(BACK, "")], {"train_step": 4}),
    ([(BACK, BACK + "    total = nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n")], {"train_step": 8}),
    ([(BACK, BACK + "    print(optimizer.param_groups.clear())\n")], {"train_step": 7}),
    ([(TOP, TOP + "torch.manual_seed(3)\n")], {"": 4}),
    ([(TOP, TOP + "def half(x):\n    return x / 2\n\n\n"), (BACK, "    half(loss).backward()\n")],
     {"half": 7, "train_step": 2}),
    ([("EPOCHS = 3\n", "EPOCHS = 3\nEPOCHS = 9\n")], {"EPOCHS": 3}),
]  # fmt: skip


@pytest.mark.parametrize(("edits", "sizes"), [*((edits, {}) for edits in FREE), *SIZES])
def test_an_edit_has_the_size_of_what_it_does(edits: list[tuple[str, str]], sizes: dict[str, int]) -> None:
    source = edited(CNN, *edits)
    assert edit_sizes(CNN, source) == sizes


def test_every_function_and_constant_of_an_experiment_has_an_area() -> None:
    assert AREAS.keys() == {*FUNCTIONS, *CONSTANTS}


@pytest.mark.parametrize(("edit", "functions", "areas"), [
    (("convolution(32, 64)", "convolution(32, 32)"), {"build_model"}, {"model"}),
    (("stride=2", "stride=1"), {"convolution", "build_model"}, {"model"}),
    (("AUGMENT = True", "AUGMENT = False"), {"AUGMENT", "prepare_batch"}, {"pipeline"}),
    (("BATCH_SIZE = 64", "BATCH_SIZE = 8"), {"BATCH_SIZE"}, {"loop"}),
    (("F.cross_entropy(outputs", "F.cross_entropy(-outputs"), {"compute_loss"}, {"loss"}),
    (("EPOCHS = 3", "EPOCHS = 3  # three"), set(), set()),
])  # fmt: skip
def test_what_an_edit_changes_is_told_by_function_and_by_area(
    edit: tuple[str, str], functions: set[str], areas: set[str]
) -> None:
    assert functions_changed(CNN, edited(CNN, edit)) == functions
    assert changed_areas(CNN, edited(CNN, edit)) == areas
