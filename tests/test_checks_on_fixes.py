"""The mechanism checks on fixes of real breaks: unsound behind a fix that hides the symptom, sound for a right one."""

import pytest
from check_subjects import source_subject
from runs import edited

from grader.score.solutions import mechanisms_of
from harness.checks import examine, load_check
from harness.recipe import load_recipe

pytestmark = pytest.mark.usefixtures("torch_as_found")

Edits = tuple[tuple[str, str], ...]

STEP = "    loss = compute_loss(model(inputs), labels)\n    loss.backward()\n    optimizer.step()\n"
HEAT_STEP = "    loss.backward()\n    optimizer.step()\n"
CLIP = (
    "    optimizer.step()\n",
    "    nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    optimizer.step()\n",
)
NO_SCHEDULE = "    return None\n"
SUM = 'F.cross_entropy(outputs, labels, reduction="sum")'
EVALUATE = """    outputs = model(inputs)
    accuracy = (outputs.argmax(dim=1) == labels).float().mean()
"""
PERMUTE = "    order = torch.randperm(len(labels), generator=rng)\n    return inputs, labels[order]\n"
FLOAT16 = "dtype=torch.float16, enabled=AMP"

MASKING: list[tuple[str, str, Edits]] = [
    ("huge_lr", "clipping", (CLIP,)),
    ("huge_lr", "no momentum", ((", momentum=0.9", ""),)),
    ("huge_lr", "a loss divided by 100", (("    loss.backward()", "    (loss / 100).backward()"),)),
    (
        "huge_lr",
        "a warm-up to the same rate",
        (
            (
                "from torch import nn\n",
                ("from torch import nn\n\nfrom harness.schedules import warmup_cosine\n"),
            ),
            (NO_SCHEDULE, "    return warmup_cosine(optimizer, warmup_steps=50, total_steps=total_steps)\n"),
        ),
    ),
    (
        "huge_lr",
        "a small rate that is raised for the step only",
        (
            ("lr=10.0", "lr=0.1"),
            (
                "    optimizer.step()\n",
                (
                    "    optimizer.param_groups[0]['lr'] = 10.0\n"
                    "    optimizer.step()\n"
                    "    optimizer.param_groups[0]['lr'] = 0.1\n"
                ),
            ),
        ),
    ),
    (
        "huge_lr",
        "another optimizer's small rate after it",
        (
            (
                "    optimizer.step()\n",
                ("    optimizer.step()\n    torch.optim.SGD(model.parameters(), lr=1e-9).step()\n"),
            ),
        ),
    ),
    ("missing_zero_grad", "clipping", (CLIP,)),
    ("missing_zero_grad", "a smaller rate", (("lr=0.1", "lr=0.001"),)),
    (
        "missing_zero_grad",
        "cleared at the first step only",
        ((STEP, ("    if not optimizer.state:\n        optimizer.zero_grad()\n") + STEP),),
    ),
    ("missing_zero_grad", "cleared in part", ((STEP, "    model[1].weight.grad = None\n" + STEP),)),
    (
        "missing_zero_grad",
        "old gradients halved",
        (
            (
                STEP,
                (
                    "    for p in model.parameters():\n"
                    "        if p.grad is not None:\n"
                    "            p.grad *= 0.5\n"
                )
                + STEP,
            ),
        ),
    ),
    ("loss_sum", "a smaller rate", (("lr=0.1", "lr=0.1 / 64"),)),
    ("loss_sum", "clipping", (CLIP,)),
    ("loss_sum", "a smaller batch", (("BATCH_SIZE = 64", "BATCH_SIZE = 8"),)),
    ("loss_sum", "a reported mean", (("    return loss\n", "    return loss / 64\n"),)),
    (
        "loss_sum",
        "gradients divided after backward",
        (
            (
                "    optimizer.step()\n",
                ("    for p in model.parameters():\n        p.grad /= 64\n    optimizer.step()\n"),
            ),
        ),
    ),
    (
        "double_softmax",
        "temperature",
        (("F.cross_entropy(outputs, labels)", "F.cross_entropy(outputs * 10, labels)"),),
    ),
    ("double_softmax", "a sigmoid instead", (("nn.Softmax(dim=1)", "nn.Sigmoid()"),)),
    ("double_softmax", "a higher rate", (("lr=0.1", "lr=1.0"),)),
    (
        "double_softmax",
        "the floor taken off the loss",
        (("F.cross_entropy(outputs, labels)", "F.cross_entropy(outputs, labels) - 1.4611"),),
    ),
    (
        "label_permute",
        "shuffled less often",
        (
            (
                PERMUTE,
                (
                    "    if torch.rand(1, generator=rng) < 0.9:\n"
                    "        labels = labels[torch.randperm(len(labels), generator=rng)]\n"
                    "    return inputs, labels\n"
                ),
            ),
        ),
    ),
    (
        "label_permute",
        "half of the batch shuffled",
        (
            (
                PERMUTE,
                (
                    "    half = len(labels) // 2\n"
                    "    order = torch.cat([torch.randperm(half, generator=rng), torch.arange(half, len(labels))])\n"
                    "    return inputs, labels[order]\n"
                ),
            ),
        ),
    ),
    (
        "label_permute",
        "the inputs shuffled instead",
        (("labels[order]", "labels"), ("return inputs", "return inputs[order]")),
    ),
    ("label_permute", "a fixed order", (("generator=rng", "generator=torch.Generator().manual_seed(0)"),)),
    ("amp_no_scaling", "a larger eps", (("lr=0.001, fused", "lr=0.001, eps=1e-4, fused"),)),
    (
        "amp_no_scaling",
        "a scale that is too small",
        (
            (
                HEAT_STEP,
                (
                    "    (loss * 2).backward()\n"
                    "    for p in model.parameters():\n"
                    "        p.grad /= 2\n"
                    "    optimizer.step()\n"
                ),
            ),
        ),
    ),
    ("forgotten_eval", "a fixed seed", ((EVALUATE, "    torch.manual_seed(0)\n" + EVALUATE),)),
    (
        "forgotten_eval",
        "statistics frozen, dropout alive",
        (
            (
                EVALUATE,
                "    for m in model.modules():\n        if isinstance(m, nn.BatchNorm2d):\n            m.eval()\n"
                + EVALUATE,
            ),
        ),
    ),
    ("forgotten_eval", "only dropout turned off", ((EVALUATE, "    model[4].eval()\n" + EVALUATE),)),
    (
        "forgotten_eval",
        "a copy in training mode",
        ((EVALUATE, ("    import copy\n    model = copy.deepcopy(model)\n") + EVALUATE),),
    ),
]

