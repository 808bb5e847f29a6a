"""The size of an edit: the nodes that count, and the changed functions and areas."""

import ast
from collections import Counter

import pytest
from helpers.mini_experiments import edited

from grader.syntax import edit_size
from grader.syntax.edit_size import AREAS, changed_areas, edit_sizes, functions_changed
from harness.recipes.form import FUNCTIONS
from harness.recipes.recipe import experiment_source
from harness.run.experiment import CONSTANTS

CNN = experiment_source("shapes_cnn")
BACK, STEP = "    loss.backward()\n", "    optimizer.step()\n"
TOP = "AUGMENT = True\n"

FREE = [
    [(BACK, BACK + "    print('loss', loss.item())\n")],
    [(BACK, BACK + "    norm = sum(p.grad.norm() for p in model.parameters())\n    print(norm ** 0.5)\n")],
    [(BACK, BACK + "    for p in model.parameters():\n        if p.grad is None:\n            print(p)\n")],
    [(BACK, BACK + "    assert torch.isfinite(loss), loss\n")],
    [(BACK, BACK + "    if not torch.isfinite(loss) or loss.isnan().any():\n        raise ValueError(f'{loss}')\n")],
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
    [(TOP, TOP + "count = 0\n"),
     (BACK, "    global count\n    count += 1\n    if count % 10 == 0:\n        print(loss)\n" + BACK)],
    [("import torch\n", "import logging\nimport time\n\nimport torch\n"),
     (TOP, TOP + "log = logging.getLogger(__name__)\n"),
     (BACK, "    start = time.perf_counter()\n" + BACK + "    log.info('%s', time.perf_counter() - start)\n")],
    [("    optimizer.zero_grad()\n    loss = compute_loss(model(inputs), labels)\n",
      "    optimizer.zero_grad()\n    outputs = model(inputs)\n    loss = compute_loss(outputs, labels)\n")],
    [(TOP, TOP + "history = []\n"), (BACK, BACK + "    history.append(loss.item())\n")],
    [(BACK, "    try:\n    " + BACK + "    except RuntimeError as error:\n        print(error)\n        raise\n")],
    [("    return {\"val_loss\"",
      "    table = torch.zeros(10, 10)\n    for t, p in zip(labels, outputs.argmax(dim=1)):\n"
      "        table[t, p] += 1\n    print(table)\n    return {\"table\": table, \"val_loss\"")],
    [("    return {\"val_loss\"", "    metrics = {\"val_loss\""), ("accuracy.item()}\n", "accuracy.item()}\n"
      "    metrics['rate'] = 1.0\n    return metrics\n")],
    [(TOP, "if __name__ == '__main__':\n    print(build_model())\n" + TOP)],
]  # fmt: skip
SIZES = [
    ([("lr=0.05", "lr=0.1")], {"build_optimizer": 1}),
    ([(TOP, "AUGMENT = False\n")], {"AUGMENT": 1, "prepare_batch": 1}),
    ([(BACK, BACK + BACK)], {"train_step": 3}),
    ([(BACK, "")], {"train_step": 3}),
    ([(BACK, BACK + "    total = nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n")], {"train_step": 5}),
    ([(BACK, BACK + "    print(optimizer.param_groups.clear())\n")], {"train_step": 6}),
    ([(TOP, TOP + "torch.manual_seed(3)\n")], {"": 4}),
    ([(BACK, BACK + "    assert len(labels) > 40, 'so few'\n")], {"train_step": 5}),
    ([(BACK, BACK + "    if len(labels) < 40:\n        raise ValueError('so few')\n")], {"train_step": 6}),
    ([(TOP, TOP + "def whole(x):\n    assert len(x) == 64\n\n\n"), (BACK, BACK + "    whole(inputs)\n")],
     {"train_step": 11}),
    ([(TOP, TOP + "def half(x):\n    return x / 2\n\n\n"), (BACK, "    half(loss).backward()\n")],
     {"train_step": 8}),
    # A block moves to a helper: its call and the head of the helper count.
    ([("    optimizer.zero_grad()\n    loss =", "    loss ="),
      ("    optimizer.step()\n", "    update(optimizer)\n"),
      ("@torch.no_grad()\ndef evaluate", "def update(optimizer):\n    optimizer.step()\n    optimizer.zero_grad()\n\n\n"
       "@torch.no_grad()\ndef evaluate")], {"train_step": 6}),
    # A block that moves to another function counts there.
    ([("    model.eval()\n", ""), (BACK, "    model.eval()\n" + BACK)], {"evaluate": 1, "train_step": 3}),
    ([("def train_step(", "def initialize(module):\n    module.weight.data.zero_()\n\n\ndef train_step("),
      ("    optimizer.zero_grad()\n", "    model.apply(initialize)\n    optimizer.zero_grad()\n")], {"train_step": 12}),
    ([(BACK, BACK + "    model.register_buffer('seen', loss)\n")], {"train_step": 4}),
    ([("EPOCHS = 3\n", "EPOCHS = 3\nEPOCHS = 9\n")], {"EPOCHS": 2}),
]  # fmt: skip


