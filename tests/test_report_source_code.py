import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_class import BROKEN, HOSTILE
from page_reader import Page

from grader.report.source_code import COLUMNS, LINES, highlighted_lines, plain_lines, source_diff
from harness.recipe import load_recipe, recipe_ids


def text_of(html: str) -> str:
    return "".join(Page(f"<code>{html}</code>").text)


def highlighted(source: str) -> list[str]:
    return [str(line) for line in highlighted_lines(tuple(plain_lines(source)))]


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("", []),
        ("\n", [""]),
        ("x = 1", ['x = <span class="m">1</span>']),
        ("# def x\n'#'", ['<span class="c"># def x</span>', '<span class="s">&#39;#&#39;</span>']),
        (
            "def f(): pass",
            ['<span class="k">def</span> <span class="f">f</span>(): <span class="k">pass</span>'],
        ),
        (
            "'''a\n\nb'''+c",
            ['<span class="s">&#39;&#39;&#39;a</span>', "", '<span class="s">b&#39;&#39;&#39;</span>+c'],
        ),
        ("'a\nb", ['<span class="s">&#39;a</span>', "b"]),
        ("rb'x'", ['<span class="s">rb&#39;x&#39;</span>']),
        ("lr=1e-5", ['lr=<span class="m">1e-5</span>']),
        ("x1.y2", ["x1.y2"]),
        ("@a.b\n", ['<span class="f">@a.b</span>']),
        ("a@b", ["a@b"]),
        ("<b>", ["&lt;b&gt;"]),
    ],
)
def test_what_has_a_colour(source: str, lines: list[str]) -> None:
    assert highlighted(source) == lines


@given(st.text(st.sampled_from("ab1 \n\t'\"\\#@.<&>{}()def=e-") | st.characters(codec=None)))
def test_highlighting_changes_no_character_and_closes_every_tag(source: str) -> None:
    lines = plain_lines(source)
    assert [text_of(line) for line in highlighted(source)] == lines


@pytest.mark.parametrize("recipe", recipe_ids())
def test_the_fix_of_every_recipe(recipe: str) -> None:
    loaded = load_recipe(recipe)
    diff = source_diff(loaded.broken_source(), loaded.healthy_source())
    old = loaded.broken_source().split("\n")
    new = loaded.healthy_source().split("\n")
    assert diff.hunks
    assert diff.removed + diff.added > 0
    for line in (line for hunk in diff.hunks for line in hunk):
        if line.old is not None:
            assert text_of(line.code) == old[line.old - 1]
        if line.new is not None:
            assert text_of(line.code) == new[line.new - 1]
        assert (line.old is None, line.new is None) == (line.kind == "added", line.kind == "removed")


def test_line_numbers_and_context() -> None:
    broken = "\n".join(f"line {i}" for i in range(1, 41))
    fixed = broken.replace("line 5\n", "line five\n").replace("line 30\n", "")
    first, second = source_diff(broken, fixed).hunks
    assert [(line.kind, line.old, line.new) for line in first] == [
        ("same", 2, 2),
        ("same", 3, 3),
        ("same", 4, 4),
        ("removed", 5, None),
        ("added", None, 5),
        ("same", 6, 6),
        ("same", 7, 7),
        ("same", 8, 8),
    ]
    assert [(line.kind, line.old, line.new) for line in second][3:5] == [
        ("removed", 30, None),
        ("same", 31, 30),
    ]


def test_equal_sources_have_no_hunk() -> None:
    assert source_diff("a\nb\n", "a\r\nb").hunks == ()


def test_a_hostile_line_stays_text() -> None:
    diff = source_diff("a", f"a\n{HOSTILE}")
    [added] = [line for line in diff.hunks[0] if line.kind == "added"]
    assert "<script" not in added.code
    assert "\u202e" not in added.code
    assert "<U+202E>" in text_of(added.code)


@pytest.mark.parametrize(
    "piece",
    ["\n", " \n", "a\n", "(", '"', '"""', 'f"{', "\\\n", "a.", " ", "@", "1_", "'''a\n", "b'", "def ", "#"],
)
def test_a_page_stays_small_whatever_the_source(piece: str) -> None:
    source = piece * (1_000_000 // len(piece))
    lines = plain_lines(source)
    diff = source_diff(BROKEN, source)
    assert len(lines) <= LINES + 1
    assert max(map(len, lines)) <= COLUMNS + 2
    assert diff.added <= LINES + 1
