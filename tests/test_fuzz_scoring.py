"""Random submissions: each gets a row and a page, and the same bytes each time."""

import json
from functools import cache

from helpers.fuzzing import LARGE, examples, mutated_text, outcome
from helpers.intake_archives import COMMANDS, manifest
from helpers.recorded_logs import log_bytes, recorded_evidence
from hypothesis import given
from hypothesis import strategies as st

from grader.intake.submission import Submission, parse_manifest
from grader.replay.replay import CheckResult, Evaluation, Replay, SplitFigures
from grader.replay.request import Role
from grader.report.pages import render_submission
from grader.score.rubric import CRITERIA, load_weights
from grader.score.scores_file import scores_json
from grader.score.scoring import score_submission
from grader.score.verdict import Scores
from harness.recipes.catalogue import load_recipe
from harness.submission.archive import Manifest
from harness.workspace.workspace import RUNS, Run

pytestmark = LARGE
RECIPE = load_recipe("huge_lr")
PLATFORM = {"device": "cpu", "golden": True}
_LOGS = tuple(log_bytes(name).decode() for name in ("huge_lr", "digits_mlp"))
_REPORTS = (recorded_evidence("huge_lr").report or "",)
_SOURCES = (RECIPE.healthy_source(), RECIPE.broken_source())
_LOG_TOKENS = ("{", "}", '"NaN"', '"Infinity"', "null", "\n", '{"step": 0}\n', "-1", "1e308", "[", '"loss": null')
_REPORT_TOKENS = (
    "---\n", "- {run: broken, signal: loss, step: 0, value: 2.3}\n", "signal: ", "step: 99", "epoch: 0", "value: NaN",
    "value: 1e999", "grad_mean.0.weight", "activations.first.mean", "\u202e", "\0", "# Fix\n", "not ", "`", "|",
)  # fmt: skip
_SOURCE_TOKENS = ("lr=0.1", "(", "\n", "    ", "import os\n", "def f():\n    pass\n", "\\", "'", "\0")
_FIGURES = st.sampled_from((0.95, 0.1, 1.0, None, "NaN", "Infinity"))


@cache
def _replay(log: int, status: str, accuracy: float | str | None) -> Replay:
    if status != "OK":
        return Replay.model_validate({"status": status, "message": "line 3 \x1b[31m raises"})
    split = SplitFigures.model_validate({"loss": 0.1, "accuracy": accuracy})
    return Replay(
        status="OK",
        log=_LOGS[log],
        log_sha256="0" * 64,
        checkpoint_sha256="1" * 64,
        checks=(CheckResult(check="learning_rate", outcome="usual"),),
        evaluation=Evaluation(heldout=split, validation=split),
    )


@given(
    logs=st.tuples(*(mutated_text(_LOGS, _LOG_TOKENS) | st.none() for _ in range(2))),
    text=mutated_text(_REPORTS, _REPORT_TOKENS) | st.none(),
    source=mutated_text(_SOURCES, _SOURCE_TOKENS) | st.sampled_from(_SOURCES),
    statuses=st.tuples(*(st.sampled_from(("OK", "OK", "RE", "TO", "XX")) for _ in range(2))),
    accuracy=_FIGURES,
    same_class=st.booleans(),
)
@examples(0.1)
def test_any_submission_is_scored_and_shown(
    logs: tuple[str | None, str | None],
    text: str | None,
    source: str,
    statuses: tuple[str, str],
    accuracy: float | str | None,
    same_class: bool,
) -> None:
    broken, fixed = _replay(0, statuses[0], 0.1), _replay(1, statuses[1], accuracy)
    files = {"experiment.py": source.encode("utf-8", "replace"), "command.txt": COMMANDS}
    if text is not None:
        files["report.md"] = text.encode("utf-8", "replace")
    packed: dict[Run, bytes] = {}
    for run, log in zip(RUNS, logs, strict=True):
        files[f"runs/{run}/checkpoint.pt.meta.json"] = json.dumps(
            {"platform_class": PLATFORM if same_class else {"device": [1]}}
        ).encode()
        if log is not None:
            packed[run] = log.encode("utf-8", "replace")
    found = parse_manifest(manifest(files))
    assert isinstance(found, Manifest)
    submission = Submission("ada_huge_lr", "0" * 64, found, files, packed, (), ())
    replays: dict[Role, Replay] = {
        "broken": broken.model_copy(update={"platform": PLATFORM}), "fixed": fixed, "reference": _replay(1, "OK", 0.95),
        **({} if same_class else {"broken again": broken, "fixed again": fixed}),
    }  # fmt: skip
    graded = outcome(lambda: score_submission(submission, load_recipe("huge_lr"), replays, load_weights()))
    assert graded is not None
    row = graded.row
    for criterion in CRITERIA:
        points, most = row.criteria[criterion].points, row.criteria[criterion].max
        assert points is None or 0 <= points <= most
    assert (row.total is None) == (row.status == "not judged")
    scores = Scores(provenance={}, submissions=(row,))
    assert json.loads(b"".join(scores_json(scores)))["submissions"][0]["submission"] == "ada_huge_lr"
    assert row.provenance["same_platform_class"] == same_class
    page = outcome(lambda: render_submission(row, graded.attachments, title="", provenance={}))
    assert page is not None
    assert "\x1b" not in page
