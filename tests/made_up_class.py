"""A made-up class of any size with every kind of verdict, for the tests of reports."""

import hashlib
import math
import random
import re
from collections.abc import Callable
from typing import Literal

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


def made_up_class(size: int = 40) -> tuple[Scores, dict[str, Exhibits]]:
    """Return scores, and exhibits by submission; the same for the same size."""
    recipes = list(TITLES)
    rows, exhibits = [], {}
    for index in range(size):
        rng = random.Random(index)
        round_number, name = divmod(index, len(NAMES))
        student = NAMES[name] + (f"{round_number}" if round_number else "")
        recipe = recipes[index % len(recipes)]
        story = STORIES[index % len(STORIES)]
        row = story(f"{student}_{recipe}", student, recipe, rng)
        rows.append(row)
        if row.status != "rejected":
            exhibits[row.submission] = make_exhibits(row.submission, rng, exploded=index % 3 == 0)
    rows.sort(key=lambda row: row.submission)
    provenance: dict[str, str | int | float | bool | None] = {
        "grader": "0.1.0",
        "rubric_sha256": digest("rubric"),
        "sandbox": "bubblewrap 0.11.0",
        "platform_class": "x86_64, portable, cpu, torch 2.13.0, golden",
        "overrides_sha256": None,
    }
    return Scores(provenance=provenance, submissions=tuple(rows)), exhibits


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


def _full(submission: str, student: str, recipe: str, rng: random.Random) -> SubmissionScore:
    return make_row(submission, student, recipe, {})


def _alternative(submission: str, student: str, recipe: str, rng: random.Random) -> SubmissionScore:
    changes = changed(
        "fix.minimal",
        lost,
        "The change touches 14 nodes of the syntax tree; the reference edit touches 1.",
        "Change only what is broken: one value in build_optimizer.",
        points=5.0,
    )
    changes |= changed(
        "explanation.ruled_out",
        lost,
        "mixed_up is not contradicted: its loss is the same at step 3.",
        "Cite a value that the other cause would not give.",
        points=round(rng.uniform(0, 3), 1),
    )
    return make_row(submission, student, recipe, changes)


def _masking(submission: str, student: str, recipe: str, rng: random.Random) -> SubmissionScore:
    changes = changed(
        "fix.correct",
        lost,
        "The symptom is gone, its cause is not: the probe learning_rate measured 10, and wants it below 1.",
        "Remove the cause. Clipping the gradient hides what a learning rate of 10 does.",
        points=4.0,
    )
    changes |= changed(
        "fix.minimal", lost, "Judged only for a correct fix.", "Fix the cause first; then this counts."
    )
    changes |= changed(
        "explanation.cause",
        lost,
        "Your diagnosis names asleep; the broken run has another cause.",
        "Name the cause whose edit your fix undoes.",
    )
    flags = (
        Flag(id="masked_cause", message="Healthy accuracy (0.94) while the probe learning_rate still fails."),
    )
    return make_row(submission, student, recipe, changes, flags=flags)


def _wrong(submission: str, student: str, recipe: str, rng: random.Random) -> SubmissionScore:
    changes = changed(
        "fix.correct",
        lost,
        "The trusted evaluator measured an accuracy of 0.112; healthy is 0.93 to 0.97.",
        "A fix that brings the accuracy on held-out data into the healthy band.",
    )
    changes |= changed(
        "fix.minimal", lost, "Judged only for a correct fix.", "Fix the cause first; then this counts."
    )
    changes |= changed(
        "reproducibility.fixed_log",
        lost,
        "Line 17 differs: the submitted log has a loss of 0.31, the replay 2.31.",
        "Submit the log that make verify wrote, unchanged.",
    )
    changes |= changed(
        "reproducibility.fixed_checkpoint",
        lost,
        "The checkpoints differ.",
        "Submit the checkpoint that make verify wrote, unchanged.",
    )
    changes |= changed(
        "diagnostics.broken_number",
        lost,
        "No cited number is in the replay: loss at step 3 is 1523.4, cited as 900.",
        "Copy the number from metrics.log with all the digits that you give.",
    )
    flags = (
        Flag(id="log_edited", message="The submitted log of the fixed run is not what its own code writes."),
        Flag(id="same_fix", message="The same syntax tree as 2 others: alan_steep, ida_steep."),
    )
    return make_row(submission, student, recipe, changes, flags=flags)


def _open(submission: str, student: str, recipe: str, rng: random.Random) -> SubmissionScore:
    changes = changed(
        "explanation.cause",
        open_check,
        "The report has no front matter: read its text.",
    )
    return make_row(submission, student, recipe, changes, reason="1 check waits for you.")


