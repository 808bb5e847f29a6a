"""Inside a sandbox without student code: evaluate weights in the recipe's network on held-out data.

The input files are `job.json` with the name of the data set, `experiment.py` with the healthy experiment, `heldout.npz`
with inputs and labels that students never get, and `checkpoint.pt` with the weights. The output is
`out/evaluation.json` with loss and accuracy on the held-out and on the validation split. If the weights do not fit the
network, the output contains `problem`, a sentence that says why.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from harness.canonical_setup import canonical_setup
from harness.data.datasets import Split
from harness.data.folder import load_folder
from harness.data.loading import load_dataset
from harness.errors import UserError
from harness.recipes.form import is_script
from harness.run.evaluation import evaluate_in_eval_mode
from harness.run.experiment import Experiment, load_experiment, tensor_data
from harness.run.metrics_log import Record, to_strict
from harness.scripts.run import evaluate_checkpoint
from harness.scripts.script import CHECKPOINT, Script

INPUT = Path("../input")
OUT = Path("out")
Tensors = dict[str, Tensor]


def fitting_weights(model: nn.Module, weights: Tensors) -> Tensors:
    """Return the given weights, with the names of the model's parameters and buffers as keys.

    If a student writes the same network as a class, the tensors have other names, but the same order. Raises
    `ValueError` if the number of tensors or their shapes do not fit the model.
    """
    own = model.state_dict()
    if set(own) == set(weights):
        pairs = [(name, tensor, weights[name]) for name, tensor in own.items()]
    elif len(own) == len(weights):
        pairs = [(name, own[name], tensor) for name, tensor in zip(own, weights.values(), strict=True)]
    else:
        raise ValueError(f"it has {len(weights)} tensors, but the recipe's network has {len(own)}")
    for name, expected, given in pairs:
        if not isinstance(given, Tensor) or given.shape != expected.shape:
            shape = f"has the shape {tuple(given.shape)}" if isinstance(given, Tensor) else "is not a tensor"
            raise ValueError(f"{name} {shape}, but the recipe's network needs the shape {tuple(expected.shape)}")
    return {name: given for name, _, given in pairs}


def read_weights(path: Path) -> Tensors:
    """Return the network's tensors in a checkpoint. Raises `ValueError` if it is not a valid checkpoint."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        weights = state["model"]
    except Exception as error:
        raise ValueError(f"it cannot be read ({type(error).__name__})") from None
    if not isinstance(weights, dict):
        raise ValueError("it contains no weights")
    return weights


def figures(experiment: Experiment, model: nn.Module, inputs: Tensor, labels: Tensor) -> Record:
    """Return loss and accuracy (None for a regression) on one split."""
    found = evaluate_in_eval_mode(experiment, model, inputs, labels)
    return {"loss": found["val_loss_eval_mode"], "accuracy": found["val_accuracy_eval_mode"]}


def evaluate(experiment: Experiment, path: Path, splits: dict[str, tuple[Tensor, Tensor]]) -> dict[str, Any]:
    """Return {split: loss and accuracy}, or the problem with the weights."""
    model = experiment.build_model()
    try:
        model.load_state_dict(fitting_weights(model, read_weights(path)))
    except (ValueError, RuntimeError) as error:
        return {"problem": str(error)}
    found: dict[str, Any] = {}
    for name, (inputs, labels) in splits.items():
        found[name] = figures(experiment, model, inputs, labels)
    return found


def evaluate_script(source: str, path: Path, name: str, heldout: bytes) -> dict[str, Any]:
    """Return the same as `evaluate` for a script, which evaluates its own checkpoint with `--evaluate`."""
    known = load_folder(name, INPUT / "cache")
    unseen = known.with_validation(heldout)
    found: dict[str, Any] = {}
    for split, data in (("heldout", unseen), ("validation", known)):
        out = Path(split)
        out.mkdir()
        (out / CHECKPOINT).write_bytes(path.read_bytes())
        try:
            logged = evaluate_checkpoint(Script(Path("experiment.py"), source), data.write(out / "data"), out)
        except UserError as error:
            return {"problem": str(error).splitlines()[0]}
        found[split] = {"loss": logged.get("val_loss"), "accuracy": logged.get("val_accuracy")}
    return found


def main() -> int:
    """Evaluate the weights, and write the result."""
    job = json.loads((INPUT / "job.json").read_text(encoding="utf-8"))
    canonical_setup(0, numerics="portable")
    source = (INPUT / "experiment.py").read_text(encoding="utf-8")
    if is_script(source):
        found = evaluate_script(source, INPUT / "checkpoint.pt", job["dataset"], (INPUT / "heldout.npz").read_bytes())
        return write(found)
    known = load_dataset(job["dataset"], cache=INPUT / "cache")
    with np.load(INPUT / "heldout.npz", allow_pickle=False) as arrays:
        heldout = Split(arrays["inputs"], arrays["labels"])
    experiment = load_experiment(Path("experiment.py"), source)
    _, validation = experiment.load_data(tensor_data(known))
    _, unseen = experiment.load_data(tensor_data(replace(known, validation=heldout)))
    splits = {"heldout": unseen, "validation": validation}
    return write(evaluate(experiment, INPUT / "checkpoint.pt", splits))


def write(found: dict[str, Any]) -> int:
    """Write the result, and return the exit status."""
    OUT.mkdir(exist_ok=True)
    (OUT / "evaluation.json").write_text(json.dumps(to_strict(found), allow_nan=False), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
