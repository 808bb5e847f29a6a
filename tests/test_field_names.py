"""Each name of the field in docs/harness.md exists, and does what its name says."""

import importlib
import io
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from helpers.mini_experiments import MINI, edited, mini_run
from torch import nn

from harness.canonical_setup import canonical_setup, seed_everything, set_seed
from harness.data import loading
from harness.run.checkpoint import load_checkpoint, save_checkpoint
from harness.run.diagnostics import assert_finite, compute_global_grad_norm, stable_cross_entropy
from harness.run.metrics_log import log_metrics
from harness.run.setup import get_dataloader

pytestmark = pytest.mark.usefixtures("torch_as_found")
TABLE = (Path(__file__).parents[1] / "docs/harness.md").read_text().partition("## Names in the field")[2]
IMPORTS = re.findall(r"`from ([\w.]+) import ([\w, ]+)`", TABLE.partition("\n## ")[0])


def test_the_table_names_what_exists() -> None:
    names = {name for _, group in IMPORTS for name in group.split(", ")}
    assert names >= {
        "canonical_setup", "seed_everything", "get_dataloader", "save_checkpoint", "log_metrics",
        "stable_cross_entropy", "assert_finite", "compute_global_grad_norm", "activation_quantiles",
    }  # fmt: skip
    for module, group in IMPORTS:
        for name in group.split(", "):
            assert callable(getattr(importlib.import_module(module), name)), name


def test_canonical_setup_returns_seed_generator_and_dtype() -> None:
    found = canonical_setup(7, verify_mode=True)
    assert (found.seed, found.dtype, found.generator.initial_seed()) == (7, torch.float64, 7)
    assert canonical_setup(7).dtype == torch.float32
    drawn = torch.rand(3)
    seed_everything(7)
    assert torch.equal(torch.rand(3), drawn) and set_seed is seed_everything


@pytest.mark.parametrize(("drop_last", "sizes"), [(True, [4, 4]), (False, [4, 4, 2])])
def test_a_loader_shuffles_anew_in_each_epoch_and_may_keep_the_last_batch(drop_last: bool, sizes: list[int]) -> None:
    rows = torch.arange(10)
    loader = get_dataloader(rows, rows, 4, torch.Generator().manual_seed(0), drop_last=drop_last)
    first, second = ([x.tolist() for x, _ in loader] for _ in range(2))
    assert list(map(len, first)) == sizes and len(loader) == len(sizes) and first != second


def test_a_saved_checkpoint_is_loaded_and_metrics_are_logged_at_once(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "c.pt", {"format_version": 1, "weights": torch.ones(2)})
    assert load_checkpoint(tmp_path / "c.pt")["weights"].tolist() == [1.0, 1.0]
    file = io.StringIO()
    log_metrics(file, {"step": 3, "loss": math.nan})
    assert file.getvalue() == '{"step": 3, "loss": "NaN"}\n'


def test_the_cross_entropy_is_finite_for_huge_logits_and_ignores_the_label_of_padding() -> None:
    logits, labels = torch.tensor([[1e4, -1e4], [0.0, 0.0]]), torch.tensor([1, 0])
    assert stable_cross_entropy(logits, labels).item() == pytest.approx((2e4 + math.log(2)) / 2)
    texts = torch.randn(2, 3, 5)
    targets = torch.tensor([[0, 1, -100], [4, -100, -100]])
    expected = F.cross_entropy(texts.flatten(0, 1), targets.flatten())
    assert stable_cross_entropy(texts, targets).item() == pytest.approx(expected.item())


def test_finiteness_and_the_global_norm_are_as_their_names_say() -> None:
    assert_finite(torch.ones(3), "loss")
    with pytest.raises(FloatingPointError, match=r"logits: 1 of 4 entries are not finite, the first at \(1, 0\): nan"):
        assert_finite(torch.tensor([[0.0, 1.0], [math.nan, 2.0]]), "logits")
    model = nn.Linear(3, 2)
    model(torch.ones(1, 3)).sum().backward()
    expected = nn.utils.clip_grad_norm_(model.parameters(), math.inf).item()
    assert compute_global_grad_norm([*model.parameters(), torch.zeros(1)]) == pytest.approx(expected)


def test_a_hundred_examples_are_overfitted_without_dropout_and_augmentation(tmp_path: Path) -> None:
    run = mini_run(tmp_path, overfit_examples=16, epochs=40)
    assert len(run.batches) == 80 and run.batches[-1]["loss"] < 0.1 * run.batches[0]["loss"]
    whole = mini_run(tmp_path / "whole", edited(MINI, ("AUGMENT = False", "AUGMENT = True")), overfit_examples=16)
    assert whole.experiment.module.AUGMENT is False


def test_the_last_batch_can_be_kept(tmp_path: Path) -> None:
    dropped = mini_run(tmp_path / "dropped", batch_size=16, epochs=1)
    kept = mini_run(tmp_path / "kept", batch_size=16, epochs=1, keep_last=True)
    assert (len(dropped.batches), len(kept.batches)) == (2, 3)


def test_a_plateau_schedule_steps_once_an_epoch_with_the_validation_loss(tmp_path: Path) -> None:
    plateau = edited(
        MINI,
        (
            "    return None\n",
            "    return torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.5)\n",
        ),
        ('{"val_loss": compute_loss(outputs, labels).item()', '{"val_loss": 1.0'),
    )
    run = mini_run(tmp_path, plateau)
    rates = [record["lr"] for record in run.batches]
    assert rates == [0.05] * 10 + [0.025] * 5  # the first epoch sets the best value
    assert run.state()["scheduler"]["num_bad_epochs"] == 0


@pytest.mark.parametrize("error", ["RuntimeError('operator torchvision::nms does not exist')", "ImportError('no')"])
def test_without_a_working_torchvision_our_own_reader_is_used(
    error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision/__init__.py").write_text(f"raise {error}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "torchvision", raising=False)
    assert loading._read_with_torchvision("mnist", tmp_path) is None


def test_torchvision_and_our_own_reader_give_the_same_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        importlib.import_module("torchvision.datasets")
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"torchvision does not load here: {error}")
    root = loading.default_cache()
    try:
        expected = loading.read_downloaded("cifar10", root)
    except loading.IncompleteFilesError:
        pytest.skip("CIFAR-10 is not on this machine")
    monkeypatch.setattr(loading, "_read_with_torchvision", lambda *_: None)
    for own, split in zip(loading.read_downloaded("cifar10", root), expected, strict=True):
        assert np.array_equal(own[0], split[0]) and np.array_equal(own[1], split[1])
