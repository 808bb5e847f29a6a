"""docs/start.ipynb, a first exercise in Jupyter or Colab."""

import re
import sys
from pathlib import Path

import nbformat
import pytest
from helpers.notebooks import run_notebook

from harness.cli import cli
from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import ROOT
from harness.run.files import RESULT
from harness.run.metrics_log import read_object

NOTEBOOK = ROOT / "docs" / "start.ipynb"


def test_it_is_valid_and_stored_without_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=nbformat.NO_CONVERT)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(code) > 5
    assert [cell.id for cell in code if cell.outputs or cell.execution_count is not None or cell.metadata] == []
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"  # the kernel of Jupyter and of Colab


def test_it_names_only_what_is_there_and_nothing_of_one_machine() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    text = "\n".join(cell.source for cell in notebook.cells)
    assert (
        re.findall(r"""(?:^|[\s"'`(=])(?:~?/[\w.]|[A-Za-z]:\\)[^\s"'`]*""", text, re.MULTILINE) == []
    )  # absolute paths
    assert "://" not in text  # the address of the repository may change
    verbs = set(re.findall(r"(?:^!|`!?)harness ([a-z][a-z-]+)", text, re.MULTILINE))
    assert verbs > {"exercise", "triage", "verify"}
    assert verbs <= set(cli.commands)
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert links
    assert [link for link in links if not (NOTEBOOK.parent / link).is_file()] == []


@pytest.mark.slow
def test_it_runs_from_top_to_bottom_and_fixes_the_cause(tmp_path: Path) -> None:
    run_notebook(NOTEBOOK, Path(sys.executable), tmp_path)
    workspace = tmp_path / "work/huge_lr"
    assert (workspace / "experiment.py").read_text() == load_recipe("huge_lr").healthy_source()
    accuracy = {
        run: read_object(workspace / "runs" / run / RESULT)["final_val_accuracy"] for run in ("broken", "fixed")
    }
    assert accuracy["broken"] < 0.2 < 0.9 < accuracy["fixed"]
    # The notebook hides this part of the page by its name.
    assert 'aria-labelledby="outcome"' in (workspace / "runs/broken/run.html").read_text()
