"""Calls that do the same are spelled alike, and torch agrees; calls that do not are not."""

import ast
import inspect
from functools import reduce

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from grader.syntax.calls import FUNCTIONS, spell_calls_alike

IMPORTS = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"


def spelled(text: str, before: str = IMPORTS) -> str:
    return ast.dump(spell_calls_alike(ast.parse(before + text)))


def of_torch(path: str) -> object:
    return reduce(getattr, path.split(".")[1:], torch)


@pytest.mark.parametrize("path", FUNCTIONS)
def test_the_signatures_are_those_of_the_installed_torch(path: str) -> None:
    ours = FUNCTIONS[path]
    theirs = inspect.signature(of_torch(path)).parameters  # type: ignore[arg-type]
    assert [name for name in theirs if name in ours.keywords] == list(ours.keywords)
    positional = [item.name for item in theirs.values() if item.kind is not item.KEYWORD_ONLY]
    assert positional[: len(ours.positional)] == list(ours.positional)
    for name, value in ours.defaults.items():
        assert theirs[name].default == ast.literal_eval(value)


X = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.0, -0.5]])
Y = torch.tensor([2, 0])
NET = nn.Linear(3, 2)
SAME = [
    ("F.cross_entropy(x, y)", "F.cross_entropy(target=y, input=x)"),
    ("F.cross_entropy(x, y)", "F.cross_entropy(x, y, reduction='mean', label_smoothing=0)"),
    ("F.cross_entropy(x, y)", "nn.CrossEntropyLoss()(x, y)"),
    ("F.cross_entropy(x, y)", "torch.nn.CrossEntropyLoss(None, reduction='mean')(x, y)"),
    ("F.cross_entropy(x, y, reduction='sum')", "nn.CrossEntropyLoss(reduction='sum')(x, y)"),
    ("F.cross_entropy(x, y, ignore_index=2)", "nn.CrossEntropyLoss(None, None, 2)(x, y)"),
    ("F.nll_loss(F.log_softmax(x, dim=1), y)", "nn.NLLLoss()(nn.LogSoftmax(dim=1)(x), y)"),
    ("F.nll_loss(F.log_softmax(x, dim=1), y)", "F.nll_loss(torch.log_softmax(x, 1), y)"),
    ("F.mse_loss(x, x + 1)", "nn.MSELoss()(x, x + 1)"),
    ("F.l1_loss(x, x + 1)", "nn.L1Loss(reduction='mean')(x, x + 1)"),
    ("F.smooth_l1_loss(x, x + 1, beta=2.0)", "nn.SmoothL1Loss(beta=2.0)(x, x + 1)"),
    ("F.huber_loss(x, x + 1, 'sum')", "nn.HuberLoss(reduction='sum')(x, x + 1)"),
    ("F.binary_cross_entropy_with_logits(x, x)", "nn.BCEWithLogitsLoss()(x, x)"),
    ("F.softmax(x, dim=1)", "x.softmax(1)"),
    ("F.softmax(x, dim=1)", "nn.Softmax(1)(x)"),
    ("F.relu(x)", "torch.relu(input=x)"),
    ("F.relu(x)", "x.relu()"),
    ("torch.mean(x)", "x.mean()"),
    ("torch.mean(x, 1, True)", "x.mean(dim=1, keepdim=True)"),
    ("torch.sum(input=x, dim=0)", "x.sum(0)"),
    ("torch.argmax(x, dim=1)", "x.argmax(1)"),
    ("torch.flatten(x, 1)", "x.flatten(start_dim=1)"),
    ("x.shape[0] + x.size(0)", "len(x) + len(x)"),
    ("torch.where(*(x > 0, x, x))", "torch.where(x > 0, x, x)"),
    ("net.train(False)(x)", "net.eval()(x)"),
    ("net.train(mode=True)(x)", "net.train()(x)"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_call_is_spelled_alike_and_gives_the_same(one: str, other: str) -> None:
    assert spelled(one) == spelled(other)
    values = [
        eval(text, {"torch": torch, "nn": nn, "F": F, "x": X, "y": Y, "net": NET}) for text in (one, other)
    ]
    assert torch.equal(*(torch.as_tensor(value) for value in values))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("nn.Linear(3, 2)", "nn.Linear(out_features=2, in_features=3, bias=True)"),
        ("nn.Conv2d(1, 2, kernel_size=3, stride=2)", "nn.Conv2d(1, 2, 3, 2)"),
        ("nn.Sequential(nn.ReLU(), nn.Flatten())", "nn.Sequential(*[nn.ReLU(inplace=False), nn.Flatten(1)])"),
        ("torch.optim.SGD(p, lr=0.1, momentum=0.9)",
         "torch.optim.SGD(params=p, momentum=0.9, lr=0.1, weight_decay=0.0)"),
        ("torch.optim.SGD(p, lr=0.1, momentum=0.9)", "torch.optim.SGD(p, 0.1, 0.9, nesterov=False)"),
        ("torch.amp.GradScaler('cpu')", "torch.amp.GradScaler(device='cpu', enabled=True)"),
        ("o.zero_grad()", "o.zero_grad(set_to_none=True)"),
        ("o.zero_grad()", "o.zero_grad(True)"),
        ("F.mse_loss(g(x), h(y))", "F.mse_loss(input=g(x), target=h(y))"),
    ],
)  # fmt: skip
def test_what_is_made_or_done_alike_is_spelled_alike(one: str, other: str) -> None:
    assert spelled(one) == spelled(other)


