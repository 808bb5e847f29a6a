"""The red team in the tests: the fast attacks, all in one class with honest submissions."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from attacks.attack import BREACHED, Attack
from attacks.catalogue import ALL, chosen
from attacks.judge import attack_faults, class_faults, page_faults
from attacks.lab import Lab, Scored, make_lab, score_class
from helpers.honest_class import RECIPE, HonestClass
from helpers.sandbox_marks import needs_sandbox
from helpers.watched import Ended

IN_SUITE = [attack for attack in ALL if attack.in_suite and not attack.slow]
Stormed = tuple[Lab, Scored]


@pytest.fixture(scope="module")
def stormed(honest: HonestClass, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stormed]:
    """The class with all attacks of the suite."""
    folder = tmp_path_factory.mktemp("red-team")
    lab = make_lab(folder, known=honest)
    yield lab, score_class(lab, "stormed", IN_SUITE, memory=lab.alone.memory, jobs=2)
    shutil.rmtree(folder)


@needs_sandbox
def test_the_class_around_the_attacks_is_as_it_was(stormed: Stormed) -> None:
    assert list(class_faults(*stormed)) == []


@needs_sandbox
@pytest.mark.parametrize("attack", IN_SUITE, ids=lambda attack: attack.id)
def test_the_attack_becomes_what_it_must_and_gains_nothing(stormed: Stormed, attack: Attack) -> None:
    assert list(attack_faults(attack, *stormed)) == []


def test_attacks_have_different_names_and_every_family_is_in_the_suite() -> None:
    assert len({attack.id for attack in ALL}) == len({attack.tarball for attack in ALL}) == len(ALL) >= 50
    assert {attack.family for attack in IN_SUITE} == {"archive", "sandbox", "score", "reader"}
    assert chosen(["zip"], None) == [attack for attack in ALL if attack.id == "zip"]
    with pytest.raises(LookupError, match="no attack zipp"):
        chosen(["zipp"], None)


# --- The judge finds planted breaches ---


def copied(scored: Scored, folder: Path) -> Scored:
    shutil.copytree(scored.reports, folder / "reports")
    return replace(scored, reports=folder / "reports", memory=folder / "memory")


def with_row(scored: Scored, name: str, **changed: Any) -> None:
    path = scored.reports / "scores.json"
    scores = json.loads(path.read_text())
    next(row for row in scores["submissions"] if row["submission"] == name).update(changed)
    path.write_text(json.dumps(scores))


@needs_sandbox
@pytest.mark.parametrize(
    ("plant", "fault"),
    [
        (lambda lab, scored: replace(scored, ended=Ended(3, "", "Traceback")), "the grader ended with 3"),
        (lambda lab, scored: replace(scored, changes=("created /tmp/x",)), "created /tmp/x"),
        (lambda lab, scored: replace(scored, ended=Ended(0, "\x1b[2J", "")), "is in the terminal"),
        (lambda lab, scored: (scored.reports / "x").write_text(lab.base.secret), "the canary's secret is in x"),
        (lambda lab, scored: (scored.reports / BREACHED).touch(), "the mark of a breach"),
        (lambda lab, scored: (scored.reports / f"ada_{RECIPE}.html").unlink(), "the page of ada"),
        (lambda lab, scored: with_row(scored, f"ada_{RECIPE}", total=1), "the score of ada"),
    ],
)
def test_a_breach_around_the_class_is_a_fault(
    stormed: Stormed, plant: Callable[[Lab, Scored], object], fault: str, tmp_path: Path
) -> None:
    lab, scored = stormed[0], copied(stormed[0].alone, tmp_path)
    assert list(class_faults(lab, scored)) == []
    found = plant(lab, scored)
    assert [one for one in class_faults(lab, found if isinstance(found, Scored) else scored) if fault in one]


@needs_sandbox
@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"status": "rejected"}, "it is rejected, not"),
        ({"reason": "The grader failed on this file: KeyError."}, "The grader failed"),
        ({"criteria": {}}, "nothing says"),
        ({"criteria": {"fix": {"checks": [{"points": 1, "reason": "tags"}]}}}, ""),
        ({"criteria": {"fix": {"checks": [{"points": 99, "reason": "tags"}]}}}, "99 points for the fix, more than"),
        ({"submission": "another"}, "it has no row"),
    ],
)  # fmt: skip
def test_a_row_that_gains_something_is_a_fault(
    stormed: Stormed, changed: dict[str, Any], fault: str, tmp_path: Path
) -> None:
    attack = next(attack for attack in IN_SUITE if attack.id == "yaml_apply")
    scored = copied(stormed[1], tmp_path)
    with_row(scored, f"{attack.id}_{RECIPE}", **changed)
    found = list(attack_faults(attack, stormed[0], scored))
    assert [one for one in found if fault in one] if fault else found == []


@pytest.mark.parametrize(
    "body",
    [
        "<script>alert(1)</script>",
        '<p onclick="x">y</p>',
        '<p style="x">y</p>',
        '<img src="https://wreck.example/x.png">',
        '<a href="javascript:alert(1)">x</a>',
        "<iframe></iframe>",
        "</body></html><html><body>",
        "\u202ex",
    ],
)
def test_a_page_that_could_act_is_a_fault(body: str, tmp_path: Path) -> None:
    policy = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-x'"
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}"><style>b</style>'
    for text, faults in (("<p>plain</p>", False), (body, True)):
        (tmp_path / "page.html").write_text(f"<html><head>{head}</head><body>{text}</body></html>")
        assert bool(list(page_faults(tmp_path / "page.html"))) == faults
