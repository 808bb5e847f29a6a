"""Minimality: every variant within its verdict, what is free, what costs little, and what costs all."""

import ast
import re

import pytest
from fix_styles import styled_fixes
from runs import edited

from grader.score.known_edits import known_fixes
from grader.score.minimality import judge_minimality
from grader.score.verdict import Check
from grader.syntax.parse import MAX_BYTES
from grader.syntax.renaming import renamed, variables_of
from grader.syntax.trees import bound_names
from harness.recipe import Recipe, load_recipe, recipe_ids

RECIPES = [load_recipe(name) for name in recipe_ids()]
# Points of 8. Only correct fixes are judged, so the other verdicts have no bounds here.
BOUNDS = {"full": (8, 8), "alternative": (0, 7.5), "overreach": (0, 5.5)}


def judged(recipe_id: str, source: str) -> Check:
    recipe = load_recipe(recipe_id)
    fixes, _ = known_fixes(recipe)
    around = [fix.source for fix in fixes if fix.verdict == "alternative"]
    return judge_minimality(
        recipe, recipe.broken_source(), source, recipe.healthy_source(), ways_around=around
    )


def fixed(recipe_id: str, *edits: tuple[str, str]) -> str:
    return edited(load_recipe(recipe_id).healthy_source(), *edits)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.id)
def test_a_known_fix_earns_what_its_verdict_allows(recipe: Recipe) -> None:
    for fix in known_fixes(recipe)[0]:
        check = judged(recipe.id, fix.source)
        low, high = BOUNDS.get(fix.verdict, (0, 8))
        assert check.points is not None
        assert low <= check.points <= high, fix.id
        assert (check.points == 8) == (check.outcome == "passed") == (check.remedy == "")


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.id)
def test_the_reference_fix_is_minimal_in_any_style(recipe: Recipe) -> None:
    for style, source in styled_fixes(recipe):
        check = judged(recipe.id, source)
        assert check.points == 8, f"{style}: {check.reason}"


ZERO = "    optimizer.zero_grad()\n"
DEBUGGED = "if DEBUG: print(f'{inputs.shape}')\n    return inputs, labels\n\n\nDEBUG = False"
HELPER = "def clear(which):\n    '''Clear.'''\n    which.zero_grad()\n\n\ndef train_step"
FREE = [
    ("huge_lr", ("lr=0.1", "lr=0.1  # lr=10.0 is too much\n        "), 8),
    ("huge_lr", ("    loss.backward()\n", "    loss.backward()\n    print('loss', loss.item())\n"), 7),
    ("huge_lr", ("    outputs = model(inputs)\n", "    outputs = model(inputs)\n    print(outputs.mean())\n"), 7),
    ("huge_lr", ("BATCH_SIZE = 64\n", "BATCH_SIZE = 64\nRATE: float = 0.2 / 2\n"), 8),
    ("huge_lr", ("return inputs, labels", DEBUGGED), 7),
    ("missing_zero_grad", (ZERO, "    optimizer.zero_grad(set_to_none=True)\n"), 8),
    ("missing_zero_grad", (ZERO, "    model.zero_grad()\n"), 8),
    ("missing_zero_grad", (ZERO, "    model.zero_grad()\n    # optimizer.zero_grad()\n"), 8),
    ("missing_zero_grad", ("def train_step", HELPER), 7),
]  # fmt: skip


@pytest.mark.parametrize(("recipe", "edit", "least"), FREE)
def test_what_makes_no_difference_costs_little(recipe: str, edit: tuple[str, str], least: float) -> None:
    source = fixed(recipe, edit)
    if "def clear" in source:
        source = edited(source, (ZERO, "    clear(optimizer)\n"))
    if "RATE" in source:
        source = edited(source, ("lr=0.1", "lr=RATE"))
    points = judged(recipe, source).points
    assert points is not None
    assert points >= least


