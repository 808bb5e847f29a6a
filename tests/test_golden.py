import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from portable_child import run_child

from harness.environment import run_environment
from harness.golden import (
    TABLE,
    architecture,
    compare,
    compute_goldens,
    platform_class,
    read_table,
    same_class,
)
from harness.golden_operations import DIFFERS, OPERATIONS, SENTINELS, numbers
from harness.portable_check import QEMU, emulated_python, features

x86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the table is that of x86-64 processors")
SETUP = "import json\nfrom harness.golden import *\nfrom harness.numerics import canonical_setup\ncanonical_setup(1)\n"


def test_the_table_has_exactly_the_operations() -> None:
    table = read_table()
    assert list(table["digests"]) == list(OPERATIONS)
    assert {name for name, digest in table["digests"].items() if digest is None} == DIFFERS
    assert table["torch"] == torch.__version__.partition("+")[0]
    assert set(SENTINELS) <= OPERATIONS.keys() - DIFFERS


@x86_64
def test_every_operation_gives_the_golden_bytes_here() -> None:
    assert run_child(SETUP + "print(compare(compute_goldens()).wrong)") == "()"


@x86_64
def test_the_callers_state_neither_matters_nor_changes() -> None:
    code = SETUP + (
        "import torch; canonical_setup(3, verify_mode=True); torch.manual_seed(9); before = torch.get_rng_state()\n"
        "with torch.no_grad(), torch.autocast('cpu', dtype=torch.bfloat16):\n"
        "    wrong = compare(compute_goldens()).wrong\n"
        "print(wrong, torch.equal(before, torch.get_rng_state()))"
    )
    assert run_child(code) == "() True"


@x86_64
@pytest.mark.parametrize(
    "change",
    [
        "torch.backends.mkldnn.enabled = True",
        "torch.backends.nnpack.set_flags(True)",
        "torch.set_num_threads(2)",
    ],
)
def test_the_sentinels_notice_a_setting_undone(change: str) -> None:
    code = SETUP + f"import torch; {change}\nprint(platform_class('portable', 'cpu')['golden'])"
    golden = run_child(code)
    if golden == "True" and "avx2" not in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        pytest.skip("this processor has no other code path")
    assert golden == "False"


@x86_64
@pytest.mark.parametrize(
    "name",
    ["MKL_CBWR", "ATEN_CPU_CAPABILITY", "GLIBC_TUNABLES", "NPY_DISABLE_CPU_FEATURES", "OPENBLAS_CORETYPE"],
)
def test_the_sentinels_notice_a_variable_missing(name: str) -> None:
    # Without canonical_setup, which would refuse the process.
    code = (
        "import numpy, torch; torch.backends.mkldnn.enabled = False\n"
        "torch.backends.nnpack.set_flags(False); torch.use_deterministic_algorithms(True)\n"
        "from harness.golden import platform_class; print(platform_class('portable', 'cpu')['golden'])"
    )
    environment = run_environment("portable")
    del environment[name]
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    if done.stdout == "True\n" and "avx2" not in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        pytest.skip("this processor has no other code path")
    assert done.stdout == "False\n"


def test_compare_tells_same_wrong_and_differing() -> None:
    table = {"a": "1", "b": "2", "c": None}
    comparison = compare({"a": "1", "b": "x", "c": "y", "unknown": "z"}, table)
    assert (comparison.same, comparison.wrong, comparison.differs) == (("a",), ("b", "unknown"), ("c",))
    assert not comparison.portable
    assert compare({"a": "1", "c": "y"}, table).portable


def test_inputs_are_exact_scattered_and_the_same_in_both_precisions() -> None:
    values = numbers(1000)
    assert torch.equal(values.double(), numbers(1000, dtype=torch.float64))
    assert values.unique().numel() == 1000
    assert -1 <= values.min() < -0.9 and 0.9 < values.max() < 1
    assert not torch.equal(values, numbers(1000, salt=1))


def test_an_unknown_operation_is_refused() -> None:
    with pytest.raises(KeyError):
        compute_goldens(["no such operation"])


def test_platform_class_of_a_native_run_claims_nothing() -> None:
    assert platform_class("native", "cpu") == {
        "architecture": architecture(),
        "numerics": "native",
        "device": "cpu",
        "torch": torch.__version__.partition("+")[0],
        "golden": None,
    }


@x86_64
def test_platform_class_of_a_portable_run() -> None:
    code = SETUP + "print(json.dumps(platform_class('portable', 'cpu')))"
    expected = {
        "architecture": "x86_64",
        "numerics": "portable",
        "device": "cpu",
        "torch": read_table()["torch"],
    }
    assert json.loads(run_child(code)) == {**expected, "golden": True}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA card here")
def test_platform_class_names_the_card() -> None:
    record = platform_class("portable", "cuda")
    assert record["device"] == torch.cuda.get_device_name()
    assert record["golden"] is None and record["torch"] == torch.__version__


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"golden": False}, False),
        ({"golden": None}, False),
        ({"device": "a card", "golden": None}, True),
    ],
)
def test_equal_records_are_one_class_only_with_a_reason(change: dict[str, object], same: bool) -> None:
    record = {
        "architecture": "x86_64",
        "numerics": "portable",
        "device": "cpu",
        "torch": "2.13.0",
        "golden": True,
        **change,
    }
    assert same_class(record, dict(record)) is same
    assert not same_class(record, {**record, "torch": "2.12.0"})


def test_the_table_is_in_the_package() -> None:
    assert TABLE.parent.name == "harness" and TABLE.suffix == ".json"


@x86_64
@pytest.mark.skipif(shutil.which(QEMU) is None, reason=f"{QEMU} is not installed (Debian: qemu-user)")
def test_an_emulated_processor_without_avx_gives_the_golden_bytes(tmp_path: Path) -> None:
    python = str(emulated_python("Nehalem", tmp_path))
    assert "SSE42" in features(python) and "AVX" not in features(python)
    done = subprocess.run(
        [python, "-m", "harness.golden"],
        env=run_environment("portable"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert compare(json.loads(done.stdout)["digests"]).wrong == ()
