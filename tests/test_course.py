"""The course of the benchmark: the same bytes from the same seed, its proportions, and what intake says of it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from honest_class import RECIPE, shared_class
from intake_archives import parsed

from benchmarks.course.attacks import REFUSED
from benchmarks.course.claims import with_claim
from benchmarks.course.make import Run, Runs, entry_source, fixed_source, link_class, make_course, tarball
from benchmarks.course.own_work import own_source
from benchmarks.course.plan import ATTACKS, CLAIMS, LOOP, Entry, fixes_of, planned
from benchmarks.course.tarballs import unpacked
from grader.intake.names import Rejected
from grader.intake.submission import Submission
from grader.syntax.parse import tree_digest
from harness.recipe import recipe_ids
from harness.submission.report import parse_report

SEED = 7
COURSE = planned(300, SEED)
PAIRS = [(recipe, fix.id) for recipe in recipe_ids() for fix in fixes_of(recipe)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Return two runs of one recipe, the ones that the session has made, under the names of two of its fixes."""
    made = shared_class(tmp_path_factory)
    return {
        (RECIPE, fix): Run(unpacked(made.tarball(what)))
        for fix, what in (("reference", "reference"), ("clipped", "masked"))
    }


def entries() -> list[Entry]:
    """Return the first submissions of the recipe whose fixes are the two that were made."""
    made = {"reference", "clipped"}
    return [entry for entry in COURSE if entry.recipe == RECIPE and {entry.fix, entry.other_fix} == made]


def odd(kind: str) -> Entry:
    """Return an honest submission of the course made one of the other kinds."""
    entry = entries()[0]
    return replace(entry, claim=kind if kind in CLAIMS else "", attack="" if kind in CLAIMS else kind)


def taken(entry: Entry, runs: Runs) -> Submission:
    return parsed(entry.name, tarball(entry, runs, SEED))


def test_a_course_has_its_proportions() -> None:
    assert len(COURSE) == 2100
    assert len({entry.name for entry in COURSE}) == 2100
    claims, attacks = Counter(entry.claim for entry in COURSE), Counter(entry.attack for entry in COURSE)
    assert claims[""] == 1890
    assert attacks[""] == 2058
    assert set(claims) == {"", *CLAIMS}
    assert set(attacks) == {"", LOOP, *ATTACKS}
    assert attacks[LOOP] == 1
    assert not any(entry.claim and entry.attack for entry in COURSE)


def test_few_fixes_are_handed_in_by_most_and_a_few_by_one() -> None:
    counts = Counter((entry.recipe, entry.fix) for entry in COURSE)
    assert 58 <= len(counts) <= 63
    assert 1 <= sum(count == 1 for count in counts.values()) <= 9
    for recipe in recipe_ids():
        own = {fix: count for (of, fix), count in counts.items() if of == recipe}
        assert max(own, key=lambda fix: own[fix]) == "reference"
        assert 150 <= own["reference"] <= 240
        verdicts = {fix.verdict for fix in fixes_of(recipe) if fix.id in own}
        assert {"full", "alternative", "masking", "overreach", "wrong"} == verdicts


def test_no_fix_is_one_that_is_held_back() -> None:
    for recipe in recipe_ids():
        assert not any(fix.held_back for fix in fixes_of(recipe))


def test_a_smaller_course_is_the_beginning_of_a_larger() -> None:
    assert planned(3, SEED) == COURSE[:21]
    assert planned(3, SEED + 1) != COURSE[:21]


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_a_fix_is_the_same_program_in_the_hand_of_any_student(pair: tuple[str, str]) -> None:
    source = fixed_source(*pair)
    hands = [replace(COURSE[0], student=student).random(SEED, "hand") for student in "abcdefgh"]
    own = {own_source(source, "ada", dice) for dice in hands}
    assert len(own) == 8
    assert {tree_digest(text) for text in own} == {tree_digest(source)}


