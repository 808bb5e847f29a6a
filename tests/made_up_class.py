"""A made-up class of any size with every kind of verdict, for the tests of reports."""

import hashlib
import math
import random
import re
from collections.abc import Callable
from typing import Any, Literal

from grader.score.exhibits import (
    CitedNumber,
    Curve,
    Exhibits,
    HashComparison,
    Measurement,
    Number,
    ReplayOutcome,
    Run,
)
from grader.score.verdict import (
    Check,
    Criterion,
    Flag,
    RuleVerdict,
    Scores,
    SubmissionScore,
    criterion_score,
    full,
    lost,
    open_check,
)

NAMES = re.findall(
    r"\w+",
    "ada alan annie barbara claude donald dorothy edsger emmy evelyn frances george grace hedy herman ida jean"
    " joan john judea karen katherine konrad leslie lynn margaret mary maurice niklaus radia richard robin"
    " shafi silvio sophie stephen tim tony vint yann",
)
# Invented, so no test of a page depends on the exercises that are there.
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

HOSTILE = (
    """</title></style><script>alert("1")</script><img src=x onerror=alert(2)>]]>&amp;\u202eevil\x1b[31m"""
)

RUBRIC: dict[Criterion, tuple[tuple[str, str, float], ...]] = {
    "reproducibility": (
        ("archive", "The archive is whole, and the commands are recorded", 3),
        ("broken_log", "The log of the broken run is the replay's", 8),
        ("broken_checkpoint", "The checkpoint of the broken run is the replay's", 7),
        ("fixed_log", "The log of the fixed run is the replay's", 9),
        ("fixed_checkpoint", "The checkpoint of the fixed run is the replay's", 8),
    ),
    "diagnostics": (
        ("broken_complete", "The broken log is complete for every batch", 8),
        ("fixed_complete", "The fixed log is complete for every batch", 4),
        ("broken_number", "A cited number of the broken run is true in the replay", 6),
        ("key_signal", "It is one of this recipe's key signals", 6),
        ("fixed_number", "A cited number of the fixed run is true and shows recovery", 4),
        ("symptom_shown", "A plot or snippet of the symptom", 2),
    ),
    "fix": (
        ("correct", "The cause is gone", 12),
        ("minimal", "Nothing else was changed", 8),
    ),
    "explanation": (
        ("cause", "The right cause", 3),
        ("where", "The function that holds it", 2),
        ("first_wrong", "The earliest sign of it", 3),
        ("ruled_out", "Two other causes, each contradicted", 4),
        ("numbers", "Every number in the text agrees with the logs", 2),
        ("form", "At most 500 words, in four parts", 1),
    ),
}

REPORT = """---
diagnosis:
  - {cause: steep, where: build_optimizer, first_wrong: {signal: loss, step: 1, value: 87.2}}
ruled_out:
  - {cause: mixed_up, signal: loss, step: 3, value: 1523.4}
  - {cause: asleep, check: loss_form, outcome: agrees}
evidence:
  - {run: broken, signal: loss, step: 3, value: 1523.4}
  - {run: fixed, signal: val_accuracy, epoch: 4, value: 0.957}
---

# Symptom

The loss is `2.303` at step 0, as it should be, and **1523.4** at step 3.

# Root cause

The learning rate is 10, a hundred times too large, so that each step overshoots:

| step | loss   | grad_norm |
| ---: | -----: | --------: |
| 0    | 2.303  | 0.91      |
| 1    | 87.2   | 41.7      |
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


NUMBERS: tuple[tuple[str, Literal["verified", "refuted"]], ...] = (
    ("2.303", "verified"),
    ("18234.5", "refuted"),
)


def digest(text: str) -> str:
    """Return some SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()


