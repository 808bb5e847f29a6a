"""The normal form of an edit: nothing for the same program in other words, and every other edit in full."""

import ast

import pytest

from grader.syntax.edit_size import compare, compare_programs
from grader.syntax.normal_form import prepare_broken, prepare_edited

BROKEN = """
import torch

def loss_of(outputs, labels):
    return outputs - labels

def step(model, optimizer, inputs, labels):
    loss = loss_of(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss

def evaluate(model, inputs, labels):
    model.eval()
    outputs = model(inputs)
    accuracy = (outputs.argmax(dim=1) == labels).float().mean()
    return {"val_loss": loss_of(outputs, labels).item(), "val_accuracy": accuracy.item()}

def load(data):
    mean = data.mean()
    deviation = data.std()
    return (data - mean) / deviation + mean
"""
OURS = prepare_broken(ast.parse(BROKEN))
STEP = BROKEN[BROKEN.index("def step") : BROKEN.index("def evaluate")]
EVALUATE = BROKEN[BROKEN.index("def evaluate") : BROKEN.index("def load")]
LOAD = BROKEN[BROKEN.index("def load") :]


def normal(source: str) -> ast.Module:
    return prepare_edited(ast.parse(source), OURS)[0].tree


def size(before: str, after: str) -> int:
    assert BROKEN.count(before) == 1
    theirs, ours = prepare_edited(ast.parse(BROKEN.replace(before, after)), OURS)
    return compare_programs(ours, theirs).total


def plain_size(before: str, after: str) -> int:
    return compare(BROKEN, BROKEN.replace(before, after)).total


SAME = [
    # Other names of parameters and variables, one of them for a step in between, two of them exchanged.
    (STEP, """def step(net, opt, images, digits):
    logits = net(images)
    batch_loss = loss_of(logits, digits)
    batch_loss.backward()
    opt.step()
    return batch_loss

"""),
    (STEP, """def step(model, optimizer, labels, inputs):
    loss = loss_of(model(labels), inputs)
    loss.backward()
    optimizer.step()
    return loss

"""),
    (STEP, """def step(loss, optimizer, inputs, labels):
    model = loss_of(loss(inputs), labels)
    model.backward()
    optimizer.step()
    return model

"""),
    # A name less.
    (EVALUATE, """def evaluate(model, inputs, labels):
    model.eval()
    logits = model(inputs)
    return {
        "val_loss": loss_of(logits, labels).item(),
        "val_accuracy": (logits.argmax(dim=1) == labels).float().mean().item(),
    }

"""),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(SAME)))
def test_the_same_program_is_no_edit(number: int) -> None:
    assert size(*SAME[number]) == 0
    assert plain_size(*SAME[number]) > 0


EXCHANGED = (
    SAME[0][1].replace("    opt.step()\n", "").replace("    batch_loss.b", "    opt.step()\n    batch_loss.b")
)


@pytest.mark.parametrize(
    ("edit", "nodes"),
    [
        # Other names, and one thing that is not the same.
        ((STEP, SAME[0][1].replace("digits)\n    batch", "images)\n    batch")), 1),
        ((STEP, SAME[0][1].replace("return batch_loss", "return batch_loss + 1")), 2),
        ((STEP, SAME[0][1].replace("net(images)", "net(images * 2)")), 2),
        ((STEP, EXCHANGED), 4),
        # Names that are exchanged in one place alone.
        (("loss_of(model(inputs), labels)", "loss_of(model(labels), inputs)"), 2),
        (("def step(model, optimizer, inputs, labels)", "def step(model, optimizer, labels, inputs)"), 2),
        # An order that matters, a value that is another.
        (("    model.eval()\n    outputs = model(inputs)\n", "    outputs = model(inputs)\n    model.eval()\n"), 8),
        (("argmax(dim=1)", "argmax(dim=0)"), 1),
    ],
)  # fmt: skip
def test_what_is_not_the_same_counts(edit: tuple[str, str], nodes: int) -> None:
    assert size(*edit) == nodes
    assert size(*edit) <= plain_size(*edit)


@pytest.mark.parametrize(
    ("ours", "theirs", "nodes"),
    [
        ("f(b=1, a=g(d=2, c=3))", "f(a=g(c=3, d=2), b=1)", 0),
        ("f(b=1, a=2)", "f(a=1, b=2)", 2),
        ("f(b=1, **a)", "f(**a, b=1)", 4),
        ("def f(x):\n    x = x + 1\n    return x", "def f(x):\n    x += 1\n    return x", 0),
        ("def f(x):\n    x *= 2\n    return x", "def f(x):\n    x = x * 2\n    return x", 0),
        ("def f(x):\n    x = x + 1\n    return x", "def f(x):\n    x -= 1\n    return x", 1),
        ("def f(x):\n    x.y = x.y + 1\n    return x", "def f(x):\n    x.y += 1\n    return x", 4),
        (
            'def evaluate():\n    return {"val_loss": 1}',
            'def evaluate():\n    return {"val_loss": 1, "more": 2}',
            0,
        ),
        (
            'def evaluate():\n    return {"val_loss": 1}',
            'def evaluate():\n    return {"val_loss": 1, "x": f()}',
            3,
        ),
        (
            'def other():\n    return {"val_loss": 1}',
            'def other():\n    return {"val_loss": 1, "more": 2}',
            2,
        ),
    ],
)
def test_equal_statements_are_no_edit(ours: str, theirs: str, nodes: int) -> None:
    edited, broken = prepare_edited(ast.parse(theirs), prepare_broken(ast.parse(ours)))
    assert compare_programs(broken, edited).total == nodes


@pytest.mark.parametrize(
    "text",
    [
        # Parameters that somebody gives by name, or by names that nobody knows.
        "{}\nstep(model=1, optimizer=2, inputs=3, labels=4)\n",
        "{}\nstep(**arguments)\n",
        "import functools\n{}\npartial = functools.partial(step, labels=1)\n",
        # A name that means something else where it is read.
        "{}\nmodel = 3\n",
        "{}\nnet = 3\n",
        "{}\ndef step(model, optimizer, inputs, labels):\n    pass\n",
    ],
)
def test_names_stay_where_somebody_could_tell(text: str) -> None:
    edited = ast.parse(text.format(BROKEN.replace(*SAME[0])))
    theirs = prepare_edited(edited, OURS)[0].tree
    step = next(item for item in theirs.body if isinstance(item, ast.FunctionDef) and item.name == "step")
    assert step.args.args[0].arg == ("model" if "\nmodel = 3" in text else "net")


def test_a_name_that_is_read_from_outside_stays() -> None:
    free = SAME[0][1].replace("net(images)", "net(images + labels)")
    assert "images + labels" in ast.unparse(normal(BROKEN.replace(STEP, free)))


def test_equal_programs_have_equal_forms() -> None:
    assert ast.dump(normal(BROKEN)) == ast.dump(OURS.tree)


def test_new_names_are_numbered() -> None:
    loops = [
        f"    for {name} in model.parameters():\n        {name}.grad = None\n    return loss\n"
        for name in "pq"
    ]
    first, second = (ast.dump(normal(BROKEN.replace("    return loss\n", loop))) for loop in loops)
    assert first == second