RIGHT: list[tuple[str, str, Edits]] = [
    ("huge_lr", "another moderate rate", (("lr=10.0", "lr=0.05"),)),
    (
        "huge_lr",
        "Adam",
        (("SGD(model.parameters(), lr=10.0, momentum=0.9)", "Adam(model.parameters(), lr=0.001)"),),
    ),
    (
        "huge_lr",
        "set afterwards",
        (
            (
                "    return torch.optim.SGD(model.parameters(), lr=10.0, momentum=0.9)",
                (
                    "    optimizer = torch.optim.SGD(model.parameters(), lr=10.0, momentum=0.9)\n"
                    "    optimizer.param_groups[0]['lr'] = 0.1\n"
                    "    return optimizer"
                ),
            ),
        ),
    ),
    ("missing_zero_grad", "at the start", ((STEP, "    optimizer.zero_grad()\n" + STEP),)),
    ("missing_zero_grad", "at the end", ((STEP, STEP + "    optimizer.zero_grad()\n"),)),
    ("missing_zero_grad", "to zeros", ((STEP, "    optimizer.zero_grad(set_to_none=False)\n" + STEP),)),
    ("missing_zero_grad", "by the model", ((STEP, "    model.zero_grad()\n" + STEP),)),
    (
        "missing_zero_grad",
        "one by one",
        ((STEP, ("    for p in model.parameters():\n        p.grad = None\n") + STEP),),
    ),
    (
        "missing_zero_grad",
        "before backward",
        (("    loss.backward()", ("    optimizer.zero_grad()\n    loss.backward()")),),
    ),
    (
        "missing_zero_grad",
        "without backward",
        (
            (
                "    loss.backward()\n",
                (
                    "    grads = torch.autograd.grad(loss, list(model.parameters()))\n"
                    "    for p, g in zip(model.parameters(), grads):\n"
                    "        p.grad = g\n"
                ),
            ),
        ),
    ),
    ("loss_sum", "the mean", ((SUM, "F.cross_entropy(outputs, labels)"),)),
    ("loss_sum", "divided by the number", ((SUM, SUM + " / len(labels)"),)),
    (
        "loss_sum",
        "divided in the step",
        (("    loss.backward()", ("    loss = loss / len(labels)\n    loss.backward()")),),
    ),
    ("loss_sum", "written out", ((SUM, "F.nll_loss(F.log_softmax(outputs, dim=1), labels)"),)),
    ("double_softmax", "removed", (("        nn.Softmax(dim=1),\n", ""),)),
    ("double_softmax", "identity", (("nn.Softmax(dim=1)", "nn.Identity()"),)),
    ("double_softmax", "log-softmax", (("nn.Softmax(dim=1)", "nn.LogSoftmax(dim=1)"),)),
    (
        "double_softmax",
        "likelihood of log-softmax",
        (("nn.Softmax(dim=1)", "nn.LogSoftmax(dim=1)"), ("F.cross_entropy", "F.nll_loss")),
    ),
    (
        "double_softmax",
        "likelihood of the probabilities",
        (("F.cross_entropy(outputs, labels)", "F.nll_loss(outputs.log(), labels)"),),
    ),
    (
        "double_softmax",
        "likelihood, made safe",
        (("F.cross_entropy(outputs, labels)", "F.nll_loss((outputs + 1e-8).log(), labels)"),),
    ),
    ("label_permute", "in order", ((PERMUTE, "    return inputs, labels\n"),)),
    (
        "label_permute",
        "both shuffled alike",
        (("return inputs, labels[order]", "return inputs[order], labels[order]"),),
    ),
    (
        "label_permute",
        "with augmentation",
        ((PERMUTE, "    return inputs.roll(2, dims=3) * 0.9 + 0.01, labels\n"),),
    ),
    (
        "amp_no_scaling",
        "by hand",
        (
            (
                HEAT_STEP,
                (
                    "    (loss * 65536).backward()\n"
                    "    for p in model.parameters():\n"
                    "        p.grad /= 65536\n"
                    "    optimizer.step()\n"
                ),
            ),
        ),
    ),
    (
        "amp_no_scaling",
        "a scaler of its own",
        (
            ("AMP = True\n", ("AMP = True\nloss_scaler = torch.amp.GradScaler('cpu', init_scale=2.0**14)\n")),
            (
                HEAT_STEP,
                (
                    "    loss_scaler.scale(loss).backward()\n"
                    "    loss_scaler.unscale_(optimizer)\n"
                    "    loss_scaler.step(optimizer)\n"
                    "    loss_scaler.update()\n"
                ),
            ),
        ),
    ),
    ("amp_no_scaling", "bfloat16", ((FLOAT16, "dtype=torch.bfloat16, enabled=AMP"),)),
    ("amp_no_scaling", "no autocast", (("AMP = True", "AMP = False"),)),
    (
        "forgotten_eval",
        "a copy in eval mode",
        ((EVALUATE, ("    import copy\n    model = copy.deepcopy(model).eval()\n") + EVALUATE),),
    ),
    (
        "forgotten_eval",
        "and back",
        ((EVALUATE, "    model.train(False)\n" + EVALUATE + "    model.train()\n"),),
    ),
]