SGD = "    return torch.optim.SGD(model.parameters(), lr=10.0, momentum=0.9)"
SUM = 'F.cross_entropy(outputs, labels, reduction="sum")'
OUTPUTS, RESULT = "    outputs = model(inputs)\n", "    return {"
NET = "        nn.Flatten(),\n        nn.Linear(784, 128),\n        nn.ReLU(),\n        nn.Linear(128, 10),\n"
# The repair of the broken experiment, in other words: nothing else was changed.
SAME = [
    ("huge_lr", [(SGD, "    learning_rate = 0.1  # was 10\n" + SGD.replace("10.0", "learning_rate"))]),
    ("huge_lr", [(SGD, "    rate = 0.1\n    beta = 0.9\n" + SGD.replace("10.0", "rate").replace("0.9", "beta"))]),
    ("huge_lr", [(SGD, SGD.replace("return", "optimizer =").replace("10.0", "0.1") + "\n    return optimizer")]),
    ("huge_lr", [(SGD, SGD.replace("lr=10.0, momentum=0.9", "momentum=0.9, lr=0.1"))]),
    ("huge_lr", [("lr=10.0", "lr=1e-1"), ("EPOCHS = 5", "EPOCHS = 5\n\n\ndef show(x):\n    print(x.shape, x)\n")]),
    ("double_softmax", [(f"    return nn.Sequential(\n{NET}        nn.Softmax(dim=1),\n    )",
                         f"    model = nn.Sequential(\n{NET}    )\n    return model")]),
    ("loss_sum", [(SUM, f"{SUM} / outputs.shape[0]")]),
    ("loss_sum", [(SUM, f"{SUM} / outputs.size(0)")]),
    ("loss_sum", [(f"    return {SUM}",
                   f"    batch_size = labels.shape[0]\n    total = {SUM}\n    return total / batch_size")]),
    ("loss_sum", [(f"    return {SUM}", "    loss = F.cross_entropy(outputs, labels)\n    return loss")]),
    ("forgotten_eval", [(OUTPUTS, "    model.eval()\n" + OUTPUTS), (RESULT, "    model.train()\n" + RESULT)]),
    ("forgotten_eval", [(OUTPUTS, f"    was = model.training\n    model.eval()\n{OUTPUTS}    model.train(was)\n")]),
    ("forgotten_eval", [(OUTPUTS, "    before = model.training\n    model.eval()\n" + OUTPUTS),
                        (RESULT, "    if before:\n        model.train(mode=True)\n" + RESULT)]),
    ("forgotten_eval", [(OUTPUTS, "    network = model.eval()\n    outputs = network(inputs)\n")]),
    ("huge_lr", [("lr=10.0", "lr=0.1"),
                 ("    loss.backward()\n", "    loss.backward()\n"
                  "    print([p.grad.norm().item() for p in model.parameters()])\n"
                  "    total = sum(p.grad.norm() ** 2 for p in model.parameters())\n    print(total ** 0.5)\n")]),
]  # fmt: skip