def _overridden(submission: str, student: str, recipe: str, rng: random.Random) -> SubmissionScore:
    rule = RuleVerdict(
        outcome="could not judge",
        points=None,
        reason="The report offers two causes.",
    )
    check = Check(
        id="cause",
        title="The right cause",
        outcome="failed",
        points=2,
        max=3,
        reason="Set by the instructor.",
        remedy="Name one cause only.",
        rule=rule,
        comment="Right cause, but hedged: see me about the second paragraph.",
    )
    return make_row(submission, student, recipe, {"explanation.cause": check})


def _rejected(submission: str, student: str, recipe: str, rng: random.Random) -> SubmissionScore:
    return SubmissionScore(
        submission=submission,
        student=student,
        recipe=recipe,
        status="rejected",
        reason="The archive holds ../../etc/passwd, a path that leads out of it: build it with make submit.",
        total=0.0,
        criteria={},
        flags=(Flag(id="path_traversal", message="A member of the archive leads out of it."),),
        provenance={"archive_sha256": digest(submission)},
    )


def _unjudged(submission: str, student: str, recipe: str, rng: random.Random) -> SubmissionScore:
    return SubmissionScore(
        submission=submission,
        student=student,
        recipe=recipe,
        status="not judged",
        reason="The sandbox did not start, twice (XX): grade it again with --only.",
        total=None,
        criteria={},
        provenance={"archive_sha256": digest(submission)},
    )


STORIES = (
    *(
        _full,
        _alternative,
        _masking,
        _wrong,
        _alternative,
        _open,
        _full,
        _overridden,
        _rejected,
        _alternative,
    ),
    *(_full, _masking, _alternative, _unjudged, _full, _alternative, _wrong),
)


def make_exhibits(submission: str, rng: random.Random, *, exploded: bool = False) -> Exhibits:
    """Return plausible exhibits of a right fix."""
    return Exhibits(
        submission=submission,
        broken_source=BROKEN,
        fixed_source=FIXED,
        report=REPORT,
        numbers=tuple(
            CitedNumber(start=start, end=start + len(number), verdict=verdict)
            for number, verdict in NUMBERS
            for start in [REPORT.rindex(number)]
        ),
        curves=(
            _curve("broken", rng, rate=0.002, exploded=exploded),
            _curve("fixed", rng, rate=0.03),
            _curve("reference", rng, rate=0.032),
        ),
        hashes=tuple(_hashes(submission)),
        replays=(
            ReplayOutcome(what="broken run", status="OK", message="Remembered from an equal run."),
            ReplayOutcome(what="fixed run", status="OK", message="200 steps in 5 epochs."),
            ReplayOutcome(what="reference run", status="OK", message="Remembered from an equal run."),
            ReplayOutcome(what="evaluation", status="OK"),
            ReplayOutcome(
                what="probes", status="TO", message="Ran out of time after 30 s, and was run once more."
            ),
        ),
        measurements=(
            Measurement(name="probe learning_rate", value=0.1, wanted="below 1.0", good=True),
            Measurement(
                name="symptom: the loss passes 50 within 20 steps",
                value="NaN",
                wanted="not above 50",
                good=False,
            ),
            Measurement(name="accuracy on held-out data", value=0.9574, wanted="0.93 to 0.97", good=True),
        ),
        ignored_files=("notes.txt", "__pycache__/experiment.cpython-311.pyc", "runs/fixed/best.pt"),
        symptom="the loss passes 50 within 20 steps",
    )


def _hashes(submission: str) -> list[HashComparison]:
    same, other = digest(f"{submission} 1"), digest(f"{submission} 2")
    return [
        HashComparison(run="broken", file="metrics.log", claimed=same, replayed=same, agree=True),
        HashComparison(run="broken", file="checkpoint.pt", claimed=other, replayed=other, agree=True),
        HashComparison(run="fixed", file="metrics.log", claimed=same, replayed=other, agree=False),
        HashComparison(run="fixed", file="checkpoint.pt", claimed=same, replayed=None, agree=None),
    ]


def _curve(run: Run, rng: random.Random, *, rate: float, exploded: bool = False) -> Curve:
    losses: list[tuple[int, Number]] = []
    for step in range(0, 600, 3):
        value = 2.3 * math.exp(-rate * step / 3) + 0.08 * rng.random() + 0.02
        if exploded and step > 60:
            value *= math.exp(step / 12)
        losses.append((step, "NaN" if exploded and step > 240 else value))
    epochs: list[tuple[int, Number, Number]] = [
        (
            epoch,
            "NaN" if exploded else 2.3 * math.exp(-rate * 40 * epoch) + 0.1,
            0.1 if exploded else 1 - 0.9 * math.exp(-rate * 40 * (epoch + 1)),
        )
        for epoch in range(5)
    ]
    return Curve(run=run, loss=tuple(losses), validation=tuple(epochs))
