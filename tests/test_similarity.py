"""Similar work: independent work is not flagged, copies of many kinds are flagged, and a page shows both texts."""

import os
import random
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from pathlib import Path

import pytest
from helpers.made_up_class import HOSTILE, make_row, scores_of
from helpers.page_reader import Page
from helpers.recorded_logs import log_bytes
from trial import LABELLED, labelled_fixes

from grader.report.pages import render_class_page, render_similar_page, render_submission
from grader.report.text import file_stem
from grader.report.write import write_reports
from grader.score.similarity import NOTHING_ALIKE, Likeness, Work, find_alike, flag_alike, groups_of
from grader.score.verdict import Scores
from harness.recipes.catalogue import load_recipe
from harness.student.check_commands import documentation
from harness.workspace.workspace import report_template

FOLDER = Path(__file__).parent / "data" / "similar"
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
    # In the third set, one person wrote several fixes of each recipe.
    for _, fix in chain.from_iterable(labelled_fixes(folder=LABELLED / name) for name in ("first", "second")):
        by_recipe[fix.recipe].append(fix.source)
    assert sum(map(len, by_recipe.values())) > 400
    for recipe, sources in by_recipe.items():
        programs = [recipe.broken_source(), recipe.healthy_source()]
        works = [work(f"s{number}", program=source) for number, source in enumerate(sources)]
        assert find_alike(works, {"x": programs}.__getitem__).pairs == ()


@pytest.mark.parametrize("name", ALONE)
def test_a_copied_report_is_found(name: str) -> None:
    for report, why in ((ALONE[name], "are the same file"), (f"{ALONE[name]}\n", "have the same text")):
        [pair] = found(*everyone(), work("zed", report)).pairs
        assert {pair.one.student, pair.other.student} == {name, "zed"}
        assert pair.reasons == (f"Both reports {why}.",)


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
    assert re.fullmatch(
        r"Both reports share \d+ words, in sequences of 3 or more, which is \d+% of what \w+ wrote\.", why
    )


def test_letters_that_only_look_alike_hide_nothing() -> None:
    disguised = ALONE["storyteller"].translate(str.maketrans("aeop", "\u0430\u0435\u043e\u0440"))
    assert names(found(*everyone(), work("zed", disguised))) == [("storyteller", "zed")]


