"""Run a notebook to its end in a separate folder."""

import json
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode


def run_notebook(path: Path, python: Path, folder: Path) -> None:
    """Run a notebook in a folder with an interpreter.

    Fails at the first cell that raises, and at the first shell command that does not exit with 0.
    """
    notebook: NotebookNode = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    cells = []
    for cell in notebook.cells:
        cells.append(cell)
        # A failed shell command raises no exception.
        if cell.cell_type == "code" and re.search(r"^ *!", cell.source, re.MULTILINE):
            cells.append(nbformat.v4.new_code_cell("assert _exit_code == 0, _exit_code"))  # type: ignore[no-untyped-call]
    notebook.cells = cells
    home = folder / ".jupyter"
    kernel = home / "kernels" / "here" / "kernel.json"
    kernel.parent.mkdir(parents=True)
    launch = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel.write_text(json.dumps({"argv": launch, "display_name": "here", "language": "python"}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(home))
        for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):  # do not use the user's settings
            patch.setenv(name, str(home / name))
        place = {"metadata": {"path": str(folder)}}
        NotebookClient(notebook, kernel_name="here", resources=place, timeout=300).execute()
