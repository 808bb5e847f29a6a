"""An invented class of any size with every kind of verdict, for the tests of reports."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from grader.score.attachments import Attachments, Measurement
from grader.score.identity import compare_rows
from grader.score.rubric import load_weights
from grader.score.verdict import (
    Flag,
    RubricItem,
    RuleVerdict,
    Scores,
    SubmissionScore,
    criterion_score,
    full,
    lost,
    open_item,
)
from harness import __version__

NAMES = (
    "ada", "alan", "annie", "barbara", "claude", "donald", "dorothy", "edsger", "emmy", "evelyn", "frances", "george",
    "grace", "hedy", "herman", "ida", "jean", "joan", "john", "judea", "karen", "katherine", "konrad", "leslie",
)  # fmt: skip
# Invented titles, so that no test of a page depends on the existing exercises.
TITLES = {
    "steep": "The loss explodes in the first epoch",
    "mixed_up": "Accuracy stays at chance",
    "asleep": "Nothing is learnt after the first step",
    "blind": "The loss cannot fall below 1.46",
    "too_much": "Gradients grow with the batch",
}
BROKEN = """import torch

EPOCHS = 5
BATCH_SIZE = 64


def build_optimizer(model):
    \"\"\"Return the optimizer.\"\"\"
    return torch.optim.SGD(model.parameters(), lr=10.0, momentum=0.9)
"""
FIXED = BROKEN.replace("EPOCHS =", "# my fix: see report.md\nEPOCHS =").replace("lr=10.0", "lr=0.1")

HOSTILE = """</title></style><script>alert("1")</script><img src=x onerror=alert(2)>]]>&amp;\u202eevil\x1b[31m"""

RUBRIC = load_weights()
CHECK_TITLES = {"fix.correct": "The cause is gone", "fix.minimal": "Nothing else was changed"}

REPORT = """---
diagnosis:
  - {cause: steep, where: build_optimizer, first_wrong: {signal: loss, step: 1, value: 87.2}}
ruled_out:
  - {cause: mixed_up, signal: loss, step: 3, value: 1523.4}
evidence:
  - {run: broken, signal: loss, step: 3, value: 1523.4}
---

# Symptom

The loss is `2.303` at step 0, as it should be, and **1523.4** at step 3.

# Root cause

The learning rate is 10, a hundred times too large, so that each step overshoots:

| step | loss   | grad_norm |
| ---: | -----: | --------: |
| 0    | 2.303  | 0.91      |
| 3    | 1523.4 | 18234.5   |

```
optimizer = torch.optim.SGD(model.parameters(), lr=10.0, momentum=0.9)
```

# Fix

`lr=0.1`, see [the manual](https://pytorch.org/docs/stable/optim.html).

# Verification

1. The loss falls from the first step on.
2. Validation accuracy is 0.957 after epoch 4.

![the loss of both runs](runs/fixed/run.html)
"""


def digest(text: str) -> str:
    """Return an invented SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()


def make_row(
    submission: str, student: str, recipe: str, changes: dict[str, RubricItem], **more: object
) -> SubmissionScore:
    """Return a row in which every item has full points except the items in `changes`, by address."""
    earned = {
        f"{name}.{id_}": full(id_, _title(f"{name}.{id_}"), most, "It agrees with the replay, byte for byte.")
        for name, checks in RUBRIC.items()
        for id_, most in checks.items()
    } | changes
    criteria = {
        name: criterion_score(tuple(earned[f"{name}.{id_}"] for id_ in checks)) for name, checks in RUBRIC.items()
    }
    points = [one.points for one in criteria.values()]
    total = None if None in points else round(sum(p for p in points if p is not None), 2)
    fields: dict[str, Any] = {
        "submission": submission,
        "student": student,
        "recipe": recipe,
        "status": "not judged" if total is None else "graded",
        "total": total,
        "criteria": criteria,
        "provenance": {"archive_sha256": digest(submission), "seed": 42, "dataset": "digits"},
    }
    return SubmissionScore(**{**fields, **more})


def scores_of(*rows: SubmissionScore) -> Scores:
    """Return the scores of a class with these rows, each compared with the other rows."""
    return Scores(provenance={}, submissions=compare_rows(rows))


def changed(address: str, judge: Callable[..., RubricItem], *words: object, **more: object) -> dict[str, RubricItem]:
    """Return one entry of `changes`; `judge` is `lost` or `open_item`."""
    criterion, id_ = address.split(".")
    return {address: judge(id_, _title(address), RUBRIC[criterion][id_], *words, **more)}


def _title(address: str) -> str:
    return CHECK_TITLES.get(address, f"The check {address}")


_DECIDED = replace(
    lost("cause", "The right cause", 3, "Set by the instructor.", "Name one cause only.", points=2),
    rule=RuleVerdict(outcome="could not judge", points=None, reason="The report offers two causes."),
    comment="Right cause, but hedged: see me about the second paragraph.",
)
_WRONG = {
    **changed("fix.minimal", lost, "Judged only for a correct fix.", "Fix the cause first; then this counts."),
    **changed("fix.correct", lost, "The evaluator measured an accuracy of 0.112.", "Fix the cause.", points=4.0),
    **changed("reproducibility.fixed_checkpoint", lost, "The checkpoints differ.", "Run make verify."),
}
_FLAGS = (
    Flag(id="log_edited", message="The submitted log of the fixed run is not what its own code writes."),
    Flag(id="same_fix", message="The same syntax tree as 2 others: alan_steep, ida_steep."),
)
_OUT = "The archive contains ../../etc/passwd, a path that leads out of it: build it with make submit."
_UNJUDGED = "The sandbox did not start, twice (XX): score the class again."
STORIES: tuple[dict[str, Any], ...] = (
    {"changes": {}},
    {"changes": changed("fix.minimal", lost, "The edit has 14 nodes.", "Change one value.", points=5.0)},
    {"changes": _WRONG, "flags": _FLAGS},
    {"changes": changed("explanation.cause", open_item, "The report has no front matter.")},
    {"changes": {"explanation.cause": _DECIDED}},
    {"changes": {}, "status": "rejected", "reason": _OUT, "total": 0.0, "criteria": {}, "flags": _FLAGS[:1]},
    {"changes": {}, "status": "not judged", "reason": _UNJUDGED, "total": None, "criteria": {}},
)


def made_up_class(size: int = 40) -> tuple[Scores, dict[str, Attachments]]:
    """Return scores, and attachments by submission. Equal sizes give equal results."""
    rows, attachments = [], {}
    for index in range(size):
        turn, name = divmod(index, len(NAMES))
        student = NAMES[name] + (f"{turn}" if turn else "")
        recipe = list(TITLES)[index % len(TITLES)]
        row = make_row(f"{student}_{recipe}", student, recipe, **STORIES[index % len(STORIES)])
        rows.append(row)
        if row.status != "rejected":
            attachments[row.submission] = make_attachments(row.submission)
    provenance: dict[str, Any] = {"grader": __version__, "rubric_sha256": digest("rubric"), "sandbox": True}
    rows.sort(key=lambda row: row.submission)
    return Scores(provenance=provenance, submissions=tuple(rows)), attachments


def make_attachments(submission: str) -> Attachments:
    """Return plausible attachments of a correct fix."""
    return Attachments(
        submission=submission,
        broken_source=BROKEN,
        fixed_source=FIXED,
        report=REPORT,
        measurements=(
            Measurement(name="largest rate", value=0.1, wanted="below 1.0", good=True),
            Measurement(name="symptom: the loss passes 50", value="NaN", wanted="not above 50", good=False),
        ),
        symptom="the loss passes 50 within 20 steps",
    )
