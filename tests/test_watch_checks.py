"""Each check finds its fault in an ordinary script, at its place, and says nothing about the sound script."""

import json
import multiprocessing
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from trainwreck import child
from trainwreck.agreement import Agreement
from trainwreck.checks import ALL
from trainwreck.constant import loss_of_constant

REPOSITORY = Path(__file__).parents[1]
Edits = tuple[tuple[str, str], ...]

# Three sound scripts. A fault is an edit of one of them.
CLASSES = """
import copy
import random
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(512, 20)
y = x[:, :5].argmax(1)
train_data = TensorDataset(x[:384], y[:384])
val_data = TensorDataset(x[384:], y[384:])
train = DataLoader(train_data, 32, shuffle=True)
val = DataLoader(val_data, 32)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
average = torch.optim.swa_utils.AveragedModel(model)
best = None
for epoch in range(4):
    model.train()
    for inputs, labels in train:
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = F.cross_entropy(outputs, labels)
        loss.backward()
        optimizer.step()
        average.update_parameters(model)
    scheduler.step()
    average.eval()
    right = 0
    with torch.no_grad():
        for inputs, labels in val:
            right += int((average(inputs).argmax(1) == labels).sum())
    best = copy.deepcopy(model.state_dict())
model.load_state_dict(best)
"""
# Edits of CLASSES: each example gets noise from a generator that the data set has.
NOISE = (
    (
        "train_data = ",
        """
class Noisy(torch.utils.data.Dataset):
    def __init__(self, x, y):
        self.x, self.y, self.random = x, y, random.Random(1)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i] + self.random.choice((0, 0.01)), self.y[i]


train_data = """,
    ),
    ("TensorDataset(x[:384], y[:384])", "Noisy(x[:384], y[:384])"),
)
OWN_GENERATOR = "torch.utils.data.get_worker_info().dataset.random = random.Random"
NUMBERS = """
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(512, 6)
y = torch.stack([x[:, 0] + x[:, 1], x[:, 2] - x[:, 3], x[:, 4]], 1)
train = DataLoader(TensorDataset(x, y), 32, shuffle=True)
model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(4):
    for inputs, targets in train:
        loss = F.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
TEXT = """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 32, padding_idx=0)
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.head = nn.Linear(32, 20)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.size(1))
        padding = torch.zeros(tokens.shape).masked_fill(tokens == 0, float("-inf"))
        return self.head(self.layer(self.embedding(tokens), src_mask=mask, src_key_padding_mask=padding))

net = Net()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)

def batch():
    tokens = torch.randint(1, 20, (16, 1)) + torch.arange(12)
    tokens = tokens % 19 + 1
    lengths = torch.randint(6, 13, (16, 1))
    return torch.where(torch.arange(12) < lengths, tokens, 0)

for step in range(40):
    tokens = batch()
    logits = net(tokens[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, 20), tokens[:, 1:].reshape(-1), ignore_index=0)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
IMAGES = """
import random
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

random.seed(0)
torch.manual_seed(0)

class Cells(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        mask = torch.zeros(1, 16, 16)
        left, top = torch.randint(0, 10, (2,), generator=generator).tolist()
        mask[0, top : top + 5, left : left + 5] = 1
        image = mask + 0.2 * torch.randn(1, 16, 16, generator=generator)
        shift = random.randrange(8)
        return image.roll(shift, 2), mask.roll(shift, 2)

train = DataLoader(Cells(), 8, shuffle=True)
model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(8):
    for inputs, targets in train:
        loss = F.binary_cross_entropy_with_logits(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
SERIES = """
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
series = torch.randn(500).cumsum(0)
series = (series - series.mean()) / series.std()

def windows(part):
    cut = part.unfold(0, 17, 1)
    return TensorDataset(cut[:, :16], cut[:, 16:])

train_data, val_data = windows(series[:300]), windows(series[300:])
train, val = DataLoader(train_data, 32, shuffle=True), DataLoader(val_data, 32)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(5):
    for inputs, targets in train:
        loss = F.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(sum(float(F.mse_loss(model(inputs), targets)) for inputs, targets in val))
"""
STEP = "        loss.backward()\n        optimizer.step()\n"
CROSS_ENTROPY, BINARY = "F.cross_entropy(outputs, labels)", "F.binary_cross_entropy_with_logits"
# Points in images, each with its partner on the other side; a flip exchanges the partners.
POINTS = """
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)

class Points(Dataset):
    def __init__(self, count):
        self.left, self.right = torch.rand(count) * 0.3 + 0.1, torch.rand(count) * 0.3 + 0.6
        grid = torch.arange(12.0) / 12
        pulses = [torch.exp(-((grid - one[:, None]) ** 2) * 200) for one in (self.left, self.right)]
        self.images = sum(pulses)[:, None, None].expand(-1, 1, 12, 12)
    def __len__(self):
        return len(self.left)
    def __getitem__(self, i):
        image, pair = self.images[i], torch.stack([self.left[i], self.right[i]])
        if torch.rand(()) < 0.5:
            image, pair = image.flip(-1), (1 - pair).flip(0)
        return image, pair

