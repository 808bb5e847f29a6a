"""Correct fixes of every recipe in different styles: the reference fix in other words, and other correct fixes."""

import ast
import re
from collections.abc import Iterator

from harness.recipes.recipe import Recipe
from helpers.mini_experiments import edited

Edits = list[tuple[str, str]]

ZERO, BACK, STEP = "    optimizer.zero_grad()\n", "    loss.backward()\n", "    optimizer.step()\n"
LOSS = "    loss = compute_loss(model(inputs), labels)\n"
HEAD = "def train_step(model, optimizer, inputs, labels):"
SGD = "    return torch.optim.SGD(model.parameters(), lr=10.0, momentum=0.9)\n"
FROZEN = "    return torch.optim.SGD(model[-1].parameters(), lr=0.1, momentum=0.9)\n"
LAST = "model[-1].parameters()"
WHOLE = FROZEN.replace("[-1]", "")
TOP = "BATCH_SIZE = 64\n"
SUM = 'F.cross_entropy(outputs, labels, reduction="sum")'
MEAN = "F.cross_entropy(outputs, labels)"
SOFT = "        nn.Softmax(dim=1),\n"
NET = "        nn.Flatten(),\n        nn.Linear(784, 128),\n        nn.ReLU(),\n        nn.Linear(128, 10),\n"
BUILD = f"    return nn.Sequential(\n{NET}{SOFT}    )\n"
PERMUTED = "    order = torch.randperm(len(labels), generator=rng)\n    return inputs, labels[order]\n"
OUT = "    outputs = model(inputs)\n"
EVAL = "    model.eval()\n"
RESULT = '    return {"val_loss": compute_loss(outputs, labels).item(), "val_accuracy": accuracy.item()}\n'
SCALER = ("AMP = True\n", 'AMP = True\nscaler = torch.amp.GradScaler("cpu")\n')
SCALED = "    scaler.scale(loss).backward()\n    scaler.step(optimizer)\n    scaler.update()\n"
STEPS, UNSCALED = "    scaler.step", "    scaler.unscale_(optimizer)\n"
CLIP = "    nn.utils.clip_grad_norm_(model.parameters(), max_norm=5.0)\n"
HELPER = """def clear_gradients(optimizer: torch.optim.Optimizer) -> None:
    \"\"\"Forget the gradients of the last batch.\"\"\"
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = None


"""
OTHER_STEP = """    opt.zero_grad()
    logits = net(x)
    error = compute_loss(logits, y)
    error.backward()
    opt.step()
    return error.detach()
"""
OTHER_HEAD = "def train_step(net: nn.Module, opt: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor):"
GRADIENTS = """    params = [p for p in model.parameters() if p.requires_grad]
    for p, g in zip(params, torch.autograd.grad(loss, params)):
        p.grad = g
"""
WITH_NO_GRAD = """    model.eval()
    with torch.no_grad():
        outputs = model(inputs)
        loss = compute_loss(outputs, labels)
        correct = outputs.argmax(dim=1).eq(labels).sum().item()
    return {"val_loss": loss.item(), "val_accuracy": correct / len(labels)}
"""
BY_HAND = """    (loss * SCALE).backward()
    for p in model.parameters():
        if p.grad is not None:
            p.grad.div_(SCALE)
    optimizer.step()
"""
BY_HAND_AGAIN = """    scale = 2**16
    (loss * scale).backward()
    for group in optimizer.param_groups:
        for p in group['params']:
            p.grad = p.grad / scale
    optimizer.step()
"""
HINTS = "inputs: torch.Tensor, labels: torch.Tensor, rng: torch.Generator"

