"""A student's notebook: the instructor's, with the experiment in the cell that writes its file."""

import json
from pathlib import Path

from benchmarks.peers.environments import activated
from benchmarks.peers.submissions import HandedIn

_WRITES = "%%writefile experiment.py\n"


def student_notebook(handed_out: Path, one: HandedIn) -> str:
    """Return the notebook that a student hands in.

    What is executed in a notebook is the student's: a hostile one has the hostile lines in a cell as well, which
    runs in the process that checks.
    """
    notebook = json.loads(handed_out.read_text(encoding="utf-8"))
    cells = notebook["cells"]
    place = next(index for index, cell in enumerate(cells) if cell["id"] == "experiment")
    cells[place]["source"] = _WRITES + one.source
    if one.hostile:
        own = {**cells[place], "id": "own", "metadata": {}, "source": one.hostile}
        cells.insert(place + 1, own)
    return json.dumps(notebook, indent=1)


def notebook_environment(python: Path, folder: Path) -> dict[str, str]:
    """Return the environment for a tool of Jupyter's that reads no settings of whoever runs the benchmark.

    What it writes goes below `folder`, where a place is made for it.
    """
    home = folder / "jupyter"
    home.mkdir(exist_ok=True)
    names = ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    return {**activated(python), **{name: str(home / name.lower()) for name in names}}
