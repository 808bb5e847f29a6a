"""Mutated recipes, solutions, rubrics, overrides, scores and cache entries: the readers accept or refuse them."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.fuzzing import LARGE, examples, mutated, outcome
from helpers.made_up_class import made_up_class
from hypothesis import given

from grader.course.decisions import apply_decisions, decisions_path, load_decisions
from grader.course.gradescope import Settings, results
from grader.replay.replay import Replay
from grader.replay.replays import Cache
from grader.report.gradebook import export, gradebook, gradebook_json
from grader.report.pages import render_class_page, render_submission
from grader.score.rubric import DEFAULT_RUBRIC, load_weights
from grader.score.scores_file import read_scores, scores_json
from harness.errors import UserError
from harness.recipes.catalogue import load_recipe
from harness.recipes.known_edits import load_variants
from harness.recipes.recipe import EXERCISES, SOLUTIONS

pytestmark = LARGE
ID = "huge_lr"
KEY = "ab" * 32
_CLASS, _EXHIBITS = made_up_class(5)
_OVERRIDES = b"""# mine
[[override]]
submission = "ada_huge_lr"
check = "fix.correct"
points = 12
comment = "Read it together."

[[override]]
submission = "eve_huge_lr"
total = 40
comment = "By hand."
"""
_TOML_TOKENS = (
    b"[", b"]", b"[[", b"]]", b"=", b"\n", b'"', b"'", b'"""', b"{", b"}", b",", b".", b"#", b"\0", b"\xff", b"nan",
    b"inf", b"-1", b"1e999", b"9" * 5000, b"true", b"2026-02-30", b'"\\ud800"', b'"\\u202e"', b"[[override]]\n",
    b"a = [", b"a = {b = ", b"format_version = 1\n", b"[[edit]]\n", b"find = ''\n", b"a.b.c.", b"0x", b"\r\n",
)  # fmt: skip
_JSON_TOKENS = (
    b"{", b"}", b"[", b"]", b'"', b":", b",", b"null", b"true", b"1e999", b"-1", b"NaN", b"Infinity", b"9" * 400,
    b'"\\ud800"', b'"\\u0000"', b'"\\u202e"', b"\xff", b'{"a":', b"[[", b'"graded"', b'"rejected"', b"0.1",
    b'"passed"', b"9" * 5000, b"1e308",
)  # fmt: skip


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


def _in_folder(name: str, load: Callable[[str, Path], object]) -> Callable[[Path, bytes], object]:
    def read(scratch: Path, data: bytes) -> object:
        (scratch / ID).mkdir(exist_ok=True)
        (scratch / ID / name).write_bytes(data)
        return load(ID, scratch)

    return read


def _one_file(load: Callable[[Path], object]) -> Callable[[Path, bytes], object]:
    def read(scratch: Path, data: bytes) -> object:
        path = scratch / "table.toml"
        path.write_bytes(data)
        return load(path)

    return read


def _decisions(scratch: Path, data: bytes) -> object:
    decisions_path(scratch / "reports").write_bytes(data)
    return load_decisions(scratch / "reports")


TABLES: dict[str, tuple[Callable[[Path, bytes], object], bytes]] = {
    "recipe": (_in_folder("recipe.toml", load_recipe), (EXERCISES / ID / "recipe.toml").read_bytes()),
    "variants": (_in_folder("variants.toml", load_variants), (SOLUTIONS / ID / "variants.toml").read_bytes()),
    "rubric": (_one_file(load_weights), DEFAULT_RUBRIC.read_bytes()),
    "decisions": (_decisions, _OVERRIDES),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_read_or_refused(name: str, scratch: Path) -> None:
    read, seed = TABLES[name]
    folder = scratch / name
    folder.mkdir()

    @given(mutated((seed,), _TOML_TOKENS))
    @examples(0.2)
    def look(data: bytes) -> None:
        outcome(lambda: read(folder, data), UserError, strangers=False)

    look()


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(
    "data",
    [b"\xff", b"a = " + b"9" * 5000, b"a = " + b"[" * 3000, b"a = " + b"{b = " * 3000],
    ids=["no text", "a number of 5,000 digits", "brackets", "braces"],
)
def test_what_no_reader_of_toml_takes_is_refused(name: str, data: bytes, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"\.toml is not (TOML|UTF-8)"):
        TABLES[name][0](tmp_path, data)


@given(mutated((b"".join(scores_json(_CLASS)),), _JSON_TOKENS))
@examples(0.3)
def test_scores_are_read_and_shown_or_refused(scratch: Path, data: bytes) -> None:
    (scratch / "scores.json").write_bytes(data)
    scores = outcome(lambda: read_scores(scratch), UserError)
    if scores is None:
        return
    outcome(lambda: b"".join(scores_json(scores)))
    outcome(lambda: ("".join(render_class_page(scores)), gradebook(scores), gradebook_json(scores)))
    outcome(lambda: results(scores.submissions, Settings(("steep", "asleep"))), UserError)
    outcome(lambda: export(scores, "canvas"), UserError)
    outcome(lambda: export(scores, "moodle"), UserError)
    for row in scores.submissions:
        page = render_submission(row, None, title="", provenance=scores.provenance)
        assert "<script" not in page
    decisions_path(scratch / "reports").write_bytes(_OVERRIDES)
    outcome(lambda: apply_decisions(scores, load_decisions(scratch / "reports")), UserError)


_RECORDS = (Replay(status="OK", log='{"step": 0}\n', log_sha256="0" * 64, platform={"device": "cpu"}),)


@given(mutated([record.model_dump_json().encode() for record in _RECORDS], _JSON_TOKENS))
@examples(0.25)
def test_a_remembered_record_is_read_or_as_good_as_none(scratch: Path, data: bytes) -> None:
    path = scratch / KEY[:2] / f"{KEY}.json"
    path.parent.mkdir(exist_ok=True)
    for content in (data, hashlib.sha256(data).hexdigest().encode() + b"\n" + data):
        path.write_bytes(content)
        outcome(lambda: Cache(scratch, Replay).get(KEY))
