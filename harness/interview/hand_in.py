"""Open the archive of an interview that somebody else has drawn, and pack the answer for the interviewer."""

import io
import tarfile
from pathlib import Path

from harness.errors import UserError
from harness.interview.room import NOTES, SCRIPT, STATE, TESTS, Room
from harness.workspace.workspace import make_folder

ANSWERS = (SCRIPT, NOTES, TESTS, STATE)
"""The files of an answer. The diary, which is opt-in, has the kept versions of the script, too."""
DIARY = ".kept/"


def pack_room(room: Room) -> bytes:
    """Return a folder of an interview as a .tar.gz, with its first run, for a candidate."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        archive.add(room.folder, arcname=room.folder.name)
    return buffer.getvalue()


def open_archive(archive: Path, work: Path) -> Room:
    """Unpack an interview into a folder of workspaces, and start its clock. Raises `UserError` if it cannot be done."""
    try:
        with tarfile.open(archive) as packed:
            names = {name.partition("/")[0] for name in packed.getnames()}
            if len(names) != 1 or (work / (name := names.pop())).exists():
                raise UserError(f"{archive} was opened before, or is no interview: its folder is in {work}.")
            make_folder(work / name)
            packed.extractall(work, filter="data")
    except (OSError, tarfile.TarError) as error:
        raise UserError(f"{archive} cannot be opened: {error}.") from None
    room = Room(work / name)
    room.restart_clock()
    return room


def pack_answer(room: Room, *, diary: bool) -> Path:
    """Write `<folder>.answer.tar.gz` beside the folder of an interview, and return its path.

    diary: whether the archive also has each version of the script that was run or checked.
    """
    path = room.folder.with_name(f"{room.folder.name}.answer.tar.gz")
    with tarfile.open(path, "w:gz") as archive:
        for name in ANSWERS:
            if (room.folder / name).is_file():
                archive.add(room.folder / name, arcname=name)
        if diary:
            for version in sorted((room.folder / DIARY).glob("*.py")):
                archive.add(version, arcname=f"{DIARY}{version.name}")
    return path