def make_row(
    submission: str, student: str, recipe: str, changes: dict[str, Check], **more: object
) -> SubmissionScore:
    """Return a row in which every check is earned but those in `changes`, by their address."""
    criteria = {}
    for criterion, rubric in RUBRIC.items():
        checks = tuple(
            changes.get(f"{criterion}.{id_}")
            or full(id_, title, most, "It agrees with the replay, byte for byte.")
            for id_, title, most in rubric
        )
        criteria[criterion] = criterion_score(checks)
    points = [one.points for one in criteria.values()]
    total = None if None in points else round(sum(p for p in points if p is not None), 2)
    fields = {
        "submission": submission,
        "student": student,
        "recipe": recipe,
        "status": "not judged" if total is None else "graded",
        "total": total,
        "criteria": criteria,
        "provenance": {"archive_sha256": digest(submission), "seed": 42, "dataset": "digits"},
    }
    return SubmissionScore.model_validate({**fields, **more})


def changed(address: str, judge: Callable[..., Check], *words: object, **more: object) -> dict[str, Check]:
    """Return one entry of `changes`; `judge` is `lost` or `open_check`."""
    criterion, id_ = address.split(".")
    title, most = next((title, most) for one, title, most in RUBRIC[criterion] if one == id_)
    return {address: judge(id_, title, most, *words, **more)}


_RULE = RuleVerdict(outcome="could not judge", points=None, reason="The report offers two causes.")
_DECIDED = Check(
    id="cause", title="The right cause", outcome="failed", points=2, max=3, reason="Set by the instructor.",
    remedy="Name one cause only.", rule=_RULE, comment="Right cause, but hedged: see me about the second paragraph.",
)  # fmt: skip
_NOT_MINIMAL = changed(
    "fix.minimal", lost, "The edit has 14 nodes, the reference edit 1.", "Change one value.", points=5.0
)
_NO_FIX = changed(
    "fix.minimal", lost, "Judged only for a correct fix.", "Fix the cause first; then this counts."
)
_UNJUDGED = "The sandbox did not start, twice (XX): grade it again with --only."
_REJECTED = "The archive holds ../../etc/passwd, a path that leads out of it: build it with make submit."
_FULL: dict[str, Any] = {"changes": {}}
_ALTERNATIVE: dict[str, Any] = {"changes": _NOT_MINIMAL}
_MASKING: dict[str, Any] = {
    "changes": _NO_FIX
    | changed("fix.correct", lost, "The symptom is gone, the cause is not.", "Remove the cause.", points=4.0)
    | changed(
        "explanation.cause", lost, "Your diagnosis names asleep.", "Name the cause that your fix undoes."
    ),
    "flags": (Flag(id="masked_cause", message="Healthy accuracy (0.94), and the rate is still too large."),),
}
_WRONG: dict[str, Any] = {
    "changes": _NO_FIX
    | changed("fix.correct", lost, "The evaluator measured an accuracy of 0.112.", "Fix the cause.")
    | changed(
        "reproducibility.fixed_log", lost, "Line 17 differs: 0.31, the replay has 2.31.", "Run make verify."
    )
    | changed("reproducibility.fixed_checkpoint", lost, "The checkpoints differ.", "Run make verify."),
    "flags": (
        Flag(id="log_edited", message="The submitted log of the fixed run is not what its own code writes."),
        Flag(id="same_fix", message="The same syntax tree as 2 others: alan_steep, ida_steep."),
    ),
}
_OPEN: dict[str, Any] = {
    "changes": changed("explanation.cause", open_check, "The report has no front matter.")
}
_OVERRIDDEN: dict[str, Any] = {"changes": {"explanation.cause": _DECIDED}}
_OUT: dict[str, Any] = {
    "changes": {}, "status": "rejected", "reason": _REJECTED, "total": 0.0, "criteria": {},
    "flags": (Flag(id="path_traversal", message="A member of the archive leads out of it."),),
}  # fmt: skip
_WAITING: dict[str, Any] = {
    "changes": {},
    "status": "not judged",
    "reason": _UNJUDGED,
    "total": None,
    "criteria": {},
}
STORIES = (
    _FULL, _ALTERNATIVE, _MASKING, _WRONG, _ALTERNATIVE, _OPEN, _FULL, _OVERRIDDEN, _OUT, _ALTERNATIVE, _FULL,
    _MASKING, _ALTERNATIVE, _WAITING, _FULL, _ALTERNATIVE, _WRONG,
)  # fmt: skip


