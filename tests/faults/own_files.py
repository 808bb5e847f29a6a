"""What a person wrote, in the folder of the reports: it stays, whatever the grader does there."""

from pathlib import Path

from faults.fault import Fault
from faults.files import content, write_files
from faults.held import must
from faults.lab import RECIPE, Lab, Place, must_be_equal, must_refuse

_OVERRIDES = f"""# Mine.
[[override]]
submission = "bob_{RECIPE}"
check = "explanation.parts"
points = 0
comment = "See me."
"""
_MINE = {
    "overrides.toml": _OVERRIDES.encode(),
    "notes.html": b"<p>mine</p>",
    "notes.txt": b"mine",
    ".hidden": b"mine",
    ".index.html.old": b"mine",
    ".notes.txt.0123abcd": b"mine",
    "export/canvas/marks.csv": b"mine",
    "ada/photo.png": bytes(1000),
}


def _stays(lab: Lab, place: Place) -> str:
    place.remember()
    write_files(place.out, _MINE)
    before = _stamps(place.out)
    for words in ((), ("--overrides", place.out / "overrides.toml"), ()):
        ended = place.score(*words)
        must(ended.status == 0, f"exit {ended.status}: {ended.err}")
        must(before.items() <= _stamps(place.out).items(), "a file of somebody's own changed")
    must_be_equal(content(place.out), {**lab.reports, **_MINE})
    return f"{len(_MINE)} files stayed as they were through three scorings"


def _in_the_way(lab: Lab, place: Place) -> str:
    place.remember()
    sentence = ""
    for name in ("index.html", f"bob_{RECIPE}.html", "gradebook.csv", "scores.json"):
        write_files(place.out, {name: b"<p>mine</p>"})
        sentence = must_refuse(place.score(), name, place.out, "move it away")
        must_be_equal(content(place.out), {name: b"<p>mine</p>"})
        (place.out / name).unlink()
    place.must_be_right(place.score())
    return sentence


def _stamps(folder: Path) -> dict[str, tuple[int, int]]:
    return {name: ((folder / name).stat().st_ino, (folder / name).stat().st_mtime_ns) for name in _MINE}


FAULTS = (
    Fault("own_files", "somebody's own files among the reports, overrides.toml too", "they stay", _stays),
    Fault(
        "own_files_in_the_way", "somebody's own index.html, page, gradebook.csv or scores.json",
        "exit 2 that names it, nothing replaced", _in_the_way, in_suite=False,
    ),
)  # fmt: skip
