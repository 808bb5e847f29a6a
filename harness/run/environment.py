"""The environment of every process that trains: it must be set before torch is imported.

Four libraries under a training run pick their code by the processor they find, and round differently on each
path: ATen, MKL, NumPy (with its OpenBLAS) and the C library's mathematics. Each has a variable that pins the
path, and reads it once: ATen and NumPy when they are loaded, MKL at its first call, the C library when the
process starts. Hence a child process for every run, and one function that builds its environment.
"""

import os
import platform
from collections.abc import Mapping
from typing import Literal

Numerics = Literal["portable", "native"]

# Measured with torch 2.13 and NumPy 2.4 on glibc 2.36: the same bytes on an AVX-512 processor and under
# `qemu-x86_64 -cpu Nehalem`, `Haswell` and `EPYC`. What changes on the first when one of these is left out:
PORTABLE_VARIABLES = {
    # 36 entries of the golden table: matmul, convolution, LSTM, and MKL's vector exp, log, tanh and the like
    "MKL_CBWR": "COMPATIBLE",
    # 43 entries: softmax, gelu, layer and batch norm, attention, normal random numbers, float16
    "ATEN_CPU_CAPABILITY": "default",
    # 8 entries, already between 1 and 2 threads: matmul, convolution, layer norm, GRU
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # exp, log, sin, cos, tan and pow of a double have a second form with fused multiply-add, and up to 0.08 %
    # of their results differ. Python's `math` calls them (over 600 steps, a cosine schedule has more than one
    # chance in three to differ somewhere), and so do softmax, gelu, sigmoid and randn in float64, and NumPy's
    # RandomState.normal. glibc reads the plain names since 2.33, the others before; it ignores unknown ones.
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-FMA4,-FMA_Usable,-FMA4_Usable",
}

# NumPy's own loops, by its names for what lies above x86-64-v2: exp, log, pow, argsort. It warns of unknown
# names, and the names changed in 2.4.
_NUMPY_FEATURES = "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"
_NUMPY_FEATURES_BEFORE_2_4 = "AVX2 FMA3 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL"
# NumPy's float32 matmul. OpenBLAS takes its number of threads from OMP_NUM_THREADS.
_OPENBLAS_CORE = "Nehalem"

COMMON_VARIABLES = {
    "PYTHONHASHSEED": "0",
    # A file called random.py in the folder where the command was typed must not replace Python's own.
    "PYTHONSAFEPATH": "1",
    "PYTHONUTF8": "1",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    # Without it cuBLAS refuses to run under deterministic algorithms.
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
}

# Whole families go, because each release adds members: thread counts and affinities, instruction sets,
# reduced precision (NVIDIA_TF32_OVERRIDE, TORCH_ALLOW_TF32_CUBLAS_OVERRIDE, ONEDNN_DEFAULT_FPMATH_MODE),
# allocators, compilers, debug output, and a TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD that nobody should inherit.
_DROPPED_FAMILIES = (
    "OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "GOTO_", "BLIS_", "NPY_", "DNNL_", "ONEDNN_",
    "ATEN_", "TORCH", "PYTORCH_", "CUBLAS_", "CUBLASLT_", "CUDNN_", "CUDA_FORCE_", "NVIDIA_TF32_OVERRIDE",
    "DISABLE_ADDMM_CUDA_LT", "PYTHON", "LC_", "LANG", "GLIBC_TUNABLES",
)  # fmt: skip

# These say where Python's files are, or how to show a run, and change nothing that it computes.
_KEPT_OF_PYTHON = frozenset(
    f"PYTHON{name}" for name in ("DONTWRITEBYTECODE", "PYCACHEPREFIX", "NOUSERSITE", "USERBASE", "UNBUFFERED")
)


def run_environment(numerics: Numerics, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for a child process that trains with these numerics.

    `base` is the environment to start from, by default this process's own; whatever in it would change a
    result or break a run is left out (PYTHONPATH too: what it adds could be another torch). Set on top are
    `COMMON_VARIABLES` and, for portable numerics, `portable_variables()`.
    """
    base = os.environ if base is None else base
    environment = {name: value for name, value in base.items() if not _changes_a_run(name)}
    environment |= COMMON_VARIABLES
    if numerics == "portable":
        environment |= portable_variables()
    return environment


def portable_variables() -> dict[str, str]:
    """Return the variables that make this machine compute as every other of its architecture does."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return dict(PORTABLE_VARIABLES)
    for_numpy = {"OPENBLAS_CORETYPE": _OPENBLAS_CORE, "NPY_DISABLE_CPU_FEATURES": _numpy_features()}
    return PORTABLE_VARIABLES | for_numpy


def _changes_a_run(name: str) -> bool:
    return name.startswith(_DROPPED_FAMILIES) and name not in _KEPT_OF_PYTHON


def _numpy_features() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        major, minor = (int(part) for part in version("numpy").split(".")[:2])
    except (PackageNotFoundError, ValueError):
        return _NUMPY_FEATURES
    return _NUMPY_FEATURES if (major, minor) >= (2, 4) else _NUMPY_FEATURES_BEFORE_2_4


def usable_cores() -> int:
    """Return how many cores this process may use, which may be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
