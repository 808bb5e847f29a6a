"""The folder of an interview: its files, its clock, and the runs and other evidence that were made in it."""

import base64
import dataclasses
import json
import secrets
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

from pydantic import AwareDatetime, Field

from harness.data.folder import load_folder
from harness.errors import UserError
from harness.files import write_whole
from harness.formats.toml_file import StrictModel
from harness.interview.draw import Interview, draw_interview
from harness.recipes.suite import PACKAGES, as_typed
from harness.run.files import METRICS_LOG, RUN_PAGE
from harness.run.metrics_log import epoch_records, read_metrics_log
from harness.run.settings import RunJob, RunSettings
from harness.student.runs import launch
from harness.workspace.workspace import DATA, INTERVIEW, TRACK, make_folder, read_source, write_missing

STATE, SCRIPT, TASK, NOTES, TESTS, PAGE = (
    INTERVIEW, "train.py", "TASK.md", "notes.md", "test_train.py", "interview.html",
)  # fmt: skip
_TEMPLATES = Path(__file__).parent / "templates"
_PREFIX = "interview-"
MOST_MINUTES = 24 * 60


class DiaryEntry(StrictModel):
    """Something that the candidate did: `what` is "run", "checks", "pause", "go on" or "finish".

    source: the beginning of the SHA-256 of the script at this time, whose text is in `.kept/`. says: the result in a
    few words.
    """

    what: str
    at: AwareDatetime
    source: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    says: str = ""


class RoomState(StrictModel):
    """The content of `interview.json`.

    sealed: the interview's content, not readable at a glance; "" if only the interviewer has it.
    """

    format_version: int = 1
    kind: str
    seed: int
    minutes: Annotated[int, Field(ge=1, le=MOST_MINUTES)]
    began: AwareDatetime
    sealed: str = ""
    made: tuple[DiaryEntry, ...] = Field(default=(), strict=False)
    finished: AwareDatetime | None = None


def seal(interview: Interview) -> str:
    """Return the content of an interview as text that does not tell the faults at a glance."""
    return base64.b64encode(zlib.compress(json.dumps(dataclasses.asdict(interview)).encode())).decode()


def unseal(text: str) -> Interview:
    """Return the content that `seal` packed. Raises `ValueError` for another text."""
    found = json.loads(zlib.decompress(base64.b64decode(text)))
    return Interview(found["kind"], found["seed"], tuple(found["faults"]))


class Room:
    """An interview in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self.state = RoomState.model_validate_json((folder / STATE).read_bytes())
            state = self.state
            self.interview = unseal(state.sealed) if state.sealed else Interview(state.kind, state.seed, ())
        except (OSError, ValueError, KeyError, TypeError, zlib.error):
            again = as_typed("make interview AGAIN=1")
            raise UserError(f"{folder / STATE} cannot be read: put it back, or remove it; then {again}.") from None

    @property
    def script(self) -> Path:
        """The file that the candidate edits."""
        return self.folder / SCRIPT

    # --- the clock ---

    def time_used(self, until: datetime | None = None) -> timedelta:
        """Return the time on the clock, without pauses: up to now, to a moment, or to the end of the interview."""
        end = until or self.state.finished or _now()
        total, running_since = timedelta(), self.state.began
        going = True
        for one in self.state.made:
            at = min(one.at, end)
            if one.what == "pause" and going:
                total, going = total + (at - running_since), False
            elif one.what == "go on" and not going:
                running_since, going = at, True
        return total + (max(end - running_since, timedelta()) if going else timedelta())

    @property
    def is_paused(self) -> bool:
        """Whether the clock stands still."""
        turns = [one.what for one in self.state.made if one.what in ("pause", "go on")]
        return turns[-1:] == ["pause"]

    def clock(self) -> str:
        """Return the time that is left, in words."""
        left = timedelta(minutes=self.state.minutes) - self.time_used()
        words = f"{round(abs(left) / timedelta(minutes=1))} min"
        if left < timedelta():
            words += " over the time"
        return f"{words}{' left' if left >= timedelta() else ''}{', paused' if self.is_paused else ''}"

    # --- what was made ---

    def note(self, what: str, says: str = "") -> None:
        """Note something that the candidate did, and keep the script as it is now."""
        text = read_source(self.script)
        digest = sha256(text.encode()).hexdigest()[:16]
        kept = self.folder / ".kept"
        kept.mkdir(exist_ok=True)
        write_missing(kept, {f"{digest}.py": text})
        one = DiaryEntry(what=what, at=_now(), source=digest, says=says)
        self._write(self.state.model_copy(update={"made": (*self.state.made, one)}))

    def versions(self) -> Iterator[tuple[DiaryEntry, str]]:
        """Yield what was made with the script as it was then."""
        for one in self.state.made:
            path = self.folder / ".kept" / f"{one.source}.py"
            if path.is_file():
                yield one, read_source(path)

    def restart_clock(self) -> None:
        """Let the clock begin now: the first run was not the candidate's, and an archive is opened later."""
        self._write(self.state.model_copy(update={"began": _now()}))

    def finish(self) -> None:
        """Stop the clock."""
        self.note("finish")
        self._write(self.state.model_copy(update={"finished": _now()}))

    def _write(self, state: RoomState) -> None:
        self.state = state
        write_whole({self.folder / STATE: (state.model_dump_json(indent=1) + "\n").encode()}, durable=False)

    def require_open(self) -> None:
        """Raise `UserError` if the interview has ended."""
        if self.state.finished:
            again = as_typed("make interview AGAIN=1")
            raise UserError(f"The interview in {self.folder} is finished: {again} starts another one.")

    # --- runs ---

    def run(self, *, bar: bool = True) -> dict[str, Any]:
        """Run the script, keep the run in `runs/<number>/`, and return its result."""
        number = len(list((self.folder / "runs").glob("[0-9]*"))) if (self.folder / "runs").is_dir() else 0
        first = self.folder / "runs" / "0"
        job = RunJob(
            settings=RunSettings(seed=self.interview.seed, dataset=self.interview.dataset),
            recipe="interview",
            experiment=self.interview.kind,
            title="The interview",
            run="fixed" if number else "broken",
            source=read_source(self.script),
            folder=str((self.folder / "runs" / str(number)).resolve()),
            source_path=str(self.script.resolve()),
            compare_with=str(first.resolve()) if number else None,
        )
        made = launch(job, resumable=False, bar=bar)
        last = epoch_records(read_metrics_log(self.folder / "runs" / str(number) / METRICS_LOG))[-1:]
        figures = [
            f"{name} {value:.4g}"
            for record in last
            for name, value in record.items()
            if name.startswith("val_") and isinstance(value, float)
        ]
        self.note("run", f"run {number}: {', '.join(figures) or 'no validation metric'}")
        return made

    def run_page(self) -> Path:
        """Return the page of the latest run."""
        return max((self.folder / "runs").glob(f"[0-9]*/{RUN_PAGE}"), key=lambda path: int(path.parent.name))


