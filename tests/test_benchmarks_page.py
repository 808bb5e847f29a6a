from pathlib import Path

from benchmarks.page import PAGE, replace_section
from benchmarks.table import Machine, rows_as_markdown
from benchmarks.timing import Row


def test_a_section_takes_the_place_of_its_own_earlier_text_alone(tmp_path: Path) -> None:
    page = tmp_path / "docs" / "page.md"
    replace_section(page, "bench", "first")
    replace_section(page, "class", "second")
    before = page.read_text()
    replace_section(page, "bench", r"a \1 of its own")
    after = page.read_text()
    assert after == before.replace("\nfirst\n", "\n" + r"a \1 of its own" + "\n")
    assert after.count("<!-- section: bench -->") == after.count("<!-- end: bench -->") == 1
    assert after.endswith("<!-- section: class -->\n\nsecond\n\n<!-- end: class -->\n")


def test_what_people_wrote_between_sections_stays(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Title\n\nby hand\n\n<!-- section: bench -->\nold\n<!-- end: bench -->\n\nby hand, too\n"
    )
    replace_section(page, "bench", "new")
    text = page.read_text()
    assert text.startswith("# Title\n\nby hand\n\n<!-- section: bench -->\n\nnew\n\n<!-- end")
    assert text.endswith("<!-- end: bench -->\n\nby hand, too\n")


def test_the_page_has_the_section_of_bench() -> None:
    assert "<!-- section: bench -->" in PAGE.read_text()


def test_a_row_says_whether_its_target_is_the_least_or_the_most() -> None:
    machine = Machine("A Processor", 2, "3.11.7", "2.13.0", 0.25)
    most = Row("a", "cold", 130.0, "s", 360.0, "", {})
    least = Row("b", "speedup", 1.7, "x", 1.8, "", {}, at_least=True)
    assert most.met
    assert not least.met
    table = "\n".join(rows_as_markdown([most, least], machine))
    assert "| cold | 130 s | at most 360 s | yes |" in table
    assert "| speedup | 1.70 x | at least 1.80 x | NO |" in table
