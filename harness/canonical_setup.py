"""Make a run deterministic: set the environment of its process, its kernels and its seeds.

1. `run_environment` builds the environment variables. ATen, MKL, NumPy (with OpenBLAS) and the C library choose a code
   path for the processor of the machine, and each path rounds differently. For each library, an environment variable
   fixes the path. A library reads its variable only once: when it is loaded, at its first call, or when the process
   starts. So every run is a child process that is started with these variables.
2. `apply_numerics` switches torch to deterministic algorithms and portable kernels.
3. `seed_everything` seeds every generator.

In the child process, `canonical_setup` does 2 and 3. docs/determinism.md says which runs have equal bytes. This module
imports torch and NumPy inside functions, because the parent process needs neither of them.
"""

import os
import platform
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from harness.errors import UserError

if TYPE_CHECKING:  # the process that starts a run does not import torch
    import torch

Numerics = Literal["portable", "native"]

# With torch 2.13, NumPy 2.4 and glibc 2.36, these variables gave equal bytes on an AVX-512 processor and under
# `qemu-x86_64 -cpu Nehalem`, `Haswell` and `EPYC`. Each comment lists the operations whose results differ if the
# variable is not set.
PORTABLE_VARIABLES = {
    # matmul, convolution, LSTM, and MKL's vector exp, log, tanh and the like
    "MKL_CBWR": "COMPATIBLE",
    # softmax, gelu, layer and batch norm, attention, normal random numbers, float16
    "ATEN_CPU_CAPABILITY": "default",
    # matmul, convolution, layer norm and GRU, whose results depend on the number of threads
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # glibc has a second version of exp, log, sin, cos, tan and pow for doubles, with fused multiply-add. Up to 0.08 %
    # of the results differ between the versions. Python's `math` calls these functions, and so do softmax, gelu,
    # sigmoid and randn in float64, and NumPy's RandomState.normal. Since release 2.33, glibc reads the names without a
    # suffix, and before 2.33 the other names. It ignores unknown names.
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-FMA4,-FMA_Usable,-FMA4_Usable",
}
# For NumPy's own loops (exp, log, pow, argsort): all processor features above x86-64-v2, by their names since NumPy
# 2.4.
_NUMPY_FEATURES = "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"
# For NumPy's float32 matmul. OpenBLAS takes its number of threads from OMP_NUM_THREADS.
_OPENBLAS_CORE = "Nehalem"

COMMON_VARIABLES = {
    "PYTHONHASHSEED": "0",
    # Python must not import a file called random.py in the current folder instead of its own module.
    "PYTHONSAFEPATH": "1",
    "PYTHONUTF8": "1",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    # Without this variable, cuBLAS refuses to run under deterministic algorithms.
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
}

# Variables with these prefixes are removed (prefixes, because new releases add variables): thread counts and
# affinities, instruction sets, reduced precision (NVIDIA_TF32_OVERRIDE, TORCH_ALLOW_TF32_CUBLAS_OVERRIDE,
# ONEDNN_DEFAULT_FPMATH_MODE), allocators, compilers, debug output, TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD. PYTHONPATH is
# removed too, because another torch could be on that path.
_REMOVED_FAMILIES = (
    "OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "GOTO_", "BLIS_", "NPY_", "DNNL_", "ONEDNN_",
    "ATEN_", "TORCH", "PYTORCH_", "CUBLAS_", "CUBLASLT_", "CUDNN_", "CUDA_FORCE_", "NVIDIA_TF32_OVERRIDE",
    "DISABLE_ADDMM_CUDA_LT", "PYTHON", "LC_", "LANG", "GLIBC_TUNABLES",
)  # fmt: skip
# Variables that are kept: they only say where Python's files are and how output is buffered, and change no result.
_KEPT_OF_PYTHON = frozenset(
    f"PYTHON{name}" for name in ("DONTWRITEBYTECODE", "PYCACHEPREFIX", "NOUSERSITE", "USERBASE", "UNBUFFERED")
)


