"""Similar work: what people wrote alone is not flagged, copies of many kinds are, and a page shows both."""

import os
import random
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest
from made_up_class import HOSTILE, make_row, scores_of
from page_reader import Page
from trial import labelled_fixes

from grader.report.pages import render_class_page, render_similar_page, render_submission
from grader.report.text import file_stem
from grader.report.write import write_reports
from grader.score.similarity import NOTHING_ALIKE, Likeness, Work, find_alike, flagged
from grader.score.verdict import Scores
from harness.recipe import load_recipe
from harness.workspace import report_template

FOLDER = Path(__file__).parent / "similar"
REPORTS = tomllib.loads((FOLDER / "reports.toml").read_text(encoding="utf-8"))
PROGRAMS = tomllib.loads((FOLDER / "programs.toml").read_text(encoding="utf-8"))["edit"]
ALONE: dict[str, str] = REPORTS["independent"]
RECIPE = load_recipe("huge_lr")
GIVEN = (RECIPE.broken_source(), RECIPE.healthy_source())
LONG = [name for name, text in ALONE.items() if len(text.split()) > 60]


def work(student: str, report: str = "", program: str = "", **more: object) -> Work:
    facts = {"submission": f"{student}_x", "student": student, "exercise": "x", "report": report, "program": program}
    return Work(**{**facts, **more})  # type: ignore[arg-type]


def found(*works: Work) -> Likeness:
    return find_alike(works, lambda _: GIVEN)


def names(likeness: Likeness) -> list[tuple[str, str]]:
    return [(pair.one.student, pair.other.student) for pair in likeness.pairs]


def everyone() -> list[Work]:
    return [work(name, text) for name, text in ALONE.items()]


def reordered(text: str) -> str:
    parts = [part.partition("\n") for part in re.split(r"(?m)^(?=# )", text) if part.strip()]
    sentences = [re.split(r"(?<=[.!?:])\s+", body.strip()) for _, _, body in parts]
    for some in sentences:
        random.Random(3).shuffle(some)
    return "\n\n".join(f"{head}\n{' '.join(some)}" for (head, _, _), some in zip(parts, sentences, strict=True))


