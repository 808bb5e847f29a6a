"""Generate pages of the site from the recipes, the checks, and the measurements of `grader selfcheck`."""

import json
from pathlib import Path

from grader.selfcheck.calibration import calibration_page, load_calibration
from grader.selfcheck.cases import cases_page, silent_reasons
from grader.selfcheck.guide import field_guide, interview_cards, matrix
from harness.checks.core.outcomes import outcomes_of, trips_of
from harness.recipes.cases import load_cases
from harness.recipes.recipe import ROOT, load_recipes
from harness.student.check_commands import documentation

DOCS = ROOT / "docs"
_NOTEBOOK = "start.ipynb"


def make_pages() -> dict[str, str]:
    """Return the text of each generated page, by its file name. Raises `UserError` if a recipe cannot be read."""
    recipes, _ = load_recipes()
    trips = {recipe.id: trips_of(recipe.id) for recipe in recipes}
    outcomes = {recipe.id: outcomes_of(recipe.id) for recipe in recipes}
    calibrations = {recipe.id: load_calibration(recipe.id) for recipe in recipes}
    return {
        "calibration.md": calibration_page(recipes, trips, outcomes, calibrations),
        "cases.md": cases_page(load_cases(), outcomes, silent_reasons(recipes)),
        "checks.md": documentation(),
        "faults.md": field_guide(recipes, trips),
        "interview-cards.md": interview_cards(recipes),
        "matrix.md": matrix(recipes, trips, outcomes),
        "security.md": (ROOT / "SECURITY.md").read_text(encoding="utf-8").replace("](docs/", "]("),
        "start.md": notebook_page(DOCS / _NOTEBOOK),
    }


def notebook_page(path: Path) -> str:
    """Return a notebook as a page in Markdown, without the output of its cells."""
    title, *cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    about = f"This page shows the notebook [{path.name}]({path.name}), so that you can read it before you run it."
    texts = ["".join(title["source"]), about]
    for cell in cells:
        source = "".join(cell["source"])
        language = "console" if source.startswith("!") else "python"
        texts.append(source if cell["cell_type"] == "markdown" else f"```{language}\n{source}\n```")
    return "\n\n".join(texts) + "\n"