def by_letter(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: re.sub("[A-Za-z]+", lambda match: change(match[0]), text)


def by_sentence(before: str, after: str) -> Callable[[str], str]:
    def changed(text: str) -> str:
        sentences = re.split(r"(?<=[.!?:])\s+", re.sub(r"(?m)^# .*$", "", text).strip())
        return "\n\n".join(f"{before}{one.replace(chr(10), ' ')}{after}" for one in sentences)

    return changed


DISGUISES: dict[str, Callable[[str], str]] = {
    "sentences in backticks": by_sentence("`", "`"),
    "words in backticks": lambda text: " ".join(
        f"`{one}`" if at % 3 == 0 else one for at, one in enumerate(text.split())
    ),
    "braces": by_sentence("{", "}"),
    "braces as in a record": by_sentence("{", ": 1}"),
    "headings": by_sentence("# ", ""),
    "underlined headings": by_sentence("", "\n---"),
    "short headings": lambda text: "\n\n".join(f"# {' '.join(text.split()[at : at + 4])}" for at in range(0, 400, 4)),
    "bold lines": by_sentence("**", "**"),
    "a table": by_sentence("| a |\n|---|\n| ", " |"),
    "code": by_sentence("```\n", "\n```"),
    "links": by_letter(lambda word: f"[{word}](x)"),
    "entities": by_letter(lambda word: f"&#{ord(word[0])};{word[1:]}"),
    "upper case": str.upper,
    "accents": by_letter(lambda word: f"{word[0]}\u0323{word[1:]}"),
    "underscores": lambda text: text.replace(" ", "_"),
    "digits": by_letter(lambda word: f"{word}1"),
    "dots": by_letter(".".join),
    **{f"U+{ord(char):04X}": by_letter(char.join) for char in "\u200d\u200b\u00ad\u034f\ufe0f\u2060\U000e0041"},
    **{
        f"U+{ord(blank):04X} as a blank": partial(re.sub, "(?<=[a-z,.]) ", blank)
        for blank in "\u3164\u2800\u00a0\uffa0"
    },
}


@pytest.mark.parametrize("how", DISGUISES)
def test_what_the_page_shows_alike_is_found_however_it_is_written(how: str) -> None:
    for name in ("careful_engineer", "storyteller"):
        assert (name, "zed") in names(found(*everyone(), work("zed", DISGUISES[how](ALONE[name]))))


@pytest.mark.parametrize("edit", PROGRAMS, ids=[edit["id"] for edit in PROGRAMS])
def test_a_copied_edit_is_found_if_it_is_more_than_a_line(edit: dict[str, str]) -> None:
    original = work("ada", program=with_optimizer(edit["original"]))
    for change in ("original", "comments", "names"):
        pairs = found(original, work("bob", program=with_optimizer(edit.get(change, edit["original"])))).pairs
        assert bool(pairs) == (change != "comments" or edit["id"] != "one_value")


def test_what_everybody_must_write_alike_is_not_similar() -> None:
    program = GIVEN[1]
    evidence = "- {run: broken, signal: loss, step: 1, value: 31.84}\n" * 9
    line = log_bytes("huge_lr").decode().partition("\n")[0]
    snippet = GIVEN[0][GIVEN[0].index("def build_optimizer") :][:400]
    inline = "{run: broken, signal: loss, step: 1, value: 31.84} `torch.optim.SGD(model.parameters(), lr=10.0)`"
    quoted = f"{report_template()}\n{evidence}\n```\n{line}\n{snippet}\n```\n{inline}\n\n{line}\n\n"
    ours = max((part for part in documentation().split("\n\n") if part[:1].isupper()), key=len)
    assert len(ours) > 300
    assert found(*(work(student, quoted + ours, program) for student in ("ada", "bob"))) == NOTHING_ALIKE


def test_attempts_of_one_student_are_not_compared_and_hide_no_copy() -> None:
    own = [work(student, ALONE["physicist"], submission=f"ada_{at}") for at in range(40) for student in ("ada", "ADA ")]
    assert found(*own) == NOTHING_ALIKE
    assert names(found(*own, work("bob", ALONE["physicist"]))) == [("ada", "bob")]


def test_exercises_are_compared_by_themselves() -> None:
    assert found(work("ada", ALONE["physicist"]), work("bob", ALONE["physicist"], exercise="y")) == NOTHING_ALIKE


def words_changed(text: str, seed: int) -> str:
    """Return a copy in which four words are different, at random places."""
    words, chance = text.split(" "), random.Random(seed)
    for at in chance.sample(range(len(words)), 4):
        words[at] = f"other{chance.choice('abcdefgh')}"
    return " ".join(words)


@pytest.mark.parametrize("ring", [2, 6, 20, 60])
@pytest.mark.parametrize("others", [0, len(ALONE)])
def test_many_copies_do_not_excuse_each_other(ring: int, others: int) -> None:
    copies = [work(f"z{number}", words_changed(ALONE["careful_engineer"], number)) for number in range(ring)]
    pairs = names(found(*copies, *everyone()[:others]))
    assert {f"z{number}" for number in range(ring)} <= {name for pair in pairs for name in pair}
    alone = ALONE.keys() - {"careful_engineer"}
    assert not any(alone.intersection(pair) for pair in pairs)


def test_a_passage_that_many_share_is_named_and_a_ring_makes_a_pair_with_each() -> None:
    lecture = ALONE["physicist"].split("\n\n")[1]
    texts = [f"{lecture}\n\n{text}" for text in ALONE.values()]
    likeness = found(*(work(f"s{number}", text) for number, text in enumerate(texts)))
    assert {len(passage.students) for passage in likeness.common} == {len(texts)}
    assert any("damped oscillator" in passage.text for passage in likeness.common)
    ring = found(*(work(f"s{number}", ALONE["storyteller"]) for number in range(200)))
    assert len(ring.pairs) == 199, "each with the first, not each with each"
    assert {name for pair in names(ring) for name in pair} == {f"s{number}" for number in range(200)}


def test_equal_logs_of_runs_with_different_seeds_are_found() -> None:
    logs = {"broken": "a"}
    ada, dan = work("ada", seed=13, logs=logs), work("dan", seed=7, logs=logs)
    [pair] = found(ada, dan).pairs
    assert pair.reasons == ("The logs of both broken runs have the same bytes, although their seeds differ.",)
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
    rows = flag_alike([make_row(one.submission, one.student, "x", {}) for one in works], likeness)
    flags = {row.student: [flag.message for flag in row.flags] for row in rows}
    assert [student for student, found in flags.items() if found] == ["storyteller", "zed", "yan", HOSTILE]
    assert "storyteller_x" in flags["zed"][0]
    assert "yan_x" in flags["zed"][0]
    zed = next(row for row in rows if row.student == "zed")
    assert "Similar to" in "".join(render_class_page(Scores(provenance={}, submissions=rows)))
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


def test_four_copies_are_one_group() -> None:
    text = ALONE["storyteller"]
    likeness = found(
        *everyone(),
        *(work(name, text) for name in ("ann", "bea", "cas")),
        work("x", PROGRAMS[0]["original"] * 2),
        work("y", PROGRAMS[0]["original"] * 2),
    )
    assert len(likeness.pairs) == 7
    four, two = groups_of(likeness.pairs)
    assert sorted(one.student for one in four.members) == ["ann", "bea", "cas", "storyteller"]
    assert (len(four.pairs), four.more, [one.student for one in two.members]) == (3, 3, ["x", "y"])
    page = render_similar_page(likeness)
    assert '<h2 id="groups">2 groups</h2>' in page
    assert "3 more pairs of this group are not shown" in page
    Page(page).check()


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
