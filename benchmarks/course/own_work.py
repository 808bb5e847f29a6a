"""What a student's submission has of its own beside the fix: how the experiment is written down, and the report."""

import ast
import re
from collections.abc import Mapping, Sequence
from random import Random

from harness.run.metrics_log import Record

_COMMENTS = (
    "{student}: looked here first",
    "this part is fine, I printed the shapes",
    "not touched by {student}",
    "TODO ask in the exercise class why this works",
    "compared with the lecture notes",
    "changed by {student} on the {nth} try",
    "see my report",
    "same as in the notebook of week {n}",
)
_NOTES = (
    "I ran both experiments again before handing in.",
    "The curves of the two runs were compared by eye first, and then line by line in the log.",
    "It took {student} about {n} minutes to find it.",
    "I worked on this alone.",
    "I first printed the shapes in every function, which told me nothing.",
    "The page of the run was more useful than the log.",
    "All of it was run on my own laptop.",
    "I would look at the log earlier the next time.",
    "The lecture of week {n} helped.",
    "I put the log into a spreadsheet and sorted it by step.",
    "There may be shorter ways to write it down.",
    "Thanks to whoever wrote the instructions.",
)
# Plain ones of one line: other quotation marks around them change no program.
_PLAIN_TEXT = re.compile(r'(?<![\w"\'\\])"([\w %.,-]*)"(?!")')


def own_source(source: str, student: str, dice: Random) -> str:
    """Return the same program as this student writes it down: other comments, blank lines and quotation marks.

    One in five has it written anew by a program, as formatters do.
    """
    if dice.random() < 0.2:
        source = ast.unparse(ast.parse(source)) + "\n"
    simple, tops = _places(source)
    lines = source.splitlines()
    for number in dice.sample(simple, dice.randint(1, 4)):
        lines[number] += f"  # {_said(_COMMENTS, student, dice)}"
        if "'" not in lines[number]:
            lines[number] = _PLAIN_TEXT.sub(r"'\1'", lines[number])
    above = set(dice.sample(tops, dice.randint(1, 3)))
    text = []
    for number, line in enumerate(lines):
        if number in above:
            text += [*[""] * dice.randint(0, 2), f"# {_said(_COMMENTS, student, dice)}"]
        text.append(line)
    return "\n".join([*text, f"# handed in by {student}", ""])


def _places(source: str) -> tuple[list[int], list[int]]:
    """Return the lines that a statement fills alone, and those where one at the top begins; counted from 0."""
    tree = ast.parse(source)
    wholes = [
        node for node in ast.walk(tree) if isinstance(node, ast.stmt) and node.lineno == node.end_lineno
    ]
    docstring = 1 if isinstance(tree.body[0], ast.Expr) else 0
    tops = {min(node.lineno, *_decorated(node)) for node in tree.body[docstring:]}
    return sorted({node.lineno - 1 for node in wholes}), sorted(number - 1 for number in tops)


def _decorated(node: ast.stmt) -> Sequence[int]:
    return [node.lineno, *(item.lineno for item in getattr(node, "decorator_list", ()))]


def _said(phrases: Sequence[str], student: str, dice: Random) -> str:
    return dice.choice(phrases).format(student=student, n=dice.randint(2, 90), nth=f"{dice.randint(4, 9)}th")


def own_report(model: str, student: str, logs: Mapping[str, Sequence[Record]], dice: Random) -> str:
    """Return a report with some evidence and notes of the student's own in a model report.

    logs: the batches of the runs "broken" and "fixed", from which true numbers are cited and lines are shown.
    """
    front, _, body = model.removeprefix("---\n").partition("---\n")
    cited = [_evidence(run, records, dice) for run, records in sorted(logs.items())]
    notes = [_said([note], student, dice) for note in dice.sample(_NOTES, dice.randint(2, 7))]
    shown = [] if dice.random() < 0.25 else [_snippet(logs["broken"], dice)]
    parts = [
        "\n".join(["---", front.rstrip(), *cited, "---"]),
        body.strip(),
        *shown,
        f"{' '.join(notes)}\n\n{student}",
    ]
    return "\n\n".join(parts) + "\n"


def _evidence(run: str, records: Sequence[Record], dice: Random) -> str:
    record = dice.choice(records[:50])
    return f"  - {{run: {run}, signal: loss, step: {record['step']}, value: {record['loss']:.6g}}}"


def _snippet(records: Sequence[Record], dice: Random) -> str:
    first = dice.randint(0, 5)
    lines = [
        f"{record['step']:>5} {record['loss']:>12.6g} {record['grad_norm']:>12.6g}"
        for record in records[first : first + dice.randint(3, 8)]
    ]
    return "\n".join(["```", " step         loss    grad_norm", *lines, "```"])
