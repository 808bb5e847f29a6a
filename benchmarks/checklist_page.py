"""Writes docs/checklist.md, and docs/checklist.html to print on one sheet, from the checks of the method.

python -m benchmarks.checklist_page
"""

from html import escape
from pathlib import Path

from harness.checks.checks import Check, Outcome, load_checks

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = DOCS / "checklist.md"
SHEET = DOCS / "checklist.html"
# Whose commands the checklist shows; with another exercise in its place they are the same.
EXERCISE = "huge_lr"

# What comes before the checks, and after them: a command, and what it is for.
BEFORE = (
    (
        f"harness exercise {EXERCISE}",
        "Make it fail here, from a fixed seed. Read the run's page: what is wrong first?",
    ),
    (
        f"harness triage {EXERCISE}",
        "The whole method in one go, with one page; or one check after the other, as below.",
    ),
)
AFTER = (
    (f"harness verify {EXERCISE}", "One change at a time; each is run whole, beside the broken run."),
    (f"harness compare {EXERCISE}", "Where do the two runs first differ? There the cause acted."),
    (
        f"harness triage {EXERCISE} --untouched --only overfit",
        "The clue that led you there, once more with and without the edit.",
    ),
    (f"harness repro {EXERCISE}", "Not found? One tarball with which somebody else sees the same step fail."),
)
_RULES = (
    "Cheap checks first; one hypothesis at a time; evidence before fixes.",
    "The first outcome that is not sound is the clue; later ones may be its consequences.",
    "A symptom that is gone is no cause that is found: say which figure proves it.",
)
# The heading at which the kit's copy of a page ends.
_MAKING = (
    "## Making them again",
    "",
    "Both pages are written by `python -m benchmarks.checklist_page` from `harness/checks/checks.toml`.",
)


def parts() -> tuple[tuple[str, tuple[Check, ...]], ...]:
    """Return the checks of triage, in its order, and those that an outcome sends to."""
    checks = load_checks()
    return (
        ("The method, in order", tuple(check for check in checks if check.triage)),
        ("Where an outcome sends you", tuple(check for check in checks if not check.triage)),
    )


def goes_to(outcome: Outcome) -> str:
    """Return where an outcome sends: the place to read, then checks."""
    place = [] if outcome.look is None else [f"read {outcome.look}"]
    return "; ".join([*place, *([", ".join(outcome.next)] if outcome.next else [])])


def page() -> str:
    """Return docs/checklist.md."""
    lines = [
        "# Checklist",
        "",
        "The checks of the method in order, each with its exact command; put your exercise in the place of",
        f"`{EXERCISE}`. [instruments.md](instruments.md) says how to read what they show. The same on one sheet to",
        "print: [checklist.html](checklist.html). Minutes are what a check costs a person, to run and to read.",
        "",
        *(f"- {rule}" for rule in _RULES),
        "",
        "## Before",
        "",
        *_commands(BEFORE),
    ]
    number = 0
    for title, checks in parts():
        lines += ["", f"## {title}"]
        for check in checks:
            number += 1
            lines += ["", *_section(number, check)]
    lines += ["", "## After", "", *_commands(AFTER), "", *_MAKING]
    return "\n".join(lines) + "\n"


def _commands(rows: tuple[tuple[str, str], ...]) -> list[str]:
    return [f"- [ ] `{command}`: {words}" for command, words in rows]


def _section(number: int, check: Check) -> list[str]:
    lines = [
        f"### {number}. {check.question}",
        "",
        f"- [ ] `{check.command_for(EXERCISE)}` ({check.minutes:g} min)",
        "",
        f"| {check.id} | what it means | go on with |",
        "| --- | --- | --- |",
    ]
    for outcome in check.outcomes:
        name = outcome.id if outcome.sound else f"**{outcome.id}**"
        lines.append(f"| {name} | {outcome.reading} | {goes_to(outcome)} |")
    return lines


_STYLE = """\
@page { size: A4 landscape; margin: 8mm }
body { font: 7.6pt/1.22 system-ui, sans-serif; margin: 0 auto; max-width: 281mm; color: #000 }
h1 { font-size: 13pt; margin: 0 0 1mm } p { margin: 0 0 1mm }
table { border-collapse: collapse; width: 100%; margin: 0 0 1.2mm }
th, td { border: .2mm solid #999; padding: .35mm 1mm; text-align: left; vertical-align: top }
th { background: #eee } tr { break-inside: avoid }
code { font: 7.2pt ui-monospace, monospace; white-space: nowrap }
td:first-child { width: 3mm } b { color: #a00 } .min { text-align: right; white-space: nowrap }
@media screen { body { padding: 8mm } }
"""


def sheet() -> str:
    """Return docs/checklist.html: one side of A4."""
    rows = []
    number = 0
    for title, checks in parts():
        rows.append(
            f'<tr><th></th><th colspan="2">{escape(title)}</th><th>min</th><th>outcome: go on with</th></tr>'
        )
        for check in checks:
            number += 1
            outcomes = "; ".join(_outcome(outcome) for outcome in check.outcomes)
            rows.append(
                f"<tr><td>☐</td><td>{number}. {escape(check.question)}</td>"
                f"<td><code>{escape(check.command_for(EXERCISE))}</code></td>"
                f'<td class="min">{check.minutes:g}</td><td>{outcomes}</td></tr>'
            )
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            '<head><meta charset="utf-8"><title>Checklist</title>',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<style>\n{_STYLE}</style></head>",
            "<body>",
            "<h1>Debugging a training run</h1>",
            f"<p>{escape(' '.join(_RULES))} Bold outcomes are clues, the others rule something out.</p>",
            f"<table>{_rows(BEFORE)}</table>",
            "<table>",
            *rows,
            "</table>",
            f"<table>{_rows(AFTER)}</table>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _rows(rows: tuple[tuple[str, str], ...]) -> str:
    return "".join(
        f"<tr><td>☐</td><td><code>{escape(command)}</code></td><td>{escape(words)}</td></tr>"
        for command, words in rows
    )


def _outcome(outcome: Outcome) -> str:
    name = escape(outcome.id) if outcome.sound else f"<b>{escape(outcome.id)}</b>"
    return f"{name}: {escape(goes_to(outcome))}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    SHEET.write_text(sheet(), encoding="utf-8")
