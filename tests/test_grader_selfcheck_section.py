import io

from rich.console import Console

from grader.selfcheck.section import Row, Section, Table, page, show

SECTION = Section(
    title="Variants",
    says="What is compared.",
    tables=(
        Table(("recipe", "given"), (Row(("huge_lr", "20")), Row(("loss_sum", "4 | 5"), agrees=False))),
        Table(("more",), (Row(("x",)),)),
    ),
    figures="1 of 2 agree.",
    disagreements=("loss_sum: [red] 4 points\nnot 18",),
    notes=("mnist was left out",),
)


def test_a_section_is_printed_with_its_figures_last() -> None:
    console = Console(file=io.StringIO(), width=100)
    show(SECTION, console)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert lines[-1] == "Variants: 1 of 2 agree."
    text = "\n".join(lines)
    assert "mnist was left out" in text
    assert "loss_sum: [red] 4 points" in text  # not taken for a colour


def test_a_page_says_its_command_and_keeps_every_cell_in_its_column() -> None:
    text = page([SECTION, SECTION], "grader selfcheck --seeds 10 --write")
    assert text.startswith("# Calibration\n\nWritten by `grader selfcheck --seeds 10 --write`.")
    assert text.count("## Variants") == 2
    assert "| loss_sum | 4 \\| 5 |" in text
    assert "- loss_sum: [red] 4 points not 18" in text
    assert "**1 of 2 agree.**" in text
    assert "\n\n| more |\n| --- |\n| x |\n" in text
