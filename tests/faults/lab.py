"""A small class, what scoring it undisturbed gives, and places in which it can be scored under a fault."""

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from honest_class import HonestClass
from intake_archives import COMMANDS, manifest, packed
from recorded_logs import recorded_evidence

from faults.fault import Files, content, must, write_files
from faults.running import Ended, Grader, grader_command
from grader.intake.submission import Submission, read_submission
from grader.replay.request import requests_of
from harness.recipe import load_recipe

RECIPE = "huge_lr"


@dataclass(frozen=True)
class Lab:
    """The class, and what scoring it undisturbed gave.

    reports: the files of the reports; before: as they may have been earlier, every one of them another, and a page
    that has gone stale. store: what was remembered. Seconds: with all remembered, and of each replay more.
    """

    folder: Path
    submissions: Path
    reports: Files
    before: Files
    store: Path
    warm_seconds: float
    replay_seconds: float

    def place(self, name: str) -> "Place":
        """Return a new place, in which nothing was scored."""
        folder = self.folder / name
        folder.mkdir()
        return Place(self, folder, folder / "reports", folder / "store")


@dataclass(frozen=True)
class Place:
    """A folder for reports and one for what is remembered."""

    lab: Lab
    folder: Path
    out: Path
    store: Path

    def remember(self, *, without: str = "") -> None:
        """Have everything remembered, but for all scores and the replay of this student's experiment."""
        shutil.copytree(self.lab.store, self.store, copy_function=shutil.copyfile)
        if without:
            self.replay_of(without).unlink()

    def replay_of(self, student: str) -> Path:
        """Return where the replay of a student's own experiment is remembered."""
        submission = read_submission(self.lab.submissions / f"{student}_{RECIPE}.tar.gz")
        assert isinstance(submission, Submission)
        key = requests_of(submission)["fixed"].key
        return self.store / key[:2] / f"{key}.json"

    def have_earlier_reports(self) -> None:
        """Put the reports of an earlier scoring into the folder."""
        write_files(self.out, self.lab.before)

    def start(self, *words: str | Path, enter: tuple[str, ...] = (), **variables: str) -> Grader:
        """Start `grader score` on the class."""
        return Grader(
            (
                *enter,
                *grader_command("score", self.lab.submissions, "--out", self.out, "--jobs", "2", *words),
            ),
            {"TRAINWRECK_REPLAYS": str(self.store), **variables},
        )

    def score(self, *words: str | Path, enter: tuple[str, ...] = (), **variables: str) -> Ended:
        """Run `grader score` on the class to its end."""
        return self.start(*words, enter=enter, **variables).finish()

    def must_be_right(self, ended: Ended) -> None:
        """Raise `NotHeld` unless the class was scored, to the byte, and nothing else lies beside the reports."""
        must(ended.status == 0, f"exit {ended.status}: {ended.err.strip()[-300:]}")
        must_be_equal(content(self.out), self.lab.reports)


def must_be_equal(found: Files, expected: Files) -> None:
    """Raise `NotHeld` that names the files that differ."""
    other = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
    must(not other, f"other files than expected: {', '.join(other)[:200]}")


def must_refuse(ended: Ended, *words: str | Path) -> str:
    """Return the sentence of a command that refused, in one and with status 2; it must hold these words."""
    must(ended.status == 2, f"exit {ended.status}: {ended.err.strip()[-300:]}")
    must("Traceback" not in ended.err, f"a traceback: {ended.err.strip()[-300:]}")
    sentence = ended.err.rpartition("Error: ")[2].strip()
    must(ended.err.count("Error: ") == 1 and "\n" not in sentence, f"not one sentence: {ended.err[-300:]}")
    for word in words:
        must(str(word) in sentence, f"no {str(word)!r} in: {sentence}")
    return sentence


def make_lab(folder: Path, known: HonestClass | None = None) -> Lab:
    """Make the class, and score it undisturbed; the replays of `known` are remembered by then."""
    submissions = folder / "submissions"
    _make_class(submissions)
    lab = Lab(folder, submissions, {}, {}, folder / "undisturbed" / "store", 0.0, 0.0)
    place = lab.place("undisturbed")
    if known:
        known.remember(place.store)
    made = -len(replays_in(place.store))
    seconds = []
    for _ in ("cold", "warm"):
        began = time.monotonic()
        ended = place.score()
        seconds.append(time.monotonic() - began)
        must(ended.status == 0, f"the class cannot be scored undisturbed: {ended.err}")
    made += len(replays_in(place.store))
    cold, warm = seconds
    reports = content(place.out)
    return Lab(folder, submissions, reports, _as_it_was(reports), place.store, warm, (cold - warm) / made)


def replays_in(store: Path) -> list[str]:
    """Return the names of the replays that are remembered, the scores not among them."""
    return list(content(store))


def _make_class(submissions: Path) -> None:
    """Four submissions that need two replays of their own: the third is the first's program, the last is rejected.

    None holds a run: points are lost for that, and a class is made at once.
    """
    fixed = load_recipe(RECIPE).healthy_source()
    sources = {
        "ada": fixed,
        "bob": fixed.replace("lr=0.1", "lr=0.05"),
        "cem": f"{fixed}\n# The learning rate was a hundred times too large.\n",
    }
    submissions.mkdir()
    report = recorded_evidence(RECIPE).report or ""
    for student, source in sources.items():
        files = {"experiment.py": source.encode(), "report.md": report.encode(), "command.txt": COMMANDS}
        data = packed({**files, "manifest.json": manifest(files, student=student)})
        (submissions / f"{student}_{RECIPE}.tar.gz").write_bytes(data)
    (submissions / f"eve_{RECIPE}.tar.gz").write_bytes(data[: len(data) // 2])


def _as_it_was(reports: Files) -> Files:
    earlier = {name: data + b"\n" for name, data in reports.items()}
    return {**earlier, f"zed_{RECIPE}.html": reports[f"ada_{RECIPE}.html"]}
