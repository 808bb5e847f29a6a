"""Inside the sandbox, with the student's code: compute the outputs of the student's own network for unlabelled images.

Input: `job.json` names the data set; `experiment.py` is the student's; `heldout.npz` holds held-out images without
labels; `checkpoint.pt` holds the replayed weights. Output: `out/outputs.npz`, an array for each split, which another
sandbox judges. Exit 2 if the experiment fails.
"""

import json
import sys
from pathlib import Path

INPUT = Path("../input").resolve()
OUT = Path("out").resolve()


def main() -> int:
    """Write the outputs for every split."""
    import numpy as np
    import torch

    from harness.canonical_setup import canonical_setup
    from harness.data.datasets import Dataset, Split
    from harness.data.loading import load_dataset
    from harness.errors import UserError
    from harness.run.experiment import load_experiment, tensor_data

    job = json.loads((INPUT / "job.json").read_text(encoding="utf-8"))
    canonical_setup(0, numerics="portable")
    known = load_dataset(job["dataset"], cache=INPUT / "cache")
    images = np.load(INPUT / "heldout.npz", allow_pickle=False)["images"]
    unlabelled = Split(images, np.zeros(len(images), dtype=np.int64))
    state = torch.load(INPUT / "checkpoint.pt", map_location="cpu", weights_only=True)
    try:
        experiment = load_experiment(
            Path("experiment.py"), (INPUT / "experiment.py").read_text(encoding="utf-8")
        )
        model = experiment.build_model()
        model.load_state_dict(state["model"])
        (training, _), (validation, _) = experiment.load_data(tensor_data(known))
        _, (heldout, _) = experiment.load_data(tensor_data(Dataset.of(known.name, known.train, unlabelled)))
        model.eval()
        splits = {"heldout": heldout, "validation": validation, "training": training}
        with torch.no_grad():
            found = {name: model(inputs).float().numpy() for name, inputs in splits.items()}
    except (UserError, RuntimeError, AttributeError, TypeError) as error:
        print(error, file=sys.stderr)
        return 2
    OUT.mkdir(exist_ok=True)
    np.savez(OUT / "outputs.npz", allow_pickle=False, **found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
