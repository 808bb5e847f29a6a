"""Interviews for other people: pack one for a candidate, and score the answer by running it in the sandbox.

The faults of an interview are in a key file, which stays with the interviewer. The archive for the candidate has only
the broken script. The times in an answer are the candidate's own; all else is computed here. An answer may contain any
code: the sandbox protects this machine, and the report shows the changes to the interviewer, who reads them.
"""

import json
import tempfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

from grader.intake.archive import Rejected, gunzip, open_regular, read_members, read_tarball
from grader.replay.inside import INSIDE
from grader.replay.replayer import Replayer, open_sandbox, replay_interpreter
from grader.replay.request import RUN_LIMITS, Request, time_limit
from grader.sandbox import SandboxCommand
from grader.syntax.program import Unparsable, tree_digest
from harness.behaviour.compare import Behaviour
from harness.data.loading import default_cache
from harness.errors import UserError
from harness.files import write_whole
from harness.interview.draw import Interview, draw_interview
from harness.interview.follow_up import Found, in_points
from harness.interview.hand_in import ANSWERS, DIARY, pack_room
from harness.interview.judge import InterviewVerdict, judge_source, judge_tests, verdict_of
from harness.interview.report import VERDICT, sound_variants, write_page
from harness.interview.room import NOTES, SCRIPT, STATE, TESTS, Room, RoomState, make_room, seal, unseal
from harness.recipes.recipe import Recipe
from harness.run.settings import RunSettings

_FOLDER = "interview-1"
_TEXT_BYTES = 2**20
# Eight programs with the candidate's tests, which may take three minutes each, and the follow-up.
_TEST_LIMITS = replace(RUN_LIMITS, seconds=1500.0, wall_seconds=3000.0)

Files = Mapping[str, str]
"""The texts of an answer, by file name."""


def new_interview(name: str, kind: str, seed: int, minutes: int, out: Path) -> tuple[Path, Path]:
    """Draw an interview and write NAME.tar.gz, for the candidate, and NAME.key.json. Return both paths.

    Raises `UserError` for an unknown kind, and if one of the files exists.
    """
    interview = draw_interview(kind, seed)
    archive, key = out / f"{name}.tar.gz", out / f"{name}.key.json"
    if archive.exists() or key.exists():
        raise UserError(f"{archive} or {key} exists: choose another name, or remove both.")
    with tempfile.TemporaryDirectory(prefix="trainwreck-") as scratch:
        room = make_room(Path(scratch, _FOLDER), interview, minutes, sealed="")
        content = pack_room(room)
    record = {"format_version": 1, "name": name, "sealed": seal(interview), "minutes": minutes}
    write_whole({archive: content, key: (json.dumps(record, indent=1) + "\n").encode()})
    return archive, key


def score_interview(answer: Path, key: Path, out: Path, say: Callable[[str], None]) -> InterviewVerdict:
    """Judge an answer in the sandbox, and write its page and `verdict.json` into the folder `out`.

    Raises `UserError` if a file cannot be read, or if no sandbox starts on this machine.
    """
    interview = _read_key(key)
    found = _read_answer(answer)
    with open_sandbox("warm", 1) as sandbox:
        judge = _Judge(interview, Replayer(sandbox, default_cache()))
        say("Comparing the script with the healthy one.")
        states, introduced = judge_source(interview, found[SCRIPT], cache(judge.measure))
        say("Running the tests and the follow-up.")
        caught, bad_tests, follow_up = judge.test(found)
    verdict = verdict_of(interview, states, introduced, found.get(NOTES, ""), caught, bad_tests, follow_up)
    _write_room(out, interview, found)
    write_whole({out / VERDICT: (json.dumps(asdict(verdict), indent=1) + "\n").encode()})
    write_page(Room(out), verdict)
    return verdict


def _read_key(key: Path) -> Interview:
    try:
        return unseal(json.loads(key.read_bytes())["sealed"])
    except (OSError, ValueError, KeyError, TypeError, zlib.error):
        raise UserError(f"{key} is not the key file that grader interview new wrote beside the archive.") from None


