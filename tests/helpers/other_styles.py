"""Sound miniature experiments in other styles: no check may raise an alarm."""

from helpers.mini_experiments import MINI, edited

_LOSS = "    return F.cross_entropy(outputs, labels)\n"
_MODEL = "    return nn.Sequential(nn.Flatten(), nn.Linear(36, 16), nn.ReLU(), nn.Linear(16, 10))\n"
_SGD = "torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)"
_ADAM = "torch.optim.Adam(model.parameters(), lr=0.01, fused=True)"
_LOADED = MINI[MINI.index("    train = (data") : MINI.index("\n\ndef build_model")]
_STEP = MINI[MINI.index("    optimizer.zero_grad()") : MINI.index("@torch.no_grad")]
_EVALUATED = MINI[MINI.index("    model.eval()") :]
_PREPARED = "    return inputs, labels\n"
_ACCURACY = "    accuracy = (outputs.argmax(dim=1) == labels).float().mean()\n"


def images(*edits: tuple[str, str]) -> str:
    """Return the miniature experiment on images with these edits."""
    return edited(MINI, *edits)


def _other_data(load: str, model: str, loss: str, evaluated: str) -> str:
    """Return a miniature experiment that makes its own data."""
    source = edited(MINI, (_LOADED, load), (_MODEL, model), (_LOSS, loss), (_SGD, _ADAM), (_EVALUATED, evaluated))
    return edited(source, ("EPOCHS = 3", "EPOCHS = 4"), ("BATCH_SIZE = 8", "BATCH_SIZE = 16"))


_TABLE = """\
    rng = torch.Generator().manual_seed(3)
    x = torch.randn(240, 6, generator=rng)
    score = x[:, 0] + x[:, 1] * x[:, 2] + 0.1 * torch.randn(240, generator=rng)
    y = TARGET
    return (x[:160], y[:160]), (x[160:], y[160:])
"""
_NET = "    return nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, OUT))\n"
_MSE = "    return F.mse_loss(outputs, labels)\n"
_LOSS_ALONE = '    model.eval()\n    return {"val_loss": compute_loss(model(inputs), labels).item()}\n'
_RECALLS = """\
    model.eval()
    outputs = model(inputs)
    alarm = torch.sigmoid(outputs) > 0.5
    recall = (alarm[labels == 1].float().mean() + (~alarm[labels == 0]).float().mean()) / 2
    return {"val_loss": compute_loss(outputs, labels).item(), "val_accuracy": recall.item()}
"""
_BCE = "    return F.binary_cross_entropy_with_logits(outputs, labels)\n"


def table(target: str, out: int, loss: str = _LOSS, evaluated: str = _EVALUATED) -> str:
    """Return an experiment on a table with six columns."""
    return _other_data(_TABLE.replace("TARGET", target), _NET.replace("OUT", str(out)), loss, evaluated)


_TEXT = """\
    rng = torch.Generator().manual_seed(3)
    table = torch.stack([torch.randperm(6, generator=rng)[:2] for _ in range(6)])
    text = torch.randint(0, 6, (240, 9), generator=rng)
    for at in range(1, 9):
        rare = (torch.rand(240, generator=rng) < 0.2).long()
        text[:, at] = table[text[:, at - 1], rare]
    x, y = text[:, :-1], text[:, 1:]
    return (x[:160], y[:160]), (x[160:], y[160:])
"""
_KINDS = """\
    rng = torch.Generator().manual_seed(3)
    x = torch.randint(1, 9, (240, 10), generator=rng)
    y = torch.randint(0, 4, (240,), generator=rng)
    x[torch.arange(240), torch.randint(0, 3, (240,), generator=rng)] = 9 + y
    x[torch.arange(10) >= torch.randint(4, 11, (240, 1), generator=rng)] = 0
    return (x[:160], y[:160]), (x[160:], y[160:])
"""
_TOKEN_LOSS = "    return F.cross_entropy(outputs.flatten(0, 1), labels.flatten())\n"
_CAUSAL = """\
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.symbols, self.places = nn.Embedding(6, 16), nn.Embedding(8, 16)
            self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
            self.mlp = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 16))
            self.head = nn.Linear(16, 6)

        def forward(self, text):
            x = self.symbols(text) + self.places(torch.arange(text.shape[1]))
            q, k, v = self.qkv(x).chunk(3, dim=2)
            future = torch.ones(text.shape[1], text.shape[1], dtype=torch.bool).triu(1)
            x = x + self.out((q @ k.transpose(1, 2) / 4).masked_fill(future, float("-inf")).softmax(dim=2) @ v)
            return self.head(x + self.mlp(x))

    return Net()
"""
_READER = """\
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.symbols, self.cell = nn.Embedding(13, 16, padding_idx=0), nn.GRU(16, 32, batch_first=True)
            self.head = nn.Linear(32, 4)

        def forward(self, text):
            states, _ = self.cell(self.symbols(text))
            return self.head(states[torch.arange(len(text)), (text != 0).sum(dim=1) - 1])

    return Net()
"""
_WRITES = """\
    model.eval()
    loss = compute_loss(model(inputs), labels)
    text = inputs[:10, :2]
    for _ in range(6):
        text = torch.cat([text, model(text)[:, -1].argmax(dim=-1, keepdim=True)], dim=1)
    return {"val_loss": loss.item(), "val_accuracy": (text == inputs[:10]).float().mean().item()}
"""
_IN_BATCHES = """\
    model.eval()
    losses, right = [], []
    for x, y in zip(inputs.split(5), labels.split(5)):
        outputs = model(x)
        losses.append(compute_loss(outputs, y).item())
        right.append((outputs.argmax(dim=1) == y).float().mean().item())
    return {"val_loss": sum(losses) / len(losses), "val_accuracy": sum(right) / len(right)}
"""
_MASKED = "    labels = torch.where(torch.rand(labels.shape, generator=rng) < 0.3, -100, labels)\n" + _PREPARED

