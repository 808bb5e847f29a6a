"""The golden table, `harness doctor`, and the platform class of a run."""

import ast
import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.commands import run_child
from helpers.sampling import RECIPES
from portable_check import QEMU, emulated_python, features

from harness.canonical_setup import run_environment
from harness.doctor import report
from harness.doctor.golden import read_table
from harness.doctor.operations import DIFFERS, OPERATIONS, SENTINELS
from harness.recipes.recipe import Recipe
from harness.run.provenance import platform_class, same_class

x86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the table is that of x86-64 processors")
cpuinfo = Path("/proc/cpuinfo")
one_path_only = pytest.mark.skipif(
    not cpuinfo.exists() or "avx2" not in cpuinfo.read_text(encoding="utf-8"),
    reason="this processor has no other code path",
)

# One process answers all questions, because each process imports torch.
QUESTIONS = """
import json, torch
from harness.doctor.golden import compute_goldens, judge
from harness.doctor.operations import SENTINELS
from harness.run.provenance import platform_class
from harness.canonical_setup import canonical_setup

canonical_setup(1)
facts = {"class": platform_class("portable", "cpu"), "native": platform_class("native", "cpu")}
canonical_setup(3, verify_mode=True)
before = torch.get_rng_state()
with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
    facts["in another state"] = judge(compute_goldens())
facts["random state kept"] = torch.equal(before, torch.get_rng_state())

def golden(change):
    canonical_setup(1)
    change()
    return "wrong" not in judge(compute_goldens(SENTINELS)).values()

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
def test_the_state_of_the_caller_neither_matters_nor_changes(facts: dict[str, Any]) -> None:
    assert "wrong" not in facts["in another state"].values()
    assert facts["random state kept"] is True


@x86_64
@one_path_only
@pytest.mark.parametrize("setting", ["oneDNN", "NNPACK", "threads"])
def test_the_sentinels_notice_a_setting_undone(facts: dict[str, Any], setting: str) -> None:
    assert facts["undone"][setting] is False


@x86_64
@one_path_only
@pytest.mark.parametrize(
    "name", ["MKL_CBWR", "ATEN_CPU_CAPABILITY", "GLIBC_TUNABLES", "NPY_DISABLE_CPU_FEATURES", "OPENBLAS_CORETYPE"]
)
def test_the_sentinels_notice_a_variable_missing(name: str) -> None:
    # Without canonical_setup, which would refuse this process.
    code = (
        "import numpy, torch; torch.backends.mkldnn.enabled = False\n"
        "torch.backends.nnpack.set_flags(False); torch.set_deterministic_debug_mode('error')\n"
        "from harness.run.provenance import platform_class; print(platform_class('portable', 'cpu')['golden'])"
    )
    environment = run_environment("portable")
    del environment[name]
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


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
    [({}, True), ({"golden": False}, False), ({"golden": None}, False), ({"device": "a card", "golden": None}, True)],
)
def test_equal_records_are_one_class_only_if_the_bytes_must_agree(change: dict[str, Any], same: bool) -> None:
    record = {"numerics": "portable", "device": "cpu", "torch": "2.13.0", "golden": True, **change}
    assert same_class(record, dict(record)) is same
    assert not same_class(record, {**record, "torch": "2.12.0"})


@x86_64
@pytest.mark.skipif(shutil.which(QEMU) is None, reason=f"{QEMU} is not installed (Debian: qemu-user)")
def test_an_emulated_processor_lacks_what_its_model_lacked(tmp_path: Path) -> None:
    # `make test-portable` checks its golden bytes. Here, emulating torch alone would take half a minute.
    assert features(emulated_python("Nehalem", tmp_path)) == ["SSE42"]


@x86_64
def test_this_machine_is_in_the_portable_class() -> None:
    found = report.examine_machine()
    assert found["portable"] is True and found["problem"] is None
    assert found["operations"]["linear"] == "same" and found["operations"]["sqrt"] == "differs"
    assert list(found["operations"]) == list(OPERATIONS)


@pytest.mark.parametrize(
    ("problem", "operations", "says"),
    [
        (
            None,
            {"linear": "same", "softmax": "wrong"},
            ["1 of 2", "unexpected bytes: softmax", "NOT in the portable", "do and hand in every exercise here"],
        ),
        (None, {"linear": "same", "sqrt": "differs"}, ["is in the portable class", "between processors: sqrt."]),
        ("The table is for torch 2.", {}, ["the portable class. The table is for torch 2."]),
    ],
)  # fmt: skip
def test_doctor_reports_in_words(
    problem: str | None,
    operations: dict[str, str],
    says: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    measured = {"operations": operations, "torch": "2", "golden_torch": "2"}
    monkeypatch.setattr(report, "_measure", lambda: (measured, problem))
    assert report.run_doctor() == (1 if problem or "wrong" in operations.values() else 0)
    text = capsys.readouterr().out
    assert all(words in text for words in says)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.id)
def test_no_exercise_uses_what_doctor_warns_of(recipe: Recipe) -> None:
    warned = {name.removeprefix("optimizer ") for name in DIFFERS}
    for source in (recipe.broken_source(), recipe.healthy_source()):
        own = {node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)}
        for call in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)):
            name = ast.unparse(call.func)
            if name.startswith("math.") or name in own or name.split(".")[-1].lower() not in warned:
                continue
            assert "fused=True" in map(ast.unparse, call.keywords), f"{name} in {recipe.experiment}"
        for power in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.BinOp)):
            # torch computes x ** 0.5 of a tensor with the same function as torch.sqrt
            if isinstance(power.op, ast.Pow) and ast.unparse(power.right) == "0.5":
                assert isinstance(power.left, ast.Constant), f"{ast.unparse(power)} in {recipe.experiment}"


def test_a_broken_python_is_named_and_is_not_a_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    assert report.run_doctor() == 1
    text = capsys.readouterr().out
    assert "It is unknown whether" in text and "exit status 1" in text
