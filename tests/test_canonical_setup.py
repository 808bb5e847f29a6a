import os
import subprocess
import sys
from typing import Any

import pytest
from helpers.commands import run_child

from harness.canonical_setup import Numerics, run_environment, set_seed
from harness.errors import UserError

HOSTILE = {
    "PYTHONHASHSEED": "123",
    "PYTHONOPTIMIZE": "2",
    "PYTHONHOME": "/nowhere",
    "PYTHONPATH": "/nowhere",
    "PYTHONMALLOC": "debug",
    "OMP_NUM_THREADS": "7",
    "GOMP_CPU_AFFINITY": "0",
    "MKL_CBWR": "AVX2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX512",
    "KMP_AFFINITY": "compact",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_ENABLE_CPU_FEATURES": "X86_V3",
    "ATEN_CPU_CAPABILITY": "avx2",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1",
    "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1",
    "ONEDNN_DEFAULT_FPMATH_MODE": "BF16",
    "NVIDIA_TF32_OVERRIDE": "1",
    "CUBLAS_WORKSPACE_CONFIG": ":0:0",
    "GLIBC_TUNABLES": "glibc.malloc.check=3",
    "LC_ALL": "xx_YY",
    "LANG": "tr_TR",
    "TZ": "Asia/Kathmandu",
}
# These settings stay, and must have no effect: memory filled with a pattern, which uninitialized reads would show.


def test_hostile_settings_are_replaced_or_dropped_and_others_stay() -> None:
    harmless = {"PATH": "/bin", "LD_LIBRARY_PATH": "/lib", "CUDA_VISIBLE_DEVICES": "1"}
    modes: tuple[Numerics, ...] = ("portable", "native")
    for numerics in modes:
        environment = run_environment(numerics, HOSTILE | harmless)
        assert not environment.items() & HOSTILE.items()
        assert environment.items() >= harmless.items()


# One process checks everything, because each process imports torch.
PORTABLE = """
import random
import numpy as np, torch
from torch.utils.data import DataLoader
from harness.canonical_setup import canonical_setup, in_portable_environment, seed_worker

class Draws(torch.utils.data.Dataset):
    def __len__(self): return 4
    def __getitem__(self, index): return torch.tensor([random.random(), np.random.random()])

def draws(seed):
    canonical_setup(seed)
    return [random.random(), float(np.random.normal()), torch.rand(1).item(), torch.randn(20).sum().item()]

def epoch():
    canonical_setup(42)
    loader = DataLoader(Draws(), batch_size=2, num_workers=2, worker_init_fn=seed_worker)
    return torch.cat(list(loader)).flatten().tolist()

assert in_portable_environment()
canonical_setup(7, True)
assert torch.ones(1).dtype == torch.float64
torch.set_num_threads(2)
torch.set_flush_denormal(True)
torch.set_float32_matmul_precision("medium")
torch.backends.cudnn.benchmark = torch.backends.mkldnn.enabled = True
canonical_setup(1)
assert torch.ones(1).dtype == torch.float32
assert torch.get_num_threads() == 1 and (torch.tensor(1e-40) * 2).item() > 0
assert torch.get_float32_matmul_precision() == "highest" and torch.are_deterministic_algorithms_enabled()
# New memory contains no data of an earlier call. The grammar of plain edits relies on this.
assert torch.empty(3).isnan().all() and torch.Tensor(3).isnan().all() and torch.ones(2).new_empty(2).isnan().all()
assert torch.empty_like(torch.ones(3, dtype=torch.int64)).min() == 2**63 - 1
assert not torch.backends.mkldnn.enabled and not torch.backends.cudnn.benchmark
assert not torch.backends.cuda.matmul.allow_tf32 and not torch.backends.cudnn.allow_tf32
assert draws(42) == draws(42) and not set(draws(42)) & set(draws(43))
assert epoch() == epoch() and len(set(epoch())) == 8  # workers draw different numbers
"""


def test_portable_setup_in_a_process_of_its_own() -> None:
    run_child(PORTABLE)


def test_native_numerics_are_deterministic_too_and_cuda_needs_its_workspace() -> None:
    code = """
import os, torch
from harness.canonical_setup import apply_numerics, canonical_setup, in_portable_environment
assert not in_portable_environment()
canonical_setup(1)
assert torch.empty(3).isnan().all()
print(torch.are_deterministic_algorithms_enabled(), torch.backends.mkldnn.enabled)
del os.environ["CUBLAS_WORKSPACE_CONFIG"]
try:
    apply_numerics("native", "cuda")
except RuntimeError as error:
    print(error)
"""
    first, second = run_child(code, "native").splitlines()
    assert first == "True True"
    assert "CUBLAS_WORKSPACE_CONFIG" in second


@pytest.mark.parametrize("late", [False, True])
def test_refuses_portable_numerics_in_a_process_started_otherwise(late: bool) -> None:
    code = f"""
import os, torch
from harness.canonical_setup import run_environment
from harness.canonical_setup import apply_numerics
if {late}:
    print(torch.backends.cpu.get_cpu_capability())
    os.environ.update(run_environment("portable"))
try:
    apply_numerics("portable")
except RuntimeError as error:
    print(error)
"""
    environment = {name: value for name, value in os.environ.items() if name != "ATEN_CPU_CAPABILITY"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    if done.stdout == "DEFAULT\n":
        pytest.skip("this processor has only the code path that portable numerics choose")
    assert "run_environment()" in done.stdout
    assert ("before torch is imported" in done.stdout) is late


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, "42", True, None])
def test_refuses_a_bad_seed(seed: Any) -> None:
    with pytest.raises(UserError, match="whole number"):
        set_seed(seed)
