"""Inside a sandbox without any student code: what a derivation must give, by automatic differentiation in float64.

`../input/job.json` names the problem and the cases, `../input/cases.npz` holds the inputs as `<case>/<name>`. The
outputs of every case go to `out/expected.npz`, as `<case>/<output>`.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

INPUT = Path("../input")
OUT = Path("out")


def mlp(given: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the outputs of the problem `mlp`."""
    logits = F.relu(given["x"] @ given["W1"] + given["b1"]) @ given["W2"] + given["b2"]
    loss = F.cross_entropy(logits, given["y"])
    return {"logits": logits, "loss": loss, **gradients(loss, given, ("W1", "b1", "W2", "b2", "x"))}


def layernorm(given: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the outputs of the problem `layernorm`."""
    x = given["x"]
    out = F.layer_norm(x, x.shape[1:], given["gamma"], given["beta"], given["eps"].item())
    return {"out": out, **gradients((out * given["dout"]).sum(), given, ("x", "gamma", "beta"))}


def gradients(objective: Tensor, given: dict[str, Tensor], names: tuple[str, ...]) -> dict[str, Tensor]:
    """Return the derivative of the objective by each of these inputs, as `d<name>`."""
    found = torch.autograd.grad(objective, [given[name] for name in names])
    return {f"d{name}": gradient for name, gradient in zip(names, found, strict=True)}


EXPECTED = {"mlp": mlp, "layernorm": layernorm}


def main() -> int:
    """Differentiate every case of the job."""
    job = json.loads((INPUT / "job.json").read_text(encoding="utf-8"))
    found: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]]] = {}
    with np.load(INPUT / "cases.npz", allow_pickle=False) as archive:
        arrays = dict(archive)
    for case in job["cases"]:
        given = {
            name.removeprefix(f"{case}/"): torch.from_numpy(array)
            for name, array in arrays.items()
            if name.startswith(f"{case}/")
        }
        for tensor in given.values():
            tensor.requires_grad_(tensor.is_floating_point())
        outputs = EXPECTED[job["problem"]](given)
        found |= {f"{case}/{name}": tensor.detach().numpy() for name, tensor in outputs.items()}
    OUT.mkdir(exist_ok=True)
    np.savez(OUT / "expected.npz", allow_pickle=False, **found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