def first_half(text: str) -> str:
    words = text.split(" ")
    return " ".join(words[: len(words) // 2]) + f"\n\n{REPORTS['ends']['one']}"


def with_optimizer(text: str) -> str:
    return re.sub(r"(?s)def build_optimizer.*?(?=\n\n\n)", lambda _: text.strip("\n"), GIVEN[0])


def test_reports_that_people_wrote_alone_are_not_flagged() -> None:
    assert found(*everyone()) == NOTHING_ALIKE


def test_fixes_that_people_wrote_alone_are_not_flagged() -> None:
    by_recipe = defaultdict(list)
    for _, fix in labelled_fixes():
        by_recipe[fix.recipe].append(fix.source)
    assert sum(map(len, by_recipe.values())) > 400
    for recipe, sources in by_recipe.items():
        programs = [recipe.broken_source(), recipe.healthy_source()]
        works = [work(f"s{number}", program=source) for number, source in enumerate(sources)]
        assert find_alike(works, {"x": programs}.__getitem__).pairs == ()


@pytest.mark.parametrize("name", ALONE)
def test_a_copied_report_is_found(name: str) -> None:
    for report, why in ((ALONE[name], "is the same file"), (f"{ALONE[name]}\n", "has the same prose")):
        [pair] = found(*everyone(), work("zed", report)).pairs
        assert {pair.one.student, pair.other.student} == {name, "zed"}
        assert pair.reasons == (f"Their report {why}.",)


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("change", [reordered, first_half])
def test_a_report_is_found_that_was_reordered_or_copied_to_its_half(name: str, change: object) -> None:
    assert callable(change)
    assert names(found(*everyone(), work("zed", change(ALONE[name])))) == [(name, "zed")]


@pytest.mark.parametrize("name", REPORTS["synonyms"])
def test_a_report_is_found_in_which_every_third_word_was_replaced(name: str) -> None:
    [pair] = found(*everyone(), work("zed", REPORTS["synonyms"][name])).pairs
    assert {pair.one.student, pair.other.student} == {name, "zed"}
    [why] = pair.reasons
    assert re.fullmatch(r"Both reports share \d+ words, in runs of three or more: \d+% of what \w+ wrote\.", why)


def test_letters_that_only_look_alike_hide_nothing() -> None:
    disguised = ALONE["storyteller"].translate(str.maketrans("aeop", "\u0430\u0435\u043e\u0440"))
    assert names(found(*everyone(), work("zed", disguised))) == [("storyteller", "zed")]


@pytest.mark.parametrize("edit", PROGRAMS, ids=[edit["id"] for edit in PROGRAMS])
def test_a_copied_edit_is_found_if_it_is_more_than_a_line(edit: dict[str, str]) -> None:
    original = work("ada", program=with_optimizer(edit["original"]))
    for change in ("original", "comments", "names"):
        pairs = found(original, work("bob", program=with_optimizer(edit.get(change, edit["original"])))).pairs
        assert bool(pairs) == (change != "comments" or edit["id"] != "one_value")


def test_what_everybody_must_write_alike_is_not_similar() -> None:
    program = GIVEN[1]
    evidence = "- {run: broken, signal: loss, step: 1, value: 31.84}\n" * 9
    quoted = f"{report_template()}\n{evidence}\n```\n{ALONE['storyteller']}\n```\n"
    page = (Path(__file__).parents[1] / "docs" / "checks.md").read_text(encoding="utf-8")
    ours = "\n\n".join(sorted(re.findall(r"(?m)(?:^[A-Z].*\n)+", page), key=len)[-3:])
    assert len(ours) > 600
    assert found(*(work(student, quoted + ours, program) for student in ("ada", "bob"))) == NOTHING_ALIKE


def test_attempts_of_one_student_are_not_compared_and_hide_no_copy() -> None:
    own = [work(student, ALONE["physicist"], submission=f"ada_{at}") for at in range(40) for student in ("ada", "ADA ")]
    assert found(*own) == NOTHING_ALIKE
    assert names(found(*own, work("bob", ALONE["physicist"]))) == [("ada", "bob")]


def test_exercises_are_compared_by_themselves() -> None:
    assert found(work("ada", ALONE["physicist"]), work("bob", ALONE["physicist"], exercise="y")) == NOTHING_ALIKE


def test_a_passage_that_many_share_is_left_out_and_named_and_equal_reports_are_not() -> None:
    lecture = ALONE["physicist"].split("\n\n")[1]
    texts = [f"{lecture}\n\n{text}" for text in ALONE.values()]
    likeness = found(*(work(f"s{number}", text) for number, text in enumerate(texts)))
    assert likeness.pairs == ()
    assert {len(passage.students) for passage in likeness.common} == {len(texts)}
    assert any("damped oscillator" in passage.text for passage in likeness.common)
    ring = found(*(work(f"s{number}", ALONE["storyteller"]) for number in range(200)))
    assert len(ring.pairs) == 199, "each with the first, not each with each"
    assert {name for pair in names(ring) for name in pair} == {f"s{number}" for number in range(200)}


def test_equal_logs_of_runs_with_different_seeds_are_found() -> None:
    logs = {"broken": "a"}
    ada, dan = work("ada", seed=13, logs=logs), work("dan", seed=7, logs=logs)
    [pair] = found(ada, dan).pairs
    assert pair.reasons == ("The logs of both broken runs have the same bytes, though their seeds differ.",)
    assert found(ada, work("bob", seed=13, logs=logs)) == NOTHING_ALIKE


def test_equal_answers_are_found_unless_they_are_the_solution() -> None:
    assert names(found(work("ada", answer="first: ask"), work("bob", answer="first: ask"))) == [("ada", "bob")]
    assert found(work("ada", answer=GIVEN[0]), work("bob", answer=GIVEN[0])) == NOTHING_ALIKE


@pytest.mark.parametrize(
    "text", ["a " * 30_000, "`" * 9_999, "{" * 9_999, "'''" * 9_999 + "'", "#" * 9_999, "\u202e\0" * 99]
)
def test_a_hostile_text_hides_no_other(text: str) -> None:
    works = [work("eve", text, text, answer=text), work("ada", ALONE["physicist"]), work("bob", ALONE["physicist"])]
    assert names(found(*works)) == [("ada", "bob")]


def copied() -> tuple[Likeness, list[Work]]:
    edit = with_optimizer(PROGRAMS[0]["original"])
    works = [*everyone(), work("zed", ALONE["storyteller"], edit), work("yan", "", edit), work(HOSTILE, HOSTILE * 9)]
    return found(*works, work(f"{HOSTILE}2", HOSTILE * 9)), works


def test_both_rows_have_a_flag_that_no_student_sees() -> None:
    likeness, works = copied()
    rows = flagged([make_row(one.submission, one.student, "x", {}) for one in works], likeness)
    flags = {row.student: [flag.message for flag in row.flags] for row in rows}
    assert [student for student, found in flags.items() if found] == ["storyteller", "zed", "yan", HOSTILE]
    assert "storyteller_x" in flags["zed"][0]
    assert "yan_x" in flags["zed"][0]
    zed = next(row for row in rows if row.student == "zed")
    assert "Like" in "".join(render_class_page(Scores(provenance={}, submissions=rows)))
    assert "storyteller" not in render_submission(zed, None)


def test_the_page_shows_both_texts_with_what_they_share_marked(tmp_path: Path) -> None:
    likeness, works = copied()
    source = render_similar_page(likeness)
    Page(source).check()
    marked = "".join(re.findall(r"<mark>(.*?)</mark>", source, re.DOTALL))
    assert "like a rocket" in marked
    assert "nesterov" in marked
    assert "def train_step" not in source, "of a program, only the lines near a marked one"
    rows = [make_row(one.submission, one.student, "x", {}) for one in works]
    paths = write_reports(scores_of(*rows), {}, tmp_path / "reports", likeness=likeness)
    assert {path.name for path in (tmp_path / "reports").iterdir()} == {path.name for path in paths}
    assert 'href="similar.html"' in (tmp_path / "reports" / "index.html").read_text()
    write_reports(scores_of(*rows), {}, tmp_path / "reports")
    assert not (tmp_path / "reports" / "similar.html").exists()
    assert file_stem("similar") != "similar"


def test_the_page_has_the_same_bytes_under_every_hash_seed() -> None:
    code = "import test_similarity as t; print(t.render_similar_page(t.copied()[0]))"
    pages: Iterable[bytes] = (
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parent,
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    )
    assert len(set(pages)) == 1