model = nn.Sequential(nn.Flatten(), nn.Linear(144, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(4):
    for images, pairs in DataLoader(Points(256), 32, shuffle=True):
        loss = F.smooth_l1_loss(model(images), pairs)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
# A diffusion model that predicts its noise.
DIFFUSION = """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(60):
    clean = torch.randn(64, 2) * torch.tensor([1.0, 0.1])
    share = torch.rand(64, 1)
    noise = torch.randn_like(clean)
    noisy = share.sqrt() * clean + (1 - share).sqrt() * noise
    loss = F.mse_loss(model(torch.cat([noisy, share], 1)), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
# Q-learning from a memory of transitions.
VALUES = """
import random
import torch
import torch.nn.functional as F
from torch import nn

random.seed(0)
torch.manual_seed(0)
memory = [([random.random() for _ in range(4)], random.random(), random.random() < 0.3) for _ in range(300)]
model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(60):
    state, reward, done = zip(*random.sample(memory, 32))
    state, reward = torch.tensor(state), torch.tensor(reward)
    done = torch.tensor(done, dtype=torch.float32)
    with torch.no_grad():
        following = model(state.roll(1, 0)).squeeze(1)
    loss = F.smooth_l1_loss(model(state).squeeze(1), reward + 0.9 * following * (1 - done))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
# One function for training and validation.
PHASES = """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 6)
y = x[:, :3].sum(1, keepdim=True)
parts = {'train': (x[:384], y[:384]), 'val': (x[384:], y[384:])}
model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

def run(phase):
    inputs, targets = parts[phase]
    model.train(phase == 'train')
    for rows in torch.arange(len(inputs)).split(64):
        with torch.set_grad_enabled(phase == 'train'):
            loss = F.mse_loss(model(inputs[rows]), targets[rows])
        if phase == 'train':
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

for epoch in range(8):
    for phase in ('train', 'val'):
        run(phase)
"""
# A policy gradient with one episode in each update.
EPISODES = """
import random
import torch
from torch import nn
from torch.distributions import Categorical

random.seed(0)
torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
for episode in range(60):
    scores, rewards = [], []
    for step in range(12):
        state = random.randrange(3)
        choice = Categorical(logits=policy(torch.eye(3)[state]))
        action = choice.sample()
        scores.append(choice.log_prob(action))
        rewards.append(float(int(action) == state))
    R, returns = 0.0, []
    for reward in reversed(rewards):
        R = reward + 0.9 * R
        returns.insert(0, R)
    loss = -sum(score * value for score, value in zip(scores, returns))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
# A critic whose gradient has a length near 1.
CRITIC = """
import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
for step in range(60):
    real, fake = torch.randn(16, 1, 8, 8) + 1, torch.randn(16, 1, 8, 8)
    mixed = torch.lerp(real, fake, torch.rand(16, 1, 1, 1)).requires_grad_()
    slope = torch.autograd.grad(critic(mixed).sum(1), mixed, torch.ones(16), create_graph=True)[0]
    penalty = (slope.flatten(1).norm(2, dim=1) - 1).square().mean()
    loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
# By outcome: the script, the edits that break it, and options of the command.
FAULTS: dict[str, tuple[str, Edits]] = {
    "batch-norm/not-copied": (
        CLASSES,
        (
            ("nn.Dropout(0.1)", "nn.BatchNorm1d(64)"),
            ("average = torch.optim.swa_utils.AveragedModel(model)", "average = copy.deepcopy(model)"),
            (
                "        average.update_parameters(model)\n",
                "        with torch.no_grad():\n"
                "            for own, new in zip(average.parameters(), model.parameters()):\n"
                "                own.mul_(0.9).add_(new, alpha=0.1)\n",
            ),
        ),
    ),
    "dropout/drops-often": (
        IMAGES,
        (
            ("nn.ReLU(), nn.Conv2d(8, 1", "nn.Dropout(0.5), nn.Conv2d(8, 8, 1), nn.Dropout(0.5), nn.Conv2d(8, 1"),
            ("padding=1))\noptim", "padding=1), nn.Dropout(0.5))\noptim"),
        ),
    ),
    "evaluation/counts-elements": (
        CLASSES,
        (
            (
                "int((average(inputs).argmax(1) == labels).sum())",
                "((average(inputs) > 0.5).float() == F.one_hot(labels, 5).float()).float().mean()",
            ),
        ),
    ),
    "graphs/cut": (CLASSES, ((CROSS_ENTROPY, f"torch.tensor([{CROSS_ENTROPY}], requires_grad=True).sum()"),)),
    "inputs/own-statistics": (
        CLASSES,
        (
            ("average(inputs).arg", "average((inputs - inputs.mean(0)) / inputs.std(0)).arg"),
            ("x = torch.randn(512, 20)", "x = torch.randn(512, 20) + 0.5"),
        ),
    ),
    "log/accumulates": (
        CLASSES,
        (
            ("best = None\n", "best, running = None, 0.0\n"),
            (STEP, f"{STEP}        running += loss.item()\n"),
            (
                "    scheduler.step()\n",
                '    scheduler.step()\n    print(f"epoch {epoch}: loss {running / len(train):.3f}")\n',
            ),
            ("for epoch in range(4)", "for epoch in range(8)"),
            ("DataLoader(train_data, 32", "DataLoader(train_data, 96"),
        ),
    ),
    "evaluation/trains-in-each-phase": (
        PHASES,
        (("set_grad_enabled(phase == 'train')", "enable_grad()"), ("        if phase == 'train':", "        if True:")),
    ),
    "modes/own-train-unused": (
        CLASSES,
        (
            (
                "model = nn.Sequential(",
                "class Net(nn.Sequential):\n    def train(self, mode=True):\n        super().train(mode)\n"
                "        self[0].requires_grad_(not mode)\n        return self\n\n\nmodel = Net(",
            ),
            ("    model.train()\n", ""),
        ),
    ),
    "pairs/positions-stay": (
        POINTS,
        (
            ("image, pair = image.flip(-1), (1 - pair).flip(0)", "image = image.flip(-1)"),
            ("for one in (self.left, self.right)", "for one in (self.left,)"),
            ("torch.rand(count) * 0.3 + 0.1", "torch.rand(count) * 0.8 + 0.1"),
        ),
    ),
    "loss-form/equal-weights": (EPISODES, (("reversed(rewards)", "[sum(rewards)] + [0.0] * 11"), ("0.9 * R", "R"))),
    "shapes/norm-of-parts": (CRITIC, ((".flatten(1).norm", ".norm"),)),
    "pairs/two-orders": (POINTS, (("(1 - pair).flip(0)", "1 - pair"),)),
    "precision/lost-updates": (
        CLASSES,
        (
            (
                "model = nn.Sequential(nn.Linear(20, 64), nn.ReLU()",
                "model = nn.Sequential(nn.Linear(20, 64).bfloat16(), nn.ReLU()",
            ),
            ("nn.Linear(64, 5))", "nn.Linear(64, 5).bfloat16())"),
            ("lr=1e-2)", "lr=1e-5)"),
            ("outputs = model(inputs)", "outputs = model(inputs.bfloat16()).float()"),
            ("average(inputs)", "average(inputs.bfloat16())"),
        ),
    ),
    "snapshots/overwritten": (
        CLASSES,
        (
            (
                "copy.deepcopy(model.state_dict())",
                "model.state_dict(destination=best) if best else copy.deepcopy(model.state_dict())",
            ),
        ),
    ),
    "symmetry/drawn-often": (
        CLASSES,
        (
            (
                "optimizer = torch",
                "def draw(part):\n    for one in part.parameters():\n        nn.init.normal_(one, 0, 0.1)\n\n\n"
                "nn.Sequential(nn.Sequential(model)).apply(draw)\noptimizer = torch",
            ),
        ),
    ),
    "targets/flag-unused": (VALUES, ((" * (1 - done)", ""),)),
    "targets/noisy": (DIFFUSION, (("[noisy, share], 1)), noise)", "[noisy, share], 1)), noisy)"),)),
    "targets/uniform-noise": (DIFFUSION, (("torch.randn_like", "torch.rand_like"),)),
    "validation/shared-transform": (
        CLASSES,
        (
            (
                "train_data = ",
                "class Data(TensorDataset):\n    transform = None\n\n    def __init__(self, *parts):\n"
                "        super().__init__(*parts)\n        self.transform = None\n\n\n"
                "both = Data(x, y)\ntrain_data, val_data = torch.utils.data.random_split(both, [384, 128])\n"
                "train_data.dataset.transform = F.relu\nval_data.dataset.transform = None\nold_data = ",
            ),
            ("val_data = TensorDataset(x[384:], y[384:])\n", ""),
        ),
    ),
    "accumulation/not-divided": (
        CLASSES,
        (
            ("        optimizer.zero_grad()\n", ""),
            ("    for inputs, labels in train:", "    for number, (inputs, labels) in enumerate(train):"),
            ("        optimizer.step()\n", "        if number % 2: optimizer.step(); optimizer.zero_grad()\n"),
        ),
    ),
    "accumulation/divided-once": (
        CLASSES,
        (("F.cross_entropy(outputs, labels)", "F.cross_entropy(outputs, labels) / 4"),),
    ),
    "activations/dead": (CLASSES, (("optimizer = ", "nn.init.constant_(model[0].bias, -9.0)\noptimizer = "),)),
    "activations/saturated": (
        CLASSES,
        (
            ("nn.ReLU(), nn.Dropout(0.1)", "nn.Sigmoid(), nn.Linear(64, 64), nn.Sigmoid()"),
            ("x = torch", "x = 900 * torch"),
        ),
    ),
    "batch-norm/few-examples": (
        CLASSES,
        (("nn.Dropout(0.1)", "nn.BatchNorm1d(64)"), ("DataLoader(train_data, 32", "DataLoader(train_data, 2")),
    ),
    "batch-norm/fast-averages": (CLASSES, (("nn.Dropout(0.1)", "nn.BatchNorm1d(64, momentum=0.99)"),)),
    "decay/strong": (
        CLASSES,
        (("torch.optim.Adam(", "torch.optim.AdamW("), ("lr=1e-2)", "lr=1e-2, weight_decay=5.0)")),
    ),
    "decay/inside-adam": (CLASSES, (("lr=1e-2)", "lr=1e-2, weight_decay=1e-4)"),)),
    "dropout/drops-most": (CLASSES, (("nn.Dropout(0.1)", "nn.Dropout(0.9)"),)),
    "flow/vanishing": (
        CLASSES,
        (("nn.ReLU(), nn.Dropout(0.1)", "*[layer for _ in range(9) for layer in (nn.Sigmoid(), nn.Linear(64, 64))]"),),
    ),
    "flow/exploding": (NUMBERS, (("y = torch.stack(", "y = 1e5 * torch.stack("), ("lr=0.05", "lr=1e-9"))),
    "gradients/zero": (CLASSES, (("F.cross_entropy(outputs, labels)", "F.cross_entropy(0 * outputs, labels)"),)),
    "evaluation/one-output": (
        CLASSES,
        (("nn.Linear(64, 5)", "nn.Linear(64, 1)"), (CROSS_ENTROPY, f"{BINARY}(outputs[:, 0], (labels > 2).float())")),
    ),
    "evaluation/threshold-on-logits": (
        CLASSES,
        (
            (CROSS_ENTROPY, f"{BINARY}(outputs, F.one_hot(labels, 5).float())"),
            ("(average(inputs).argmax(1) == labels).sum()", "(average(inputs) > 0.5).sum()"),
        ),
    ),
    "evaluation/other-activation": (
        CLASSES,
        (
            (CROSS_ENTROPY, f"{BINARY}(outputs, F.one_hot(labels, 5).float())"),
            ("(average(inputs).argmax(1) == labels).sum()", "average(inputs).softmax(1).sum()"),
        ),
    ),
    "evaluation/trains-on-validation": (
        CLASSES,
        (
            ("train = DataLoader", "loaders = {}\nloaders['first'] = DataLoader"),
            ("val = DataLoader", "loaders['val'] = DataLoader"),
            (
                "    for inputs, labels in train:",
                "    for inputs, labels in (b for part in loaders for b in loaders[part]):",
            ),
            ("        for inputs, labels in val:", "        for inputs, labels in loaders['val']:"),
        ),
    ),
    "scaling/clips-some": (
        CLASSES,
        (
            (
                "        optimizer.step",
                "        nn.utils.clip_grad_norm_(model[0].parameters(), 1.0)\n        optimizer.step",
            ),
        ),
    ),
    "scaling/clips-early": (
        CLASSES,
        (
            (
                "        loss.backward()",
                "        nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n        loss.backward()",
            ),
        ),
    ),
    "snapshots/follows-training": (CLASSES, (("copy.deepcopy(model.state_dict())", "model.state_dict()"),)),
    "snapshots/drawn-again": (
        CLASSES,
        (("    scheduler.step()\n", "    scheduler.step()\n    nn.init.xavier_uniform_(model[0].weight)\n"),),
    ),
    "ownership/no-pull": (
        CLASSES,
        (
            (
                "model = nn.S",
                "class Adapter(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                "        self.a, self.b = nn.Parameter(torch.zeros(64, 4)), nn.Parameter(torch.zeros(4, 64))\n"
                "    def forward(self, x): return x + x @ self.a @ self.b\n\nmodel = nn.S",
            ),
            ("nn.Dropout(0.1)", "Adapter()"),
        ),
    ),
    "loss-form/idle-term": (
        CLASSES,
        ((CROSS_ENTROPY, CROSS_ENTROPY + " + 0.1 * F.mse_loss(outputs.detach(), F.one_hot(labels, 5).float())"),),
    ),
    "ownership/frozen-at-random": (CLASSES, (("optimizer = ", "model[0].requires_grad_(False)\noptimizer = "),)),
    "pairs/equal-views": (
        NUMBERS,
        (("F.mse_loss(model(inputs), targets)", "F.mse_loss(model(inputs) - model(inputs).mean(0), targets)"),),
    ),
    "storage/changed": (
        IMAGES,
        (
            (
                "        return image.roll(shift, 2), mask.roll(shift, 2)",
                "        return self.images[index].mul_(1.1), mask",
            ),
            (
                "class Cells(Dataset):\n",
                "class Cells(Dataset):\n    def __init__(self): self.images = torch.randn(64, 1, 16, 16)\n\n",
            ),
        ),
    ),
    "labels/small": (NUMBERS, (("y = torch.stack(", "y = 1e-3 * torch.stack("),)),
    "loss-form/out-of-reach": (NUMBERS, (("nn.Linear(32, 3))", "nn.Linear(32, 3), nn.Sigmoid())"),)),
    "loss-form/squashed-twice": (CLASSES, (("model(inputs)\n", "model(inputs).softmax(1).sigmoid()\n"),)),
    "shapes/all-products": (
        CLASSES,
        ((CROSS_ENTROPY, "(F.cross_entropy(outputs, labels, reduction='none') * torch.ones(32, 1)).mean()"),),
    ),
    "ownership/flag-misspelled": (CLASSES, (("optimizer = ", "model[0].weight.require_grad = False\noptimizer = "),)),
    "targets/in-inputs": (
        NUMBERS,
        (("x[:, 0] + x[:, 1], x[:, 2] - x[:, 3], x[:, 4]], 1)", "x[:, 4]], 1)"), (", 3))", ", 1))")),
    ),
    "ownership/flag-on-module": (CLASSES, (("optimizer = ", "model[0].requires_grad = False\noptimizer = "),)),
    "schedule/falls-in-first-epoch": (
        CLASSES,
        (
            ("CosineAnnealingLR(optimizer, T_max=4)", "ExponentialLR(optimizer, 0.8)"),
            ("    scheduler.step()\n", ""),
            ("        optimizer.step()\n", "        optimizer.step()\n        scheduler.step()\n"),
        ),
    ),
    "overfit/hardly-learns": (NUMBERS, (("lr=0.05", "lr=1e-5"),)),
    "modes/dropout-in-eval-mode": (
        CLASSES,
        (
            (
                "model = nn.S",
                "class Attends(nn.Module):\n    def forward(self, x):\n        q = x[:, None, None]\n"
                "        return F.scaled_dot_product_attention(q, q, q, dropout_p=0.1)[:, 0, 0]\n\nmodel = nn.S",
            ),
            ("nn.Dropout(0.1)", "Attends()"),
        ),
    ),
    "batch-norm/never-updated": (
        CLASSES,
        (
            ("nn.Dropout(0.1)", "nn.BatchNorm1d(64)"),
            (
                "torch.optim.swa_utils.AveragedModel(model)",
                "nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.BatchNorm1d(64), nn.Linear(64, 5))",
            ),
            ("        average.update_parameters(model)\n", ""),
        ),
    ),
    "graphs/kept": (
        CLASSES,
        (
            ("    for inputs, labels in train:\n", "    total = 0\n    for inputs, labels in train:\n"),
            ("        optimizer.step()\n", "        optimizer.step()\n        total += loss\n"),
        ),
    ),
    "labels/large": (NUMBERS, (("y = torch.stack(", "y = 1e4 * torch.stack("), ("lr=0.05", "lr=1e-6"))),
    "layers/no-activation": (CLASSES, (("nn.ReLU(), nn.Dropout(0.1)", "nn.Identity()"),)),
    "metric/misses-right": (CLASSES, (("(average(inputs).argmax(1) ==", "(average(inputs).argmin(1) =="),)),
    "metric/counts-wrong": (
        CLASSES,
        (("(average(inputs).argmax(1) ==", "(0 * average(inputs).argmax(1) + labels =="),),
    ),
    "outputs/constant": (
        CLASSES,
        (("outputs = model(inputs)", "outputs = model(inputs * 1e-12)"), ("nn.Dropout(0.1)", "nn.ReLU()")),
    ),
    "outputs/softmax-of-one": (
        CLASSES,
        (
            ("nn.Linear(64, 5)", "nn.Linear(64, 1), nn.Softmax(1)"),
            ("F.cross_entropy(outputs, labels)", "F.binary_cross_entropy(outputs[:, 0], (labels > 2).float())"),
        ),
    ),
    "evaluation/best-example": (CLASSES, ((".argmax(1) == labels).sum()", ".argmax(0)[:1] == labels).sum()"),)),
    "evaluation/training-loader": (CLASSES, (("labels in val:", "labels in train:"),)),
    "finite/inputs": (CLASSES, (("train_data =", "x[:, 3] /= 0\ntrain_data ="),)),
    "finite/weights": (NUMBERS, (("lr=0.05", "lr=1e20"), ("F.mse_loss", "1e20 * F.mse_loss"))),
    "finite/operation": (
        NUMBERS,
        (
            ("model = nn", "class Log(nn.Module):\n    def forward(self, x):\n        return x.log()\n\nmodel = nn"),
            ("nn.Tanh()", "Log()"),
        ),
    ),
    "finite/loss": (
        NUMBERS,
        (("F.mse_loss(model(inputs), targets)", "F.mse_loss(model(inputs), targets).neg().sqrt()"),),
    ),
    "first-loss/one-class": (
        CLASSES,
        (("nn.Linear(64, 5)", "nn.Linear(64, 1)"), ("y = x[:, :5].argmax(1)", "y = (x[:, 0] > 0).long() * 0")),
    ),
    "first-loss/high": (CLASSES, (("F.cross_entropy(outputs,", "F.cross_entropy(50 * outputs,"),)),
    "first-loss/low": (CLASSES, (("F.cross_entropy(outputs,", "F.cross_entropy(outputs + 9 * F.one_hot(labels, 5),"),)),
    "inputs/large": (CLASSES, (("x = torch", "x = 255 * torch"),)),
    "inputs/other-in-evaluation": (CLASSES, (("average(inputs)", "average(5 * inputs)"),)),
    "inputs/equal": (CLASSES, (("outputs = model(inputs)", "outputs = model(inputs[:1].expand(32, 20))"),)),
    "repeat/differs": (
        CLASSES,
        (("        outputs = model(inputs)\n", "        outputs = model(inputs) * random.uniform(0.9, 1.1)\n"),),
    ),
    "order/sorted": (
        CLASSES,
        (("train_data =", "order = y.argsort()\nx, y = x[order], y[order]\ntrain_data ="), (", shuffle=True", "")),
    ),
    "order/same-each-epoch": (CLASSES, (("    model.train()\n", "    model.train()\n    torch.manual_seed(0)\n"),)),
    "precision/no-scaler": (
        CLASSES,
        (
            (
                "        outputs = model(inputs)\n",
                "        with torch.autocast('cpu', torch.float16):\n            outputs = model(inputs)\n",
            ),
        ),
    ),
    "precision/half-weights": (
        CLASSES,
        (
            ("model = nn.S", "x = 0\nmodel = nn.S"),
            ("optimizer = ", "model.half()\noptimizer = "),
            ("outputs = model(inputs)", "outputs = model(inputs.half()).float()"),
            ("average(inputs)", "average(inputs.half())"),
        ),
    ),
    "saving/optimizer-missing": (
        CLASSES,
        (
            (
                "    best = copy",
                "    torch.save({'epoch': epoch, 'model': model.state_dict()}, 'last.pt')\n    best = copy",
            ),
        ),
    ),
    "saving/schedule-missing": (
        CLASSES,
        (
            (
                "    best = copy",
                "    state = {'epoch': epoch, 'model': model.state_dict(), 'optimizer': optimizer.state_dict()}\n"
                "    torch.save(state, 'last.pt')\n    best = copy",
            ),
        ),
    ),
    "saving/other-names": (
        CLASSES,
        (
            (
                "    best = copy",
                "    state = {f'module.{key}': value for key, value in model.state_dict().items()}\n"
                "    model.load_state_dict(state, strict=False)\n    best = copy",
            ),
        ),
    ),
    "schedule/ends-in-first-epoch": (
        CLASSES,
        (
            ("    scheduler.step()\n", ""),
            ("        optimizer.step()\n", "        optimizer.step()\n        scheduler.step()\n"),
        ),
    ),
    "schedule/steps-first": (
        CLASSES,
        (("    scheduler.step()\n", ""), ("    model.train()\n", "    model.train()\n    scheduler.step()\n")),
    ),
    "schedule/never-steps": (CLASSES, (("    scheduler.step()\n", ""),)),
    "schedule/factor-is-a-rate": (
        CLASSES,
        (("CosineAnnealingLR(optimizer, T_max=4)", "LambdaLR(optimizer, lambda epoch: 1e-2 * 0.9**epoch)"),),
    ),
    "snapshots/own-weights": (
        CLASSES,
        (("copy.deepcopy(model.state_dict())", "model.state_dict()\n    model.load_state_dict(best)"),),
    ),
    "snapshots/average-unused": (
        CLASSES,
        (("    average.eval()\n", "    model.eval()\n"), ("(average(inputs)", "(model(inputs)")),
    ),
    "symmetry/equal-units": (
        CLASSES,
        (
            ("optimizer = torch", "for p in model.parameters(): nn.init.constant_(p, 0.02)\noptimizer = torch"),
            ("nn.ReLU(), nn.Dropout(0.1)", "nn.ReLU()"),
        ),
    ),
    "targets/vary": (
        CLASSES,
        (("F.cross_entropy(outputs, labels)", "F.cross_entropy(outputs, labels[torch.randperm(len(labels))])"),),
    ),
    "targets/drawn": (
        NUMBERS,
        (("F.mse_loss(model(inputs), targets)", "F.mse_loss(model(inputs), torch.randn(32, 3))"),),
    ),
    "targets/with-gradient": (
        NUMBERS,
        (("F.mse_loss(model(inputs), targets)", "F.mse_loss(model(inputs), targets + 0.9 * model(inputs + 1))"),),
    ),
    "shapes/reshaped": (NUMBERS, (("x = torch.randn(512, 6)", "x = torch.randn(6, 512).reshape(512, 6)"),)),
    "evaluation/counts-ignored": (
        TEXT,
        (
            (
                "    optimizer.step()\n",
                "    optimizer.step()\n    with torch.no_grad():\n"
                "        (net(tokens[:, :-1]).argmax(-1) == tokens[:, 1:]).float().mean()\n",
            ),
        ),
    ),
    "targets/column-unused": (NUMBERS, (("(model(inputs), targets)", "(model(inputs)[:, :2], targets[:, :2])"),)),
    "targets/example-unused": (NUMBERS, (("(model(inputs), targets)", "(model(inputs)[1:], targets[1:])"),)),
    "tokens/sees-later": (TEXT, (("src_mask=mask, ", ""),)),
    "tokens/copies": (TEXT, (("tokens[:, 1:]", "tokens[:, :-1]"),)),
    "tokens/shifted": (TEXT, (("tokens[:, :-1])", "tokens[:, :-2])"), ("tokens[:, 1:]", "tokens[:, 2:]"))),
    "tokens/sees-padding": (TEXT, (("src_mask=mask, src_key_padding_mask=padding", ""),)),
    "tokens/counts-padding": (TEXT, ((", ignore_index=0", ""),)),
    "update-size/long": (CLASSES, (("lr=1e-2", "lr=1.0"),)),
    "update-size/short": (CLASSES, (("lr=1e-2", "lr=1e-9"),)),
    "validation/same-examples": (CLASSES, (("TensorDataset(x[384:], y[384:])", "TensorDataset(x[:384], y[:384])"),)),
    "validation/shared-examples": (CLASSES, (("TensorDataset(x[384:], y[384:])", "TensorDataset(x[350:], y[350:])"),)),
    "workers/same-seed": (
        CLASSES,
        (
            ("train_data = ", "def seed(worker): random.seed(1)\n\ntrain_data = "),
            ("DataLoader(train_data, 32", "DataLoader(train_data, 32, num_workers=2, worker_init_fn=seed"),
        ),
    ),
    "workers/same-draws": (CLASSES, (*NOISE, (", 32, shuffle=True", ", 32, shuffle=True, num_workers=2"))),
    "workers/same-epochs": (
        CLASSES,
        (
            *NOISE,
            (", 32, shuffle=True", ", 32, shuffle=True, num_workers=2, worker_init_fn=seed"),
            ("class Noisy", f"def seed(worker):\n    {OWN_GENERATOR}(worker)\n\n\nclass Noisy"),
        ),
    ),
    "pairs/apart": (
        IMAGES,
        (("        return image", "        image = image.roll(3 + random.randrange(8), 2)\n        return image"),),
    ),
    "validation/shared-windows": (
        SERIES,
        (
            ("train_data, val_data = windows(series[:300]), windows(series[300:])", "whole = windows(series)"),
            (
                "train, val =",
                "train_data, val_data = torch.utils.data.random_split(whole, [400, len(whole) - 400])\ntrain, val =",
            ),
        ),
    ),
    "validation/random-examples": (
        CLASSES,
        (
            (
                "val_data = TensorDataset(",
                "class Noisy(TensorDataset):\n    def __getitem__(self, i):\n"
                "        a, b = super().__getitem__(i)\n        return a + torch.randn(20), b\n\nval_data = Noisy(",
            ),
        ),
    ),
    "validation/random-outputs": (
        CLASSES,
        (
            (
                "model = nn.S",
                "class Noise(nn.Module):\n    def forward(self, x): return x + torch.randn(x.shape)\n\nmodel = nn.S",
            ),
            ("nn.Dropout(0.1)", "Noise()"),
        ),
    ),
}


def broken(source: str, edits: Edits) -> str:
    for find, replace in edits:
        assert source.count(find) == 1, find
        source = source.replace(find, replace)
    return source


def findings_of_command(folder: Path, source: str, *options: str) -> dict[str, dict[str, Any]]:
    (folder / "train.py").write_text(source, encoding="utf-8")
    command = [sys.executable, "-m", "trainwreck", "--steps", "30", "--json", *options, "train.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return by_outcome(json.loads(done.stdout))


def findings(folder: Path, source: str, steps: int = 30, checks: list[str] | None = None) -> dict[str, dict[str, Any]]:
    """Watch a script in a forked process, which has imported torch already. checks: None for all."""
    (folder / "train.py").write_text(source, encoding="utf-8")

    def watch() -> None:
        torch.set_num_threads(1)
        warnings.simplefilter("ignore")  # pytest makes errors of them
        os.chdir(folder)
        sys.path.insert(0, "")
        child.main(["result.json", json.dumps({"steps": steps, "checks": checks}), "train.py"])

    process = multiprocessing.get_context("fork").Process(target=watch)
    process.start()
    process.join(120)
    found = json.loads((folder / "result.json").read_bytes())
    assert found["failure"] == ""
    return by_outcome(found)


def by_outcome(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    assert found["errors"] == {}
    return {f"{one['check']}/{one['outcome']}": one for one in found["findings"]}


SOUND = {
    "classes": CLASSES, "numbers": NUMBERS, "text": TEXT, "images": IMAGES, "series": SERIES, "points": POINTS,
    "diffusion": DIFFUSION, "values": VALUES, "phases": PHASES, "episodes": EPISODES, "critic": CRITIC,
}  # fmt: skip


@pytest.mark.parametrize("source", SOUND.values(), ids=SOUND)
def test_a_sound_script_has_no_finding(source: str, tmp_path: Path) -> None:
    assert findings(tmp_path, source) == {}
    assert findings_of_command(tmp_path, source) == {}


@pytest.mark.parametrize("outcome", FAULTS)
def test_a_fault_is_found(outcome: str, tmp_path: Path) -> None:
    source, check = broken(*FAULTS[outcome]), outcome.partition("/")[0]
    if check == "repeat":  # it needs a second run
        found = findings_of_command(tmp_path, source, "--select", check)
    else:
        found = findings(tmp_path, source, checks=[check])
    assert outcome in found
    place = found[outcome]["place"]
    assert not place["line"] or Path(place["file"]).name == "train.py"


def test_workers_with_seeds_of_their_own_draw_differently(tmp_path: Path) -> None:
    own = (
        (", 32, shuffle=True", ", 32, shuffle=True, num_workers=2, worker_init_fn=seed"),
        (
            "class Noisy",
            f"def seed(worker):\n    {OWN_GENERATOR}(torch.utils.data.get_worker_info().seed)\n\n\nclass Noisy",
        ),
    )
    assert findings(tmp_path, broken(CLASSES, (*NOISE, *own)), checks=["workers"]) == {}


def test_a_loop_that_learns_nothing_is_told_after_two_epochs(tmp_path: Path) -> None:
    edits = (
        ("train_data =", "y = y[torch.randperm(512)]\ntrain_data ="),
        ("lr=1e-2", "lr=1e-4"),
        ("for epoch in range(4)", "for epoch in range(20)"),
    )
    shuffled = broken(CLASSES, edits)
    assert "progress/none" in findings(tmp_path, shuffled, steps=12)


def test_labels_that_are_learned_by_heart_are_told_by_the_evaluation(tmp_path: Path) -> None:
    sound = broken(CLASSES, (("nn.Dropout(0.1), ", ""), ("for epoch in range(4)", "for epoch in range(20)")))
    shuffled = broken(sound, (("train_data =", "y = y[torch.randperm(512)]\ntrain_data ="),))
    assert list(findings(tmp_path, shuffled, steps=12, checks=["progress"])) == ["progress/by-heart"]
    assert findings(tmp_path, sound, steps=12, checks=["progress"]) == {}


def test_a_script_that_ends_before_the_trial_is_compared_with_a_constant_answer(tmp_path: Path) -> None:
    source = """
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
x = torch.randn(300, 10)
y = torch.randint(3, (300,))
model = nn.Sequential(nn.Linear(10, 8), nn.Sigmoid(), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(150):
    rows = torch.arange(32) + step % 8 * 32
    loss = F.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
    assert list(findings(tmp_path, source, steps=12, checks=["progress"])) == ["progress/none"]
    learnable = source.replace("torch.randint(3, (300,))", "x[:, :3].argmax(1)").replace("lr=0.05", "lr=1.0")
    assert findings(tmp_path, learnable, steps=12, checks=["progress"]) == {}


def test_the_best_constant_answer_of_the_absolute_error_is_the_median() -> None:
    targets = [torch.tensor([[0.0, 5.0], [1.0, 5.0]]), torch.tensor([[8.0, 5.0]])]
    assert loss_of_constant("l1_loss", targets, {}) == pytest.approx((1 + 0 + 7) / 6)


# By outcome: sound scripts that look like its fault.
LOOKALIKES: dict[str, tuple[str, Edits]] = {
    # A distance to a surface, with a gradient of length 1 at each of eight points.
    "shapes/norm-of-parts": (
        CRITIC,
        (
            ("nn.Flatten(), nn.Linear(64, 32)", "nn.Linear(3, 32)"),
            (
                "torch.randn(16, 1, 8, 8) + 1, torch.randn(16, 1, 8, 8)",
                "torch.randn(16, 8, 3) + 1, torch.randn(16, 8, 3)",
            ),
            ("torch.rand(16, 1, 1, 1)", "torch.rand(16, 1, 1)"),
            ("critic(mixed).sum(1), mixed, torch.ones(16)", "critic(mixed), mixed, torch.ones(16, 8, 1)"),
            ("slope.flatten(1).norm(2, dim=1)", "slope.norm(2, dim=-1)"),
        ),
    ),
    # A controller that draws twelve choices at once, and gets one reward for all.
    "loss-form/equal-weights": (
        EPISODES,
        (
            (
                "    for step in range(12):\n",
                "    logits = policy(torch.eye(3)[torch.arange(12) % 3])\n    for step in range(12):\n",
            ),
            ("state = random.randrange(3)", "state = step % 3"),
            ("policy(torch.eye(3)[state])", "logits[step]"),
            ("reversed(rewards)", "[sum(rewards)] + [0.0] * 11"),
            ("0.9 * R", "R"),
        ),
    ),
    # A variable with the name of the last part stays after the data was made.
    "evaluation/trains-in-each-phase": (
        PHASES,
        (
            ("model = nn", "for phase in parts:\n    parts[phase] = parts[phase]\nmodel = nn"),
            ("    for phase in ('train', 'val'):\n        run(phase)", "    run('train')\n    run('val')"),
        ),
    ),
    "modes/own-train-unused": (CLASSES, FAULTS["modes/own-train-unused"][1][:1]),
    # Noise that is drawn anew in each update cannot be learned by heart.
    "overfit/stalls": (DIFFUSION, (("share = torch.rand(64, 1)", "share = 0.99 + 0.009 * torch.rand(64, 1)"),)),
    # The size of a spot does not change with a flip.
    "pairs/positions-stay": (
        POINTS,
        (
            ("image, pair = image.flip(-1), (1 - pair).flip(0)", "image = image.flip(-1)"),
            ("for one in (self.left, self.right)", "for one in (torch.rand(count),)"),
        ),
    ),
}


@pytest.mark.parametrize("outcome", LOOKALIKES)
def test_a_sound_script_that_looks_like_a_fault_has_no_finding(outcome: str, tmp_path: Path) -> None:
    source = broken(*LOOKALIKES[outcome])
    assert outcome not in findings(tmp_path, source, checks=[outcome.partition("/")[0]])


def test_a_number_for_each_image_is_no_position(tmp_path: Path) -> None:
    edits = (("F.binary_cross_entropy_with_logits(model(inputs), targets)", "F.mse_loss(*sizes)"),)
    sizes = "        sizes = [one.mean((1, 2, 3)) for one in (model(inputs), targets)]\n        loss = "
    source = broken(IMAGES, (*edits, ("        loss = ", sizes)))
    assert findings(tmp_path, source, steps=6, checks=["pairs"]) == {}


def test_equal_labels_say_nothing_of_a_relation() -> None:
    agreement, predictions = Agreement(), torch.tensor([0, 1, 2, 0])
    agreement.add(1, predictions, torch.tensor([0, 1, 2, 2]))
    assert agreement.counts() == (4, 3, 1.25)
    agreement.add(2, predictions, torch.zeros(4))
    assert agreement.counts() == (4, 2, 4.0)


def test_one_of_two_losses_is_not_compared_with_a_constant_answer(tmp_path: Path) -> None:
    edits = (
        ("lr=0.05", "lr=0.01"),
        ("        loss = F.mse", "        outputs = model(inputs)\n        loss = F.mse"),
        ("(model(inputs), targets)", "(outputs, targets) + outputs.std() + 1"),
    )
    assert "overfit/stalls" not in findings(tmp_path, broken(NUMBERS, edits), steps=2, checks=["overfit"])


def test_a_flag_that_only_a_loss_gets_is_used(tmp_path: Path) -> None:
    labels = "torch.tensor([int(one) for one in labels > 2])"
    edits = (
        ("nn.Linear(64, 5)", "nn.Linear(64, 2)"),
        ("outputs = model(inputs)\n", f"outputs = model(inputs)\n        flags = {labels}\n"),
        (CROSS_ENTROPY, "F.cross_entropy(outputs, flags)"),
    )
    source = broken(CLASSES, edits)
    assert "targets/flag-unused" not in findings(tmp_path, source, checks=["targets"])
    unused = source.replace("(outputs, flags)", "(outputs, (labels > 2).long())")
    assert "targets/flag-unused" in findings(tmp_path, unused, checks=["targets"])


def test_a_schedule_that_the_training_never_ends_is_told_at_its_end(tmp_path: Path) -> None:
    source = broken(CLASSES, (("T_max=4", "T_max=4 * len(train)"),))
    assert "schedule/never-ends" in findings(tmp_path, source, steps=60)
    assert "schedule/never-ends" not in findings(tmp_path, source, steps=30)


def test_hits_that_a_mask_selects_are_no_finding(tmp_path: Path) -> None:
    for counted in ("((hits & real).sum() / real.sum())", "hits[real].float().mean()", "(hits * real).sum()"):
        metric = (
            "    with torch.no_grad():\n        real = tokens[:, 1:] != 0\n"
            f"        hits = net(tokens[:, :-1]).argmax(-1) == tokens[:, 1:]\n        {counted}\n"
        )
        source = broken(TEXT, (("    optimizer.step()\n", f"    optimizer.step()\n{metric}"),))
        assert findings(tmp_path, source) == {}


def test_examples_that_are_lists_are_compared_by_their_values(tmp_path: Path) -> None:
    posts = """
class Posts(torch.utils.data.Dataset):
    def __init__(self, x, y): self.rows = [([float(v) for v in a], F.one_hot(b, 5)) for a, b in zip(x, y)]
    def __len__(self): return len(self.rows)
    def __getitem__(self, i): return self.rows[i]

def collate(rows): return torch.tensor([a for a, _ in rows]), torch.stack([b for _, b in rows]).argmax(1)
train_data, val_data = Posts(x[:384], y[:384]), Posts(x[384:], y[384:])
train = DataLoader(train_data, 32, shuffle=True, collate_fn=collate)
val = DataLoader(val_data, 32, collate_fn=collate)
"""
    lines = ("train = DataLoader(train_data, 32, shuffle=True)\n", "val = DataLoader(val_data, 32)\n")
    source = broken(CLASSES, ((lines[0], posts), (lines[1], "")))
    assert findings(tmp_path, source) == {}
    same = source.replace("Posts(x[384:], y[384:])", "Posts(x[:384], y[:384])")
    assert "validation/same-examples" in findings(tmp_path, same)


NODES = """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x = torch.randn(200, 8)
y = x[:, :3].argmax(1)
train = torch.rand(200) < 0.6
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(40):
    out = model(x)
    loss = F.cross_entropy(out[train], y[train])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        (model(x)[~train].argmax(1) == y[~train]).float().mean()
"""


def test_a_loss_on_the_labels_that_are_evaluated_is_told(tmp_path: Path) -> None:
    assert "validation/loss-on-all" not in findings(tmp_path, NODES)
    everything = broken(NODES, (("F.cross_entropy(out[train], y[train])", "F.cross_entropy(out, y)"),))
    found = findings(tmp_path, everything)["validation/loss-on-all"]
    assert "F.cross_entropy(out, y)" in everything.splitlines()[found["place"]["line"] - 1]


def test_hits_that_are_selected_after_the_comparison_are_seen(tmp_path: Path) -> None:
    compared = (
        "(model(x)[~train].argmax(1) == y[~train]).float().mean()",
        "(model(x).argmax(1) == y)[~train].float().mean()",
    )
    assert "validation/loss-on-all" not in findings(tmp_path, broken(NODES, (compared,)))
    everything = broken(NODES, (compared, ("F.cross_entropy(out[train], y[train])", "F.cross_entropy(out, y)")))
    assert "validation/loss-on-all" in findings(tmp_path, everything)
    # The labels that are not trained are unknown, and the accuracy on the trained ones is printed.
    masked = "F.cross_entropy(out, torch.where(train, y, -100))"
    own = (
        "(model(x)[~train].argmax(1) == y[~train]).float().mean()",
        "(model(x).argmax(1) == y)[train].float().mean()",
    )
    known = broken(NODES, (own, ("F.cross_entropy(out[train], y[train])", masked)))
    assert "validation/loss-on-all" not in findings(tmp_path, known)


@pytest.mark.parametrize("divisor", ["hits.numel()", "labels.numel()", "real.sum()"])
def test_padding_that_a_metric_divides_by_is_told(divisor: str, tmp_path: Path) -> None:
    metric = (
        "    with torch.no_grad():\n        labels = tokens[:, 1:]\n        real = labels != 0\n"
        f"        hits = net(tokens[:, :-1]).argmax(-1) == labels\n        hits.sum().item() / {divisor}\n"
    )
    source = broken(TEXT, (("    optimizer.step()\n", f"    optimizer.step()\n{metric}"),))
    assert ("evaluation/counts-ignored" in findings(tmp_path, source)) == (divisor == "labels.numel()")


LABELLED = (("logits.reshape(-1, 20), tokens[:, 1:].reshape(-1), ignore_index=0", "logits[real], tokens[:, 1:][real]"),)


def test_labels_that_no_loss_gets_are_no_hits(tmp_path: Path) -> None:
    real = ("    loss = F", "    real = tokens[:, 1:] != 0\n    loss = F")
    for counted, is_fault in (("hits.sum()", True), ("hits[real].sum()", False)):
        metric = (
            "    with torch.no_grad():\n        best = net(tokens[:, :-1]).argmax(-1).masked_fill(~real, 0)\n"
            f"        hits = best == tokens[:, 1:]\n        {counted}\n"
        )
        source = broken(TEXT, (real, *LABELLED, ("    optimizer.step()\n", f"    optimizer.step()\n{metric}")))
        assert ("evaluation/counts-ignored" in findings(tmp_path, source, checks=["evaluation"])) == is_fault


def test_a_mask_of_losses_that_keeps_padding_is_told(tmp_path: Path) -> None:
    real = ("    loss = F", "    real = tokens[:, 1:] != 0\n    loss = F")
    for mask, is_fault in (("tokens[:, :-1] != 0", True), ("tokens[:, 1:] != 0", False)):
        metric = (
            "    with torch.no_grad():\n        logits = net(tokens[:, :-1]).transpose(1, 2)\n"
            f"        (F.cross_entropy(logits, tokens[:, 1:], reduction='none') * ({mask})).sum()\n"
        )
        source = broken(TEXT, (real, *LABELLED, ("    optimizer.step()\n", f"    optimizer.step()\n{metric}")))
        assert ("evaluation/counts-ignored" in findings(tmp_path, source, checks=["evaluation"])) == is_fault


def test_targets_that_leave_out_the_last_place_are_compared_with_the_tokens(tmp_path: Path) -> None:
    source = TEXT.replace("logits.reshape(-1, 20)", "logits[:, :-1].reshape(-1, 20)")
    source = source.replace("tokens[:, 1:].reshape(-1)", "tokens[:, 2:].reshape(-1)")
    assert "tokens/shifted" in findings(tmp_path, source, checks=["tokens"])
    same = source.replace("net(tokens[:, :-1])", "net(tokens)").replace(
        "tokens[:, 2:].reshape", "tokens[:, 1:].reshape"
    )
    assert findings(tmp_path, same, checks=["tokens"]) == {}


@pytest.mark.slow
def test_trials_and_probes_are_made_where_no_process_can_be_forked(tmp_path: Path) -> None:
    for outcome in ("tokens/sees-later", "targets/column-unused"):
        (tmp_path / "train.py").write_text(broken(*FAULTS[outcome]), encoding="utf-8")
        program = (
            "import json, trainwreck.state as state\n"
            "from trainwreck.child import main\nstate.can_fork = lambda: False\n"
            f"main(['result.json', json.dumps({{'steps': 12, 'checks': ['{outcome.split('/')[0]}']}}), 'train.py'])"
        )
        subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, check=True)
        found = json.loads((tmp_path / "result.json").read_bytes())
        assert outcome in {f"{one['check']}/{one['outcome']}" for one in found["findings"]}


def test_an_evaluation_may_keep_gradients_on(tmp_path: Path) -> None:
    edits = (
        (
            "    with torch.no_grad():\n        for inputs, labels in val:",
            "    if 1:\n        for inputs, labels in val:",
        ),
        ("average.eval()\n", "model.eval()\n"),
        ("right += int((average(", "right += int((model("),
        ("        average.update_parameters(model)\n", ""),
        ("average = torch.optim.swa_utils.AveragedModel(model)\n", ""),
    )
    assert findings(tmp_path, broken(CLASSES, edits)) == {}


def test_a_gradient_that_the_script_itself_has_used_is_not_dropped(tmp_path: Path) -> None:
    twice = """        loss.backward()
        with torch.no_grad():
            moves = [0.05 * p.grad / p.grad.norm() for p in model.parameters()]
            for p, move in zip(model.parameters(), moves):
                p.add_(move)
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()
        with torch.no_grad():
            for p, move in zip(model.parameters(), moves):
                p.sub_(move)
"""
    assert findings(tmp_path, broken(CLASSES, (("        loss.backward()\n", twice),))) == {}


def test_a_gradient_of_zeros_may_be_clipped(tmp_path: Path) -> None:
    """A loss with a margin is zero when all is learned. Clipping its gradient in the right place is no fault."""
    edits = (
        ("F.mse_loss(model(inputs), targets)", "0 * F.mse_loss(model(inputs), targets)"),
        (
            "        optimizer.step()",
            "        nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n        optimizer.step()",
        ),
    )
    assert not any(name.startswith("scaling/") for name in findings(tmp_path, broken(NUMBERS, edits)))


def test_a_loss_without_gradients_hides_no_other_fault(tmp_path: Path) -> None:
    edits = ((CROSS_ENTROPY, CROSS_ENTROPY + " + (outputs[:, :1] - outputs[:, 0].detach()).mean()"),)
    idle = (("        loss = ", "        F.mse_loss(outputs.detach(), outputs.detach())\n        loss = "),)
    assert "shapes/all-pairs" in findings(tmp_path, broken(broken(CLASSES, idle), edits))


def test_a_loss_that_stops_at_another_network_is_a_dead_end(tmp_path: Path) -> None:
    source = """
import torch
from torch import nn
torch.manual_seed(0)
maker, judge = nn.Linear(8, 2), nn.Linear(2, 1)
of_maker, of_judge = (torch.optim.Adam(net.parameters(), lr=1e-3) for net in (maker, judge))
loss = nn.BCEWithLogitsLoss()
for step in range(30):
    real, fake = torch.randn(16, 2) + 1, maker(torch.randn(16, 8))
    of_judge.zero_grad()
    (loss(judge(real), torch.ones(16, 1)) + loss(judge(fake.detach()), torch.zeros(16, 1))).backward()
    of_judge.step()
    of_maker.zero_grad()
    (loss(judge(fake), torch.ones(16, 1)) + 0.01 * fake.square().mean()).backward()
    of_maker.step()
"""
    assert findings(tmp_path, source) == {}
    assert findings(tmp_path, source.replace("judge(fake.detach())", "judge(maker(torch.randn(16, 8)))")) == {}
    assert list(findings(tmp_path, source.replace("loss(judge(fake), ", "loss(judge(fake.detach()), "))) == [
        "gradients/dead-end"
    ]


def test_labels_that_are_cut_from_a_tensor_are_labels_of_data(tmp_path: Path) -> None:
    source = """
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
x = torch.randn(256, 10)
y = x[:, :3].argmax(1)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(5):
    for rows in torch.randperm(256).split(32):
        optimizer.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
"""
    assert findings(tmp_path, source) == {}
    assert "labels/constant" in findings(tmp_path, source.replace(".argmax(1)", ".argmax(1) // 3"))


def test_examples_of_validation_are_compared_without_loaders(tmp_path: Path) -> None:
    source = """
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
x = torch.randn(300, 10)
y = x[:, :3].argmax(1)
first, last = torch.arange(200), torch.arange(200, 300)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(10):
    model.train()
    for rows in first[torch.randperm(200)].split(25):
        optimizer.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        seen, new = ((model(x[rows]).argmax(1) == y[rows]).float().mean() for rows in (first, last))
"""
    assert findings(tmp_path, source, 60) == {}
    assert "validation/shared-examples" in findings(
        tmp_path, source.replace("arange(200, 300)", "arange(150, 300)"), 60
    )


def test_the_end_of_a_script_with_many_epochs_is_seen(tmp_path: Path) -> None:
    """The weights that are loaded after the last epoch are no copy."""
    edits = (("copy.deepcopy(model.state_dict())", "model.state_dict()"), ("range(4)", "range(40)"))
    assert "snapshots/own-weights" in findings_of_command(tmp_path, broken(CLASSES, edits))


def test_a_network_trained_second_is_seen(tmp_path: Path) -> None:
    source = """
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
x = torch.randn(256, 10)
y = x[:, :3].argmax(1)

def train(model, teacher, updates):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for update in range(updates):
        rows = torch.randint(256, (32,))
        outputs = model(x[rows])
        loss = F.cross_entropy(outputs, y[rows])
        if teacher is not None:
            loss = loss + F.mse_loss(outputs, teacher(x[rows]).detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

teacher, student = nn.Linear(10, 3), nn.Linear(10, 3)
train(teacher, None, 100)
train(student, teacher, 50)
"""
    assert findings_of_command(tmp_path, source) == {}
    wrong = source.replace("mse_loss(outputs, ", "mse_loss(teacher(x[rows]).detach(), ")
    assert "loss-form/idle-term" in findings_of_command(tmp_path, wrong)


def test_one_sequence_is_no_batch(tmp_path: Path) -> None:
    source = """
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
words, cell, head = nn.Embedding(20, 8), nn.LSTM(8, 8, bidirectional=True), nn.Linear(16, 5)
parts = nn.ModuleList([words, cell, head])
optimizer = torch.optim.Adam(parts.parameters(), lr=0.01)
for step in range(40):
    sentence = torch.randint(20, (12,))
    optimizer.zero_grad()
    outputs, _ = cell(words(sentence)[:, None])
    F.cross_entropy(head(outputs[:, 0]), sentence % 5).backward()
    optimizer.step()
"""
    assert [name for name, one in findings(tmp_path, source).items() if one["level"] == "alarm"] == []


def test_a_last_batch_of_validation_is_not_trained_on(tmp_path: Path) -> None:
    """Some libraries know the length of a loader, and never ask for the batch behind its last one."""
    whole = "        for inputs, labels in val:\n"
    counted = "        batches = iter(val)\n        for inputs, labels in (next(batches) for _ in range(len(val))):\n"
    assert findings(tmp_path, broken(CLASSES, ((whole, counted),))) == {}


def test_folds_of_one_data_set_are_no_same_examples(tmp_path: Path) -> None:
    folds = (
        ("train_data, 32, shuffle=True", "whole, 32, sampler=SubsetRandomSampler(range(384))"),
        ("val_data, 32", "whole, 32, sampler=SubsetRandomSampler(range(384, 512))"),
        ("val_data = TensorDataset(x[384:], y[384:])", "whole = TensorDataset(x, y)"),
        ("DataLoader, TensorDataset", "DataLoader, SubsetRandomSampler, TensorDataset"),
    )
    assert findings(tmp_path, broken(CLASSES, folds)) == {}
    shared = broken(broken(CLASSES, folds), (("range(384, 512)", "range(384)"),))
    assert "validation/same-examples" in findings(tmp_path, shared)


def test_the_nodes_of_one_graph_are_no_batch(tmp_path: Path) -> None:
    source = """
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
x, links = torch.randn(40, 8), torch.eye(40) + (torch.rand(40, 40) < 0.1).float()
y = (links @ x)[:, :3].argmax(1)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(8, 32), nn.Linear(32, 3)
    def forward(self, x):
        return self.two(F.relu(links @ self.one(x)))

net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for epoch in range(30):
    optimizer.zero_grad()
    F.cross_entropy(net(x)[:30], y[:30]).backward()
    optimizer.step()
"""
    assert findings(tmp_path, source) == {}


def test_a_network_that_draws_from_the_generator_of_its_caller_repeats_itself(tmp_path: Path) -> None:
    edits = (
        ("model = nn.S", """
class Noisy(nn.Sequential):
    def forward(self, x, rng=None):
        return super().forward(x) + 0.1 * torch.randn(len(x), 5, generator=rng)

draws = torch.Generator().manual_seed(0)
model = Noisy(nn.S"""),
        ("nn.Linear(64, 5))", "nn.Linear(64, 5)))"),
        ("outputs = model(inputs)", "outputs = model(inputs, draws)"),
        ("average(inputs).argmax", "average(inputs, draws).argmax"),
    )  # fmt: skip
    source = broken(CLASSES, edits)
    assert findings(tmp_path, source, checks=["validation", "mixing"]) == {}
    without = source.replace("average(inputs, draws)", "average(inputs)")
    assert "validation/random-outputs" in findings(tmp_path, without, checks=["validation"])


def test_noise_of_numpy_and_a_bias_that_cancels_are_sound(tmp_path: Path) -> None:
    source = """
import numpy as np
import torch
from torch import nn
torch.manual_seed(0)
np.random.seed(0)

class Maker(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4)
    def forward(self, x):
        return self.layer(x) + torch.tensor(np.random.randn(len(x), 4), dtype=torch.float)

maker, judge = Maker(), nn.Linear(4, 1)
both = [*maker.parameters(), *judge.parameters()]
optimizer = torch.optim.Adam(both, lr=1e-3)
for step in range(30):
    loss = judge(maker(torch.randn(16, 8))).mean() - judge(torch.randn(16, 4) + 1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
    assert findings(tmp_path, source) == {}


def test_the_index_of_a_positive_pair_is_no_constant_label(tmp_path: Path) -> None:
    loss = "        loss = F.cross_entropy(outputs, labels)\n"
    pairs = (
        "        pairs = F.normalize(model(inputs), dim=1) @ F.normalize(outputs, dim=1).T\n"
        "        first = torch.cat([pairs.diagonal()[:, None], pairs], 1)\n"
        "        loss = F.cross_entropy(first / 0.1, torch.zeros(len(first), dtype=torch.long))\n"
    )
    found = findings(tmp_path, broken(CLASSES, ((loss, pairs),)))
    assert [name for name, one in found.items() if one["level"] == "alarm"] == []
    constant = (("y = x[:, :5].argmax(1)", "y = torch.ones(512, dtype=torch.long)"),)
    assert "labels/constant" in findings(tmp_path, broken(CLASSES, constant))


def test_sparse_inputs_and_updates_by_hand_are_watched(tmp_path: Path) -> None:
    source = """
import torch
torch.manual_seed(0)
x = torch.eye(64).to_sparse()
y = torch.randn(64, 2)
weight = torch.nn.Parameter(torch.randn(64, 2))

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = weight
    def forward(self, x):
        return torch.sparse.mm(x, self.weight).relu() - 1

net = Net()
for step in range(1000):
    loss = (net(x) - y).square().mean()
    net.zero_grad()
    loss.backward()
    with torch.no_grad():
        weight -= weight.grad
raise SystemExit(5)  # the watch ends before
"""
    assert findings_of_command(tmp_path, source) == {}


def test_each_exercise_that_a_finding_names_exists() -> None:
    named = {outcome.exercise for check in ALL for outcome in check.outcomes.values()} - {""}
    assert {name for name in named if not (REPOSITORY / "exercises" / name).is_dir()} == set()


def test_a_data_set_that_sets_attributes_itself_stays_as_it_is(tmp_path: Path) -> None:
    source = CLASSES.replace(
        "train_data = TensorDataset(x[:384], y[:384])",
        "import pickle\n\n\nclass Layers(torch.utils.data.Dataset, nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.transform = nn.Linear(2, 2)\n\n\n"
        "assert len(list(Layers().parameters())) == 2 and pickle.loads(pickle.dumps(print)) is print\n"
        "train_data = TensorDataset(x[:384], y[:384])",
    )
    assert findings(tmp_path, source, steps=2, checks=["gradients"]) == {}


def test_tags_of_padding_count_in_no_loss(tmp_path: Path) -> None:
    tags = ("tokens[:, 1:].reshape(-1), ignore_index=0", "torch.where(read == 0, 0, read % 3 + 1).reshape(-1)")
    source = broken(TEXT, (tags, ("    logits = ", "    read = tokens[:, :-1]\n    logits = ")))
    assert "tokens/counts-padding" in findings(tmp_path, source, checks=["tokens"])
    for sound in ("read % 3 + 1).reshape(-1), ignore_index=0", "read % 3).reshape(-1)"):
        assert findings(tmp_path, source.replace("read % 3 + 1).reshape(-1)", sound), checks=["tokens"]) == {}


def test_a_script_that_fails_in_short_epochs_is_judged_all_the_same(tmp_path: Path) -> None:
    edits = (
        ("TensorDataset(x[384:], y[384:])", "TensorDataset(x[:128], y[:128])"),
        ("    right = 0\n", "    right = seen = 0\n"),
        ("            right +=", "            seen += len(labels)\n            right +="),
        ("    best = copy", "    assert seen == 128\n    best = copy"),
    )
    found = findings_of_command(tmp_path, broken(CLASSES, edits), "--select", "validation", "--steps", "6")
    assert "validation/same-examples" in found


HIDDEN = """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(9, 8), nn.Flatten(), nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 48))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(200):
    letters = torch.randint(0, 8, (32, 6))
    hidden = torch.rand(letters.shape) < 0.5
    outputs = model(letters.masked_fill(hidden, 8)).view(32, 6, 8)
    loss = F.cross_entropy(outputs[hidden], letters[hidden])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_no_trial_compares_kept_inputs_with_targets_of_other_examples(tmp_path: Path) -> None:
    """Without a loader, a trial keeps inputs and targets, but how many targets count may differ from step to step."""
    assert findings(tmp_path, HIDDEN, steps=6, checks=["targets", "overfit"]) == {}
