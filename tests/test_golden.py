import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from portable_child import run_child

from harness.canonical_setup import run_environment
from harness.doctor.golden import (
    compare,
    compute_goldens,
    read_table,
)
from harness.doctor.operations import DIFFERS, OPERATIONS, SENTINELS, numbers
from harness.doctor.portable_check import QEMU, emulated_python, features
from harness.run.provenance import platform_class, same_class

x86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the table is that of x86-64 processors")
cpuinfo = Path("/proc/cpuinfo")
one_path_only = not cpuinfo.exists() or "avx2" not in cpuinfo.read_text(encoding="utf-8")

# One process asks everything: each costs the import of torch.
QUESTIONS = """
import json, torch
from harness.doctor.golden import compare, compute_goldens
from harness.run.provenance import platform_class
from harness.canonical_setup import canonical_setup

canonical_setup(1)
facts = {"wrong": compare(compute_goldens()).wrong}
facts["class"], facts["native"] = platform_class("portable", "cpu"), platform_class("native", "cpu")

canonical_setup(3, verify_mode=True)
before = torch.get_rng_state()
with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
    facts["wrong in another state"] = compare(compute_goldens()).wrong
facts["random state kept"] = torch.equal(before, torch.get_rng_state())

def golden(change):
    canonical_setup(1)
    change()
    return platform_class("portable", "cpu")["golden"]

facts["undone"] = {
    "oneDNN": golden(lambda: setattr(torch.backends.mkldnn, "enabled", True)),
    "NNPACK": golden(lambda: torch.backends.nnpack.set_flags(True)),
    "threads": golden(lambda: torch.set_num_threads(2)),
}
print(json.dumps(facts))
"""


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    answers: dict[str, Any] = json.loads(run_child(QUESTIONS))
    return answers


def test_the_table_has_exactly_the_operations() -> None:
    table = read_table()
    assert list(table["digests"]) == list(OPERATIONS)
    assert {name for name, digest in table["digests"].items() if digest is None} == DIFFERS
    assert table["torch"] == torch.__version__.partition("+")[0]
    assert set(SENTINELS) <= OPERATIONS.keys() - DIFFERS


@x86_64
def test_every_operation_gives_the_golden_bytes_here(facts: dict[str, Any]) -> None:
    assert facts["wrong"] == []


@x86_64
def test_the_callers_state_neither_matters_nor_changes(facts: dict[str, Any]) -> None:
    assert facts["wrong in another state"] == []
    assert facts["random state kept"] is True


@x86_64
@pytest.mark.skipif(one_path_only, reason="this processor has no other code path")
@pytest.mark.parametrize("setting", ["oneDNN", "NNPACK", "threads"])
def test_the_sentinels_notice_a_setting_undone(facts: dict[str, Any], setting: str) -> None:
    assert facts["undone"][setting] is False


@x86_64
@pytest.mark.skipif(one_path_only, reason="this processor has no other code path")
@pytest.mark.parametrize(
    "name",
    ["MKL_CBWR", "ATEN_CPU_CAPABILITY", "GLIBC_TUNABLES", "NPY_DISABLE_CPU_FEATURES", "OPENBLAS_CORETYPE"],
)
def test_the_sentinels_notice_a_variable_missing(name: str) -> None:
    # Without canonical_setup, which would refuse the process.
    code = (
        "import numpy, torch; torch.backends.mkldnn.enabled = False\n"
        "torch.backends.nnpack.set_flags(False); torch.set_deterministic_debug_mode('error')\n"
        "from harness.run.provenance import platform_class; print(platform_class('portable', 'cpu')['golden'])"
    )
    environment = run_environment("portable")
    del environment[name]
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
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
    assert len(set(values.tolist())) == 1000
    assert -1 <= values.min() < -0.9 and 0.9 < values.max() < 1
    assert not torch.equal(values, numbers(1000, salt=1))


def test_an_unknown_operation_is_refused() -> None:
    with pytest.raises(KeyError):
        compute_goldens(["no such operation"])


@x86_64
def test_platform_class_of_a_portable_run_and_of_a_native_one(facts: dict[str, Any]) -> None:
    common = {"architecture": "x86_64", "device": "cpu", "torch": read_table()["torch"]}
    assert facts["class"] == {**common, "numerics": "portable", "golden": True}
    assert facts["native"] == {**common, "numerics": "native", "golden": None}


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


@x86_64
@pytest.mark.skipif(shutil.which(QEMU) is None, reason=f"{QEMU} is not installed (Debian: qemu-user)")
def test_an_emulated_processor_lacks_what_its_model_lacked(tmp_path: Path) -> None:
    # Its golden bytes are looked at by `make test-portable`: torch alone takes half a minute to be emulated.
    known = features(str(emulated_python("Nehalem", tmp_path)))
    assert "SSE42" in known
    assert "AVX" not in known