_TRAINER = '''\
class Trainer:
    """Keeps a network and its optimizer, and makes steps."""

    def __init__(self, net, optimizer):
        self.net, self.optimizer, self.criterion = net, optimizer, nn.CrossEntropyLoss()

    def step(self, x, y):
        self.net.train()
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.criterion(self.net(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()


def train_step(model, optimizer, inputs, labels):
    return Trainer(model, optimizer).step(inputs, labels)


'''
_WHOLE_STEP = "def train_step(model, optimizer, inputs, labels):\n" + _STEP
_MIXED = """\
    share = float(torch.rand(1, generator=rng))
    other = torch.randperm(len(labels), generator=rng)
    inputs = share * inputs + (1 - share) * inputs[other]
"""
_LABELS_OR = "    if labels.dim() == 1:\n        return F.cross_entropy(outputs, labels)\n"
_FOCAL = """\
    log_p = F.log_softmax(outputs, dim=1).gather(1, labels[:, None])[:, 0]
    return (-((1 - log_p.exp()) ** 2) * log_p).mean()
"""
_CONTRASTIVE = """\
    z, labels = F.normalize(outputs, dim=1), labels % 3
    alike = (labels[:, None] == labels[None]) & ~torch.eye(len(labels), dtype=torch.bool)
    scores = (z @ z.T / 0.5).masked_fill(torch.eye(len(labels), dtype=torch.bool), -1e9)
    log_p = scores - scores.logsumexp(dim=1, keepdim=True)
    return -(log_p * alike).sum(dim=1).div(alike.sum(dim=1).clamp(min=1)).mean()
"""
_STANDARD = "inputs.flatten(1).{}(dim=1).view(-1, 1, 1, 1)"
_BY_ITSELF = f"    inputs = (inputs - {_STANDARD.format('mean')}) / ({_STANDARD.format('std')} + 1e-6)\n" + _PREPARED
_FROZEN = """\
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 128), nn.ReLU(), nn.Linear(128, 10))
    model[1].requires_grad_(False)
    return model
"""
_SMOOTHED = ("(outputs, labels)\n\n\ndef train_step", "(outputs, labels, label_smoothing=0.1)\n\n\ndef train_step")

