import json
import platform

import pytest

from harness.doctor import report as doctor

x86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the table is that of x86-64 processors")


@x86_64
def test_says_that_this_machine_is_in_the_portable_class(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.run_doctor(as_json=True) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["portable"] is True and found["problem"] is None
    assert found["operations"]["linear"] == "same" and found["operations"]["sqrt"] == "differs"
    assert found["versions"]["python"] == platform.python_version()
    assert found["machine"]["free_disk_gb"] > 0
    text = doctor._as_text(found)
    assert "is in the portable class" in text
    assert "optimizer adam," in text and "torch " in text and "Next: " in text


def _found(**operations: str) -> dict[str, object]:
    return {
        "portable": "wrong" not in operations.values(),
        "problem": None,
        "operations": operations,
        "versions": {"torch": "2.13.0", "numpy": None},
        "machine": {
            "system": "Linux x86_64",
            "libc": "glibc 2.36",
            "processor": "A processor",
            "threads": 2,
            "cuda": [],
            "free_disk_gb": 1.0,
            "git": None,
        },
    }


def test_names_the_operation_that_is_not_golden() -> None:
    text = doctor._as_text(_found(linear="same", softmax="wrong", sqrt="differs"))
    assert "1 of 2 operations" in text
    assert "not the golden bytes: softmax" in text
    assert "NOT in the portable class" in text
    assert "not installed" in text and "install git" in text


def test_judges_each_operation() -> None:
    verdicts = doctor._judge(
        {"a": "1", "b": "x", "d": "5", "e": "6"}, {"a": "1", "b": "2", "c": "3", "d": None}
    )
    assert verdicts == {"a": "same", "b": "wrong", "c": "wrong", "d": "differs", "e": "wrong"}


def test_a_broken_python_is_named_and_is_not_a_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    assert doctor.run_doctor() == 1
    text = capsys.readouterr().out
    assert "No verdict" in text and "exit status 1" in text