STEP = """def train_step(model, optimizer, inputs, labels):
    \"\"\"Make one step of the optimizer on one batch and return the loss.\"\"\"
    loss = compute_loss(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss
"""
OTHER_STEP = """def train_step(net, opt, images, digits):
    opt.zero_grad(set_to_none=True)
    logits = net(images)
    error = compute_loss(logits, digits)
    error.backward()
    opt.step()
    return error
"""
OTHER_LOSS = "def compute_loss(logits, digits):\n    return {}\n"
LOSS = (
    'def compute_loss(outputs, labels):\n    """Return the loss of logits (B, 10) against labels (B,), a scalar."""\n'
    f"    return {SUM}\n"
)
CRITERION = "criterion = nn.CrossEntropyLoss({})\n\n\ndef build_model"
OTHER_EVALUATE = """    logits = model.train(mode=False)(inputs)
    error = compute_loss(logits, labels)
    right = torch.argmax(logits, 1) == labels
    return {"val_loss": error.item(), "val_accuracy": torch.mean(right.float()).item()}
"""
# The same repair by other hands, edits of the broken experiment: the recipe, the edits, their nodes.
OTHER_HANDS = [
    ("missing_zero_grad", [(STEP, OTHER_STEP)], 4),
    ("loss_sum", [(SUM, "F.cross_entropy(target=labels, input=outputs)")], 2),
    ("loss_sum", [(SUM, "nn.CrossEntropyLoss()(outputs, labels)")], 2),
    ("loss_sum", [("def build_model", CRITERION.format("")), (SUM, "criterion(outputs, labels)")], 2),
    ("loss_sum", [("def build_model", CRITERION.format("reduction='mean'")),
                  (LOSS, OTHER_LOSS.format("criterion(logits, digits)"))], 2),
    ("loss_sum", [(SUM, "torch.mean(F.cross_entropy(outputs, labels, reduction='none'))")], 3),
    ("loss_sum", [(f"    return {SUM}", "    criterion = nn.CrossEntropyLoss()\n"
                   "    loss = criterion(outputs, labels)\n    return loss")], 2),
    ("huge_lr", [("torch.optim.SGD(model.parameters(), lr=10.0, momentum=0.9)",
                  "torch.optim.SGD(params=model.parameters(), momentum=0.9, lr=0.1, nesterov=False)")], 1),
    ("huge_lr", [("torch.optim.SGD(model.parameters(), lr=10.0, momentum=0.9)", "SGD(model.parameters(), 0.1, 0.9)"),
                 ("from torch import nn", "from torch import nn\nfrom torch.optim import SGD")], 1),
    ("forgotten_eval", [(OUTPUTS, OTHER_EVALUATE.partition("    error")[0].replace("logits", "outputs"))], 2),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(OTHER_HANDS)))
def test_the_same_repair_by_other_hands_is_no_larger(number: int) -> None:
    recipe, edits, nodes = OTHER_HANDS[number]
    check = judged(recipe, edited(load_recipe(recipe).broken_source(), *edits))
    assert check.points == 8, check.reason
    assert check.reason.startswith(f"Your edit changes {nodes} node")


# One thing is not the same: it counts, whatever else is only written otherwise.
NEAR = [
    ("missing_zero_grad", [(STEP, OTHER_STEP.replace("net(images)", "net(images) * 0.5"))], 6),
    ("missing_zero_grad", [(STEP, OTHER_STEP.replace("    opt.step()\n", "    clip(net)\n    opt.step()\n"))], 8),
    ("missing_zero_grad", [(STEP, OTHER_STEP.replace("=True", "=False"))], 6),
    ("loss_sum", [("def build_model", CRITERION.format("label_smoothing=0.1")),
                  (SUM, "criterion(outputs, labels)")], 2),
    ("loss_sum", [("def build_model", CRITERION.format("") .replace("\n\n\n", "\ncriterion.eps = 1\n\n\n")),
                  (SUM, "criterion(outputs, labels)")], 11),
    ("huge_lr", [("lr=10.0, momentum=0.9", "momentum=0.8, lr=0.1, nesterov=False")], 2),
    ("huge_lr", [("lr=10.0, momentum=0.9", "momentum=0.9, lr=0.1, nesterov=True")], 3),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(NEAR)))
def test_what_is_not_the_same_still_counts(number: int) -> None:
    recipe, edits, nodes = NEAR[number]
    check = judged(recipe, edited(load_recipe(recipe).broken_source(), *edits))
    assert f"Your edit changes {nodes} nodes" in check.reason