@pytest.mark.parametrize("step", [1, -1])
def test_helpers_act_through_each_other_in_any_order_and_each_is_read_once(
    step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    whole = edit_size._slice_of

    def counted(function: ast.FunctionDef, *rest: set[str]) -> object:
        read.append(function.name)
        return whole(function, *rest)

    monkeypatch.setattr(edit_size, "_slice_of", counted)
    count = 400
    chain = ["def f0(model):\n    model.train()\n\n\n"]
    chain += [f"def f{at}(model):\n    f{at - 1}(model)\n\n\n" for at in range(1, count)]
    idle = "def idle(model):\n    print(len(model))\n\n\n"
    calls = f"    f{count - 1}(model)\n    idle(model)\n"
    source = edited(CNN, (TOP, TOP + idle + "".join(chain[::step])), (BACK, calls + BACK))
    sizes = edit_sizes(CNN, source)
    assert sizes.keys() == {"train_step"}, "a helper belongs to its caller"
    acting = edited(CNN, (TOP, TOP + "".join(chain)), (BACK, f"    f{count - 1}(model)\n" + BACK))
    assert sizes == edit_sizes(CNN, acting), "the call of f399 acts, that of idle does not"
    read.clear()
    edit_sizes(CNN, source + "\n")
    assert {Counter(read)[f"f{at}"] for at in range(count)} == {2}, (
        "once to find out whether it acts, once for its size"
    )


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


def test_code_that_moves_into_a_helper_of_its_function_stays_with_it() -> None:
    block = "    model.eval()\n    model.train()\n"
    helped = (
        "def prepared(model):\n{}    return model.half()\n\n\ndef train_step(model, optimizer, inputs, labels):\n{}"
    )
    rest = "    loss = prepared(model)(inputs)\n    loss.backward()\n    optimizer.step()\n"
    before, after = helped.format("", block + rest), helped.format(block, rest)
    assert edit_sizes(before, after) == {}
    # Code in the helper that did not come from the function is an edit of the helper.
    assert edit_sizes(helped.format("", rest), after) == {"prepared": 6}


def test_a_script_counts_its_main_block_and_names_its_networks() -> None:
    script = experiment_source("dates_seq2seq")
    longer = edited(script, ("        trainer.fit()\n", "        trainer.epochs = 9\n        trainer.fit()\n"))
    assert sum(edit_sizes(script, longer).values()) > 0
    assert changed_areas(script, longer) == frozenset()
    # A subclass of nn.Module, and a class of another kind.
    assert changed_areas(script, edited(script, ("self.scale = hid**-0.5", "self.scale = hid**-0.25"))) == {"model"}
    assert changed_areas(script, edited(script, ("lr=1e-2", "lr=1e-3"))) == frozenset()
