"""Write and read checkpoints, which contain the whole state of a run. Equal states give equal bytes."""

import io
import random
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from harness.errors import UserError
from harness.files import write_whole


def canonical(value: Any) -> Any:
    """Return a copy of the value that consists only of dicts, lists, numbers, strings and new CPU tensors.

    pickle writes an object that appears twice as a reference, so equal values give equal bytes only if the same objects
    repeat. In the result, equal strings are always the same object, and no container or tensor appears twice.
    """
    if isinstance(value, Tensor):
        return value.detach().to("cpu", copy=True).contiguous()
    if isinstance(value, str):
        return sys.intern(str(value))
    if isinstance(value, Mapping):
        return {canonical(key): canonical(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [canonical(item) for item in value]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    raise UserError(
        f"The state of the model, optimizer or scheduler contains a {type(value).__name__}, which a checkpoint cannot"
        " store: use only tensors, numbers, strings, lists and dicts in their state."
    )


def rng_states() -> dict[str, Any]:
    """Return the states of the random generators of Python, NumPy and torch as tensors and numbers."""
    version, words, gauss = random.getstate()
    _, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    states: dict[str, Any] = {
        "python": {"version": version, "words": torch.tensor(words, dtype=torch.int64), "gauss": gauss},
        "numpy": {
            "keys": torch.from_numpy(np.asarray(keys, dtype=np.int64)),
            "position": int(position),
            "has_gauss": int(has_gauss),
            "cached_gaussian": float(cached),
        },
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def restore_rng_states(states: Mapping[str, Any]) -> None:
    """Set the random generators to the states that `rng_states` returned."""
    python, numpy = states["python"], states["numpy"]
    random.setstate((python["version"], tuple(python["words"].tolist()), python["gauss"]))
    keys = numpy["keys"].numpy().astype(np.uint32)
    np.random.set_state(("MT19937", keys, numpy["position"], numpy["has_gauss"], numpy["cached_gaussian"]))
    torch.set_rng_state(states["torch"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])


def checkpoint_bytes(state: Mapping[str, Any]) -> bytes:
    """Return the bytes of a checkpoint file. Equal states give equal bytes on any machine.

    `torch.save` stores the file name in the archive. This function saves to a buffer, so the stored name is always
    "archive".
    """
    buffer = io.BytesIO()
    torch.save(canonical(state), buffer)
    return buffer.getvalue()


def save_checkpoint(path: Path, state: Mapping[str, Any]) -> bytes:
    """Write a checkpoint, so that an interruption leaves the old file or the whole new one. Return its bytes.

    Raises `UserError` for a state that a checkpoint cannot store. `load_checkpoint` reads the file only if
    `state["format_version"]` is 1.
    """
    data = checkpoint_bytes(state)
    write_whole({path: data}, durable=False)
    return data


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Load a checkpoint without running any code in it. Raises `UserError` if it is missing or damaged."""
    if not path.is_file():
        raise UserError(f"There is no checkpoint at {path}: start the run without --resume.")
    try:
        data = path.read_bytes()
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            altered = archive.testzip()  # torch's reader does not verify checksums
        if altered is not None:
            raise ValueError(f"the checksum of {altered} is wrong")
        state = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{path} is damaged ({reason[:120]}): start the run again without --resume.") from None
    if not isinstance(state, dict) or state.get("format_version") != 1:
        raise UserError(f"{path} is not a checkpoint of trainwreck: start the run again without --resume.")
    return state
