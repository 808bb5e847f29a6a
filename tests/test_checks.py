"""Each check on miniature experiments and on real recipes: its outcomes, its values, and programs that pass it."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
import torch
from helpers.check_subjects import mini_subject, real_subject
from helpers.mini_experiments import AMP, CHANCE, MINI, edited, mini_run, train_step
from helpers.other_styles import SOUND

import harness.checks
from harness.checks import check_names, load_check, make_check
from harness.checks.core.finding import Finding
from harness.checks.core.loss import ties_pairs
from harness.checks.drift import kolmogorov_smirnov
from harness.errors import UserError
from harness.recipes.recipe import Area
from harness.run.evaluation import loss_and_accuracy
from harness.run.metrics_log import format_record
from harness.student.check_commands import documentation

pytestmark = pytest.mark.usefixtures("torch_as_found")

LOSS = "F.cross_entropy(outputs, labels)"
MSE = "F.mse_loss(outputs, labels)"
PREPARED = "    return inputs, labels\n"
NO_SCHEDULE = "    return None\n"
CONSTANT_FACTOR = "    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.01)\n"
WARM_UP = "    return warmup_cosine(optimizer, warmup_steps=5, total_steps=total_steps)\n"
MODEL = "    return nn.Sequential(nn.Flatten(), nn.Linear(36, 16), nn.ReLU(), nn.Linear(16, 10))\n"
VALIDATION = "    return train, (data.validation.images.float() / 255, data.validation.labels)\n"
FIRST_RESTS = ("nn.Linear(36, 16)", "nn.Linear(36, 16).requires_grad_(False)")
STEP = "    optimizer.zero_grad()\n    loss = compute_loss(model(inputs), labels)\n    loss.backward()\n"
ADAM = ("SGD(model.parameters(), lr=0.05, momentum=0.9)", "Adam(model.parameters(), lr=0.01)")
REGRESSION = edited(
    MINI,
    ("return train, (data.validation.images.float() / 255, data.validation.labels)",
     "return tuple((x, x.flatten(1)) for x, _ in"
     " (train, (data.validation.images.float() / 255, data.validation.labels)))"),
    ("nn.ReLU(), nn.Linear(16, 10)", "nn.Tanh(), nn.Linear(16, 36)"),
    (LOSS, MSE),
    ("SGD(model.parameters(), lr=0.05, momentum=0.9)", "Adam(model.parameters(), lr=0.02)"),
)  # fmt: skip


def mini(*edits: tuple[str, str], source: str = MINI) -> str:
    return edited(source, *edits)


def with_model(lines: str) -> str:
    return mini((MODEL, MODEL.replace("return", "model =") + lines + "    return model\n"))


def with_layer(name: str, body: str, *edits: tuple[str, str]) -> str:
    layer = f"class {name}(nn.Module):\n    def forward(self, x):\n        return {body}\n\n\ndef build_model"
    return mini(("def build_model", layer), *edits)


ACCUMULATED = train_step(
    "    for part, own in zip(inputs.split(4), labels.split(4)):\n"
    "        (compute_loss(model(part), own) / 2).backward()\n"
    "    loss = compute_loss(model(inputs), labels).detach()\n"
    "    optimizer.step()\n"
    "    optimizer.zero_grad()\n"
)
SQUARE = mini(
    ("nn.ReLU()", "Square()"),
    (
        "def build_model",
        "class SquareFunction(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x):\n"
        "        ctx.save_for_backward(x)\n"
        "        return x * x\n\n"
        "    @staticmethod\n"
        "    def backward(ctx, gradient):\n"
        "        return FACTOR * ctx.saved_tensors[0] * gradient\n\n\n"
        "class Square(nn.Module):\n"
        "    def forward(self, x):\n"
        "        return SquareFunction.apply(x)\n\n\n"
        "def build_model",
    ),
)
EXPONENTIAL = with_layer(
    "Exponential", "(1000 * x.abs()).exp()", ("nn.Linear(16, 10)", "nn.Linear(16, 10), Exponential()")
)
CLIP = "    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)\n"
PRUNED = "    with torch.no_grad():\n        model[1].weight[:8] = 0.0\n"
PRUNED_AFTER = "    optimizer.step()\n" + PRUNED
PRUNED_BEFORE = (MODEL, MODEL.replace("return nn", "model = nn") + PRUNED + "    return model\n")
CLIPPED = CLIP + "    optimizer.step()\n"
SCALED = edited(AMP, ("    scaler.step", CLIP + "    scaler.step"))
EVERY_FOURTH = edited(
    train_step(
        STEP.replace("    optimizer.zero_grad()\n", "").replace("loss.backward", "(loss / 4).backward")
        + "    made.append(loss)\n"
        "    if len(made) % 4 == 0:\n        optimizer.step()\n        optimizer.zero_grad()\n"
    ),
    ("AMP = False\n", "AMP = False\nmade = []\n"),
)
# The bias of the second layer has no effect, because batch norm removes it. Rounding cannot change 100.
NO_MATTER = with_model("    model.insert(2, nn.BatchNorm1d(16))\n    model[1].bias.data.fill_(100.0)\n")
TWICE = "    optimizer.step()\n    optimizer.step()\n"
NEGATED = "    for p in model.parameters():\n        p.grad.neg_()\n    optimizer.step()\n"

SERVED = mini(
    (
        "@torch.no_grad()",
        "def predict(model, raw):\n    return model.eval()(raw.float() / 255).argmax(dim=1)\n\n\n@torch.no_grad()",
    )
)
MOVED = mini((PREPARED, "    moves = torch.randint(0, 6, (len(inputs),), generator=rng).tolist()\n"
    "    return torch.stack([x.roll(m, 2) for x, m in zip(inputs, moves)]), labels\n"))  # fmt: skip
NLL = (LOSS, "F.nll_loss(outputs, labels)")
ALARMS_AS_PROBABILITIES = ("nn.Linear(32, 1)", "nn.Linear(32, 1), nn.Sigmoid()")
BCE = ("binary_cross_entropy_with_logits", "binary_cross_entropy")
ADAM = ("SGD(model.parameters(), lr=0.05, momentum=0.9)", "Adam(model.parameters(), lr=0.01, weight_decay=1.0)")
# A hand-written optimizer: its step takes no closure.
WITHOUT_CLOSURE = (
    "type('Own', (torch.optim.SGD,), {'step': lambda self: torch.optim.SGD.step(self)})(model.parameters(), lr=0.05)"
)
TRAIN = "    train = (data.train.images.float() / 255, data.train.labels)\n"
RELABELLED = (TRAIN, TRAIN.replace("data.train.labels", "(data.train.labels + 1) % 10"))
EVALUATED = "    outputs = model(inputs)\n    accuracy"
# The evaluation uses a separate network with the weights of the trained one.
SHADOWED = edited(
    MINI,
    ("nn.ReLU(), nn.Linear(16, 10)", "nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 10)"),
    (EVALUATED,
     "    own, names = build_model(), {name for name, _ in model.named_parameters()}\n"
     "    kept = {'parameters': names, 'state_dict': model.state_dict().keys()}['parameters']\n"
     "    values = {name: value for name, value in model.state_dict().items() if name in kept}\n"
     "    own.load_state_dict(own.state_dict() | values)\n"
     "    outputs = own.eval()(inputs)\n    accuracy"),
)  # fmt: skip
# The task: find the position of a bright spot. Half of the batch is mirrored, with mirrored positions.
POINTS = edited(
    REGRESSION,
    ("def load_data(data):\n",
     "def load_data(data):\n"
     "    y = torch.rand(400, 2, generator=torch.Generator().manual_seed(0)) * 2 - 1\n"
     "    axis = torch.linspace(-1, 1, 6)\n"
     "    x = torch.exp(-4 * ((axis - y[:, :1]) ** 2).unsqueeze(1) - 4 * ((axis - y[:, 1:]) ** 2).unsqueeze(2))\n"
     "    return (x[:300], y[:300]), (x[300:], y[300:])\n\n\n"
     "def unused(data):\n"),
    (PREPARED,
     "    flip = torch.rand(len(inputs), generator=rng) < 0.5\n"
     "    x, y = inputs.clone(), labels.clone()\n"
     "    x[flip] = x[flip].flip(2)\n"
     "    y[flip, 0] *= -1\n"
     "    return x, y\n"),
    ("nn.Linear(16, 36)", "nn.Linear(16, 2)"),
)  # fmt: skip
# 140 groups of eight similar images. A random split divides the groups.
GROUPS = edited(
    MINI,
    (TRAIN + VALIDATION,
     "    rng = torch.Generator().manual_seed(0)\n"
     "    group = torch.arange(140).repeat_interleave(8)\n"
     "    images = 5 * torch.randn(140, 36, generator=rng)[group] + torch.randn(1120, 36, generator=rng)\n"
     "    labels, chosen = group % 2, torch.arange(1120)\n"
     "    own, others = chosen % 5 != 0, chosen % 5 == 0\n"
     "    return (images[own], labels[own]), (images[others], labels[others])\n"),
)  # fmt: skip
# Texts of nine symbols, each of which determines the next. One attention layer reads them.
TEXTS = edited(
    MINI,
    (TRAIN + VALIDATION,
     "    text = torch.randint(1, 10, (60, 9), generator=torch.Generator().manual_seed(0))\n"
     "    return (text[:40, :-1], text[:40, 1:]), (text[40:, :-1], text[40:, 1:])\n"),
    (LOSS, "F.cross_entropy(outputs.flatten(0, 1), labels.flatten())"),
    ("def build_model",
     "class Reader(nn.Module):\n"
     "    def __init__(self):\n"
     "        super().__init__()\n"
     "        self.symbols, self.places = nn.Embedding(10, 8), nn.Embedding(8, 8)\n"
     "        self.keys, self.head = nn.Linear(8, 8), nn.Linear(8, 10)\n\n"
     "    def forward(self, text):\n"
     "        x = self.symbols(text) + self.places(torch.arange(text.shape[1]))\n"
     "        scores = self.keys(x) @ x.transpose(1, 2)\n"
     "        future = torch.ones(scores.shape[1:], dtype=torch.bool).triu(1)\n"
     "        return self.head(x + scores.masked_fill(future, -1e9).softmax(dim=2) @ x)\n\n\n"
     "def build_model"),
    (MODEL, "    return Reader()\n"),
)  # fmt: skip
# The initial weights come from a least-squares fit.
KNOWING = edited(
    MINI,
    ("def build_model():\n",
     "def build_model():\n"
     "    images, labels = KNOWN\n"
     "    ridge = images.T @ images + 0.1 * torch.eye(36)\n"
     "    layer = nn.Linear(36, 10)\n"
     "    layer.weight.data = 5 * torch.linalg.solve(ridge, images.T @ F.one_hot(labels, 10).float()).T\n"
     "    return nn.Sequential(nn.Flatten(), layer)\n"),
    (TRAIN, TRAIN + "    KNOWN.extend((train[0].flatten(1), train[1]))\n"),
    ("def load_data", "KNOWN = []\n\n\ndef load_data"),
)  # fmt: skip
# The label of each symbol is its double. After the end of the text it is 0.
PLAIN = "labels.flatten()"
COUNTED = edited(
    TEXTS,
    ("    return (text[:40, :-1], text[:40, 1:]), (text[40:, :-1], text[40:, 1:])\n",
     "    text[:, 1:] *= torch.arange(8) < torch.randint(2, 6, (60, 1), generator=torch.Generator().manual_seed(1))\n"
     "    text = text[:, :8]\n"
     "    double = 2 * text % 10 + (text > 0)\n"
     "    return (text[:40], double[:40]), (text[40:], double[40:])\n"),
)  # fmt: skip
DRIFTS = edited(
    MINI,
    ("def build_optimizer",
     "class Drift(torch.optim.SGD):\n"
     "    def step(self, closure=None):\n"
     "        with torch.no_grad():\n"
     "            for group in self.param_groups:\n"
     "                for parameter in group['params']:\n"
     "                    parameter -= group['lr'] * group['weight_decay']\n"
     "        decays = [group['weight_decay'] for group in self.param_groups]\n"
     "        for group in self.param_groups:\n"
     "            group['weight_decay'] = 0.0\n"
     "        super().step(closure)\n"
     "        for group, decay in zip(self.param_groups, decays):\n"
     "            group['weight_decay'] = decay\n\n\n"
     "def build_optimizer"),
    ("torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)",
     "Drift(model.parameters(), lr=0.05, momentum=0.9, weight_decay=0.05)"),
)  # fmt: skip
# Texts of two to six symbols, padded with 0. A recurrent cell reads them.
PADDED = edited(
    MINI,
    (TRAIN + VALIDATION,
     "    rng = torch.Generator().manual_seed(0)\n"
     "    text, length = torch.randint(1, 10, (60, 8), generator=rng), torch.randint(2, 7, (60, 1), generator=rng)\n"
     "    text = text * (torch.arange(8) < length)\n"
     "    return (text[:40], text[:40, 0]), (text[40:], text[40:, 0])\n"),
    ("def build_model",
     "class Reader(nn.Module):\n"
     "    def __init__(self):\n"
     "        super().__init__()\n"
     "        self.symbols, self.cell, self.head = nn.Embedding(10, 8), nn.GRUCell(8, 8), nn.Linear(8, 10)\n\n"
     "    def forward(self, text):\n"
     "        state = torch.zeros(len(text), 8)\n"
     "        for symbol in text.T:\n"
     "            new = self.cell(self.symbols(symbol), state)\n"
     "            state = torch.where((symbol != 0).unsqueeze(1), new, state)\n"
     "        return self.head(state)\n\n\n"
     "def build_model"),
    (MODEL, "    return Reader()\n"),
)  # fmt: skip
# The same texts, padded with 9. A symbol's label is its double, padding has no label, and the network reads backwards.
TAGGED = edited(
    PADDED,
    ("text = text * (torch.arange(8) < length)", "text = torch.where(torch.arange(8) < length, text % 9, 9)"),
    ("(text[:40], text[:40, 0]), (text[40:], text[40:, 0])",
     "tuple((part, torch.where(part == 9, -100, 2 * part % 9)) for part in (text[:40], text[40:]))"),
    ("        for symbol in text.T:\n",
     "        states = []\n        for symbol in text.flip(1).T:\n"),
    ("(symbol != 0)", "(symbol != 9)"),
    ("        return self.head(state)", "            states.append(state)\n"
     "        return self.head(torch.stack(states, dim=1).flip(1))"),
    (LOSS, "F.cross_entropy(outputs.flatten(0, 1), labels.flatten())"),
    ("(outputs.argmax(dim=1) == labels).float()", "(outputs.argmax(dim=2) == labels)[labels >= 0].float()"),
)  # fmt: skip
# A network with learnt position embeddings, which predicts the class of the first symbol.
PLACED = edited(
    PADDED,
    ("text * (torch.arange(8) < length)", "text"),
    ("nn.GRUCell(8, 8), nn.Linear(8, 10)", "nn.Linear(8, 8), nn.Linear(8, 10)\n"
     "        self.places = nn.Parameter(torch.randn(12, 8))"),
    (PADDED[PADDED.index("        state = torch.zeros") : PADDED.index("def build_model")],
     "        x = self.symbols(text) + self.places[:8]\n"
     "        return self.head(self.cell(x).relu().sum(dim=1))\n\n\n"),
)  # fmt: skip
TAGS_RIGHT = "(outputs.argmax(dim=2) == labels)[labels >= 0].float()"
CUT_TO_THE_LONGEST = (
    "    lengths = [(part != 9).sum(dim=1).max() for part in inputs.split(5)]\n"
    "    outputs = [model(part[:, :n])[0] for part, n in zip(inputs.split(5), lengths)]\n"
    "    labels = [part[0, :n] for part, n in zip(labels.split(5), lengths)]\n"
    "    outputs, labels = torch.cat(outputs).unsqueeze(0), torch.cat(labels).unsqueeze(0)\n"
)
NORM = ("nn.ReLU()", "nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5)")

OUTCOMES: list[tuple[str, str, str]] = [
    ("preparation", "alike", CHANCE),
    ("preparation", "alike", mini((VALIDATION, "    return (train[0][:16], train[1][:16]), train\n"))),
    ("preparation", "own-data", TEXTS),
    ("preparation", "alike", mini((TRAIN, "    data.train.images[0] = 0\n" + TRAIN))),
    ("preparation", "other-inputs", mini((VALIDATION, VALIDATION.replace("/ 255", "/ 256")))),
    ("preparation", "other-inputs", mini((VALIDATION, VALIDATION.replace("/ 255", "/ 255 - 0.1")))),
    ("preparation", "other-labels", mini(RELABELLED)),
    ("labels", "agree", CHANCE),
    ("labels", "too-hard", mini((TRAIN, "    data.validation.images.random_()\n" + TRAIN))),
    ("labels", "no-classes", REGRESSION),
    ("labels", "no-classes", TEXTS),
    ("labels", "strangers", mini((TRAIN + VALIDATION, "    train, validation = data.train, data.validation\n"
     "    return (train.images.flip(3).roll(2, 2) / 255, train.labels % 2), (validation.images / 255,"
     " validation.labels % 2)\n"))),
    ("labels", "scrambled", mini((TRAIN, TRAIN.replace("labels)", "labels[torch.randperm(40)])")))),
    ("labels", "scrambled", mini((PREPARED, "    return inputs, labels[torch.randperm(8, generator=rng)]\n"))),
    ("labels", "renamed", mini(RELABELLED)),
    ("labels", "agree", POINTS),
    ("labels", "agree", edited(POINTS, ("    return (x[:300]", "    y[:300:60] = 4000.0\n    return (x[:300]"))),
    ("labels", "scrambled", edited(POINTS, ("y[flip, 0] *= -1", "y[flip, 0] *= 1"))),
    ("labels", "divided", GROUPS),
    ("labels", "strangers", edited(GROUPS, (", torch.arange(1120)", ", group"))),
    ("labels", "too-hard", edited(GROUPS, ("5 * ", "0.5 * "))),
    ("labels", "unrelated", edited(GROUPS, ("group % 2", "group[torch.randperm(1120, generator=rng)] % 2"))),
    ("mixing", "apart", CHANCE),
    ("mixing", "apart", AMP),
    ("mixing", "apart", REGRESSION),
    ("mixing", "apart", TEXTS),
    ("mixing", "apart", mini((PREPARED, "    return (inputs - inputs.mean()) / inputs.std() / 100, labels\n"),
     (LOSS, "F.cross_entropy(outputs, labels, weight=torch.arange(1.0, 11.0))"))),
    ("mixing", "apart", mini((PREPARED, "    soft = F.one_hot(labels, 10).float()\n"
     "    return inputs + inputs.roll(1, 0), (soft + soft.roll(1, 0)) / 2\n"))),
    ("mixing", "mixes-inputs", mini((PREPARED, "    return inputs + inputs.roll(1, 0), labels\n"))),
    ("mixing", "mixes-outputs", mini(("nn.ReLU()", "nn.Softmax(0)"))),
    ("mixing", "mixes-outputs", with_layer("Gate", "x * torch.sigmoid(x.mean(dim=0) / 50)", ("nn.ReLU()", "Gate()"))),
    ("mixing", "apart", with_layer("Gate", "x * torch.sigmoid(x.mean(dim=1, keepdim=True))", ("nn.ReLU()", "Gate()"))),
    ("mixing", "draws", with_layer("Drawn", "F.dropout(x)", ("nn.ReLU()", "nn.ReLU(), Drawn()"))),
    ("mixing", "mixes-losses", mini((LOSS, "F.nll_loss(F.log_softmax(outputs, dim=0), labels)"))),
    ("tokens", "in-order", TEXTS),
    ("tokens", "in-order", PADDED),
    ("tokens", "no-texts", MINI),
    ("tokens", "copies", edited(TEXTS, ("text[:40, 1:]", "text[:40, :-1]"))),
    ("tokens", "counts-padding", COUNTED),
    ("tokens", "in-order", edited(COUNTED, (PLAIN, "labels.flatten(), ignore_index=0"))),
    ("tokens", "sees-later", edited(TEXTS, (".masked_fill(future, -1e9)", ""))),
    ("tokens", "sees-later", edited(TEXTS, ("softmax(dim=2)", "softmax(dim=1)"))),
    ("tokens", "sees-padding", edited(PADDED, ("torch.where((symbol != 0).unsqueeze(1), new, state)", "new"))),
    ("tokens", "in-order", TAGGED),
    ("tokens", "sees-padding", edited(TAGGED, ("torch.where((symbol != 9).unsqueeze(1), new, state)", "new"))),
    ("tokens", "ignores-order", edited(TEXTS, (" + self.places(torch.arange(text.shape[1]))", ""))),
    ("tokens", "ignores-order", PLACED.replace("places[:8]", "places[7]")),
    ("tokens", "in-order", PLACED),
    ("tokens", "in-order", edited(PLACED, (" + self.places[:8]", ""), ("(12, 8)", "(8)"))),  # a bag of words
    ("tokens", "in-order", edited(PADDED, ("torch.where((symbol != 0).unsqueeze(1), new, state)", "new"),
     ("text * (torch.arange(8) < length)", "text % 9"))),  # here, 0 is a symbol
    ("tokens", "cut", edited(PADDED, ("self.symbols(symbol), state)", "self.symbols(symbol), state.detach())"))),
    ("initialization", "scaled", CHANCE),
    ("initialization", "scaled", TEXTS),
    ("initialization", "scaled", with_model("    model[3].weight.data.zero_()\n")),
    ("initialization", "scaled", edited(with_model("    model[2].weight.data.zero_()\n"),
     ("nn.ReLU()", "nn.BatchNorm1d(16), nn.ReLU()"))),
    ("initialization", "exploding", with_model("    model[1].weight.data.mul_(1e5)\n")),
    ("initialization", "vanishing", with_model("    model[1].weight.data.mul_(1e-4)\n")),
    ("initialization", "vanishing", with_layer("Cut", "x.detach()", ("nn.ReLU()", "nn.ReLU(), Cut()"))),
    # A frozen trunk with a detached output gets no gradients, and needs none.
    ("initialization", "scaled", with_layer("Cut", "x.detach()", ("nn.ReLU()", "nn.ReLU(), Cut()"), FIRST_RESTS)),
    # The same is true of a trunk that no optimizer updates.
    ("initialization", "scaled", edited(with_layer("Cut", "x.detach()", ("nn.ReLU()", "nn.ReLU(), Cut()")),
     ("SGD(model.parameters()", "SGD(model[-1].parameters()"))),
    ("initialization", "dead", with_model("    model[1].bias.data.fill_(-100.0)\n")),
    ("parameters", "same", AMP),
    ("parameters", "same", with_model("    model[1].requires_grad_(False)\n")),
    ("parameters", "same", train_step(STEP + "    optimizer.zero_grad()\n    optimizer.step()\n")),
    ("parameters", "foreign", mini(("SGD(model.parameters()", "SGD(build_model().parameters()"))),
    ("parameters", "missing", mini(("SGD(model.parameters()", "SGD(model[1].parameters()"))),
    ("parameters", "unregistered", mini(("nn.ReLU()", "Hidden()"), ("def build_model",
     "class Hidden(nn.Module):\n    own = [nn.Linear(16, 16)]\n\n    def forward(self, x):\n"
     "        return self.own[0](x).relu()\n\n\ndef build_model"))),
    ("parameters", "unreached", with_layer("Cut", "x.detach()", ("nn.ReLU()", "nn.ReLU(), Cut()"))),
    ("schedule", "lasts", CHANCE),
    ("schedule", "constant", MINI),
    ("schedule", "spent", mini((NO_SCHEDULE, WARM_UP.replace("5, total_steps=total_steps", "0, total_steps=3")))),
    ("update_size", "short", CHANCE),
    ("update_size", "rewrites", mini(("lr=0.05", "lr=50.0"))),
    ("decay", "no-decay", MINI),
    ("decay", "slight", mini(("momentum=0.9", "momentum=0.9, weight_decay=1e-3"))),
    ("decay", "slight", mini((ADAM[0], ADAM[1].replace("Adam", "AdamW").replace("1.0", "0.1")))),
    ("decay", "excessive", mini(("momentum=0.9", "momentum=0.9, weight_decay=1.0"))),
    ("decay", "coupled", mini(ADAM)),
    ("decay", "drifts", DRIFTS),
    ("training_mode", "training", CHANCE),
    ("training_mode", "training", AMP),
    ("training_mode", "eval-mode", train_step("    model.eval()\n" + STEP + "    optimizer.step()\n")),
    ("training_mode", "eval-mode", edited(train_step("    model[2].eval()\n" + STEP + "    optimizer.step()\n"), NORM)),
    ("training_mode", "eval-mode", train_step(STEP + "    optimizer.step()\n    model.eval()\n")),
    ("training_mode", "forgets", mini(("nn.ReLU()", "nn.BatchNorm1d(16, momentum=0.9), nn.ReLU()"))),
    ("training_mode", "idle", mini(("nn.ReLU()", "nn.BatchNorm1d(16, momentum=0.0), nn.ReLU()"))),
    ("classes", "all-found", mini(("EPOCHS = 3", "EPOCHS = 30"), (VALIDATION,
     VALIDATION.replace("return train, (", "own = (").replace("\n", "")
     + "\n    return train, tuple(map(torch.cat, zip(train, own)))\n"))),
    ("classes", "renamed", mini(("EPOCHS = 3", "EPOCHS = 30"), (VALIDATION,
     VALIDATION.replace("return train, (", "own = (").replace("\n", "")
     + "\n    own = tuple(map(torch.cat, zip(train, own)))\n    return train, (own[0], 9 - own[1])\n"))),
    ("classes", "too-early", mini(("lr=0.05", "lr=1e-6"))),
    ("classes", "no-classes", REGRESSION),
    ("overfit", "reaches", edited(CHANCE, ("momentum=0.9", "momentum=0.9, weight_decay=1.0"))),
    ("overfit", "reaches", REGRESSION),
    ("overfit", "stalls", mini(("lr=0.05, momentum=0.9", "lr=1e-3"))),
    ("overfit", "reaches", mini(("lr=0.05, momentum=0.9", "lr=0.1"))),  # falls until the end of the longest trial
    ("overfit", "stalls", edited(SOUND["label smoothing"], ("lr=0.05", "lr=1e-4"))),
    ("overfit", "stalls", edited(SOUND["table of numbers"], (MSE, "((outputs - labels.squeeze(1)) ** 2).mean()"))),
    ("overfit", "stalls", edited(SOUND["text"],
     ("return self.head(x", "return self.head(0 * x"), ("self.mlp(x))", "0)"))),
    ("overfit", "diverges", mini(("lr=0.05", "lr=1e30"))),
    ("data", "sound", MINI),
    ("data", "sound", REGRESSION),
    ("data", "unpaired", mini((PREPARED, "    return inputs, F.one_hot(labels.roll(1), 10).float()\n"))),
    ("data", "unpaired", edited(SOUND["each image standardized"], ("-6)\n    return inputs, labels",
     "-6)\n    return inputs, labels[torch.randperm(len(labels), generator=rng)]"))),
    ("data", "unpaired", edited(SOUND["kinds of text"], (PREPARED, "    return inputs, labels.roll(1)\n"))),
    ("data", "unpaired", edited(SOUND["text"], (PREPARED, "    return inputs.roll(1, 0), labels\n"))),
    ("data", "unpaired", edited(SOUND["table of alarms"], (PREPARED, "    return inputs, labels.roll(1, 0)\n"))),
    ("data", "unpaired", edited(SOUND["soft targets"], ("return inputs, soft", "return inputs, soft.roll(1, 0)"))),
    ("data", "overlap", mini((VALIDATION, "    return train, (train[0][:20], train[1][:20])\n"))),
    ("data", "unlike", mini((VALIDATION, VALIDATION.replace(" / 255", "")))),
    ("data", "non-finite", mini((VALIDATION, "    return (train[0] / 0, train[1]), train\n"))),
    ("drift", "too-few", CHANCE),
    ("drift", "stable", GROUPS),
    ("drift", "stable", edited(GROUPS, ("labels, chosen = group % 2", "labels, chosen = (group % 2).float()"))),
    ("drift", "drifts", edited(GROUPS, ("images[others]", "images[others] + 6"))),
    ("drift", "apart", edited(GROUPS, ("images[others]", "images[others] + 100"))),
    ("drift", "apart", edited(GROUPS, ("images[others]", "images[others].unsqueeze(1).repeat(1, 2, 1) + 100"),
     ("images[own]", "images[own].unsqueeze(1).repeat(1, 2, 1)"))),  # 72 values: an image
    ("drift", "other-shares", edited(GROUPS,
     ("chosen % 5 != 0", "(chosen % 5 != 0) & ((group % 2 == 0) | (group % 5 == 1))"))),
    ("drift", "other-shares", edited(GROUPS,
     ("group % 2,", "(group % 2).float(),"),
     ("chosen % 5 != 0", "(chosen % 5 != 0) & ((group % 2 == 0) | (group % 5 == 1))"))),
    ("drift", "not-finite", edited(GROUPS, ("    labels, chosen", "    images[0] = float('nan')\n    labels, chosen"))),
    ("leakage", "sound", CHANCE),
    ("leakage", "untraced", mini((VALIDATION, "    mixed = train[0] + train[0].roll(1, 0)\n"
     + VALIDATION.replace("train,", "(mixed, train[1]),")))),
    ("leakage", "overlap", mini((VALIDATION, "    noise = 0.01 * torch.rand(20, 1, 6, 6)\n"
     "    return train, (train[0][:20] + noise, train[1][:20])\n"))),
    ("leakage", "statistics", mini((VALIDATION, "    mean = data.validation.images.float().mean() / 255\n"
     + VALIDATION.replace("train,", "(train[0] - mean, train[1]),")))),
    ("first_loss", "chance", CHANCE),
    ("first_loss", "chance", REGRESSION),
    ("first_loss", "high", mini((LOSS, f"10 * {LOSS}"))),
    ("first_loss", "high", mini((LOSS, "F.multi_margin_loss(50 * outputs, labels)"))),
    ("first_loss", "high", edited(SOUND["table of numbers"], (MSE, f"{MSE} * len(labels)"))),
    ("first_loss", "trained", KNOWING),
    ("first_loss", "low", mini((LOSS, f"{LOSS} / 10"))),
    ("first_loss", "non-finite", mini((LOSS, "F.cross_entropy(outputs / 0, labels)"))),
    ("loss_form", "agrees", AMP),
    ("loss_form", "agrees", CHANCE),
    ("loss_form", "agrees", REGRESSION),
    ("loss_form", "agrees", mini((LOSS, "F.nll_loss(F.log_softmax(outputs, dim=1), labels)"))),
    ("loss_form", "agrees", SOUND["label smoothing"]),
    ("loss_form", "agrees", SOUND["class weights"]),
    ("loss_form", "agrees", SOUND["text with hidden labels"]),
    ("loss_form", "agrees", SOUND["table of alarms"]),
    ("loss_form", "differs", mini((LOSS, "F.cross_entropy(outputs, labels, ignore_index=0)"))),
    ("loss_form", "differs", mini((LOSS, "F.nll_loss(outputs, labels)"))),
    ("loss_form", "differs", mini((LOSS, "F.nll_loss(outputs.log_softmax(dim=0), labels)"))),
    ("loss_form", "differs", mini((LOSS, "F.cross_entropy(outputs, (labels + 1) % 10, label_smoothing=0.1)"))),
    ("loss_form", "differs", train_step(STEP.replace("loss =", "loss = 2 *") + "    optimizer.step()\n")),
    ("loss_form", "grows", mini((LOSS, "F.multi_margin_loss(outputs, labels, reduction='sum')"))),
    ("loss_form", "bounded", edited(SOUND["table of alarms"], ("nn.Linear(32, 1)", "nn.Linear(32, 1), nn.Sigmoid()"))),
    ("loss_form", "all-pairs", edited(SOUND["table of flat numbers"],
     ("F.mse_loss(outputs.squeeze(1), labels)", "((outputs - labels) ** 2).mean()"))),
    ("loss_form", "all-pairs", edited(SOUND["table of numbers"],
     (MSE, "((outputs - labels.squeeze(1)) ** 2).mean()"))),
    ("loss_form", "no-reference", SOUND["focal"]),
    ("loss_form", "no-reference", SOUND["mixup in the step"]),
    ("loss_form", "normalizes-twice", mini(("nn.Linear(16, 10)", "nn.Linear(16, 10), nn.Softmax(1), nn.Hardtanh()"))),
    ("loss_form", "bounded", mini(("nn.Linear(16, 10)", "nn.Linear(16, 10), nn.Hardtanh()"))),
    ("loss_form", "differs", mini(("nn.Linear(16, 10)", "nn.Linear(16, 10), nn.Softmax(1)"), NLL)),
    ("loss_form", "agrees", edited(COUNTED, (PLAIN, "labels.flatten(), ignore_index=0"))),
    ("loss_form", "agrees", edited(SOUND["table of alarms"], ALARMS_AS_PROBABILITIES, BCE)),
    ("loss_form", "overflows", mini((LOSS, f"{LOSS} * float('nan')"))),
    ("loss_form", "overflows",
     mini((LOSS, "(outputs.exp().sum(dim=1).log() - outputs.gather(1, labels[:, None])[:, 0]).mean()"))),
    ("loss_form", "no-reference", edited(REGRESSION, ("F.mse_loss", "F.l1_loss"))),
    ("loss_form", "grows", edited(REGRESSION, (MSE, f"{MSE} * len(labels)"))),
    ("learning_rate", "usual", mini((NO_SCHEDULE, WARM_UP))),
    ("learning_rate", "too-large", mini((NO_SCHEDULE, WARM_UP), ("lr=0.05", "lr=1.5"))),
    # The steps use the learning rate of the schedule, not the rate from the construction of the optimizer.
    ("learning_rate", "usual", mini(("lr=0.05", "lr=5.0"), (NO_SCHEDULE, CONSTANT_FACTOR))),
    ("learning_rate", "usual", mini(ADAM)),
    ("learning_rate", "usual", mini((f"torch.optim.{ADAM[0]}", WITHOUT_CLOSURE))),
    ("learning_rate", "held-back", mini((ADAM[0], ADAM[1].replace("lr=0.01", "lr=0.01, eps=1.0")))),
    ("learning_rate", "held-back", mini((ADAM[0], "RMSprop(model.parameters(), lr=0.5, eps=1.0)"))),
    ("learning_rate", "too-large", edited(train_step(STEP + CLIPPED), ("lr=0.05", "lr=0.99"))),
    ("gradients", "fresh", AMP),
    ("gradients", "fresh", ACCUMULATED),
    ("gradients", "fresh", mini(("nn.Linear(36, 16)", "nn.Linear(36, 16), nn.BatchNorm1d(16)"))),
    ("gradients", "fresh", edited(train_step("    model[2].eval()\n" + STEP + "    optimizer.step()\n"), NORM)),
    ("gradients", "none", train_step(STEP.replace("    loss.backward()\n", "") + "    optimizer.step()\n")),
    ("gradients", "non-finite",
     train_step(STEP.replace("loss.backward", "(loss / 0).backward") + "    optimizer.step()\n")),
    ("gradients", "vanishing", with_layer("Faint", "1e-6 * x + (1 - 1e-6) * x.detach()",
     ("nn.Linear(16, 10)", "nn.Linear(16, 16), Faint(), nn.Linear(16, 10)"))),
    ("amp_off", "no-autocast", MINI),
    ("amp_off", "no-autocast", edited(AMP, ("enabled=AMP", "enabled=False"))),
    ("amp_off", "same", AMP),
    ("amp_off", "better-without", edited(AMP, (LOSS, "F.cross_entropy(1e6 * outputs, labels)"))),
    ("activations", "alive", MINI),
    ("activations", "saturated", with_layer("Large", "1000 * x", ("nn.ReLU()", "Large(), nn.Tanh()"))),
    ("activations", "exploding", mini(("lr=0.05", "lr=1.0"), ("nn.ReLU()", "nn.LeakyReLU(0.5)"))),
    ("activations", "linear", mini(("nn.ReLU()", "nn.Dropout(0.1)"))),
    ("activations", "alive", mini(("nn.Linear(36, 16), nn.ReLU(), nn.Linear(16, 10)", "nn.Linear(36, 10)"))),
    ("activations", "non-finite", mini(("lr=0.05", "lr=1e30"))),
    ("modes", "agree", CHANCE),
    ("modes", "unrepeatable", mini(("    model.eval()\n", ""))),  # found even though this network has no modes
    ("modes", "other-mode",
     edited(CHANCE, ("    outputs = model(inputs)\n    accuracy", "    outputs = -model(inputs)\n    accuracy"))),
    ("modes", "partial", edited(SOUND["evaluated in batches"],
     ('sum(right) / len(right)', 'right[-1]'))),
    ("modes", "partial", mini(("    outputs = model(inputs)\n    accuracy",
     "    inputs, labels = inputs[:10], labels[:10]\n    outputs = model(inputs)\n    accuracy"))),
    ("modes", "unrepeatable", edited(SOUND["kinds of text"], ("    model.eval()\n", ""))),
    ("modes", "other-mode", edited(SOUND["evaluated in batches"],
     ("inputs.split(5), labels.split(5)", "inputs.split(8), labels.split(8)"))),
    ("modes", "other-mode", edited(SOUND["evaluated in batches"], ("argmax(dim=1)", "argmin(dim=1)"))),
    ("modes", "agree", TAGGED),
    ("modes", "agree", edited(TAGGED, (EVALUATED, "    inputs, labels = inputs[:, :6], labels[:, :6]\n" + EVALUATED))),
    ("modes", "agree", edited(TAGGED, (EVALUATED, CUT_TO_THE_LONGEST + "    accuracy"))),
    ("modes", "agree", edited(TAGGED, (TAGS_RIGHT, "((outputs.argmax(dim=2) == labels).float().sum(1)"
     " / (labels >= 0).sum(1))"))),  # the mean over texts
    ("modes", "agree", edited(TAGGED, (TAGS_RIGHT, "(outputs.argmax(dim=2) == labels).logical_or(labels < 0)"
     ".all(dim=1).float()"))),  # the share of texts without an error
    ("modes", "other-mode", edited(TAGGED, ("[labels >= 0].float()", ".float()"))),
    ("modes", "other-inputs", mini((EVALUATED, "    outputs = model(1 - inputs)\n    accuracy"))),
    ("modes", "agree", mini((EVALUATED, "    outputs = model(1 - inputs)\n    accuracy"),
     ("model(inputs), labels)\n    loss.backward", "model(1 - inputs), labels)\n    loss.backward"))),
    ("modes", "agree", mini((EVALUATED, "    outputs = (model(inputs) + model(inputs.flip(3))) / 2\n    accuracy"))),
    ("modes", "scaled", mini(("compute_loss(outputs, labels).item()", "compute_loss(outputs, labels).item() / 4"))),
    ("modes", "agree", mini(("compute_loss(outputs, labels).item()", "compute_loss(outputs, labels).log10().item()"))),
    ("modes", "agree", mini(("loss(outputs, labels).item()", "loss(outputs, labels).item() / 2.302585"))),
    ("modes", "old-statistics", SHADOWED),
    ("modes", "agree", edited(SHADOWED, ("['parameters']", "['state_dict']"))),
    ("repeat", "same", CHANCE),
    ("repeat", "same", SOUND["one cycle of epochs"]),
    ("audit", "all-move", AMP),
    ("audit", "some-rest", with_model("    model[1].weight.requires_grad_(False)\n")),
    ("audit", "some-rest", mini(("SGD(model.parameters()",
     "SGD([{'params': model[1].parameters(), 'lr': 1e-6}, {'params': model[3].parameters()}]"))),
    ("audit", "all-move", EVERY_FOURTH),
    ("audit", "all-move", mini(("    return torch.optim.SGD(model.parameters()",
     "    model[1].requires_grad_(False)\n    return torch.optim.SGD(model[3].parameters()"))),
    ("audit", "all-move", NO_MATTER),
    ("audit", "none-moves", mini(("SGD(model.parameters()", "SGD(build_model().parameters()"))),
    ("audit", "all-move", SOUND["a trunk that rests"]),
    ("audit", "frozen-moves", edited(SOUND["a trunk that rests"], ("    model[1].requires_grad_(False)\n", ""))),
    ("audit", "frozen-moves", edited(CHANCE, ("AUGMENT = True\n", 'AUGMENT = True\nFROZEN = ("2.running",)\n'))),
    ("audit", "unregistered", with_layer("Listed", "self.layers[0](x)",
     ("        return self", "        self.layers = getattr(self, 'layers', [nn.Linear(16, 16)])\n        return self"),
     ("nn.ReLU()", "nn.ReLU(), Listed()"))),
    ("lr_find", "below", mini(("lr=0.05", "lr=1e-7"))),
    ("lr_find", "within", mini((NO_SCHEDULE, WARM_UP))),
    ("gradcheck", "passes", CHANCE),
    ("gradcheck", "passes", AMP),
    ("gradcheck", "passes", SQUARE.replace("FACTOR", "2")),
    ("gradcheck", "differs", SQUARE.replace("FACTOR", "1.999")),
    ("updates", "follows", edited(train_step(STEP + PRUNED_AFTER), PRUNED_BEFORE)),
    ("updates", "follows", AMP),
    ("updates", "follows", CHANCE),
    ("updates", "follows", train_step(STEP + CLIPPED)),
    ("updates", "follows", edited(SCALED, ("    torch.nn", "    scaler.unscale_(optimizer)\n    torch.nn"))),
    ("updates", "clips-another", SCALED),
    ("updates", "clips-another",
     train_step(STEP.replace("    loss.backward", CLIP + "    loss.backward") + "    optimizer.step()\n")),
    ("updates", "longer", train_step(STEP.replace("loss.backward", "(4 * loss).backward") + "    optimizer.step()\n")),
    ("updates", "longer", edited(AMP, ("scaler.step(optimizer)\n    scaler.update()", "optimizer.step()"))),
    ("updates", "other-gradient", train_step(STEP + NEGATED)),
    ("updates", "other-move", train_step(STEP + TWICE)),
    ("updates", "none", train_step(STEP)),
    ("gradcheck", "not-in-float64", mini((LOSS, "F.cross_entropy(outputs.float(), labels)"))),
    ("gradcheck", "not-in-float64", with_layer("Single", "x.float()", ("nn.Flatten()", "nn.Flatten(), Single()"))),
    ("anomaly", "finite", edited(AMP, ("init_scale=256.0", "init_scale=2.0**30"))),
    ("anomaly", "non-finite", EXPONENTIAL),
    ("serving", "not-served", MINI),
    ("serving", "same", SERVED),
    ("serving", "departs", edited(SERVED, ("import random\n", "import copy\nimport random\n"),
     (MODEL, "    global FIRST\n    model = " + MODEL.removeprefix("    return ") +
      "    FIRST = copy.deepcopy(model)\n    return model\n"), ("model.eval()(raw", "FIRST.eval()(raw"))),
    ("serving", "differs", edited(SERVED, ("raw.float() / 255", "1 - raw.float() / 255"))),
    ("augmentation", "none", MINI),
    ("augmentation", "none", mini((PREPARED, "    return inputs * 2, labels\n"))),
    ("augmentation", "independent", MOVED),
    ("augmentation", "same-draws", edited(MOVED, ("(len(inputs),)", "(len(inputs) // 2,)"),
     (".tolist()", ".repeat_interleave(2).tolist()"))),
    ("augmentation", "repeats", edited(MOVED, ("generator=rng", "generator=torch.Generator()"))),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "outcome", "source"), OUTCOMES, ids=[f"{row[0]}-{row[1]}-{i}" for i, row in enumerate(OUTCOMES)]
)
def test_outcomes_on_a_miniature(name: str, outcome: str, source: str) -> None:
    found = make_check(mini_subject(source), name)
    assert found.outcome == outcome, found.figures
    assert all(len(row) == len(table.columns) for table in found.tables for row in table.rows)
    assert Finding.from_json(found.to_json()).outcome == outcome


# For some outcomes, a word of the summary that names the metric that decides.
DECIDES = {
    ("activations", "saturated"): "saturated entries",
    ("activations", "linear"): "linear function",
    ("classes", "renamed"): "are predicted as",
    ("data", "unlike"): "their distance is",
    ("data", "unpaired"): "another example's label",
    ("decay", "coupled"): "its cosine with the weights",
    ("gradients", "vanishing"): "smallest gradient of a matrix",
    ("learning_rate", "too-large"): "at a lower rate",
    ("loss_form", "all-pairs"): "outputs (",
    ("modes", "other-inputs"): "of the inputs",
    ("modes", "other-mode"): "accuracy as written",
    ("modes", "scaled"): "times the mean loss",
    ("parameters", "foreign"): "outside of the network",
    ("training_mode", "forgets"): "of the statistics",
    ("updates", "clips-another"): "from the clipped gradient",
}


@pytest.mark.parametrize(("name", "outcome"), DECIDES)
def test_the_summary_of_an_outcome_names_the_metric_that_decides(name: str, outcome: str) -> None:
    source = next(source for one, other, source in OUTCOMES if (one, other) == (name, outcome))
    assert DECIDES[name, outcome] in make_check(mini_subject(source), name).summary


@pytest.mark.parametrize("style", SOUND)
def test_a_sound_program_in_another_style_raises_no_alarm(style: str) -> None:
    subject = mini_subject(SOUND[style])
    found = {name: make_check(subject, name).outcome for name in check_names()}
    assert {name: outcome for name, outcome in found.items() if not load_check(name).outcome(outcome).sound} == {}


# Outcomes that need a real run. huge_lr and others are examples, not a list of all recipes.
REAL = [
    ("huge_lr", "overfit", "diverges"),
    ("huge_lr", "gradients", "exploding"),
    ("huge_lr", "activations", "dead"),
    ("huge_lr", "lr_find", "above"),
    ("huge_lr", "anomaly", "grows"),
    ("loss_sum", "first_loss", "high"),
    ("loss_sum", "loss_form", "grows"),
    ("double_softmax", "loss_form", "normalizes-twice"),
    ("logits_sigmoid", "loss_form", "bounded"),
    ("label_permute", "lr_find", "flat"),
    ("ignore_index_zero", "classes", "left-out"),
    ("missing_zero_grad", "gradients", "stale"),
    ("amp_no_scaling", "gradients", "underflow"),
    ("group_leakage", "leakage", "groups"),
    ("temporal_leakage", "leakage", "future"),
    ("target_leakage", "leakage", "one-column"),
    ("majority_class", "drift", "other-shares"),
    ("column_order", "drift", "apart"),
    ("blank_pixels", "anomaly", "came-in"),
    ("blank_pixels", "lr_find", "non-finite"),
    ("blank_pixels", "loss_form", "no-outputs"),
    ("blank_pixels", "overfit", "diverges"),
    ("letter_masked_out", "overfit", "diverges"),
    ("mask_hides_itself", "initialization", "not-finite"),
    ("blank_pixels", "update_size", "not-finite"),
    ("mask_hides_itself", "decay", "not-finite"),
]


@pytest.mark.parametrize(("recipe", "name", "outcome"), REAL)
def test_a_real_break_trips_the_check_and_its_healthy_experiment_does_not(recipe: str, name: str, outcome: str) -> None:
    assert make_check(real_subject(recipe), name).outcome == outcome
    healthy = make_check(real_subject(recipe, healthy=True), name)
    assert load_check(name).outcome(healthy.outcome).sound


# --- declarations -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", check_names())
def test_a_check_declares_what_it_needs(name: str) -> None:
    check = load_check(name)
    assert check.name == name
    assert check.question.endswith("?")
    assert check.documentation.count("\n\n") >= 1
    source = (Path(harness.checks.__file__).parent / f"{name}.py").read_text(encoding="utf-8")
    has_table = re.search(r"^# figure +\| healthy +\| broken +\| bound +\| source$", source, re.MULTILINE)
    assert has_table or name in ("anomaly", "parameters", "repeat")  # anomaly uses a bound of overfit
    assert check.command("huge_lr").startswith(f"harness {name.replace('_', '-')} huge_lr")
    assert any(outcome.sound for outcome in check.outcomes)
    assert len({outcome.id for outcome in check.outcomes}) == len(check.outcomes) >= 2
    for outcome in check.outcomes:
        assert outcome.next or outcome.look, outcome.id
        assert set(outcome.next) <= set(check_names()) - {name}, outcome.id
        assert not (outcome.sound and (outcome.mechanism or outcome.in_log)), outcome.id


def test_every_outcome_of_every_check_is_tested_above() -> None:
    tested = {(name, outcome) for name, outcome, _ in OUTCOMES} | {row[1:] for row in REAL} | {("repeat", "differs")}
    assert {(name, one.id) for name in check_names() for one in load_check(name).outcomes} == tested


def test_names_come_in_order_and_once() -> None:
    places = [load_check(name).order for name in check_names()]
    assert places == sorted(set(places))
    with pytest.raises(UserError, match="did you mean overfit"):
        load_check("overfi")


def test_the_documentation_has_every_outcome_of_every_check() -> None:
    for check in map(load_check, check_names()):
        section = documentation().partition(f"\n## {check.name.replace('_', '-')}\n")[2].partition("\n## ")[0]
        assert check.question in section and check.documentation in section
        assert re.findall(r"^\| `([\w-]+)` \|", section, re.MULTILINE) == [outcome.id for outcome in check.outcomes]


def test_the_documentation_defines_every_area() -> None:
    table = documentation().partition("## Areas of causes")[2].partition("\n## ")[0]
    assert re.findall(r"^\| (\w+) \| [A-Z].*\. \| [A-Z].*\. \|$", table, re.MULTILINE) == [*get_args(Area)]


# --- figures ------------------------------------------------------------------------------------------------


def test_a_batch_of_one_does_not_hide_a_shuffle() -> None:
    subject = real_subject("label_permute")
    alone = replace(subject, source=edited(subject.source, ("BATCH_SIZE = 64", "BATCH_SIZE = 1")))
    assert make_check(alone, "data").outcome == "unpaired"


def test_a_channel_is_dead_only_if_it_is_zero_at_every_place() -> None:
    convolution = mini((
        MODEL,
        "    first = nn.Conv2d(1, 4, 3)\n"
        "    with torch.no_grad():\n"
        "        first.bias[0], first.bias[1] = -100.0, 100.0\n"
        "    return nn.Sequential(first, nn.ReLU(), nn.Flatten(), nn.Linear(64, 10))\n",
    ))  # fmt: skip
    before = make_check(mini_subject(convolution), "activations").tables[0].rows
    assert before[1][-2:] == (0.25, None)


def test_a_run_whose_evaluate_prepares_its_inputs_ends_without_figures_of_the_harness(tmp_path: Path) -> None:
    last = mini_run(tmp_path, SOUND["evaluate moves axes"]).epochs[-1]
    assert math.isnan(last["val_loss_eval_mode"])
    assert last["val_accuracy_eval_mode"] is None


def test_accuracy_of_tokens_leaves_out_those_that_are_hidden() -> None:
    trial = mini_subject(SOUND["text with hidden labels"]).trial()
    inputs, labels = trial.validation
    outputs = trial.model(inputs)
    hidden = torch.where(labels == labels[0, 0], -100, labels)
    expected = (outputs.argmax(dim=2) == labels)[hidden != -100].double().mean().item()
    assert loss_and_accuracy(trial.experiment, trial.model, inputs, hidden)[1] == expected


def test_chance_outside_the_seed_is_found_where_it_first_shows() -> None:
    entropy = mini((PREPARED, "    return inputs + random.SystemRandom().random() / 1000, labels\n"))
    assert "line 1 (step 0): loss is" in make_check(mini_subject(entropy), "repeat").summary
    hidden = edited(
        with_model("    model[3].register_buffer('extra', torch.zeros(1))\n"),
        ("    return loss\n", "    model[3].extra.fill_(random.SystemRandom().random())\n    return loss\n"),
    )
    found = make_check(mini_subject(hidden), "repeat")
    assert (found.outcome, found.summary) == ("differs", "logs equal, checkpoints differ")


@pytest.mark.parametrize("every", [3, 8])
def test_an_update_of_several_batches_uses_their_mean(every: int) -> None:
    accumulated = train_step(
        f"    loss = compute_loss(model(inputs), labels) / {every}\n"
        "    loss.backward()\n"
        "    model.batches = getattr(model, 'batches', 0) + 1\n"
        f"    if model.batches % {every} == 0:\n"
        "        optimizer.step()\n"
        "        optimizer.zero_grad()\n"
    )
    assert make_check(mini_subject(accumulated), "updates").outcome == "follows"
    kept = accumulated.replace("        optimizer.zero_grad()\n", "")
    assert make_check(mini_subject(kept), "updates").outcome == "other-gradient"
    summed = accumulated.replace(f" / {every}", "")
    assert make_check(mini_subject(summed), "updates").outcome == "longer"


@pytest.mark.parametrize(
    ("source", "phase", "operation", "where", "line"),
    [
        (EXPONENTIAL, "forward", "exp", "Sequential.4", "in forward"),
        (mini((f"    return {LOSS}\n", f"    return {LOSS} + (outputs - outputs).pow(2).sum().sqrt()\n")),
         "backward", "div", "SqrtBackward0", "in train_step"),
        (mini(("lr=0.05, momentum=0.9", "lr=1e3, weight_decay=1e38")),
         "update", "add_", "the optimizer's step", "in train_step"),
    ],
    ids=["layer", "backward", "update"],
)  # fmt: skip
def test_the_first_operation_that_is_not_finite_is_named(
    source: str, phase: str, operation: str, where: str, line: str
) -> None:
    found = make_check(mini_subject(source), "anomaly")
    assert [found.figures[key] for key in ("first step that is not finite", "pass", "first operation", "in")] == [
        0, phase, operation, where,
    ]  # fmt: skip
    assert line in str(found.figures["experiment"])


def test_an_infinity_that_a_mask_gave_is_named_with_its_line() -> None:
    masked = "    outputs = outputs.masked_fill(outputs.isfinite(), -torch.inf)\n"
    source = mini((f"    return {LOSS}\n", f"{masked}    return {LOSS}\n"))
    found = make_check(mini_subject(source), "anomaly")
    assert found.outcome == "non-finite"
    line = source.splitlines().index(masked.rstrip()) + 1
    assert found.figures["went in and is not finite"] == f"-inf, given by masked_fill, line {line}, in compute_loss"


def test_a_later_failure_is_found_at_its_step() -> None:
    found = make_check(mini_subject(mini(("lr=0.05", "lr=1e20"))), "anomaly").figures
    assert int(str(found["first step that is not finite"])) == int(str(found["steps"])) - 1 > 0
    assert float(str(found["largest value that went in"])) > 1e30


@pytest.mark.parametrize("source", [CHANCE, AMP], ids=["chance", "scaled"])
def test_the_steps_that_checks_make_are_those_of_the_run_to_the_byte(source: str, tmp_path: Path) -> None:
    run = mini_run(tmp_path / "run", source)
    trial = mini_subject(source).trial()
    made = [{**record, "epoch": record["step"] // 5} for record in trial.records(trial.batches(trial.steps))]
    lines = [json.loads(line) for line in run.bytes("metrics.log").decode().splitlines() if '"step"' in line]
    assert [json.loads(format_record(record)) for record in made] == lines


@pytest.mark.parametrize("name", check_names())
def test_a_check_finds_the_same_twice(name: str) -> None:
    first, second = (make_check(mini_subject(CHANCE), name).to_json() for _ in range(2))
    assert first == second
    assert not any(isinstance(value, float) and math.isnan(value) for value in first["figures"].values())


def test_the_statistic_of_drift_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    for seed in range(5):
        one, other = (torch.randn(size, generator=torch.Generator().manual_seed(seed + size)) for size in (40, 70))
        other[:20] = one[:20]  # ties
        expected = stats.ks_2samp(one.numpy(), other.numpy()).statistic
        assert kolmogorov_smirnov(one, other) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("middle", "scale"), [(0.0, 1.0), (0.0, 1e-8), (1e4, 1.0)])
def test_targets_of_any_size_are_told_from_targets_of_others(middle: float, scale: float) -> None:
    outputs = torch.zeros(64, 1)
    for seed in range(20):
        targets = middle + scale * torch.randn(64, generator=torch.Generator().manual_seed(seed))
        assert ties_pairs(lambda found, wanted: ((found[:, 0] - wanted) ** 2).mean(), outputs, targets)
        assert not ties_pairs(lambda found, wanted: ((found - wanted) ** 2).mean(), outputs, targets)