SOUND: dict[str, str] = {
    "trainer class": images((_WHOLE_STEP, _TRAINER)),
    "one cycle of epochs": images(
        ("    return None\n", "    return torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, EPOCHS * 5)\n"),
    ),
    "one cycle of total": images(
        ("    return None\n", "    return torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps)\n"),
    ),
    "steps of an epoch": images(
        ("    return None\n",
         "    every = total_steps // EPOCHS\n"
         "    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.9 ** (step // every))\n"),
    ),
    "warm-up from zero": images(
        ("    return None\n",
         "    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(step / 4, 1.0))\n"),
    ),
    "log probabilities": images(
        ("nn.Linear(16, 10))", "nn.Linear(16, 10), nn.LogSoftmax(dim=1))"), ("F.cross_entropy", "F.nll_loss"),
    ),
    "probabilities": images(
        ("nn.Linear(16, 10))", "nn.Linear(16, 10), nn.Softmax(dim=1))"),
        ("F.cross_entropy(outputs, labels)", "F.nll_loss(torch.log(outputs + 1e-8), labels)"),
    ),
    "class weights": images(
        ("AMP = False\n", "AMP = False\nWEIGHTS = torch.tensor([1.0, 2.0, 0.5, 1.0, 4.0, 1.0, 1.0, 3.0, 1.0, 0.2])\n"),
        ("cross_entropy(outputs, labels)", "cross_entropy(outputs, labels, weight=WEIGHTS)"),
    ),
    "weights that are not normalized": images(
        ("AMP = False\n", "AMP = False\nWEIGHTS = torch.linspace(0.5, 3.0, 10)\n"),
        ("F.cross_entropy(outputs, labels)",
         '(WEIGHTS[labels] * F.cross_entropy(outputs, labels, reduction="none")).mean()'),
    ),
    "label smoothing": images(_SMOOTHED),
    "soft targets": images(
        (_PREPARED, "    soft = F.one_hot(labels, 10).float() * 0.9 + 0.01\n    return inputs, soft\n"),
    ),
    "mixup": images(
        (_PREPARED, _MIXED + "    soft = F.one_hot(labels, 10).float()\n"
         "    return inputs, share * soft + (1 - share) * soft[other]\n"),
    ),
    "mixup with two sets of labels": images(
        (_PREPARED, _MIXED + "    shares = torch.full_like(labels, int(1000 * share))\n"
         "    return inputs, torch.stack([labels, labels[other], shares], dim=1)\n"),
        (_LOSS, _LABELS_OR + "    share = labels[0, 2] / 1000\n"
         "    losses = [F.cross_entropy(outputs, labels[:, which]) for which in (0, 1)]\n"
         "    return share * losses[0] + (1 - share) * losses[1]\n"),
    ),
    "mixup in the step": images(
        (_STEP,
         "    share, other = 0.9, torch.arange(len(labels)).roll(1)\n"
         "    optimizer.zero_grad()\n"
         "    outputs = model(share * inputs + (1 - share) * inputs[other])\n"
         "    loss = share * compute_loss(outputs, labels) + (1 - share) * compute_loss(outputs, labels[other])\n"
         "    loss.backward()\n    optimizer.step()\n    return loss\n\n\n"),
    ),
    "hinge": images(("F.cross_entropy", "F.multi_margin_loss")),
    "focal": images((_LOSS, _FOCAL)),
    "contrastive": images(
        (_LOSS, _CONTRASTIVE), (_SGD, _ADAM), (_ACCURACY, ""), (', "val_accuracy": accuracy.item()', ""),
    ),
    "evaluated in batches": images((_EVALUATED, _IN_BATCHES)),
    "evaluate normalizes": images(
        (_PREPARED, "    return (inputs - 0.4) / 0.2, labels\n"),
        ("    outputs = model(inputs)\n", "    outputs = model((inputs - 0.4) / 0.2)\n"),
    ),
    "evaluate moves axes": images(
        (".float() / 255, data.train", ".float().permute(0, 2, 3, 1) / 255, data.train"),
        (".float() / 255, data.val", ".float().permute(0, 2, 3, 1) / 255, data.val"),
        (_MODEL, _MODEL.replace("nn.Flatten()", "nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten()").replace("36", "64")),
        (_PREPARED, "    return inputs.permute(0, 3, 1, 2), labels\n"),
        ("    outputs = model(inputs)\n", "    outputs = model(inputs.permute(0, 3, 1, 2))\n"),
    ),
    "each image standardized": images(
        (_PREPARED, _BY_ITSELF),
        ("    outputs = model(inputs)\n", "    outputs = model(prepare_batch(inputs, labels, None)[0])\n"),
    ),
    "each image standardized when loaded": images(
        (_LOADED,
         "    def standard(images):\n"
         "        flat = images.float().flatten(1)\n"
         "        return ((flat - flat.mean(1, keepdim=True)) / flat.std(1, keepdim=True)).view(images.shape)\n\n"
         "    return (standard(data.train.images), data.train.labels), "
         "(standard(data.validation.images), data.validation.labels)\n"),
    ),
    "a trunk that rests": images(("AMP = False\n", 'AMP = False\nFROZEN = ("1.",)\n'), (_MODEL, _FROZEN)),
    "table of classes": table("(score > 0).long()", 2),
    "table of numbers": table("score.unsqueeze(1)", 1, _MSE, _LOSS_ALONE),
    "table of large numbers": table(
        "1000 * score.unsqueeze(1) + 5000", 1, _MSE.replace("labels", "(labels - 5000) / 1000"), _LOSS_ALONE
    ),
    "table of flat numbers": table("score", 1, "    return F.mse_loss(outputs.squeeze(1), labels)\n", _LOSS_ALONE),
    "table of absolute errors": table("score.unsqueeze(1)", 1, _MSE.replace("mse", "l1"), _LOSS_ALONE),
    "table of alarms": table("(score > 1).float().unsqueeze(1)", 1, _BCE, _RECALLS),
    "table of weighted alarms": table(
        "(score > 1).float().unsqueeze(1)", 1,
        _BCE.replace("labels)", "labels, pos_weight=torch.tensor(4.0))"), _RECALLS,
    ),
    "text": _other_data(_TEXT, _CAUSAL, _TOKEN_LOSS, _WRITES),
    "text by pairs": _other_data(
        _TEXT, "    return nn.Embedding(6, 6, _weight=torch.zeros(6, 6))\n", _TOKEN_LOSS, _LOSS_ALONE
    ),
    "text with hidden labels": edited(
        _other_data(_TEXT, _CAUSAL, _TOKEN_LOSS, _LOSS_ALONE), (_PREPARED, _MASKED)
    ),
    "kinds of text": _other_data(_KINDS, _READER, _LOSS, _EVALUATED),
}  # fmt: skip
