"""Write the reports and the exports completely or not at all.

All files are written to a new folder next to the old folder. Then the two folders are exchanged.
"""

import ctypes
import os
import re
import shutil
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from grader.private import private_files, set_rights
from grader.progress import ProgressBar
from grader.report.class_statistics import People
from grader.report.gradebook import COLUMNS, GRADEBOOK, csv_bytes, gradebook
from grader.report.pages import render_class_page, render_similar_page, render_submission
from grader.report.text import MARKER, file_stem
from grader.score.attachments import Attachments
from grader.score.scores_file import SCORES, scores_json
from grader.score.similarity import NOTHING_ALIKE, Likeness
from grader.score.verdict import Scores
from harness.errors import UserError, name_place, printable
from harness.files import scratch_path

INDEX, SIMILAR_PAGE = "index.html", "similar.html"
EXPORTS = "export"  # the folder that `grader export` writes; when reports are replaced, this folder is kept
# The first bytes of each file of the reports that is not a page. By these bytes the grader recognizes its own files.
_BEGINNINGS = {GRADEBOOK: csv_bytes([COLUMNS], mark=True).rstrip(), SCORES: b'{\n "format_version": '}
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # constants for the system call renameat2


def write_reports(
    scores: Scores,
    attachments: Mapping[str, Attachments],
    out: Path,
    *,
    titles: Mapping[str, str] | None = None,
    people: People | None = None,
    likeness: Likeness = NOTHING_ALIKE,
    progress: ProgressBar | None = None,
) -> list[Path]:
    """Write `index.html`, a page for each submission, `gradebook.csv` and `scores.json`; return their paths.

    attachments: what each page shows in addition to the score, by submission. titles: the title of each recipe. people:
    the name and the section of each student, by login. likeness: the similar work; if there is any, `similar.html` is
    also written. The same input gives the same bytes. If anything stops this function, the earlier reports stay
    unchanged. Raises `UserError` as `check_reports_folder` does, and `OSError` if the disk is full.
    """
    progress, titles = progress or ProgressBar(), titles or {}
    check_reports_folder(out)
    folder = out.resolve()
    similar = [SIMILAR_PAGE] if likeness != NOTHING_ALIKE else []
    files = [INDEX, *similar, *(f"{file_stem(row.submission)}.html" for row in scores.submissions), GRADEBOOK, SCORES]
    scratch = scratch_path(folder)
    try:
        with name_place(out), private_files():
            scratch.mkdir(parents=True)
            progress.begin("pages", len(scores.submissions))
            for row in scores.submissions:
                html = render_submission(
                    row,
                    attachments.get(row.copy_of or row.submission),
                    title=titles.get(row.recipe, ""),
                    provenance=scores.provenance,
                    schedule=scores.schedule,
                )
                _write_page(f"{file_stem(row.submission)}.html", html.encode(), folder, scratch)
                progress.done()
            if similar:
                (scratch / SIMILAR_PAGE).write_text(render_similar_page(likeness), encoding="utf-8")
            _write_class(scores, scratch, likeness, people)
            _carry_over(folder, scratch)
            _exchange(scratch, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return [out / name for name in files]


def rewrite_class(scores: Scores, out: Path, *, without: Collection[str]) -> None:
    """Write the class page, the gradebook and the scores again, and remove some submissions from the reports.

    without: the names of the submissions whose pages are removed. The page of similar work and the exports are removed,
    too. All other pages stay unchanged. The caller must hold the lock on the folder.
    """
    folder = out.resolve()
    scratch = scratch_path(folder)
    lost = {f"{file_stem(name)}.html" for name in without} | {SIMILAR_PAGE}
    try:
        with name_place(out), private_files():
            scratch.mkdir()
            for path in folder.glob("*.html"):
                if path.name not in lost:
                    os.link(path, scratch / path.name)
            _write_class(scores, scratch, NOTHING_ALIKE, None)
            set_rights(scratch, folder)
            _exchange(scratch, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _write_class(scores: Scores, folder: Path, likeness: Likeness, people: People | None) -> None:
    """Write the class page, the gradebook and the scores, each as a new file."""
    for name in (INDEX, GRADEBOOK, SCORES):
        (folder / name).unlink(missing_ok=True)
    with (folder / INDEX).open("w", encoding="utf-8") as file:
        file.writelines(render_class_page(scores, likeness, people))
    (folder / GRADEBOOK).write_bytes(gradebook(scores))
    with (folder / SCORES).open("wb") as kept:  # sync this file, because all other files can be made again from it
        kept.writelines(scores_json(scores))
        kept.flush()
        os.fsync(kept.fileno())


def check_reports_folder(out: Path) -> None:
    """Raise `UserError` if reports cannot be written to `out`, or would replace files that the grader did not write.

    Call this function before the replays, so that the error comes early. It also removes the unfinished reports of a
    killed grader. Therefore the caller must hold the lock on the folder.
    """
    folder = out.resolve()
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file: give a folder with --out.")
    _clear_leftovers(folder)
    for path in _foreign_files(folder):
        raise UserError(
            f"{out} contains {printable(path.name)}, which is not a file of grader and would be lost: move it away, or"
            " choose another folder with --out."
        )
    parent = next(one for one in folder.parents if one.exists())
    if folder.is_mount() or Path.cwd().is_relative_to(folder):
        raise UserError(f"{out} cannot be replaced by a new folder: choose a folder inside it with --out.")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise UserError(f"You have no right to write to {parent}: choose another folder with --out.")


@contextmanager
def new_export(folder: Path, names: Collection[str]) -> Iterator[Path]:
    """Yield an empty folder for a new export. At the end of the `with` block, the new folder replaces `folder`.

    names: the files that this kind of export writes in addition to pages. If anything stops the block, the earlier
    export stays unchanged. The caller must hold the lock on the reports. Raises `UserError` if the export would replace
    a file that the grader did not write.
    """
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file: move it away.")
    _clear_leftovers(folder, names)
    for path in _foreign_files(folder, names):
        raise UserError(f"{folder} contains {printable(path.name)}, which is not part of an export: move it away.")
    scratch = scratch_path(folder)
    try:
        with private_files():
            scratch.mkdir(parents=True)
            yield scratch
        if folder.is_dir():
            set_rights(scratch, folder)
        _exchange(scratch, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def write_zip(path: Path, members: Iterable[tuple[str, bytes]]) -> int:
    """Write a zip file with these file names and contents, without times. Return the number of files.

    Scripts are executable.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as pack:
        for name, content in members:
            member = zipfile.ZipInfo(name)
            member.create_system = 3  # Unix, so that the file modes in the next line are used
            member.external_attr = (0o100755 if content.startswith(b"#!") else 0o100644) << 16
            pack.writestr(member, content, zipfile.ZIP_DEFLATED)
        return len(pack.infolist())


def _foreign_files(folder: Path, names: Collection[str] = ()) -> Iterator[Path]:
    """Yield the files in a folder that the grader did not write, sorted.

    names: files that also belong to the grader, in addition to the files of the reports.
    """
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if (path.name == EXPORTS and path.is_dir()) or (path.name in names and path.is_file()):
            continue
        begins = _read_beginning(path)
        own = _BEGINNINGS.get(path.name)
        ours = path.suffix == ".html" and MARKER.encode() in begins if own is None else begins.startswith(own)
        empty = path.suffix == ".html" or own is not None
        # After a power loss, our files may be empty or full of zeros.
        if not ours and not (empty and not begins.strip(b"\0")):
            yield path


def _read_beginning(path: Path) -> bytes:
    """Return the first kilobyte of a file, or b"?" for a folder, a link, a pipe or an unreadable file."""
    if path.is_symlink() or not path.is_file():
        return b"?"
    try:
        with path.open("rb") as file:
            return file.read(1024)
    except OSError:
        return b"?"


def _write_page(name: str, content: bytes, old: Path, new: Path) -> None:
    """Write a page to the new folder. If the page is unchanged, link the old file, because some disks delete slowly."""
    with suppress(OSError):
        if (old / name).read_bytes() == content:
            os.link(old / name, new / name)
            return
    (new / name).write_bytes(content)


def _carry_over(old: Path, new: Path) -> None:
    """Copy the access rights and the exports from the old folder of reports to the new folder."""
    if old.is_dir():
        set_rights(new, old)
    if (old / EXPORTS).is_dir():
        shutil.copytree(old / EXPORTS, new / EXPORTS, symlinks=True)


def _exchange(new: Path, folder: Path) -> None:
    """Exchange the folders `new` and `folder`, atomically if the file system supports it."""
    if not folder.exists():
        new.rename(folder)
        return
    libc = ctypes.CDLL(None, use_errno=True)
    places = os.fsencode(new), os.fsencode(folder)
    if libc.renameat2(_AT_FDCWD, places[0], _AT_FDCWD, places[1], _RENAME_EXCHANGE) == 0:
        return
    old = _old_place(folder)
    folder.rename(old)
    new.rename(folder)
    old.rename(new)


def _old_place(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")


def _clear_leftovers(folder: Path, names: Collection[str] = ()) -> None:
    """Remove the files that a killed grader left next to the folder. Restore reports that the grader had moved away."""
    old = _old_place(folder)
    if old.is_dir() and not any(_foreign_files(old, names)):
        if folder.is_dir() and any(folder.iterdir()):
            shutil.rmtree(old, ignore_errors=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)
            old.rename(folder)
    scratch = re.compile(rf"\.{re.escape(folder.name)}\.[0-9a-f]{{8}}")
    for path in folder.parent.iterdir() if folder.parent.is_dir() else ():
        ours = scratch.fullmatch(path.name) and path.is_dir() and not path.is_symlink()
        if ours and not any(_foreign_files(path, names)):
            shutil.rmtree(path, ignore_errors=True)
