"""The red team in the suite: the attacks that cost little, all in one class with honest submissions."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from attacks.attack import Attack
from attacks.catalogue import ALL, chosen
from attacks.judge import attack_faults, class_faults
from attacks.lab import Lab, Scored, make_lab, score_class
from attacks.views import class_view_faults, view_faults
from honest_class import HonestClass
from sandbox_marks import needs_sandbox

import grader.grade
import grader.intake

IN_SUITE = [attack for attack in ALL if attack.in_suite and not attack.slow]
# How a rule says its code; `archive.py` has a table of kinds of members besides.
_CODE = re.compile(r'(?:Rejected\(|yield|tarfile\.\w+: )\s*\(?\s*"([A-Za-z][A-Za-z0-9 -]+)",')


@dataclass(frozen=True)
class Stormed:
    """The class with all attacks of the suite, and where its exports went."""

    lab: Lab
    scored: Scored
    exports: Path


@pytest.fixture(scope="module")
def stormed(honest: HonestClass, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stormed]:
    folder = tmp_path_factory.mktemp("red-team")
    lab = make_lab(folder / "lab", known=honest)
    scored = score_class(lab, "stormed", IN_SUITE, memory=lab.alone.memory, jobs=2)
    yield Stormed(lab, scored, folder / "exports")
    shutil.rmtree(folder)


@needs_sandbox
def test_nothing_is_left_changed_or_told_around_the_class(stormed: Stormed) -> None:
    assert list(class_faults(stormed.lab, stormed.scored)) == []


@needs_sandbox
def test_the_pages_and_tables_of_the_class_are_harmless(stormed: Stormed) -> None:
    assert list(class_view_faults(stormed.scored, stormed.exports)) == []


@needs_sandbox
@pytest.mark.parametrize("attack", IN_SUITE, ids=lambda attack: attack.id)
def test_the_attack_becomes_what_it_must_and_gains_nothing(stormed: Stormed, attack: Attack) -> None:
    assert list(attack_faults(attack, stormed.lab, stormed.scored)) == []
    assert list(view_faults(attack, stormed.scored)) == []


@needs_sandbox
def test_every_rule_of_the_intake_has_refused_something(stormed: Stormed) -> None:
    folder = Path(grader.intake.__file__).parent
    rule_books = ("archive", "names", "submission")
    sources = [*(folder / f"{name}.py" for name in rule_books), Path(grader.grade.__file__)]
    rules = {code for path in sources for code in _CODE.findall(path.read_text())}
    assert len(rules) > 25
    rows = stormed.scored.rows().values()
    reasons = " ".join(row["reason"] for row in rows if row["status"] == "rejected")
    assert [rule for rule in sorted(rules) if f"({rule})" not in reasons] == []


def test_there_are_fifty_attacks_and_more_each_of_its_own_name() -> None:
    assert len({attack.id for attack in ALL}) == len({attack.tarball for attack in ALL}) == len(ALL) >= 50
    assert chosen(["zip"], None) == [attack for attack in ALL if attack.id == "zip"]
    with pytest.raises(LookupError, match="no attack zipp"):
        chosen(["zipp"], None)


def test_every_family_is_in_the_suite() -> None:
    assert {attack.family for attack in IN_SUITE} == {"archive", "sandbox", "score", "reader"}