def start_room(
    work: Path, kind: str, *, seed: int | None, minutes: int, again: bool, bar: bool = True
) -> tuple[Room, bool]:
    """Return the interview that is going on, or start one. Also return whether this call started it.

    again: end the one that is going on, and draw faults that no earlier one had. seed: decides what is drawn, and is
    the seed of the runs; by default a new one each time.
    """
    rooms = rooms_of(work)
    if rooms and not rooms[-1].state.finished:
        if not again:
            return rooms[-1], False
        rooms[-1].finish()
    number = secrets.randbelow(10**6) if seed is None else seed
    used = [id for room in rooms if room.interview.kind == kind for id in room.interview.faults]
    interview = draw_interview(kind, number, used if again or seed is None else ())
    return make_room(work / f"{_PREFIX}{len(rooms) + 1}", interview, minutes, sealed=seal(interview), bar=bar), True


def make_room(folder: Path, interview: Interview, minutes: int, *, sealed: str, bar: bool = True) -> Room:
    """Write the files of an interview into a folder, make the first run, and start the clock."""
    make_folder(folder)
    kind = interview.kind
    follow_up = (_TEMPLATES / f"follow_up_{kind}.md").read_text(encoding="utf-8").strip()
    task = (_TEMPLATES / TASK).read_text(encoding="utf-8").replace("{follow_up}", follow_up)
    task = as_typed(task.replace("{minutes}", str(minutes)))
    files = {
        SCRIPT: interview.broken_source(),
        TRACK: (PACKAGES / "harness" / "scripts" / TRACK).read_text(encoding="utf-8"),
        TASK: task,
        NOTES: (_TEMPLATES / "notes_form.md").read_text(encoding="utf-8"),
        TESTS: (_TEMPLATES / "test_train.txt").read_text(encoding="utf-8"),
    }
    write_missing(folder, files)
    load_folder(interview.dataset).write(folder / DATA)
    state = RoomState(kind=kind, seed=interview.seed, minutes=minutes, began=_now(), sealed=sealed)
    write_whole({folder / STATE: (state.model_dump_json(indent=1) + "\n").encode()}, durable=False)
    room = Room(folder)
    room.run(bar=bar)
    room.restart_clock()
    return room


def rooms_of(work: Path) -> list[Room]:
    """Return all interviews in a folder of workspaces, in the order of their start."""
    folders = [path.parent for path in work.glob(f"{_PREFIX}*/{STATE}")]
    return [Room(folder) for folder in sorted(folders, key=lambda path: int(path.name.removeprefix(_PREFIX)))]


def open_room(work: Path) -> Room:
    """Return the latest interview. Raises `UserError` if there is none."""
    rooms = rooms_of(work)
    if not rooms:
        raise UserError(as_typed("There is no interview yet: make interview starts one."))
    return rooms[-1]


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