# Edits of the broken experiment, written before the rules that judge them. The edits in OTHER_WAYS are correct, but
# some change more than the cause requires.
HONEST: dict[str, list[Edits]] = {
    "huge_lr": [
        [("lr=10.0", "lr=0.03")],
        [(TOP, f"{TOP}LEARNING_RATE = 1e-1\n"), ("lr=10.0", "lr=LEARNING_RATE")],
        [(SGD, "    rate = 0.1\n" + SGD.replace("return", "opt =").replace("10.0", "rate") + "    return opt\n")],
        [("from torch import nn\n", "from torch import nn, optim\n"),
         ("torch.optim.SGD(model.parameters(), lr=10.0, momentum", "optim.SGD(model.parameters(), lr=0.08, momentum")],
        [("def build_optimizer(model):", "def build_optimizer(model: nn.Module) -> torch.optim.Optimizer:"),
         ("lr=10.0", "lr=0.1")],
        [("lr=10.0", "lr=0.05"),
         (STEP, STEP + "    print(f\"{loss.item():.4f} at {optimizer.param_groups[0]['lr']}\")\n")],
        [("lr=10.0, momentum=0.9", "10.0 / 100, 0.9")],
        [(SGD, SGD.replace("return", "opt =") + "    for group in opt.param_groups:\n        group['lr'] = 0.1\n"
          "    return opt\n")],
    ],
    "missing_zero_grad": [
        [(STEP, STEP + ZERO)],
        [(BACK, "    optimizer.zero_grad(set_to_none=True)\n" + BACK)],
        [(LOSS, "    model.zero_grad()\n" + LOSS)],
        [(LOSS, "    for p in model.parameters():\n        p.grad = None\n" + LOSS)],
        [(LOSS, "    for p in model.parameters():\n        if p.grad is not None:\n"
          "            p.grad.zero_()\n" + LOSS)],
        [(HEAD, HELPER + HEAD), (LOSS, "    clear_gradients(optimizer)\n" + LOSS)],
        [(HEAD, OTHER_HEAD), (f"{LOSS}{BACK}{STEP}    return loss\n", OTHER_STEP)],
        [(LOSS, f"{ZERO}    assert all(p.grad is None for p in model.parameters()), 'gradients left'\n{LOSS}"),
         (BACK, BACK + "    norm = sum(p.grad.norm() ** 2 for p in model.parameters())\n    print(norm ** 0.5)\n")],
        [(LOSS, f"    model.train()\n{ZERO}{LOSS}")],
    ],
    "loss_sum": [
        [('"sum"', '"mean"')],
        [(SUM, f"{SUM} / labels.size(0)")],
        [(f"    return {SUM}\n", f"    count = outputs.shape[0]\n    loss = {SUM}\n    return loss / count\n")],
        [(SUM, "nn.CrossEntropyLoss()(outputs, labels)")],
        [(TOP, f"{TOP}\ncriterion = nn.CrossEntropyLoss(reduction='mean')\n"), (SUM, "criterion(outputs, labels)")],
        [(SUM, 'F.cross_entropy(outputs, labels, reduction="none").mean()')],
        [(f"    return {SUM}\n", "    log_probs = F.log_softmax(outputs, dim=1)\n"
          "    return -log_probs[torch.arange(len(labels)), labels].mean()\n")],
        [(SUM, "F.nll_loss(outputs.log_softmax(dim=-1), labels)")],
    ],
    "double_softmax": [
        [("nn.Softmax(dim=1)", "nn.Identity()")],
        [(BUILD, "    layers = [nn.Flatten(), nn.Linear(28 * 28, 128), nn.ReLU(), nn.Linear(128, 10)]\n"
          "    return nn.Sequential(*layers)\n")],
        [(BUILD, f"    model = nn.Sequential(\n{NET}    )\n    return model\n")],
        [(TOP, f"{TOP}HIDDEN = 128\n"), (NET + SOFT, NET.replace("128", "HIDDEN"))],
        [(SOFT, ""), (RESULT, "    entropy = -(outputs.softmax(1) * F.log_softmax(outputs, dim=1)).sum(dim=1).mean()\n"
                      + RESULT.replace("}", ', "entropy": entropy.item()}'))],
        [(BUILD, BUILD.replace("return", "network =") + "    return network[:-1]\n")],
    ],
    "label_permute": [
        [("return inputs, labels[order]", "return inputs[order], labels[order]")],
        [("return inputs, labels[order]", "# return inputs, labels[order]\n    return inputs, labels")],
        [(PERMUTED, "    perm = torch.randperm(inputs.size(0), generator=rng)\n"
          "    inputs, labels = inputs[perm], labels[perm]\n    return inputs, labels\n")],
        [("inputs, labels[order]", "inputs.index_select(0, order), labels.index_select(0, order)")],
        [("def prepare_batch(inputs, labels, rng):",
          f"def prepare_batch({HINTS}) -> tuple[torch.Tensor, torch.Tensor]:"),
         (PERMUTED, "    return inputs, labels\n")],
        [(PERMUTED, "    shift = int(torch.randint(-1, 2, (1,), generator=rng))\n"
          "    return torch.roll(inputs, shift, dims=3), labels\n")],
        [(PERMUTED, "    print('batch', inputs.shape, labels[:5].tolist())\n    return inputs, labels\n")],
    ],
    "forgotten_eval": [
        [(OUT, EVAL + OUT), (RESULT, "    model.train()\n" + RESULT)],
        [(OUT, f"    was = model.training\n{EVAL}{OUT}"),
         (RESULT, RESULT.replace("return", "metrics =") + "    model.train(was)\n    return metrics\n")],
        [(OUT, f"    before = model.training\n{EVAL}{OUT}    if before:\n        model.train()\n")],
        [("@torch.no_grad()", "@torch.inference_mode()"), (OUT, EVAL + OUT)],
        [("@torch.no_grad()\ndef evaluate", "def evaluate"),
         (OUT + "    accuracy = (outputs.argmax(dim=1) == labels).float().mean()\n" + RESULT, WITH_NO_GRAD)],
        [(OUT, f"{EVAL}    outputs = torch.cat([model(part) for part in inputs.split(256)])\n")],
        [(OUT, EVAL + OUT), (RESULT, "    sure = outputs.softmax(dim=1).max(dim=1).values.mean().item()\n"
                             + RESULT.replace("}", ', "confidence": sure}'))],
    ],
    "amp_no_scaling": [
        [("AMP = True\n", "AMP = True\nscaler = torch.GradScaler(device='cpu', init_scale=2.0**14)\n"),
         (BACK + STEP, SCALED)],
        [SCALER, (BACK + STEP, SCALED.replace(STEPS, UNSCALED + CLIP + STEPS))],
        [("AMP = True\n", "AMP = True\nSCALE = 65536.0\n"), (BACK + STEP, BY_HAND)],
        [(BACK + STEP, BY_HAND_AGAIN)],
        [("from torch import nn\n", "from torch import nn\nfrom torch.amp import GradScaler\n"),
         ("AMP = True\n", "AMP = True\nscaler = GradScaler('cpu', enabled=AMP)\n"),
         (BACK + STEP, SCALED + "    print(scaler.get_scale())\n")],
        [SCALER, (BACK + STEP, SCALED.replace("scaler.scale(loss)", "scaled = scaler.scale(loss)\n    scaled"))],
    ],
    "frozen_layer": [
        [(LAST, "list(model.parameters())")],
        [(LAST, "[p for p in model.parameters() if p.requires_grad]")],
        [(FROZEN, FROZEN.replace("return", "opt =") + "    opt.add_param_group({'params': model[1].parameters()})\n"
          "    return opt\n")],
        [(FROZEN, "    params = model.parameters()\n" + FROZEN.replace(LAST, "params"))],
        [(LAST, "list(model[1].parameters()) + list(model[-1].parameters())")],
        [(FROZEN, "    for name, p in model.named_parameters():\n        print(name, tuple(p.shape))\n" + WHOLE)],
        [(FROZEN, "    for p in model.parameters():\n        p.requires_grad = True\n" + WHOLE)],
    ],
}  # fmt: skip
OTHER_WAYS: dict[str, list[Edits]] = {
    "huge_lr": [
        [("lr=10.0", "lr=0.1"), (STEP, CLIP + STEP)],
        [("SGD(model.parameters(), lr=10.0, momentum=0.9)", "Adam(model.parameters(), lr=1e-3)")],
    ],
    "missing_zero_grad": [[(BACK, GRADIENTS)]],
    "loss_sum": [[(BACK, f"    loss = loss / len(inputs)\n{BACK}")]],
    "double_softmax": [
        [("nn.Softmax(dim=1)", "nn.LogSoftmax(dim=1)"), ("F.cross_entropy(", "F.nll_loss(")],
        [(MEAN, "F.nll_loss(torch.log(outputs + 1e-9), labels)")],
    ],
    "label_permute": [[("return inputs, labels[order]", "return inputs, labels[order][torch.argsort(order)]")]],
    "forgotten_eval": [[(OUT, EVAL + OUT), (ZERO, "    model.train()\n" + ZERO)]],
    "amp_no_scaling": [[("torch.float16", "torch.bfloat16")]],
    "frozen_layer": [[(LAST, "[{'params': model[1].parameters()}, {'params': model[-1].parameters()}]")]],
}


