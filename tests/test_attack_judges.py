"""The judges of the red team: whatever an attack could gain or leave, they must call a fault."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from attacks import warden
from attacks.attack import BREACHED, RECIPE, Attack, Base, Expected
from attacks.judge import attack_faults, class_faults
from attacks.lab import Lab, Scored
from attacks.traces import changes, traces
from attacks.views import page_faults

ATTACK = Attack("greedy", "score", "wants more", Expected(("graded",), "because"), lambda base: b"")


def row(student: str, fix: float, rest: float, **changed: Any) -> dict[str, Any]:
    checks = {"fix": fix, "diagnostics": rest}
    return {
        "submission": f"{student}_{RECIPE}",
        "status": "graded",
        "reason": "",
        "total": fix + rest,
        "criteria": {
            name: {"checks": [{"points": points, "reason": "just because"}]}
            for name, points in checks.items()
        },
        "flags": [],
        **changed,
    }


def scored(folder: Path, *rows: dict[str, Any]) -> Scored:
    for name in ("reports", "memory"):
        (folder / name).mkdir(parents=True)
    (folder / "reports" / "scores.json").write_text(json.dumps({"submissions": rows}))
    for one in rows:
        (folder / "reports" / f"{one['submission']}.html").write_text("page")
    return Scored(0, b"", b"", 1.0, (), (), folder / "reports", folder / "memory")


def derivations() -> list[dict[str, Any]]:
    """Return the rows of those who derive by hand, whom attacks on derivations are compared with."""
    return [row(student, 0, 10, submission=f"{student}_backprop_mlp") for student in ("fay", "gus")]


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    alone = scored(
        tmp_path / "alone", row("ada", 20, 80), row("bob", 4, 78), row("cem", 0, 73), *derivations()
    )
    base = Base(b"", b"", b"", tmp_path / "canary", "canary-12", tmp_path)
    return Lab(tmp_path, base, {}, alone)


@pytest.mark.parametrize(
    "changed",
    [
        {"status": None},
        {"status": 3},
        {"stderr": b"Traceback (most recent call last):"},
        {"left": ("sleep 1000",)},
        {"changes": ("created /tmp/x",)},
        {"stdout": b"\x1b[2J"},
        {"stdout": "\u202e".encode()},
        {"stdout": b"\xff"},
        {"stderr": b"it is canary-12"},
        {"stdout": BREACHED.encode()},
    ],
    ids=str,
)
def test_what_happened_around_a_class_is_a_fault(lab: Lab, changed: dict[str, Any]) -> None:
    assert list(class_faults(lab, lab.alone)) == []
    assert list(class_faults(lab, replace(lab.alone, **changed)))


@pytest.mark.parametrize("place", ["reports", "memory", "reports/scores.json"])
@pytest.mark.parametrize("word", ["canary-12", BREACHED])
def test_a_secret_in_any_file_is_a_fault(lab: Lab, tmp_path: Path, place: str, word: str) -> None:
    path = tmp_path / "alone" / place
    path = path / "x" if path.is_dir() else path
    path.write_text(json.dumps({"submissions": list(lab.alone.rows().values()), "told": word}))
    assert list(class_faults(lab, lab.alone))


@pytest.mark.parametrize(
    "rows",
    [
        [row("ada", 20, 79), row("bob", 4, 78), row("cem", 0, 73)],
        [row("bob", 4, 78), row("cem", 0, 73)],
    ],
    ids=["another", "gone"],
)
def test_an_honest_score_that_is_another_is_a_fault(lab: Lab, tmp_path: Path, rows: list[Any]) -> None:
    assert list(class_faults(lab, scored(tmp_path / "after", *rows)))


def test_an_honest_page_that_is_another_is_a_fault(lab: Lab, tmp_path: Path) -> None:
    after = scored(tmp_path / "after", *lab.alone.rows().values())
    assert list(class_faults(lab, after)) == []
    (after.reports / f"ada_{RECIPE}.html").write_text("another page")
    assert list(class_faults(lab, after)) == [f"the page of ada_{RECIPE} is another"]


@pytest.mark.parametrize(
    ("own", "fault"),
    [
        (row("greedy", 0, 73), ""),
        (row("greedy", 1, 60), "1 points for the fix, more than the 0 of untouched"),
        (row("greedy", 0, 74), "74 points in all, more than the 73 of untouched"),
        (row("greedy", 0, 73, status="rejected"), "it is rejected, not graded"),
        (row("greedy", 0, 73, reason="The grader failed on it: KeyError."), "The grader failed on it"),
        (row("greedy", 0, 73, criteria={}), "nothing says 'because'"),
        (row("another", 0, 73), "it has no row"),
    ],
    ids=["held", "fix", "total", "status", "failed", "because", "lost"],
)
def test_a_row_that_is_not_what_it_must_be_is_a_fault(
    lab: Lab, tmp_path: Path, own: dict[str, Any], fault: str
) -> None:
    found = list(attack_faults(ATTACK, lab, scored(tmp_path / "after", own)))
    assert [one for one in found if fault in one] if fault else found == []


@pytest.mark.parametrize(
    ("command", "seconds", "status", "left"),
    [("exit 7", 600, 7, 0), ("(setsid sleep 1000 &) ; exit 0", 600, 0, 1), ("exec sleep 1000", 1, None, 0)],
    ids=["ends", "daemon", "hangs"],
)
def test_the_warden_finds_what_is_left(
    tmp_path: Path, command: str, seconds: int, status: int | None, left: int
) -> None:
    words = [
        sys.executable,
        "-P",
        warden.__file__,
        str(seconds),
        str(tmp_path / "out"),
        str(tmp_path / "err"),
    ]
    done = subprocess.run([*words, "sh", "-c", command], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["status"] == status
    assert len(found["left"]) == left


_SAFE = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-x'"


def _page(body: str, policy: str = _SAFE) -> str:
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}"><style>b</style>'
    return f"<html><head>{head}</head><body>{body}</body></html>"


@pytest.mark.parametrize(
    "body",
    [
        "<script>alert(1)</script>",
        '<p onclick="x">y</p>',
        '<p style="x">y</p>',
        "<style>x</style>",
        '<img src="https://wreck.example/x.png">',
        '<img src="data:image/svg+xml;base64,AAAA">',
        '<a href="javascript:alert(1)">x</a>',
        '<a href="//wreck.example">x</a>',
        "<iframe></iframe>",
        "<form></form>",
        "</body></html><html><body>",
        "\u202ex",
        "\x1b[2J",
    ],
)
def test_a_page_that_could_act_is_a_fault(body: str) -> None:
    assert list(page_faults(_page("<p>plain</p>"))) == []
    assert list(page_faults(_page(body)))


def test_a_page_without_its_policy_is_a_fault() -> None:
    assert list(page_faults(_page("x", policy="default-src *")))


def test_files_that_appear_change_or_go_are_seen(tmp_path: Path) -> None:
    for name in ("same", "changed", "gone"):
        (tmp_path / name).write_text("x")
    before = traces([tmp_path])
    (tmp_path / "changed").write_text("another")
    (tmp_path / "gone").unlink()
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "link").symlink_to("/etc/passwd")
    found = changes(before, traces([tmp_path]))
    assert [line.replace(str(tmp_path), "") for line in found] == [
        "changed /changed", "created /new", "created /new/link", "removed /gone",
    ]  # fmt: skip
