from pathlib import Path

from benchmarks.page import PAGE, with_section, write_section

TWO = with_section(with_section("", "bench", "# First\n\none"), "peers", "## Second\n\ntwo\n")


def test_a_page_begins_with_its_first_section() -> None:
    assert with_section("", "bench", "# First\n") == "<!-- bench -->\n\n# First\n\n<!-- end of bench -->\n"


def test_each_section_is_replaced_and_the_other_stays() -> None:
    again = with_section(TWO, "bench", "# First\n\nanew: \\1")
    assert again == TWO.replace("one", "anew: \\1")
    assert with_section(again, "peers", "## Second\n\ntwo") == again


def test_what_stands_outside_of_the_sections_stays(tmp_path: Path) -> None:
    path = tmp_path / "docs" / "page.md"
    write_section(path, "bench", "# First")
    path.write_text(f"by hand\n\n{path.read_text()}\nat the end\n")
    write_section(path, "bench", "# Another")
    write_section(path, "peers", "## Second")
    text = path.read_text()
    assert text.startswith("by hand\n\n<!-- bench -->\n\n# Another\n\n<!-- end of bench -->\n")
    assert text.endswith("\nat the end\n\n<!-- peers -->\n\n## Second\n\n<!-- end of peers -->\n")


def test_the_page_of_the_repository_has_its_sections() -> None:
    # Otherwise the next --write would add a second one beside what is there.
    page = PAGE.read_text(encoding="utf-8")
    for name in ("bench",):
        assert page.count(f"<!-- {name} -->") == page.count(f"<!-- end of {name} -->") == 1
