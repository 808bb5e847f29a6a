import os
import subprocess
import sys

import pytest
from portable_child import run_child

from harness.errors import UserError
from harness.numerics import canonical_setup, in_portable_environment

DRAWS = """
import random, numpy as np, torch
from harness.numerics import canonical_setup
def draws():
    return [random.random(), float(np.random.normal()), torch.rand(1).item(), torch.randn(20).sum().item()]
"""


def test_the_same_seed_draws_the_same_numbers_and_another_does_not() -> None:
    code = DRAWS + (
        "canonical_setup(42); a = draws(); canonical_setup(42); b = draws(); canonical_setup(43); c = draws()\n"
        "print(a == b, any(x == y for x, y in zip(a, c)))"
    )
    assert run_child(code) == "True False"


def test_settings_say_what_was_set() -> None:
    code = "from harness.numerics import canonical_setup; print(canonical_setup(7, True))"
    expected = "Settings(seed=7, dtype='float64', numerics='portable', device='cpu', threads=1)"
    assert run_child(code) == expected


def test_verify_mode_computes_in_float64_and_the_next_setup_in_float32() -> None:
    code = (
        "import torch; from harness.numerics import canonical_setup\n"
        "canonical_setup(1, verify_mode=True); a = torch.nn.Linear(2, 2)(torch.ones(1, 2)).dtype\n"
        "canonical_setup(1); print(a, torch.ones(1).dtype)"
    )
    assert run_child(code) == "torch.float64 torch.float32"


def test_portable_setup_undoes_what_a_script_may_have_switched() -> None:
    code = (
        "import torch; from harness.numerics import canonical_setup\n"
        "torch.set_num_threads(2); torch.set_flush_denormal(True); torch.set_float32_matmul_precision('medium')\n"
        "canonical_setup(1)\n"
        "print(torch.get_num_threads(), (torch.tensor(1e-40) * 2).item() > 0,\n"
        "      torch.get_float32_matmul_precision(), torch.are_deterministic_algorithms_enabled(),\n"
        "      torch.backends.mkldnn.enabled, torch.backends.cuda.matmul.allow_tf32,\n"
        "      torch.backends.cudnn.allow_tf32, torch.backends.cudnn.benchmark)"
    )
    assert run_child(code) == "1 True highest True False False False False"


def test_native_numerics_are_deterministic_too() -> None:
    code = (
        "import torch; from harness.numerics import canonical_setup; s = canonical_setup(1)\n"
        "print(s.numerics, torch.are_deterministic_algorithms_enabled(), torch.backends.mkldnn.enabled)"
    )
    assert run_child(code, "native") == "native True True"


REFUSED = """
import os, sys
from harness.environment import run_environment
if {late}:
    import torch
    torch.backends.cpu.get_cpu_capability()
    os.environ.update(run_environment("portable"))
from harness.numerics import apply_numerics
try:
    apply_numerics("portable")
except RuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize("late", [False, True])
def test_refuses_portable_numerics_in_a_process_started_otherwise(late: bool) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "ATEN_CPU_CAPABILITY"}
    done = subprocess.run(
        [sys.executable, "-c", REFUSED.format(late=late)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    if late and not done.stdout:
        pytest.skip("this processor has only the code path that portable numerics choose")
    assert "run_environment()" in done.stdout


def test_cuda_needs_the_workspace_setting() -> None:
    code = (
        "import os; os.environ.pop('CUBLAS_WORKSPACE_CONFIG')\n"
        "from harness.numerics import apply_numerics\n"
        "try:\n    apply_numerics('native', 'cuda')\nexcept RuntimeError as error:\n    print(error)"
    )
    assert "CUBLAS_WORKSPACE_CONFIG" in run_child(code, "native")


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, "42", True, None])
def test_refuses_a_bad_seed(seed: object) -> None:
    with pytest.raises(UserError, match="whole number"):
        canonical_setup(seed)  # type: ignore[arg-type]


def test_a_test_process_is_not_portable() -> None:
    code = "from harness.numerics import in_portable_environment; print(in_portable_environment())"
    assert (run_child(code), run_child(code, "native")) == ("True", "False")
    assert in_portable_environment() == (run_child(code, "native", base={}) == "True")


def test_workers_draw_different_numbers_and_the_same_ones_each_time() -> None:
    code = """
import random, numpy as np, torch
from torch.utils.data import DataLoader
from harness.numerics import canonical_setup, seed_worker

class Draws(torch.utils.data.Dataset):
    def __len__(self): return 4
    def __getitem__(self, index): return torch.tensor([random.random(), np.random.random()])

def epoch():
    canonical_setup(42)
    return torch.cat(list(DataLoader(Draws(), batch_size=2, num_workers=2, worker_init_fn=seed_worker)))

if __name__ == "__main__":
    first, second = epoch(), epoch()
    print(torch.equal(first, second), len(set(first.flatten().tolist())))
"""
    assert run_child(code) == "True 8"