def made_up_class(size: int = 40) -> tuple[Scores, dict[str, Exhibits]]:
    """Return scores, and exhibits by submission; the same for the same size."""
    rows, exhibits = [], {}
    for index in range(size):
        turn, name = divmod(index, len(NAMES))
        student = NAMES[name] + (f"{turn}" if turn else "")
        recipe = list(TITLES)[index % len(TITLES)]
        row = make_row(f"{student}_{recipe}", student, recipe, **STORIES[index % len(STORIES)])
        rows.append(row)
        if row.status != "rejected":
            exhibits[row.submission] = make_exhibits(
                row.submission, random.Random(index), exploded=index % 3 == 0
            )
    provenance: dict[str, Any] = {
        "grader": "0.1.0",
        "rubric_sha256": digest("rubric"),
        "sandbox": True,
        "overrides_sha256": None,
    }
    return Scores(
        provenance=provenance, submissions=tuple(sorted(rows, key=lambda row: row.submission))
    ), exhibits


def make_exhibits(submission: str, rng: random.Random, *, exploded: bool = False) -> Exhibits:
    """Return plausible exhibits of a right fix."""
    same, other = digest(f"{submission} 1"), digest(f"{submission} 2")
    numbers = [
        CitedNumber(start=REPORT.rindex(number), end=REPORT.rindex(number) + len(number), verdict=verdict)
        for number, verdict in NUMBERS
    ]
    hashes = [
        HashComparison(run="broken", file="metrics.log", claimed=same, replayed=same, agree=True),
        HashComparison(run="broken", file="checkpoint.pt", claimed=other, replayed=other, agree=True),
        HashComparison(run="fixed", file="metrics.log", claimed=same, replayed=other, agree=False),
        HashComparison(run="fixed", file="checkpoint.pt", claimed=same, replayed=None, agree=None),
    ]
    return Exhibits(
        submission=submission,
        broken_source=BROKEN,
        fixed_source=FIXED,
        report=REPORT,
        numbers=tuple(numbers),
        curves=(
            _curve("broken", rng, rate=0.002, exploded=exploded),
            _curve("fixed", rng, rate=0.03),
            _curve("reference", rng, rate=0.032),
        ),
        hashes=tuple(hashes),
        replays=(
            ReplayOutcome(what="broken run", status="OK", message="Remembered from an equal run."),
            ReplayOutcome(what="fixed run", status="TO", message="Ran out of time after 30 s."),
        ),
        measurements=(
            Measurement(name="largest rate", value=0.1, wanted="below 1.0", good=True),
            Measurement(name="symptom: the loss passes 50", value="NaN", wanted="not above 50", good=False),
        ),
        ignored_files=("notes.txt", "__pycache__/experiment.cpython-311.pyc"),
        symptom="the loss passes 50 within 20 steps",
    )


def _curve(run: Run, rng: random.Random, *, rate: float, exploded: bool = False) -> Curve:
    losses: list[tuple[int, Number]] = []
    for step in range(0, 600, 3):
        value = 2.3 * math.exp(-rate * step / 3) + 0.08 * rng.random() + 0.02
        if exploded and step > 60:
            value *= math.exp(step / 12)
        losses.append((step, "NaN" if exploded and step > 240 else value))
    epochs = tuple(
        (epoch, 2.3 * math.exp(-rate * 40 * epoch), 0.9 - rate / (epoch + 1)) for epoch in range(5)
    )
    return Curve(run=run, loss=tuple(losses), validation=epochs)
