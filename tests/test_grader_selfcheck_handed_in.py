"""The report that goes with a variant: what it cites is true of this run, also where the run is a shorter one."""

import gzip
from pathlib import Path

import pytest
from explanations import LOGS

from grader.course.examples import true_report
from grader.score.solutions import SOLUTIONS
from harness.recipe import load_recipe, recipe_ids
from harness.run.metrics_log import read_metrics_log
from harness.submission.cited_numbers import agrees, cited_value
from harness.submission.student_report import parse_report


@pytest.fixture(params=recipe_ids())
def recipe(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def fixed_run(recipe: str, folder: Path, *, epochs: int) -> Path:
    """Lay the beginning of a healthy run's log into a folder."""
    log = gzip.decompress((LOGS / f"{load_recipe(recipe).experiment}.log.gz").read_bytes()).decode()
    lines = [
        line for line in log.splitlines(keepends=True) if int(line.partition('"epoch": ')[2][0]) < epochs
    ]
    (folder / "metrics.log").write_text("".join(lines), encoding="utf-8")
    return folder


@pytest.mark.parametrize("epochs", [1, 9])
def test_what_is_cited_of_the_fixed_run_is_true(recipe: str, epochs: int, tmp_path: Path) -> None:
    folder = fixed_run(recipe, tmp_path, epochs=epochs)
    report = parse_report(true_report(recipe, folder))
    model = parse_report((SOLUTIONS / recipe / "report.md").read_text(encoding="utf-8"))
    records = read_metrics_log(folder / "metrics.log")
    own = [citation for citation in report.evidence if citation.run == "fixed"]
    assert own
    assert all(agrees(f"{cited_value(records, citation):.6g}", float(citation.value)) for citation in own)
    broken = [citation for citation in report.evidence if citation.run == "broken"]
    assert broken == [citation for citation in model.evidence if citation.run == "broken"]
    assert report.layer == model.layer
    # Only a run that is too short is told of by its first loss alone.
    assert (len(own) == 1) == (epochs == 1)