def _read_answer(path: Path) -> Files:
    members: dict[str, bytes] = {}
    try:
        with open_regular(path) as file:
            read_members(gunzip(read_tarball(file)), members)
    except (OSError, Rejected) as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    texts = {}
    for name, content in members.items():
        if (name in ANSWERS or name.startswith(DIARY)) and len(content) <= _TEXT_BYTES:
            texts[name] = content.decode("utf-8", "replace")
    if missing := [name for name in (SCRIPT, STATE) if name not in texts]:
        raise UserError(f"{path} has no {missing[0]}: ask for the file that make finish wrote.")
    return texts


class _Judge:
    """Measures programs in the sandbox."""

    def __init__(self, interview: Interview, replayer: Replayer) -> None:
        self._interview, self._replayer = interview, replayer
        self._settings = RunSettings(seed=interview.seed, dataset=interview.dataset)
        self._recipe = Recipe.model_construct(
            id="interview", format_version=2, title="", experiment=interview.experiment, dataset=interview.dataset,
            seed=interview.seed, area="model", cause="", hints=("", "", ""), breaks=(), symptoms=(), observations=(),
        )  # fmt: skip

    def measure(self, source: str) -> Behaviour:
        """Return the behaviour of a source. Raises `UserError` if the script fails."""
        try:
            tree = tree_digest(source)
        except Unparsable as error:
            raise UserError(str(error)) from None
        request = Request(
            self._recipe, self._settings, source, tree, trusted=False, kind="behaviour",
            seconds=time_limit(self._recipe),
        )  # fmt: skip
        replay = self._replayer.replay(request)
        if replay.behaviour is None:
            raise UserError(replay.message or "the script failed")
        return replay.behaviour

    def test(self, answer: Files) -> tuple[dict[str, tuple[str, ...]], list[str], Found]:
        """Return the tests that catch each fault, problems of tests, and the verdict on the follow-up."""
        interview, healthy = self._interview, self._interview.healthy_source()
        variants = {f"sound {id}": source for id, source in sound_variants(interview).items()}
        faults = {f"fault {id}": interview.source_with([id]) for id in interview.faults}
        job = {
            "kind": interview.kind,
            "dataset": interview.dataset,
            "script": answer[SCRIPT],
            "healthy": healthy,
            "tests": answer.get(TESTS, ""),
            "programs": {"healthy": healthy, **variants, **faults},
        }
        inputs = {"job.json": json.dumps(job).encode(), **self._replayer.data.inputs(interview.dataset)}
        command = SandboxCommand(INSIDE / "interview.py", replay_interpreter(), inputs, _TEST_LIMITS)
        result = self._replayer.run(command)
        try:
            found: dict[str, Any] = json.loads(result.stdout)
        except ValueError:
            return {}, [f"the tests did not end: {result.message}"], in_points(interview.kind, None)
        tests = {name: _to_outcomes(one) for name, one in found["tests"].items()}
        caught, problems = judge_tests(
            tests["healthy"],
            {name.removeprefix("sound "): one for name, one in tests.items() if name.startswith("sound ")},
            {name.removeprefix("fault "): one for name, one in tests.items() if name.startswith("fault ")},
        )
        follow_up = found["follow_up"]
        known = isinstance(follow_up, dict) and all(isinstance(said, str) for said in follow_up.values())
        return caught, problems, in_points(interview.kind, follow_up if known else None)


def _to_outcomes(found: Any) -> dict[str, bool]:
    return {str(name): passed is True for name, passed in found.items()} if isinstance(found, dict) else {}


def _write_room(out: Path, interview: Interview, answer: Files) -> None:
    """Write the answer as a folder of an interview. The candidate's own texts of the diary are kept as they are."""
    out.mkdir(parents=True, exist_ok=True)
    try:
        state = RoomState.model_validate_json(answer[STATE])
    except ValueError:
        raise UserError(
            "The answer's interview.json cannot be read: ask for the file that make finish wrote."
        ) from None
    state = state.model_copy(update={"kind": interview.kind, "seed": interview.seed, "sealed": seal(interview)})
    files = {out / name: text.encode() for name, text in answer.items() if name in ANSWERS and name != STATE}
    (out / DIARY).mkdir(exist_ok=True)
    files |= {
        out / name: text.encode() for name, text in answer.items() if name.startswith(DIARY) and name.count("/") == 1
    }
    write_whole({**files, out / STATE: (state.model_dump_json(indent=1) + "\n").encode()})