def test_the_same_seed_has_the_same_bytes(runs: Runs, tmp_path: Path) -> None:
    few = [*entries()[:2], *map(odd, (*CLAIMS, *ATTACKS))]
    assert [tarball(entry, runs, SEED) for entry in few] == [tarball(entry, runs, SEED) for entry in few]
    assert tarball(few[0], runs, SEED) != tarball(few[0], runs, SEED + 1)
    make_course(tmp_path / "course", few[:2], runs, SEED)
    linked = link_class(tmp_path / "course", few[:1], tmp_path / "class")
    (path,) = linked.iterdir()
    assert path.read_bytes() == tarball(few[0], runs, SEED)
    assert path.stat().st_nlink == 2


def test_honest_submissions_are_whole_and_no_two_texts_are_equal(runs: Runs) -> None:
    students = entries()[:12]
    submissions = [taken(replace(entry, claim="", attack=""), runs) for entry in students]
    for entry, submission in zip(students, submissions, strict=True):
        assert submission.manifest.student == entry.student
        assert submission.missing == submission.ignored == ()
        assert tree_digest(submission.files["experiment.py"].decode()) == tree_digest(
            fixed_source(RECIPE, entry.fix)
        )
        assert submission.files["experiment.py"] == submission.files["runs/fixed/experiment.py"]
    assert len({one.files["experiment.py"] for one in submissions}) == 12
    assert len({one.files["report.md"] for one in submissions}) == 12


def test_a_report_is_one_and_cites_true_numbers_of_its_own(runs: Runs) -> None:
    reports = [
        parse_report(taken(entry, runs).files["report.md"].decode())
        for entry in entries()[:12]
        if not entry.claim and not entry.attack
    ]
    for report in reports:
        assert report.body.words <= 500
        own = report.evidence[-2:]
        assert [one.run for one in own] == ["broken", "fixed"]
    last = reports[0].evidence[-2]
    batches = runs[RECIPE, "reference"].batches["broken"]
    assert last.value is not None
    assert float(last.value) == pytest.approx(batches[last.step or 0]["loss"], rel=1e-5)
    assert len({report.body.words for report in reports}) > 3


def changes(entry: Entry, runs: Runs) -> Iterator[str]:
    """Yield the files of a submission that are not what an honest one with these words has."""
    honest = taken(replace(entry, claim="", attack=""), runs).files
    for name, content in taken(entry, runs).files.items():
        if content != honest[name] and name != "manifest.json":
            yield name


def test_claims_are_untrue_in_what_they_say(runs: Runs) -> None:
    fixed = "runs/fixed/"
    assert list(changes(odd("better log"), runs)) == [f"{fixed}metrics.log"]
    assert set(changes(odd("other checkpoint"), runs)) == {
        f"{fixed}checkpoint.pt",
        f"{fixed}checkpoint.pt.sha256",
    }
    assert {f"{fixed}metrics.log", f"{fixed}checkpoint.pt", f"{fixed}run.html"} <= set(
        changes(odd("other run"), runs)
    )
    with pytest.raises(Rejected) as refused:
        taken(odd("wrong hash"), runs)
    assert refused.value.code == "wrong hash"


def test_a_claim_that_would_be_true_is_none(runs: Runs) -> None:
    members = runs[RECIPE, "reference"].members
    with pytest.raises(ValueError, match="the same weights"):
        with_claim("other run", members, members)


@pytest.mark.parametrize("attack", [*ATTACKS, LOOP])
def test_attacks_are_refused_by_intake_or_hold_code_of_their_own(attack: str, runs: Runs) -> None:
    entry = odd(attack)
    if attack in REFUSED:
        with pytest.raises(Rejected):
            taken(entry, runs)
        return
    source = taken(entry, runs).files["experiment.py"].decode()
    assert source == entry_source(entry, SEED)
    assert tree_digest(source) != tree_digest(fixed_source(RECIPE, entry.fix))
