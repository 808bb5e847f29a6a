"""Probes on the real experiments: the cause is found behind fixes that hide it, and not in fixes that mend it."""

import math
from functools import cache
from pathlib import Path

import pytest
import torch
from runs import edited, load, real_data

from harness.checks.probes import Bench, mean_cross_entropy, run_probe
from harness.recipe import Probe, load_recipe, recipe_ids
from harness.run.batches import deterministic_minibatches
from harness.run.experiment import TensorData

pytestmark = pytest.mark.usefixtures("torch_as_found")


@cache
def data(name: str) -> TensorData:
    return real_data(name)


Edits = tuple[tuple[str, str], ...]


def measure(
    folder: Path, recipe_id: str, *edits: tuple[str, str], source: str | None = None
) -> tuple[bool, str]:
    """Say whether an edited version of the broken experiment passes all probes, and what they measured."""
    recipe = load_recipe(recipe_id)
    experiment = load(folder, edited(recipe.broken_source() if source is None else source, *edits))
    results = [run_probe(probe, experiment, data(recipe.dataset), recipe.seed) for probe in recipe.probes]
    return all(result.passed for result in results), str([result.value for result in results])


# The seven on broken and healthy sources in portable numerics: tests/test_recipes.py.

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


def names(rows: list[tuple[str, str, Edits]]) -> list[str]:
    return [f"{recipe}: {title}" for recipe, title, _ in rows]


@pytest.mark.parametrize(("recipe", "title", "edits"), MASKING, ids=names(MASKING))
def test_a_fix_that_hides_the_symptom_does_not_pass(
    recipe: str, title: str, edits: Edits, tmp_path: Path
) -> None:
    passed, values = measure(tmp_path, recipe, *edits)
    assert not passed, values


@pytest.mark.parametrize(("recipe", "title", "edits"), RIGHT, ids=names(RIGHT))
def test_a_right_fix_passes_however_it_is_written(
    recipe: str, title: str, edits: Edits, tmp_path: Path
) -> None:
    passed, values = measure(tmp_path, recipe, *edits)
    assert passed, values


def test_every_recipe_has_fixes_of_both_kinds() -> None:
    assert {recipe for recipe, _, _ in MASKING} == {recipe for recipe, _, _ in RIGHT} >= set(recipe_ids())


# --- figures ------------------------------------------------------------------------------------------------


def value(folder: Path, kind: str, source: str) -> float:
    probe = Probe.model_validate({"kind": kind, "below": 1.0})
    return run_probe(probe, load(folder, source), data("digits"), 42).value


def healthy() -> str:
    return load_recipe("huge_lr").healthy_source()


def test_the_learning_rate_is_the_largest_of_the_whole_schedule(tmp_path: Path) -> None:
    source = edited(
        healthy(),
        ("lr=0.1", "lr=0.7"),
        (
            "from torch import nn\n",
            "from torch import nn\n\nfrom harness.schedules import warmup_cosine\n",
        ),
        (NO_SCHEDULE, "    return warmup_cosine(optimizer, warmup_steps=50, total_steps=total_steps)\n"),
    )
    assert value(tmp_path, "learning_rate", source) == pytest.approx(0.7)
    assert value(tmp_path, "learning_rate", healthy()) == 0.1


def test_a_summed_loss_is_off_by_the_batch_size(tmp_path: Path) -> None:
    summed = load_recipe("loss_sum").broken_source()
    assert value(tmp_path, "loss_gradient", summed) == pytest.approx(63, rel=1e-4)
    # The last of a smaller batch: the same measure with another size.
    small = edited(summed, ("BATCH_SIZE = 64", "BATCH_SIZE = 16"))
    assert value(tmp_path, "loss_gradient", small) == pytest.approx(15, rel=1e-4)


def test_shuffled_labels_are_wrong_nine_times_in_ten(tmp_path: Path) -> None:
    assert value(tmp_path, "batch_pairing", load_recipe("label_permute").broken_source()) > 0.75
    assert value(tmp_path, "batch_pairing", healthy()) == 0.0


def test_a_sum_over_a_constant_is_no_mean_of_another_batch(tmp_path: Path) -> None:
    summed = load_recipe("loss_sum").broken_source()
    constant = edited(summed, ('reduction="sum")', 'reduction="sum") / 64'))
    assert value(tmp_path, "loss_gradient", constant) == pytest.approx(0.5, rel=1e-4)
    counted = edited(summed, ('reduction="sum")', 'reduction="sum") / len(labels)'))
    assert value(tmp_path, "loss_gradient", counted) < 1e-6


