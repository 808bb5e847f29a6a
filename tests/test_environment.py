import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from portable_child import run_child

from harness.run.environment import (
    COMMON_VARIABLES,
    PORTABLE_VARIABLES,
    Numerics,
    portable_variables,
    run_environment,
)

HOSTILE = {
    "PYTHONHASHSEED": "123",
    "PYTHONWARNINGS": "error",
    "PYTHONOPTIMIZE": "2",
    "PYTHONSTARTUP": "/nowhere.py",
    "PYTHONHOME": "/nowhere",
    "PYTHONPATH": "/nowhere",
    "PYTHONMALLOC": "debug",
    "PYTHONINSPECT": "1",
    "OMP_NUM_THREADS": "7",
    "OMP_SCHEDULE": "dynamic",
    "GOMP_CPU_AFFINITY": "0",
    "MKL_CBWR": "AVX2",
    "MKL_NUM_THREADS": "5",
    "MKL_ENABLE_INSTRUCTIONS": "AVX512",
    "KMP_AFFINITY": "compact",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_ENABLE_CPU_FEATURES": "X86_V3",
    "ATEN_CPU_CAPABILITY": "avx2",
    "TORCH_LOGS": "+all",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1",
    "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1",
    "TORCHDYNAMO_DISABLE": "1",
    "PYTORCH_NO_CUDA_MEMORY_CACHING": "1",
    "ONEDNN_DEFAULT_FPMATH_MODE": "BF16",
    "DNNL_MAX_CPU_ISA": "SSE41",
    "NVIDIA_TF32_OVERRIDE": "1",
    "CUBLAS_WORKSPACE_CONFIG": ":0:0",
    "GLIBC_TUNABLES": "glibc.malloc.check=3",
    "LC_ALL": "xx_YY",
    "LC_NUMERIC": "de_DE.UTF-8",
    "LANG": "tr_TR",
    "LANGUAGE": "tr",
    "TZ": "Asia/Kathmandu",
}
# These stay, and must not matter: memory filled with a pattern, which uninitialized reads would show.
HARMLESS = {"MALLOC_PERTURB_": "165"}

TRAINING = """
import hashlib, locale, random, torch
import numpy as np
from harness.run.numerics import canonical_setup
canonical_setup(42)
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 6, 3), torch.nn.BatchNorm2d(6), torch.nn.ReLU(), torch.nn.Dropout(0.3),
    torch.nn.Flatten(), torch.nn.Linear(6 * 36, 10),
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)
for step in range(4):
    inputs = torch.randn(32, 1, 8, 8) + float(np.random.normal()) + random.gauss(0, 1)
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(inputs), torch.arange(32) % 10).backward()
    optimizer.step()
assert hash("order") == hash("order") and open("/dev/null").encoding.lower() == "utf-8"
digest = hashlib.sha256(str({"a", "b", "c", "d"}).encode())
for value in model.state_dict().values():
    digest.update(value.numpy().tobytes())
print(digest.hexdigest())
"""


def test_sets_what_portable_numerics_need() -> None:
    environment = run_environment("portable", {})
    assert PORTABLE_VARIABLES.items() <= environment.items()
    assert COMMON_VARIABLES.items() <= environment.items()


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_replaces_or_drops_a_hostile_setting(name: str) -> None:
    modes: tuple[Numerics, ...] = ("portable", "native")
    for numerics in modes:
        assert run_environment(numerics, HOSTILE).get(name) != HOSTILE[name]


def test_native_numerics_pin_no_code_path() -> None:
    environment = run_environment("native", dict(portable_variables()))
    assert not environment.keys() & portable_variables().keys()


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "HOME",
        "TMPDIR",
        "LD_LIBRARY_PATH",
        "CUDA_VISIBLE_DEVICES",
        "PYTHONPYCACHEPREFIX",
        "VIRTUAL_ENV",
    ],
)
def test_keeps_what_changes_no_result(name: str) -> None:
    assert run_environment("portable", {name: "value"})[name] == "value"


def test_starts_from_this_process_as_it_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SET_AFTER_IMPORT", "1")
    assert run_environment("portable")["SET_AFTER_IMPORT"] == "1"


@pytest.mark.slow
def test_hostile_settings_and_folders_change_no_byte(tmp_path: Path) -> None:
    (tmp_path / "random.py").write_text("raise SystemExit('shadowed')\n", encoding="utf-8")
    hostile = {**os.environ, **HOSTILE, **HARMLESS, "PYTHONPATH": str(tmp_path)}
    plain = run_child(TRAINING)
    assert run_child(TRAINING, base=hostile, cwd=tmp_path) == plain


@pytest.mark.skipif(platform.machine() != "x86_64", reason="NumPy's x86 features")
def test_numpy_accepts_the_names_of_its_features() -> None:
    code = "import warnings; warnings.simplefilter('error'); import numpy; print('ok')"
    assert run_child(code) == "ok"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these tunables")
def test_glibc_takes_the_tunable_without_a_word() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ""],
        env=run_environment("portable"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""


def test_importing_it_does_not_import_torch() -> None:
    code = "import sys, harness.run.environment, harness.doctor.report\n"
    code += "print('torch' in sys.modules, 'numpy' in sys.modules)"
    assert run_child(code) == "False False"