BACKWARD, UPDATE = "    loss.backward()\n", "    optimizer.step()\n"
MASKS = {
    "clipping": (BACKWARD, BACKWARD + "    nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"),
    "catching": (UPDATE, "    try:\n        optimizer.step()\n    except ValueError:\n        pass\n"),
    "a constant": (BACKWARD, "    (loss / 100).backward()\n"),
    "small gradients": (BACKWARD, BACKWARD + "    for p in model.parameters():\n        p.grad.mul_(0.01)\n"),
    "a seed": (BACKWARD, "    torch.manual_seed(1)\n" + BACKWARD),
}  # fmt: skip


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_is_no_smaller_among_other_names(name: str) -> None:
    before, after = MASKS[name]
    broken = load_recipe("huge_lr").broken_source()
    plain = judged("huge_lr", edited(broken, (before, after)))
    names = {"model": "net", "optimizer": "opt", "inputs": "images", "labels": "digits", "loss": "error"}
    step = STEP.replace("    loss = ", "    optimizer.zero_grad()\n    loss = ")
    hidden = edited(step, (before, after))
    for old, new in names.items():
        hidden = re.sub(rf"\b{old}\b", new, hidden)
    assert judged("huge_lr", edited(broken, (step, hidden))) == plain


@pytest.mark.parametrize(
    "edit", [("images.float()", "images.float() + 1"), ("nn.Linear(784, 128)", "nn.Linear(784, 64)")]
)
def test_tampering_is_seen_among_other_names(edit: tuple[str, str]) -> None:
    source = fixed("huge_lr", (f"train.{edit[0]}" if "images" in edit[0] else edit[0], edit[1]))
    source = edited(source, ("def load_data(data)", "def load_data(split)"))
    assert (
        judged("huge_lr", source.replace("data.train", "split.train").replace("data.val", "split.val")).points
        == 0
    )


def test_another_batch_is_tampering_among_other_names() -> None:
    step = OTHER_STEP.replace("    logits", "    images = images * 2\n    logits")
    source = edited(load_recipe("missing_zero_grad").broken_source(), (STEP, step))
    assert judged("missing_zero_grad", source).reason.startswith("Your edit changes the inputs or the labels")


@pytest.mark.parametrize("number", range(len(SAME)))
def test_the_same_repair_in_other_words_earns_everything(number: int) -> None:
    recipe, edits = SAME[number]
    check = judged(recipe, edited(load_recipe(recipe).broken_source(), *edits))
    assert check.points == 8, check.reason


OTHER = [
    # A name that does something of its own, an order that matters, a mode that is used.
    ("huge_lr", [("lr=10.0", "lr=0.1"), ("    loss.backward()\n", "    x = torch.rand(3)\n    loss.backward()\n")]),
    ("huge_lr", [("lr=10.0", "lr=0.1"),
                 ("    loss.backward()\n",
                  "    loss.backward()\n    print([p.grad.zero_() for p in model.parameters()])\n")]),
    ("huge_lr", [("lr=10.0", "lr=0.1"), (OUTPUTS, f"    model.train()\n{OUTPUTS}    model.train()\n")]),
    ("huge_lr", [("lr=10.0", "lr=0.1"), ("    model.eval()\n", "    model.train()\n")]),
    ("huge_lr", [("lr=10.0", "lr=0.1"),
                 ("EPOCHS = 5", "EPOCHS = 5\n\n\n@torch.no_grad()\ndef show(x):\n    print(x)\n")]),
    ("amp_no_scaling", [("enabled=AMP", "enabled=False")]),
    ("amp_no_scaling", [("enabled=AMP", "enabled=0")]),
    ("amp_no_scaling", [("torch.float16", "torch.float32")]),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(OTHER)))
def test_what_is_more_than_the_repair_or_another_one_costs(number: int) -> None:
    recipe, edits = OTHER[number]
    points = judged(recipe, edited(load_recipe(recipe).broken_source(), *edits)).points
    assert points is not None
    assert points <= 6


