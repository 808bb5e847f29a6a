"""Whole submissions of every kind of nonsense, scored and shown: a row, a page and bytes, whatever they hold."""

import json
from functools import cache

from fuzzing import LARGE, examples, mutated_text, outcome
from hypothesis import given
from hypothesis import strategies as st
from recorded_logs import log_bytes, recorded_evidence

from grader.classroom import scores_of
from grader.graded import Graded, graded_row
from grader.replay.replay import CheckResult, Evaluation, Replay, SplitFigures
from grader.report.scores_file import scores_bytes
from grader.report.submission_page import render_submission
from grader.score.evidence import Claim, Evidence, Run
from grader.score.verdict import CRITERIA
from grader.score.weights import load_weights
from grader.syntax.parse import program_digest
from grader.syntax.plain_code import suspicions
from grader.taken import Taken
from harness.recipe import load_recipe
from harness.run.settings import RunSettings

pytestmark = LARGE
RECIPE = load_recipe("huge_lr")
SETTINGS = RunSettings(seed=42, dataset="digits")
_LOGS = tuple(log_bytes(name).decode() for name in ("huge_lr", "digits_mlp"))
_REPORTS = (recorded_evidence("huge_lr").report or "",)
_SOURCES = (RECIPE.healthy_source(), RECIPE.broken_source())
_LOG_TOKENS = (
    "{",
    "}",
    '"NaN"',
    '"Infinity"',
    "null",
    "\n",
    '{"step": 0}\n',
    "-1",
    "1e308",
    "[",
    '"loss": null',
)
_REPORT_TOKENS = (
    "---\n", "- {run: broken, signal: loss, step: 0, value: 2.3}\n", "signal: ", "step: 99", "epoch: 0", "value: NaN",
    "value: 1e999", "grad_mean.0.weight", "activations.first.mean", "\u202e", "\0", "# Fix\n", "not ", "`", "|",
)  # fmt: skip
_SOURCE_TOKENS = (
    "lr=0.1",
    "lr=10.0",
    "(",
    "\n",
    "    ",
    "import os\n",
    "def f():\n    pass\n",
    "\\",
    "'",
    "\0",
)
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
    statuses=st.tuples(
        *(st.sampled_from(("OK", "OK", "RE", "TO", "ML", "SG", "OL", "XX")) for _ in range(2))
    ),
    accuracy=_FIGURES,
    same_class=st.booleans(),
)
@examples(0.06)
def test_any_submission_is_scored_and_shown(
    logs: tuple[str | None, str | None],
    text: str | None,
    source: str,
    statuses: tuple[str, str],
    accuracy: float | str | None,
    same_class: bool,
) -> None:
    broken, fixed = _replay(0, statuses[0], 0.1), _replay(1, statuses[1], accuracy)
    told = [
        Claim(None if log is None else log.encode("utf-8", "replace"), "1" * 64, {"device": [1]})
        for log in logs
    ]
    claims: dict[Run, Claim] = {"broken": told[0], "fixed": told[1]}
    evidence = Evidence(
        recipe=RECIPE, settings=SETTINGS,
        command_problem="", missing=(), claims=claims, source=source, report=text, broken=broken, fixed=fixed,
        reference=_replay(1, "OK", 0.95), same_class=same_class, suspicions=suspicions(source),
        again={} if same_class else {"broken": broken, "fixed": fixed},
    )  # fmt: skip
    item = Taken(
        "ada_huge_lr",
        "0" * 64,
        "huge_lr",
        "ada",
        SETTINGS,
        "",
        source,
        program_digest(source),
        claims,
        text,
        (),
        (),
    )
    graded = outcome(lambda: graded_row(item, evidence, load_weights(), sandboxed=True))
    assert graded is not None
    row = graded.row
    for criterion in CRITERIA:
        points, most = row.criteria[criterion].points, row.criteria[criterion].max
        assert points is None or 0 <= points <= most
    assert (row.total is None) == (row.status == "not judged")
    assert Graded.model_validate_json(graded.model_dump_json()) == graded
    assert json.loads(scores_bytes(scores_of([row], {})))["submissions"][0]["submission"] == "ada_huge_lr"
    page = outcome(lambda: render_submission(row, graded.exhibits, title="", provenance={}))
    assert page is not None
    assert "\x1b" not in page