@pytest.mark.parametrize("text", [
    "from torch.nn.functional import cross_entropy as ce\nce(x, y)",
    "import torch.nn\nimport torch.nn.functional\ntorch.nn.functional.cross_entropy(x, y)",
    "import torch as t\nt.nn.CrossEntropyLoss()(x, y)",
    "import torch\nfunctional = torch.nn.functional\nfunctional.cross_entropy(x, y)",
])  # fmt: skip
def test_an_import_is_the_same_under_every_name(text: str) -> None:
    def last(source: str) -> str:
        return ast.dump(spell_calls_alike(ast.parse(source)).body[-1])

    assert last(text) == last(IMPORTS + "F.cross_entropy(x, y)")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("F.cross_entropy(x, y)", "F.cross_entropy(x, y, reduction='sum')"),
        ("F.cross_entropy(x, y)", "nn.CrossEntropyLoss(label_smoothing=0.1)(x, y)"),
        ("F.cross_entropy(x, y)", "F.cross_entropy(y, x)"),
        ("F.cross_entropy(x, y)", "nn.NLLLoss()(x, y)"),
        ("F.cross_entropy(x, y)", "nn.CrossEntropyLoss(make())(x, y)"),
        ("F.cross_entropy(x, y, weight=None)", "F.cross_entropy(x, y, weight=w)"),
        ("F.softmax(x, dim=1)", "F.softmax(x, dim=0)"),
        ("F.softmax(x, dim=1)", "F.log_softmax(x, dim=1)"),
        ("F.relu(x)", "F.relu(x, inplace=True)"),
        ("torch.mean(x)", "torch.sum(x)"),
        ("torch.mean(x)", "torch.mean(x, out=y)"),
        ("torch.mean(x)", "numpy.mean(x)"),
        ("len(x)", "x.shape[1]"),
        ("len(x)", "x.size(1)"),
        ("nn.Linear(3, 2)", "nn.Linear(3, 2, bias=False)"),
        ("nn.Linear(3, 2)", "nn.Linear(2, 3)"),
        ("torch.optim.SGD(p, lr=0.1)", "torch.optim.SGD(p, lr=0.1, nesterov=True)"),
        ("torch.optim.AdamW(p, lr=0.1)", "torch.optim.AdamW(p, lr=0.1, weight_decay=0)"),
        ("o.zero_grad()", "o.zero_grad(set_to_none=False)"),
        ("net.train()", "net.train(False)"),
        ("net.eval()", "net.train(0)"),
        # What is called comes in another order.
        ("F.mse_loss(g(x), h(y))", "F.mse_loss(target=h(y), input=g(x))"),
        ("f(*[a, b])", "f(*pair)"),
    ],
)
def test_a_call_that_differs_is_spelled_otherwise(one: str, other: str) -> None:
    assert spelled(one) != spelled(other)


@pytest.mark.parametrize(("text", "alike"), [
    ("{}\nF = other\nF.softmax(x, 1)", "F.softmax(x, dim=1)"),
    ("{}\ndef f(F):\n    return F.softmax(x, 1)", "F.softmax(x, dim=1)"),
    ("{}\ndef len(x): ...\nx.shape[0]", "len(x)"),
    ("{}\nclass A:\n    def mean(self, keepdim): ...\nx.mean(1)", "x.mean(dim=1)"),
    ("{}\nx.mean = other\nx.mean(1)", "x.mean(dim=1)"),
    ("{}\ndef zero_grad(o, really): ...\nzero_grad(o, True)", "zero_grad(o, set_to_none=True)"),
])  # fmt: skip
def test_what_the_file_defines_itself_is_not_torchs(text: str, alike: str) -> None:
    last = text.splitlines()[-1]
    assert spelled(text.format(IMPORTS), "") != spelled(text.replace(last, last.replace(
        last.strip().removeprefix("return "), alike)).format(IMPORTS), "")  # fmt: skip


@pytest.mark.parametrize("text", [
    "x.shape[0] = 1", "torch.nn.functional.mse_loss(**a)", "torch.nn.functional.mse_loss(*a)",
    "torch.nn.functional.mse_loss(x)", "torch.nn.functional.mse_loss(x, y, wrong=1)",
    "torch.nn.functional.mse_loss(x, y, input=x)", "torch.nn.functional.mse_loss(1, 2, 3, 4, 5, 6, 7, 8)",
    "torch.nn.MSELoss()(x)", "torch.mean()",
])  # fmt: skip
def test_store_targets_and_strange_calls_are_left(text: str) -> None:
    found = spell_calls_alike(ast.parse(f"import torch\n{text}")).body[-1]
    assert ast.unparse(found).strip() == text
