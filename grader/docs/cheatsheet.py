"""Render `docs/cheatsheet.toml`: one A4 page as PDF, the optimizers of `optimizers.md`, the symptoms of `interview.md`.

`make cheatsheet` prints the PDF with Chromium. `python -m grader.docs.cheatsheet --write` renders the parts of the two
pages again, between comments that name them.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from grader.docs.pages import DOCS
from harness.errors import UserError
from harness.formats.toml_file import StrictModel, read_record
from harness.recipes.recipe import ROOT

DATA = DOCS / "cheatsheet.toml"
PDF = ROOT / "dist" / "cheatsheet.pdf"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# By page: the name of the part that this module renders.
PARTS = {"optimizers.md": "optimizers", "interview.md": "symptoms"}

SettingValues = dict[str, float | list[float]]


class Optimizer(StrictModel):
    """An optimizer: its update as Python, its settings, and when to choose it."""

    name: str
    torch: str
    update: list[str]
    state: list[str]
    defaults: SettingValues
    usual: SettingValues
    rates: str
    sources: str = ""
    when: str
    wrong: str
    exercise: list[str]
    memory: int


class Formula(StrictModel):
    """A topic, and its formulas as lines of text."""

    topic: str
    lines: list[str]


class WellKnownNumber(StrictModel):
    """Numbers to know by heart, and the Python expression that computes them."""

    name: str
    value: str
    python: str


class UsualRange(StrictModel):
    """The range that people usually choose for a setting."""

    name: str
    usual: str


class SheetSymptom(StrictModel):
    """A symptom, the first check in words, and the command."""

    see: str
    first: str
    command: str


class CheatSheet(StrictModel):
    """The content of `cheatsheet.toml`."""

    format_version: int
    optimizer: list[Optimizer]
    formula: list[Formula]
    number: list[WellKnownNumber]
    range: list[UsualRange]
    symptom: list[SheetSymptom]


def load_sheet(path: Path = DATA) -> CheatSheet:
    """Return the data of the cheat sheet. Raises `UserError` if the file is not valid."""
    return read_record(path, CheatSheet)


def settings_text(settings: SettingValues) -> str:
    """Return settings as they are written in Python, such as "lr=0.001, betas=(0.9, 0.999)"."""
    texts = {
        name: f"({', '.join(f'{one:g}' for one in value)})" if isinstance(value, list) else f"{value:g}"
        for name, value in settings.items()
    }
    return ", ".join(f"{name}={text}" for name, text in texts.items())


def render_html(sheet: CheatSheet) -> str:
    """Return the cheat sheet as one HTML page."""
    loader = FileSystemLoader(Path(__file__).parent / "templates")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    environment.globals |= {
        "settings": settings_text,
        "plain": lambda text: re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", text),
    }
    return environment.get_template("cheatsheet.html.j2").render(sheet=sheet)


def print_pdf(html: str, target: Path) -> None:
    """Print a page as PDF. Raises `UserError` if no browser is installed, or if it prints nothing."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        raise UserError("The cheat sheet is printed by Chromium, which is not installed: apt-get install chromium.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "cheatsheet.html")
        page.write_text(html, encoding="utf-8")
        command = [browser, "--headless", "--disable-gpu", "--no-sandbox", f"--user-data-dir={folder}/profile"]
        command += ["--no-pdf-header-footer", f"--print-to-pdf={target}", page.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode or not target.is_file():
        raise UserError(f"{browser} did not print the cheat sheet: {done.stderr.strip().rpartition(chr(10))[2]}")


def render_part(name: str, sheet: CheatSheet) -> str:
    """Return a part of a page as Markdown: "optimizers" or "symptoms"."""
    return "\n".join(_optimizers(sheet) if name == "optimizers" else _symptoms(sheet))


def _optimizers(sheet: CheatSheet) -> Iterator[str]:
    for one in sheet.optimizer:
        defaults = f"`{settings_text(one.defaults)}`"
        usual = f"; usual instead: `{settings_text(one.usual)}`" if one.usual else ""
        state = f"{', '.join(f'`{name}`' for name in one.state)}" if one.state else "none"
        yield f"## {one.name}\n\n```python\n" + "\n".join(one.update) + "\n```\n"
        yield f"- **State:** {state}. A parameter takes {4 * (2 + one.memory)} bytes in float32, with its gradient."
        yield f"- **PyTorch's defaults:** {defaults}{usual}."
        others = f" Our course material says {one.sources}." if one.sources else ""
        yield f"- **Usual rates:** {one.rates}.{others}"
        yield f"- **Choose it** {one.when}."
        yield f"- **What goes wrong:** {one.wrong}."
        yield f"- **Exercises:** {', '.join(f'`{name}`' for name in one.exercise) or 'none yet'}.\n"


def _symptoms(sheet: CheatSheet) -> Iterator[str]:
    yield "| you see | first check | command |\n| --- | --- | --- |"
    for one in sheet.symptom:
        yield f"| {one.see} | {one.first} | `harness {one.command} X` |"


def with_part(text: str, name: str, part: str) -> str:
    """Return the text of a page with another part between its two comments."""
    pattern = rf"(?<=<!-- {name}: docs/cheatsheet\.toml -->\n\n).*?(?=<!-- end -->)"
    return re.sub(pattern, lambda _: part.rstrip("\n") + "\n\n", text, flags=re.DOTALL)


def main(words: Sequence[str]) -> int:
    """Print the PDF, or with `--write` render the parts of the pages. Return the exit code."""
    try:
        sheet = load_sheet()
        if words == ["--write"]:
            for page, name in PARTS.items():
                text = (DOCS / page).read_text(encoding="utf-8")
                (DOCS / page).write_text(with_part(text, name, render_part(name, sheet)), encoding="utf-8")
            return 0
        print_pdf(render_html(sheet), PDF)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"Printed {PDF.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