def unsound(recipe_id: str, edits: Edits) -> dict[str, str]:
    """Return the outcome of each mechanism check that the break trips and that is not sound after these edits."""
    recipe = load_recipe(recipe_id)
    subject = source_subject(edited(recipe.broken_source(), *edits), recipe.dataset, recipe.seed)
    found = {name: examine(subject, name).outcome for name in mechanisms_of(recipe_id)}
    return {name: outcome for name, outcome in found.items() if not load_check(name).outcome(outcome).sound}


def names(rows: list[tuple[str, str, Edits]]) -> list[str]:
    return [f"{recipe}: {title}" for recipe, title, _ in rows]


@pytest.mark.parametrize(("recipe", "title", "edits"), MASKING, ids=names(MASKING))
def test_a_fix_that_hides_the_symptom_is_not_sound(recipe: str, title: str, edits: Edits) -> None:
    assert unsound(recipe, edits)


@pytest.mark.parametrize(("recipe", "title", "edits"), RIGHT, ids=names(RIGHT))
def test_a_right_fix_is_sound_however_it_is_written(recipe: str, title: str, edits: Edits) -> None:
    assert unsound(recipe, edits) == {}


COUNTER = ("EPOCHS = 5\n", "import itertools\nCOUNT = itertools.count()\nEPOCHS = 5\n")
EVERY_THIRD = (
    "    (loss / 3).backward()\n"
    "    if next(COUNT) % 3 == 0:\n        optimizer.step()\n        optimizer.zero_grad()\n"
)


def test_gradients_accumulated_over_batches_are_those_of_the_mean() -> None:
    healthy = load_recipe("huge_lr").healthy_source()
    zero, step = "    optimizer.zero_grad()\n", "    loss.backward()\n    optimizer.step()\n"
    accumulated = edited(healthy, COUNTER, (zero, ""), (step, EVERY_THIRD))
    assert examine(source_subject(accumulated), "loss_form").outcome == "agrees"
    # A third of the gradient at every step is another loss.
    third = edited(healthy, ("loss.backward()", "(loss / 3).backward()"))
    assert examine(source_subject(third), "loss_form").outcome == "differs"


def test_a_network_without_modes_does_not_hide_that_evaluation_sets_none() -> None:
    linear = edited(
        load_recipe("forgotten_eval").broken_source(),
        ("        nn.Dropout(0.6),\n", ""),
        ("        nn.BatchNorm2d(channels_out),\n", ""),
    )
    assert examine(source_subject(linear, "shapes"), "modes").outcome == "unrepeatable"
    right = edited(
        linear, ("    outputs = model(inputs)\n", "    model.eval()\n    outputs = model(inputs)\n")
    )
    assert examine(source_subject(right, "shapes"), "modes").outcome == "agree"
