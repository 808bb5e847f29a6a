"""The checks of scripts that the harness has itself: `resume` and `checkpoint`."""

import pytest

from harness.checks import script_checks
from harness.checks.core.child import start
from harness.checks.core.finding import Finding
from harness.run.settings import RunSettings

NAMES = ("resume", "checkpoint")
# A script that keeps an average of its weights, and the best loss so far.
SCRIPT = """
import argparse
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import track


def load(path):
    with np.load(path) as data:
        x, y = torch.from_numpy(data["inputs"]).float() / 255, torch.from_numpy(data["labels"]).long()
    return TensorDataset(x[:320].flatten(1), y[:320])


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    return {"val_loss": sum(F.cross_entropy(model(x), y).item() for x, y in loader) / len(loader)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--evaluate", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    order = torch.Generator().manual_seed(args.seed)
    loader = DataLoader(load(args.data / "train.npz"), 64, shuffle=True, generator=order)
    val_loader = DataLoader(load(args.data / "val.npz"), 64)
    model = nn.Sequential(nn.Linear(784, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 10))
    average = torch.optim.swa_utils.AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    first, best = 0, float("inf")
    if args.evaluate:
        model.load_state_dict(torch.load(args.out / "ckpt.pt")["model"])
        track.log(evaluate(model, val_loader))
        return
    if args.resume:
        ckpt = torch.load(args.out / "ckpt.pt")
        model.load_state_dict(ckpt["trained"])
        average.load_state_dict(ckpt["average"])
        optimizer.load_state_dict(ckpt["optimizer"])
        order.set_state(ckpt["order"])
        torch.set_rng_state(ckpt["rng"])
        first, best = ckpt["epoch"], ckpt["best"]
    for epoch in range(first, 3):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            average.update_parameters(model)
        figures = evaluate(average, val_loader)
        track.log(figures, step=epoch)
        best = min(best, figures["val_loss"])
        state = {
            "model": average.module.state_dict(),
            "trained": model.state_dict(),
            "average": average.state_dict(),
            "optimizer": optimizer.state_dict(),
            "order": order.get_state(),
            "rng": torch.get_rng_state(),
            "epoch": epoch + 1,
            "best": best,
        }
        torch.save(state, args.out / "ckpt.pt")


if __name__ == "__main__":
    main()
"""
EDITS = {
    "sound": ("", "", "continues", "agrees"),
    "cannot resume": ('"--resume"', '"--again", dest="resume"', "not-resumed", "agrees"),
    "no optimizer": ('        optimizer.load_state_dict(ckpt["optimizer"])\n', "", "departs", "agrees"),
    "other dropout": ('        torch.set_rng_state(ckpt["rng"])\n', "", "other-draws", "agrees"),
    "other weights": ('load_state_dict(ckpt["trained"])', 'load_state_dict(ckpt["model"])', "other-draws", "agrees"),
    "new average": ('        average.load_state_dict(ckpt["average"])\n', "", "other-figures", "agrees"),
    "another epoch": ('"epoch": epoch + 1', '"epoch": epoch', "other-state", "agrees"),
    "half an epoch": (
        "        for x, y in loader:\n            optimizer",
        "        for i, (x, y) in enumerate(loader):\n"
        "            if args.resume and i == 2:\n                break\n            optimizer",
        "other-updates", "agrees",
    ),
    "no such key": ('ckpt["best"]', 'ckpt["least"]', "fails", "agrees"),
    "the trained weights are kept": (
        '"model": average.module.state_dict()', '"model": model.state_dict()', "continues", "other-figures",
    ),
    "a figure that is not logged": ("track.log(evaluate(model, val_loader))", "track.log({})", "continues", "fails"),
    "no figure in the log": ("        track.log(figures, step=epoch)\n", "", "continues", "not-evaluated"),
}  # fmt: skip


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, Finding]]:
    """The findings for each edit, all from one process."""
    sources = []
    for find, replace, *_ in EDITS.values():
        assert not find or SCRIPT.count(find) == 1
        sources.append(SCRIPT.replace(find, replace) if find else SCRIPT)
    made = start([(source, RunSettings(seed=3, dataset="digits")) for source in sources], NAMES)
    return dict(zip(EDITS, made, strict=True))


@pytest.mark.parametrize("name", EDITS)
def test_each_outcome_has_a_cause(name: str, found: dict[str, dict[str, Finding]]) -> None:
    _, _, *expected = EDITS[name]
    assert [found[name][check].outcome for check in NAMES] == expected


def test_a_difference_is_named(found: dict[str, dict[str, Finding]]) -> None:
    assert "the checkpoint differs in ['epoch']" in found["another epoch"]["resume"].summary
    assert "KeyError: 'least'" in found["no such key"]["resume"].summary


def test_every_outcome_is_tested() -> None:
    tested = [{edit[2 + place] for edit in EDITS.values()} for place in range(len(NAMES))]
    assert [{one.id for one in script_checks()[name].outcomes} for name in NAMES] == tested
