"""Seeds, dtype and deterministic kernels: the state of torch in which every run starts."""

import os
import platform
import random
from dataclasses import dataclass

import numpy as np
import torch

from harness.errors import UserError
from harness.run.environment import COMMON_VARIABLES, Numerics, portable_variables


@dataclass(frozen=True)
class Settings:
    """What `canonical_setup` put in place, for the provenance of a run."""

    seed: int
    dtype: str
    numerics: Numerics
    device: str
    threads: int


def apply_numerics(numerics: Numerics, device: str = "cpu") -> None:
    """Switch torch to deterministic algorithms and, for `portable`, to kernels that every CPU shares.

    `device` is "cpu" or a CUDA device such as "cuda" or "cuda:0". Nothing runs in TensorFloat32 on either.
    Raises `RuntimeError` if the process was not started with `harness.run.environment.run_environment`: portable
    numerics need its variables, CUDA needs CUBLAS_WORKSPACE_CONFIG, and both are read before this is called.
    """
    needed = portable_variables() if numerics == "portable" else {}
    if device.startswith("cuda"):
        needed = needed | {"CUBLAS_WORKSPACE_CONFIG": COMMON_VARIABLES["CUBLAS_WORKSPACE_CONFIG"]}
    _require(needed, f"{numerics} numerics on {device}")
    # use_deterministic_algorithms(True) does the same, but imports the compiler first: over a second.
    torch.set_deterministic_debug_mode("error")
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.allow_tf32 = False  # convolutions use it unless told
    torch.set_float32_matmul_precision("highest")
    torch.set_flush_denormal(False)
    if numerics == "native":
        return
    torch.set_num_threads(1)
    torch.backends.mkldnn.enabled = False  # type: ignore[assignment]
    # NNPACK convolves only where there is AVX2, so its being there at all divides processors in two.
    torch.backends.nnpack.set_flags(False)


def canonical_setup(
    seed: int, verify_mode: bool = False, numerics: Numerics | None = None, device: str = "cpu"
) -> Settings:
    """Put the process in the state in which every run starts, and return what was set.

    Seeds Python, NumPy, torch and every CUDA card; sets the default dtype (float64 in verify mode, else
    float32) and `apply_numerics`. By default the numerics are those that this process was started for:
    portable if it has the environment of `run_environment("portable")`, else native. `DataLoader` workers are
    seeded by giving the loader `worker_init_fn=seed_worker`.

    Raises `UserError` for a seed outside 0 .. 2**32 - 1 (NumPy's range), `RuntimeError` as `apply_numerics`.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise UserError(f"The seed {seed!r} is not a whole number from 0 to {2**32 - 1}: choose one that is.")
    if numerics is None:
        numerics = "portable" if in_portable_environment() else "native"
    apply_numerics(numerics, device)
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)  # CUDA's generators too
    dtype = torch.float64 if verify_mode else torch.float32
    torch.set_default_dtype(dtype)
    return Settings(seed, str(dtype).removeprefix("torch."), numerics, device, torch.get_num_threads())


def in_portable_environment() -> bool:
    """Say whether this process was started with the environment of `run_environment("portable")`."""
    return not _missing(portable_variables())


def seed_worker(worker_id: int) -> None:
    """Seed Python and NumPy in a `DataLoader` worker from the seed that torch gave it (`worker_init_fn`)."""
    seed = torch.initial_seed() % 2**32
    random.seed(seed)
    np.random.seed(seed)


def _missing(variables: dict[str, str]) -> dict[str, str | None]:
    return {name: os.environ.get(name) for name, value in variables.items() if os.environ.get(name) != value}


def _require(variables: dict[str, str], what: str) -> None:
    wrong = _missing(variables)
    if wrong:
        raise RuntimeError(f"{what} needs the environment of run_environment(), but found {wrong}")
    # The variables may have been set too late, after torch read them. What torch made of them tells.
    too_late = "ATEN_CPU_CAPABILITY" in variables and platform.machine() == "x86_64"
    if too_late and torch.backends.cpu.get_cpu_capability() != "DEFAULT":
        raise RuntimeError(f"{what} needs the environment of run_environment() before torch is imported")
