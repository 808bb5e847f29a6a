from click.testing import CliRunner

from benchmarks import calibrate


def test_the_page_is_written_whole_or_not_at_all() -> None:
    for words in (["--write", "--recipe", "huge_lr"], ["--data", "digits", "--write"]):
        done = CliRunner().invoke(calibrate.main, words)
        assert done.exit_code == 2
        assert "leave --recipe and --data out" in done.stderr


def test_the_page_says_the_command_that_made_it() -> None:
    row = calibrate.Row("huge_lr", "digits", "max loss", "> 50", [3426.0, None], [2.3, 2.4], 1)
    page = calibrate._markdown([row], 2)
    assert "| huge_lr | digits | max loss | > 50 | 3426 to 3426 | 2.3 to 2.4 | 1 |" in page
    written = calibrate.PAGE.read_text(encoding="utf-8")
    assert page.splitlines()[2].partition(":")[0] == written.splitlines()[2].partition(":")[0]
