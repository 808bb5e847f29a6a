import os
import subprocess
import sys
from pathlib import Path

import pytest
from sandbox_marks import REQUIRED, needs_sandbox, require_sandbox

from grader.sandbox import bubblewrap, problem, sandbox_problem


@pytest.fixture
def _own_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problem, "version", bubblewrap.version.__wrapped__)


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@needs_sandbox
def test_where_a_sandbox_starts_there_is_no_problem() -> None:
    assert sandbox_problem() is None


@pytest.mark.parametrize(("where", "status"), [(">&-", 0), (">/dev/full", 2)], ids=["closed", "full"])
@needs_sandbox
def test_whether_anybody_reads_the_output_a_class_is_scored(where: str, status: int, tmp_path: Path) -> None:
    (tmp_path / "submissions").mkdir()
    (tmp_path / "submissions" / "ada_huge_lr.tar.gz").write_bytes(b"")
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -P -m grader score submissions --out reports {where}"],
        cwd=tmp_path,
        env={**os.environ, "TRAINWRECK_REPLAYS": str(tmp_path / "replays")},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (done.returncode, "at standard output" in done.stderr) == (status, status == 2), done.stderr
    assert (tmp_path / "reports" / "scores.json").exists()


@pytest.mark.usefixtures("_own_version")
def test_without_bubblewrap_the_command_that_installs_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sandbox_problem() == (
        "The sandbox needs bubblewrap, which is not installed: install the package bubblewrap with this system's"
        " package manager"
    )
    program(tmp_path, "dnf", "")
    assert (sandbox_problem() or "").endswith("sudo dnf install bubblewrap")


@pytest.mark.usefixtures("_own_version")
def test_an_old_bubblewrap_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "bwrap", "echo bubblewrap 0.4.1")
    program(tmp_path, "apt-get", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sandbox_problem() == (
        "The sandbox needs bubblewrap 0.7.0 or later, and this is 0.4.1: sudo apt-get install bubblewrap"
    )


@pytest.mark.usefixtures("_own_version")
def test_a_bubblewrap_that_cannot_start_is_told_in_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(
        tmp_path,
        "bwrap",
        'test "$1" = --version && echo bubblewrap 0.8.0 && exit\necho no namespaces >&2; exit 1',
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = sandbox_problem()
    assert found is not None
    assert "a sandbox does not start here (the sandbox did not start: no namespaces): " in found


def test_another_system_and_another_processor_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert "no filter for riscv64 processors" in (sandbox_problem() or "")
    monkeypatch.setattr("sys.platform", "darwin")
    assert "The sandbox needs Linux" in (sandbox_problem() or "")


def test_a_test_without_a_sandbox_is_skipped_or_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox_marks.problem", lambda: "install it")
    monkeypatch.delenv(REQUIRED, raising=False)
    with pytest.raises(pytest.skip.Exception, match="install it"):
        require_sandbox()
    monkeypatch.setenv(REQUIRED, "1")
    with pytest.raises(pytest.fail.Exception, match="install it"):
        require_sandbox()