NEVER = [
    (("data.train.images.float() / 255", "data.train.images.float() / 128"), "the data (load_data)"),
    (("EPOCHS = 5", "EPOCHS = 6"), "EPOCHS"),
    (("EPOCHS = 5", "EPOCHS = 5\nif True:\n    EPOCHS = 9"), "EPOCHS"),
    (("def build_model():\n", "def build_model():\n    global EPOCHS\n"), "EPOCHS"),
    (("BATCH_SIZE = 64", "BATCH_SIZE = 32"), "BATCH_SIZE"),
    (("import torch\nimport", "import torch\n\ntorch.manual_seed(7)\nimport"), "the seed"),
    (("nn.Linear(128, 10)", "nn.Linear(128, 32), nn.Linear(32, 10)"), "the size of the network"),
    (("    model.eval()\n", ""), "how the network is evaluated"),
    (("return inputs, labels", "return inputs * 2, labels"), "the inputs or the labels"),
    (("    loss = compute_loss(model(", "    inputs = inputs * 2\n    loss = compute_loss(model("), "the inputs"),
    (("@torch.no_grad()", "if True:\n    def evaluate(model, inputs, labels): return {}\n\n\n@torch.no_grad()"),
     "how the network is evaluated"),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "named"), NEVER)
def test_what_no_repair_needs_costs_everything_and_is_named(edit: tuple[str, str], named: str) -> None:
    check = judged("huge_lr", fixed("huge_lr", edit))
    assert check.points == 0
    assert check.reason.startswith(f"Your edit changes {named}")
    assert "Undo what changes" in check.remedy


def test_a_layer_that_was_not_broken_costs_half_and_more_of_them_more() -> None:
    one = ("nn.ReLU()", "nn.GELU()")
    check = judged("huge_lr", fixed("huge_lr", one))
    assert check.points == 4
    assert "It touches the model, which was not broken." in check.reason
    assert check.remedy == "Fix the optimizer and leave the model alone."
    two = judged("huge_lr", fixed("huge_lr", one, ("F.cross_entropy", "F.nll_loss")))
    assert two.points == 2
    assert "the loss and the model, which were not broken" in two.reason


def test_a_print_that_does_something_is_an_edit() -> None:
    acts = "    loss.backward()\n    print(optimizer.param_groups.clear())\n"
    check = judged("huge_lr", fixed("huge_lr", ("    loss.backward()\n", acts)))
    assert check.points is not None
    assert check.points < 4


def test_the_reason_counts_both_edits() -> None:
    assert judged("huge_lr", fixed("huge_lr")).reason == (
        "Your edit changes 1 node of the syntax tree in build_optimizer;"
        " the reference edit changes 1 node in build_optimizer."
    )
    assert judged("huge_lr", load_recipe("huge_lr").broken_source()).reason.startswith(
        "Your edit changes nothing"
    )


def test_what_does_not_parse_waits_for_the_instructor() -> None:
    check = judged("huge_lr", "x = " + "-" * 5000 + "1")
    assert (check.outcome, check.points) == ("could not judge", None)
    assert "nested too deeply" in check.reason


LINES = ["def f{}(): return f(1)\n", "a{} = 1\n", "f(x, 1)\n", "import a{} as x\n", "x: int = 1\n"]


@pytest.mark.parametrize("text", LINES)
def test_the_largest_text_is_judged(text: str) -> None:
    source = fixed("huge_lr") + "".join(text.format(index) for index in range(1400))
    assert len(source) < MAX_BYTES
    assert judged("huge_lr", source).reason.isprintable()


@pytest.mark.parametrize("recipe", recipe_ids())
def test_the_reference_with_every_variable_renamed_is_the_reference(recipe: str) -> None:
    tree = ast.parse(fixed(recipe))
    outer = {name for statement in tree.body for name in bound_names(statement)}
    for place, item in enumerate(tree.body):
        if isinstance(item, ast.FunctionDef):
            own = variables_of(item, outer | {"F", "nn", "torch"})
            assert {argument.arg for argument in item.args.args} <= set(own)
            tree.body[place] = (
                renamed(item, {name: f"other_{index}" for index, name in enumerate(own)}) or item
            )
    source = ast.unparse(tree)
    assert source.count("other_") > 40
    assert judged(recipe, source) == judged(recipe, fixed(recipe))