def run_environment(numerics: Numerics, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment variables for a child process that trains with portable or native numerics.

    base: the environment to start from, by default the environment of this process. From its variables, those that
    could change a result are left out. `COMMON_VARIABLES` and, for portable numerics, `portable_variables()` are added.
    """
    base = os.environ if base is None else base
    kept = {
        name: value for name, value in base.items() if not name.startswith(_REMOVED_FAMILIES) or name in _KEPT_OF_PYTHON
    }
    return kept | COMMON_VARIABLES | (portable_variables() if numerics == "portable" else {})


def portable_variables() -> dict[str, str]:
    """Return the variables with which all processors of this machine's architecture compute equal results."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return dict(PORTABLE_VARIABLES)
    for_numpy = {"OPENBLAS_CORETYPE": _OPENBLAS_CORE, "NPY_DISABLE_CPU_FEATURES": _NUMPY_FEATURES}
    return PORTABLE_VARIABLES | for_numpy


@dataclass(frozen=True)
class SeededState:
    """The state in which `canonical_setup` leaves a process.

    generator: a `torch.Generator` on the CPU with the seed, which nothing else draws from. dtype: the default dtype.
    """

    seed: int
    generator: "torch.Generator"
    dtype: "torch.dtype"


def canonical_setup(
    seed: int, verify_mode: bool = False, numerics: Numerics | None = None, device: str = "cpu"
) -> SeededState:
    """Set kernels, seeds and the default dtype of this process, so that every run starts in the same state.

    Return the seed, a new generator with this seed, and the default dtype.

    The default dtype is float64 in verify mode, else float32. If `numerics` is None, the function uses "portable" in a
    process with the variables of `run_environment("portable")`, else "native". A `DataLoader` with workers also needs
    `worker_init_fn=seed_worker`.

    Raises `UserError` as `seed_everything` does, and `RuntimeError` as `apply_numerics` does.
    """
    import torch

    if numerics is None:
        numerics = "portable" if in_portable_environment() else "native"
    apply_numerics(numerics, device)
    seed_everything(seed)
    torch.set_default_dtype(torch.float64 if verify_mode else torch.float32)
    return SeededState(seed, torch.Generator().manual_seed(seed), torch.get_default_dtype())


def apply_numerics(numerics: Numerics, device: str = "cpu") -> None:
    """Switch torch to deterministic algorithms and, for portable numerics, to kernels that run alike on every CPU.

    `device` is "cpu" or a CUDA device such as "cuda" or "cuda:0". TensorFloat32 is switched off. Raises `RuntimeError`
    if the process was not started with the variables of `run_environment`, which the libraries read before this
    function runs.
    """
    import torch

    needed = portable_variables() if numerics == "portable" else {}
    if device.startswith("cuda"):
        needed = needed | {"CUBLAS_WORKSPACE_CONFIG": COMMON_VARIABLES["CUBLAS_WORKSPACE_CONFIG"]}
    if missing := _missing_variables(needed):
        raise RuntimeError(
            f"{numerics} numerics on {device} needs the variables of run_environment(), but these variables differ:"
            f" {missing}"
        )
    # If the variables were set after torch had read them, they had no effect, so ask torch which code path it chose.
    if numerics == "portable" and platform.machine() == "x86_64":
        capability = torch.backends.cpu.get_cpu_capability()
        if capability != "DEFAULT":
            raise RuntimeError(f"{numerics} numerics needs the variables of run_environment() before torch is imported")
    # use_deterministic_algorithms(True) does the same, but first imports the compiler, which takes over a second.
    torch.set_deterministic_debug_mode("error")
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.allow_tf32 = False  # on by default for convolutions
    torch.set_float32_matmul_precision("highest")
    torch.set_flush_denormal(False)
    if numerics == "native":
        return
    torch.set_num_threads(1)
    torch.backends.mkldnn.enabled = False  # type: ignore[assignment]
    # Switch NNPACK off, because torch uses it for convolutions only on processors with AVX2.
    torch.backends.nnpack.set_flags(False)


def seed_everything(seed: int) -> None:
    """Seed Python, NumPy, torch and every CUDA device.

    Raises `UserError` for a seed outside 0 .. 2**32 - 1, the range that NumPy accepts.
    """
    import numpy as np
    import torch

    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise UserError(f"The seed {seed!r} is not a whole number from 0 to {2**32 - 1}: choose one in that range.")
    random.seed(seed)
    np.random.seed(seed)
    if torch.accelerator.current_accelerator() is None:
        # manual_seed does the same, but also formats a stack trace for CUDA, which takes 4 ms in a newly forked
        # process.
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


set_seed = seed_everything  # the name in transformers and in many scripts


def seed_worker(worker_id: int) -> None:
    """Seed Python and NumPy in a worker of a `DataLoader` with the worker's torch seed (for `worker_init_fn`)."""
    import numpy as np
    import torch

    seed = torch.initial_seed() % 2**32
    random.seed(seed)
    np.random.seed(seed)


def in_portable_environment() -> bool:
    """Return whether the environment of this process has the variables that `run_environment("portable")` sets."""
    return not _missing_variables(portable_variables())


def _missing_variables(variables: Mapping[str, str]) -> list[str]:
    return [name for name, value in variables.items() if os.environ.get(name) != value]


def usable_cores() -> int:
    """Return how many cores this process may use, which may be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
