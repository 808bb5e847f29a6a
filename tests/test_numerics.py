import json
import os
import subprocess
import sys
from typing import Any

import pytest
from portable_child import run_child

from harness.errors import UserError
from harness.run.numerics import canonical_setup

# One process asks everything: each costs the import of torch.
QUESTIONS = """
import json, random
import numpy as np, torch
from torch.utils.data import DataLoader
from harness.run.numerics import canonical_setup, in_portable_environment, seed_worker

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

facts = {"portable": in_portable_environment()}
facts["settings"] = str(canonical_setup(7, True))
facts["verify dtype"] = str(torch.nn.Linear(2, 2)(torch.ones(1, 2)).dtype)
canonical_setup(1)
facts["dtype"] = str(torch.ones(1).dtype)
torch.set_num_threads(2)
torch.set_flush_denormal(True)
torch.set_float32_matmul_precision("medium")
torch.backends.cudnn.benchmark = True
torch.backends.mkldnn.enabled = True
canonical_setup(1)
facts["switched back"] = {
    "threads": torch.get_num_threads(),
    "denormals": (torch.tensor(1e-40) * 2).item() > 0,
    "precision": torch.get_float32_matmul_precision(),
    "deterministic": torch.are_deterministic_algorithms_enabled(),
    "mkldnn": torch.backends.mkldnn.enabled,
    "tf32": [torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32],
    "benchmark": torch.backends.cudnn.benchmark,
}
facts["draws"] = [draws(42), draws(42), draws(43)]
facts["epochs"] = [epoch(), epoch()]
print(json.dumps(facts))
"""


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    answers: dict[str, Any] = json.loads(run_child(QUESTIONS))
    return answers


def test_the_same_seed_draws_the_same_numbers_and_another_does_not(facts: dict[str, Any]) -> None:
    first, again, other = facts["draws"]
    assert first == again
    assert not set(first) & set(other)


def test_settings_say_what_was_set(facts: dict[str, Any]) -> None:
    assert facts["portable"] is True
    expected = "Settings(seed=7, dtype='float64', numerics='portable', device='cpu', threads=1)"
    assert facts["settings"] == expected


def test_verify_mode_computes_in_float64_and_the_next_setup_in_float32(facts: dict[str, Any]) -> None:
    assert (facts["verify dtype"], facts["dtype"]) == ("torch.float64", "torch.float32")


def test_portable_setup_undoes_what_a_script_may_have_switched(facts: dict[str, Any]) -> None:
    assert facts["switched back"] == {
        "threads": 1,
        "denormals": True,
        "precision": "highest",
        "deterministic": True,
        "mkldnn": False,
        "tf32": [False, False],
        "benchmark": False,
    }


def test_workers_draw_different_numbers_and_the_same_ones_each_time(facts: dict[str, Any]) -> None:
    first, again = facts["epochs"]
    assert first == again
    assert len(set(first)) == 8


def test_native_numerics_are_deterministic_too_and_cuda_needs_its_workspace() -> None:
    code = """
import os, torch
from harness.run.numerics import apply_numerics, canonical_setup, in_portable_environment
assert not in_portable_environment()
print(canonical_setup(1).numerics, torch.are_deterministic_algorithms_enabled(), torch.backends.mkldnn.enabled)
del os.environ["CUBLAS_WORKSPACE_CONFIG"]
try:
    apply_numerics("native", "cuda")
except RuntimeError as error:
    print(error)
"""
    first, second = run_child(code, "native").splitlines()
    assert first == "native True True"
    assert "CUBLAS_WORKSPACE_CONFIG" in second


@pytest.mark.parametrize("late", [False, True])
def test_refuses_portable_numerics_in_a_process_started_otherwise(late: bool) -> None:
    code = f"""
import os, torch
from harness.run.environment import run_environment
from harness.run.numerics import apply_numerics
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
        canonical_setup(seed)