def test_gradients_accumulated_over_batches_are_those_of_the_mean(tmp_path: Path) -> None:
    step = "    loss.backward()\n    optimizer.step()\n"
    zero = "    optimizer.zero_grad()\n"
    every_third = (
        "    (loss / 3).backward()\n"
        "    if next(COUNT) % 3 == 0:\n        optimizer.step()\n        optimizer.zero_grad()\n"
    )
    counter = ("EPOCHS = 5\n", "import itertools\nCOUNT = itertools.count()\nEPOCHS = 5\n")
    accumulated = edited(healthy(), counter, (zero, ""), (step, every_third))
    assert value(tmp_path, "loss_gradient", accumulated) < 1e-6
    # The third part of the gradient at every step is another loss.
    assert (
        value(tmp_path, "loss_gradient", edited(healthy(), ("loss.backward()", "(loss / 3).backward()")))
        > 0.6
    )


def test_batches_of_one_do_not_hide_a_shuffle(tmp_path: Path) -> None:
    shuffled = edited(load_recipe("label_permute").broken_source(), ("BATCH_SIZE = 64", "BATCH_SIZE = 1"))
    assert value(tmp_path, "batch_pairing", shuffled) > 0.75


def test_one_rate_that_is_no_number_is_not_hidden_by_the_others(tmp_path: Path) -> None:
    schedule = "torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: float('nan') if step == 9 else 1.0)"
    source = edited(healthy(), (NO_SCHEDULE, f"    return {schedule}\n"))
    assert math.isnan(value(tmp_path, "learning_rate", source))


def test_the_second_uncleared_gradient_is_as_far_off_as_it_is_long(tmp_path: Path) -> None:
    broken = load_recipe("missing_zero_grad").broken_source()
    assert value(tmp_path, "stale_gradient", broken) > 0.5
    assert value(tmp_path, "stale_gradient", healthy()) == 0.0


def test_a_nan_does_not_pass(tmp_path: Path) -> None:
    source = edited(
        healthy(), ("F.cross_entropy(outputs, labels)", "F.cross_entropy(outputs, labels) * float('nan')")
    )
    probe = load_recipe("loss_sum").probes[0]
    result = run_probe(probe, load(tmp_path, source), data("digits"), 42)
    assert math.isnan(result.value)
    assert not result.passed


def test_a_network_without_modes_does_not_hide_that_evaluation_sets_none(tmp_path: Path) -> None:
    broken = load_recipe("forgotten_eval").broken_source()
    linear = edited(
        broken, ("        nn.Dropout(0.6),\n", ""), ("        nn.BatchNorm2d(channels_out),\n", "")
    )
    loaded, shapes = load(tmp_path, linear), data("shapes")
    (probe,) = (probe for probe in load_recipe("forgotten_eval").probes if probe.kind == "evaluation_repeats")
    assert not run_probe(probe, loaded, shapes, 42).passed
    mended = edited(
        linear, ("    outputs = model(inputs)\n", "    model.eval()\n    outputs = model(inputs)\n")
    )
    assert run_probe(probe, load(tmp_path, mended), shapes, 42).value == 0.0


@pytest.mark.parametrize("name", ["huge_lr", "forgotten_eval"])
def test_a_probe_measures_the_same_twice_and_leaves_no_trace(name: str, tmp_path: Path) -> None:
    recipe = load_recipe(name)
    experiment = load(tmp_path, recipe.broken_source())
    probe = recipe.probes[0]
    first, second = (run_probe(probe, experiment, data(recipe.dataset), 42) for _ in range(2))
    assert first == second


def test_the_bench_draws_the_batches_of_a_run(tmp_path: Path) -> None:
    bench = Bench(load(tmp_path, healthy()), data("digits"), 42)
    inputs, labels = next(bench.batches())
    rng = torch.Generator().manual_seed(42)
    expected = next(deterministic_minibatches(bench.inputs, bench.labels, 64, rng, drop_last=True))
    assert torch.equal(inputs, expected[0])
    assert torch.equal(labels, expected[1])
    assert bench.steps == 5 * (len(bench.inputs) // 64)


@pytest.mark.parametrize("given", ["logits", "log-probabilities", "probabilities"])
def test_mean_cross_entropy_takes_what_a_network_puts_out(given: str) -> None:
    logits = torch.tensor([[2.0, 1.0, 0.0], [0.5, 0.0, 3.0]])
    labels = torch.tensor([0, 1])
    outputs = {
        "logits": logits,
        "log-probabilities": logits.log_softmax(dim=1),
        "probabilities": logits.softmax(dim=1),
    }[given]
    rows = [(row.exp().sum().log() - row[label]).item() for row, label in zip(logits, labels, strict=True)]
    assert mean_cross_entropy(outputs, labels).item() == pytest.approx(sum(rows) / 2, rel=1e-5)