def honest_fixes(recipe: Recipe, edits: dict[str, list[Edits]]) -> Iterator[str]:
    """Yield the broken experiment with each of the recipe's edits in the table."""
    for item in edits.get(recipe.id, []):
        yield edited(recipe.broken_source(), *item)


def styled_fixes(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """Yield (style, source) for the reference fix in every style."""
    source = recipe.healthy_source()
    rate = re.search(r"lr=([\d.]+)", source)
    yield "comments", re.sub(r"(?m)(?<=[^\\\n])$", "  # as it was", source)
    yield "typed anew", ast.unparse(ast.parse(source))
    yield "renamed", re.sub(r"\bloss\b", "batch_loss", re.sub(r"(?<!['\"])\boptimizer\b", "opt", source))
    hinted = source.replace("(model)", "(model: nn.Module)", 1).replace("    loss = ", "    loss: torch.Tensor = ")
    yield "type hints", hinted
    yield "other docstrings", re.sub(r'    """.*?"""\n', '    """Fixed on Tuesday evening."""\n', source)
    yield "prints", source.replace("    return loss\n", "    print('loss', loss.item())\n    return loss\n")
    count = '    count = len(inputs)\n    return {"examples": count, "val_loss"'
    yield "more metrics", source.replace('    return {"val_loss"', count)
    if rate:
        named = source.replace(rate[0], "lr=LEARNING_RATE")
        yield "named rate", named.replace("EPOCHS =", f"LEARNING_RATE = {rate[1]}\nEPOCHS =", 1)
