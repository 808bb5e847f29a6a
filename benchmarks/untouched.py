"""Run a public program up to an update, with or without watching, and write what it is then: its weights, its time.

    python untouched.py RESULT plain|watched SCRIPT ARGUMENTS...

`bench_unharmed` starts this file in the folder of the program. The random numbers are seeded first, because many
programs set no seed. The program ends with its 24th update, or by itself. RESULT gets a JSON object: `updates`, the
`digest` of all weights that an optimizer updated (or of all global networks, if none did) and of the states of the
random generators, the processor `seconds` of a watched update and of a `later` one, and the largest `memory` of the
process in MB.
"""

import hashlib
import json
import os
import random
import resource
import runpy
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

import trainwreck
from trainwreck.finding import DEFAULT_STEPS

LAST = 2 * DEFAULT_STEPS


class Record:
    """The updates of this process. The children that make trials are other processes, and record nothing."""

    def __init__(self, result: Path) -> None:
        self._result, self._process = result, os.getpid()
        self._optimizers: dict[int, torch.optim.Optimizer] = {}
        self._times: list[float] = []
        self.globals: dict[str, Any] = {}  # of the program, at its end

    def after_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """Count an update, and end the program after the last one."""
        if os.getpid() != self._process:
            return
        self._optimizers[id(optimizer)] = optimizer
        self._times.append(time.process_time())
        if len(self._times) == LAST:
            self.write()
            os._exit(0)

    def write(self) -> None:
        """Write the result."""
        digest = hashlib.sha256()
        groups = [group for optimizer in self._optimizers.values() for group in optimizer.param_groups]
        if groups:
            digests = [_digest_of(parameter) for group in groups for parameter in group["params"]]
        else:  # the script updates its weights itself
            networks = [one for one in self.globals.values() if isinstance(one, torch.nn.Module)]
            digests = [_digest_of(one) for network in networks for one in network.parameters()]
        digest.update(b"".join(digests))
        numpy_state: Any = np.random.get_state(legacy=True)
        digest.update(
            torch.get_rng_state().numpy().tobytes() + numpy_state[1].tobytes() + repr(numpy_state[2]).encode()
        )
        digest.update(repr(random.getstate()).encode())
        # The first update of a process makes many one-time steps. The trials come with the last watched update.
        watched, later = self._times[: DEFAULT_STEPS - 1], self._times[DEFAULT_STEPS:]
        result = {
            "updates": len(self._times),
            "digest": digest.hexdigest(),
            "seconds": _mean_of_gaps(watched) if later else None,
            "later": _mean_of_gaps(later) if len(self._times) == LAST else None,
            "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        self._result.write_text(json.dumps(result), encoding="utf-8")


def _mean_of_gaps(times: list[float]) -> float:
    return (times[-1] - times[0]) / (len(times) - 1)


def _digest_of(tensor: torch.Tensor) -> bytes:
    flat = tensor.detach().cpu().contiguous().view(-1)
    return hashlib.sha256(flat.view(torch.uint8).numpy().tobytes()).digest()


def main() -> None:
    """Run the program that the command line names."""
    result, kind, *sys.argv = sys.argv[1:]
    record = Record(Path(result).absolute())
    register_optimizer_step_post_hook(record.after_step)
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    sys.path[0] = str(Path(sys.argv[0]).parent.absolute())
    watched = trainwreck.watch(quiet=True) if kind == "watched" else nullcontext()
    try:
        with watched:
            record.globals = runpy.run_path(sys.argv[0], run_name="__main__")
    finally:
        record.write()


if __name__ == "__main__":
    main()
