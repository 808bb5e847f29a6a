"""Find all submitted files in the folders and zips that learning platforms make, with their senders and times.

Nothing is unpacked to the disk, and names in a zip are never used as paths. These layouts are known:

- Without a platform: `ada_huge_lr.tar.gz`, in a folder or in nested folders.
- Canvas, "Download Submissions" (canvas-lms, `lib/content_zipper.rb`): `lovelaceada_LATE_123_456_ada_huge_lr.tar.gz`.
  The parts are the sortable name, LATE for a late submission, the user's id, the file's id and the file name. An
  anonymous submission is `anon_x7Yz1_456_...`. Text that a student typed is in `lovelaceada_123_text.html`.
- Moodle, "Download all submissions" (moodle, `mod/assign/classes/downloader.php`): a folder
  `Ada Lovelace_123_assignsubmission_file` (in older releases with a `_` at the end), or a file whose name begins with
  the same words. Text that a student typed is in `..._assignsubmission_onlinetext`.
- Gradescope, "Export Submissions": folders `submission_123` and a file `submission_metadata.yml`. This file maps each
  folder to `:submitters` (`:name`, `:sid`, `:email`) and `:created_at`. Gradescope does not document this format.

A zip may replace any of these folders, or contain the tarballs of one student.

Students choose the names of files and the content of lists inside their uploads. So only names and lists on the
outermost level, in the folder or zip that the instructor downloaded, prove who sent a file and when (`_downloads`).
"""

import io
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

from grader.intake.archive import REMEDY, Rejected, open_regular, read_tarball
from grader.intake.submission import escape_name
from grader.intake.times import Times
from grader.intake.zip_archive import read_zip
from harness.errors import UserError, printable
from harness.files import stored_gzip
from harness.formats.plain_yaml import walk_scalars
from harness.submission.archive import SUFFIX
from harness.submission.limits import MIB

NO_ARCHIVE = "no archive"  # the code of the error for a file that is not a submission
_DEPTH = 8  # the maximum number of nested folders
_METADATA = "submission_metadata.yml"
_METADATA_BYTES = 16 * MIB

_ARCHIVE = re.compile(r".*\.(tar\.gz|tgz|tar|gz)", re.IGNORECASE | re.DOTALL)
_ENDING = re.compile(r"\.(tar\.gz|tgz|tar|gz|zip|py|ipynb|md|txt|html|pdf|docx|rar|7z)$", re.IGNORECASE)
_SYSTEM = {"__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini", ".git"}
_CANVAS = re.compile(
    r"(?:(?P<late>LATE_)?anon_(?P<anon>[^\W_]+)|(?P<name>\w+?)(?P<named_late>_LATE)?_(?P<id>\d+))"
    r"(?:_\d+_(?P<file>.+)|_text\.html)",
    re.DOTALL,
)
_MOODLE = re.compile(r"(?P<name>.+?)(?:_(?P<id>\d+))?_assignsubmission_[a-z]+(?:_(?P<file>.*))?", re.DOTALL)
_MOODLES = "_assignsubmission_"
_GRADESCOPE = re.compile(r"submission_\d+")
_BEHIND = re.compile(r"([\W_].*)?", re.DOTALL)  # a suffix such as "-1" or " (2)"
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.\d+)? ?(Z|[+-]\d\d:?\d\d)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """The sender of a file according to the platform. Unknown fields are empty."""

    platform: str
    name: str = ""
    id: str = ""
    email: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """The file, senders and time of a submission, according to the platform or the file system, not to the student.

    file: the path in the folder of submissions. submitted_at: the time as an aware datetime in UTC; None if unknown.
    time_from: the source of this time, in words. late: whether the platform marks the submission as late.
    """

    file: str
    senders: tuple[Sender, ...] = ()
    submitted_at: datetime | None = None
    time_from: str = ""
    late: bool = False


@dataclass(frozen=True)
class HandedIn:
    """A file that a student handed in, or a folder in which no file is an archive. `name` is unique in the class.

    problem: why the file is not a submission, or None. files: the number of files in the folder; 1 for a file.
    """

    name: str
    arrival: Arrival
    problem: Rejected | None
    files: int
    _open: Callable[[], IO[bytes]]

    def read(self) -> bytes:
        """Return the bytes of the tarball. Raises `Rejected` for a bad tarball, and `OSError` if reading fails."""
        if self.problem is not None:
            raise self.problem
        with self._open() as file:
            data = read_tarball(file)
        # A browser may have unpacked the gzip layer and removed the .gz.
        return stored_gzip(data) if self.arrival.file.lower().endswith(".tar") else data


@dataclass(frozen=True)
class FolderContent:
    """The content of a folder of submissions.

    files: the files that get a row in the scores, sorted by name. ignored: the number of ignored files, by their type.
    unused: names in the table of times that match no file.
    """

    files: tuple[HandedIn, ...]
    ignored: Mapping[str, int]
    unused: tuple[str, ...] = ()


class PlatformName(NamedTuple):
    """The sender whom a path names, and whether the path marks the file as late.

    stem: the name that the student gave to the file, without its suffix.
    """

    sender: Sender | None
    late: bool
    stem: str


@dataclass(frozen=True)
class _File:
    """A file in a folder or a zip. If `path` ends with /, it is an empty folder.

    files: the number of files, if this object stands for a folder; else 1.
    """

    path: str
    open: Callable[[], IO[bytes]]
    date: datetime | None = None
    dated: str = "the file's date"
    problem: Rejected | None = None
    files: int = 1


def read_folder(place: Path, times: Times | None = None, *, trust_dates: bool = False) -> FolderContent:
    """Return the content of a folder or a zip of submissions.

    times: the times of submission by file, student or id. A time from the platform has precedence. trust_dates: whether
    the date of a file may be used as the time of submission, although copying a file may change its date. Raises
    `UserError` if the folder does not exist, or contains no archive.
    """
    if place.is_dir():
        found = list(_expand_zips(_walk(place)))
    elif place.is_file() and place.suffix.lower() == ".zip":
        found = list(_members(_File("", partial(open_regular, place))))
        if found and not found[0].path:
            raise UserError(f"{place} cannot be read: {found[0].problem}")
    else:
        raise UserError(f"There is no folder {place}: give the folder with the students' .tar.gz files, or its zip.")
    ignored: Counter[str] = Counter()
    entries = []
    for entry in found:
        if kind := _reason_to_ignore(entry.path):
            ignored[kind] += 1
        else:
            entries.append(entry)
    if not any(_is_archive(entry.path) for entry in entries):
        names = ", ".join(printable(entry.path) for entry in entries[:3]) or "nothing"
        raise UserError(
            f"{place} contains no .tar.gz file. It contains {names}{' and more' if entries[3:] else ''}. Put the"
            " .tar.gz files there that make submit wrote."
        )
    downloads = _downloads([entry.path for entry in entries])
    known, listings = _gradescope(entries, downloads)
    ignored += Counter({"lists of the platform": len(listings)} if listings else {})
    told = times or Times()
    rows = []
    for name, entry in _give_names(_fold_folders([entry for entry in entries if entry.path not in listings])):
        problem = entry.problem or (None if _is_archive(entry.path) else _no_archive(entry))
        arrival = _add_time(_arrival(entry, known, downloads), entry, told, trust_dates=trust_dates)
        rows.append(HandedIn(name, arrival, problem, entry.files, entry.open))
    files = tuple(sorted(rows, key=lambda row: row.name))
    return FolderContent(files, dict(sorted(ignored.items())), tuple(told.unused))


def platform_of(path: str) -> PlatformName:
    """Return the sender that a path seems to name: use its outermost part that has the form of a platform's names.

    A student may have chosen this part, so it proves nothing. `read_folder` decides which part is from a platform.
    """
    parts = path.split("/")
    for index, part in enumerate(parts):
        if found := _parse_platform(part, is_file=index == len(parts) - 1):
            return found if index == len(parts) - 1 else found._replace(stem=_stem(parts[-1]))
    return PlatformName(None, False, _stem(parts[-1]))


def _parse_platform(part: str, *, is_file: bool) -> PlatformName | None:
    """Return the sender that one part of a path seems to name, or None if no platform makes such names."""
    moodle = _MOODLE.fullmatch(part)
    # Canvas names only files in this way, not folders.
    canvas = _CANVAS.fullmatch(_without_marks(part)) if is_file or part.lower().endswith(".zip") else None
    # A name may match both platforms, because the student chose its end, and may have imitated a platform there.
    if canvas and not (moodle and _MOODLES in part[: canvas.start("file") if canvas["file"] else None]):
        name, file = (part[slice(*canvas.span(group))] if canvas[group] else "" for group in ("name", "file"))
        sender = Sender(platform="Canvas", name=name, id=canvas["id"] or canvas["anon"])
        return PlatformName(sender, bool(canvas["late"] or canvas["named_late"]), _stem(file))
    if moodle:
        sender = Sender(platform="Moodle", name=moodle["name"], id=moodle["id"] or "")
        return PlatformName(sender, False, _stem(moodle["file"] or ""))
    if not is_file and _GRADESCOPE.fullmatch(part):
        return PlatformName(None, False, "")  # Gradescope's list names the sender
    return None


def _downloads(paths: Sequence[str]) -> frozenset[str]:
    """Return the folders and zips that platforms made, each with / at its end; "" is the given folder itself.

    A folder or zip from a platform directly contains a file or folder whose name has the form of a platform's names.
    All these folders and zips are on the same level: the outermost level with such names. If a folder or zip on this
    level contains a tarball, but no such name, then students made the folders, and one student imitates a platform. In
    this case, return an empty set.
    """
    split = [path.split("/") for path in paths]
    for depth in range(max(map(len, split), default=0)):
        here = [parts for parts in split if len(parts) > depth]
        marked, filled, plain = set(), set(), False
        for parts in here:
            above, is_file = "".join(f"{part}/" for part in parts[:depth]), len(parts) == depth + 1
            if _parse_platform(parts[depth], is_file=is_file):
                marked.add(above)
            if _is_archive(parts[-1]):
                filled.add(above)
                plain |= is_file
        if marked or plain:
            return frozenset(marked if filled <= marked else ())
    return frozenset()


def _without_marks(name: str) -> str:
    """Replace each combining mark in a name by the letter m, because Canvas treats vowel signs as letters."""
    return "".join("m" if unicodedata.category(char)[0] == "M" else char for char in name)


def _stem(name: str) -> str:
    return _ENDING.sub("", name)


def _is_archive(path: str) -> bool:
    return _ARCHIVE.fullmatch(path) is not None


def _reason_to_ignore(path: str) -> str:
    """Return the type of a file that is ignored, or "" for a file that a student may have handed in."""
    parts = path.split("/")
    if path.endswith("/"):
        return "empty folders"
    if _SYSTEM.intersection(parts) or parts[-1].startswith("._"):
        return "system files"
    if parts[-1].endswith(f"{SUFFIX}.sha256"):
        return "checksums"
    if parts[-1].startswith(".") and not _is_archive(path):
        return "hidden files"
    return ""


def _no_archive(entry: _File) -> Rejected:
    if entry.path.endswith(".html") and platform_of(entry.path).sender is not None:
        return Rejected(NO_ARCHIVE, f"The submission is text typed into the platform, not an archive: {REMEDY}.")
    if entry.files > 1:
        return Rejected(NO_ARCHIVE, f"The submission is a folder of {entry.files} files without an archive: {REMEDY}.")
    return Rejected(NO_ARCHIVE, f"The file is not an archive of a submission: {REMEDY}.")


def _fold_folders(entries: Sequence[_File]) -> Iterator[_File]:
    """Yield the entries. If a folder has several files but no archive, yield one entry for the whole folder."""
    with_archive = {above for entry in entries if _is_archive(entry.path) for above in _above(entry.path)}
    folders: dict[str, list[_File]] = {}
    for entry in entries:
        outermost = next((above for above in _above(entry.path) if above not in with_archive), None)
        if outermost is None:
            yield entry
        else:
            folders.setdefault(outermost, []).append(entry)
    for path, found in folders.items():
        yield replace(found[0], path=path, problem=None, files=len(found)) if len(found) > 1 else found[0]


def _above(path: str) -> list[str]:
    """Return the folders that contain a file, the outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _give_names(entries: Iterable[_File]) -> Iterator[tuple[str, _File]]:
    """Yield a unique name for each entry, and the entry, tarballs first.

    The name is the path without `.tar.gz`, perhaps with a number.
    """
    taken = set()
    for entry in sorted(entries, key=lambda entry: (not entry.path.endswith(SUFFIX), entry.path)):
        wanted = name = entry.path.removesuffix(SUFFIX)
        count = 1
        while name in taken:
            count += 1
            name = f"{wanted} ({count})"
        taken.add(name)
        yield name, entry


# --- Folders and zips ---


def _walk(folder: Path, inside: str = "") -> Iterator[_File]:
    """Yield every file in a folder and its subfolders, sorted by name, without following links."""
    with os.scandir(folder) as found:
        items = sorted(found, key=lambda item: os.fsencode(item.name))
    if not items and inside:
        yield _File(inside, io.BytesIO)
    for item in items:
        path, opened = f"{inside}{escape_name(item.name)}", partial(open_regular, Path(item.path))
        if not item.is_dir(follow_symlinks=False):
            yield _File(path, opened, _date(item.stat(follow_symlinks=False).st_mtime))
        elif path.count("/") >= _DEPTH:
            yield _File(path, opened, problem=Rejected("too deep", f"This folder is nested too deeply: {REMEDY}."))
        elif _is_archive(path):  # a folder with the name of an archive: to open it raises an error
            yield _File(path, opened, files=len(list(_walk(Path(item.path), f"{path}/"))))
        else:
            yield from _walk(Path(item.path), f"{path}/")


def _date(moment: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(int(moment), UTC)
    except (OverflowError, ValueError, OSError):
        return None


def _expand_zips(entries: Iterable[_File], depth: int = 0) -> Iterator[_File]:
    """Yield the entries, but replace each zip by its members. Do not open a zip inside a student's zip."""
    for entry in entries:
        if not entry.path.lower().endswith(".zip") or _reason_to_ignore(entry.path) or entry.problem is not None:
            yield entry
        elif depth > 1:
            yield replace(entry, problem=Rejected("zip in a zip", f"This is a zip in a zip: {REMEDY}."))
        else:
            yield from _members(entry, depth)


def _members(archive: _File, depth: int = 0) -> Iterator[_File]:
    """Yield the members of a zip, or the zip itself if it has a problem."""
    of_student = depth > 0 or platform_of(archive.path).sender is not None
    inside = f"{archive.path}/" if archive.path else ""
    # A student can choose the dates inside a zip, so use the date of the zip file itself.
    dated = "the zip's date" if not archive.path else archive.dated
    try:
        found = read_zip(archive.open, few=of_student)
    except (Rejected, OSError) as error:
        refusal = error if isinstance(error, Rejected) else Rejected("not readable", f"{error.strerror}.")
        yield replace(archive, problem=refusal)
        return
    above = {f"{folder}/" for member in found for folder in _above(member.name)}
    members = [
        _File(
            inside + member.name.replace("\\", "\\\\"),
            member.open,
            archive.date if archive.path else member.date,
            dated,
            member.problem,
        )
        for member in found
        if member.name not in above
    ]
    if not members:
        yield replace(archive, problem=Rejected(NO_ARCHIVE, f"This zip is empty: {REMEDY}."))
    yield from _expand_zips(members, depth + 2 if of_student else depth + 1)


# --- Senders and times ---


def _arrival(entry: _File, known: Mapping[str, Arrival], downloads: Iterable[str]) -> Arrival:
    """Return the file, senders and time of a submission. `known` has the entries of Gradescope's lists, by folder."""
    listed = next((known[path] for path in _above(entry.path) if path in known), None)
    if listed is not None:
        return replace(listed, file=entry.path)
    for download in downloads:
        if entry.path.startswith(download):
            first, below, _ = entry.path.removeprefix(download).partition("/")
            platform = _parse_platform(first, is_file=not below)
            if platform and platform.sender:
                return Arrival(file=entry.path, senders=(platform.sender,), late=platform.late)
    return Arrival(file=entry.path)


def _add_time(arrival: Arrival, entry: _File, told: Times, *, trust_dates: bool) -> Arrival:
    """Return `arrival` with a time of submission, if one is known.

    Canvas and Moodle set the date of files in their zips to the time of the download, so these dates are not used.
    """
    if arrival.submitted_at is not None:
        return arrival
    last = entry.path.rpartition("/")[2]
    people = (text for one in arrival.senders for text in (one.email, one.id, one.name))
    # Look up names from the platform before names from the student. The platform's list may name a zip that the student
    # uploaded, so also look up the folders and zips that contain the file.
    moment = told.find(
        (
            entry.path,
            *reversed(_above(entry.path)),
            *people,
            last,
            *_logins(platform_of(entry.path).stem, told.exercises),
        )
    )
    if moment is not None:
        return replace(arrival, submitted_at=moment, time_from=told.source)
    if entry.date is None or arrival.senders or not trust_dates:
        return arrival
    return replace(arrival, submitted_at=entry.date, time_from=entry.dated)


def _logins(stem: str, exercises: Sequence[str]) -> Iterator[str]:
    """Yield the whole text before an exercise's id in a file name. A part of it could be another student's login."""
    for exercise in exercises:
        login, found, behind = stem.rpartition(f"_{exercise}")
        if found and _BEHIND.fullmatch(behind):
            yield login


def _gradescope(entries: Sequence[_File], downloads: Set[str]) -> tuple[Mapping[str, Arrival], set[str]]:
    """Read Gradescope's lists. Return the senders and times by the path of a folder, and the paths of the lists.

    A list is from Gradescope only if it is directly in a folder or zip of `downloads`. Any other list is a student's
    file. A list that cannot be read is treated as an ordinary file.
    """
    known: dict[str, Arrival] = {}
    listings = set()
    for entry in entries:
        folder = entry.path.removesuffix(_METADATA)
        if folder == entry.path or folder not in downloads or entry.problem is not None:
            continue
        try:
            with entry.open() as file:
                facts = _facts(file.read(_METADATA_BYTES))
        except (Rejected, ValueError):
            continue
        listings.add(entry.path)
        for item, (people, moment) in facts.items():
            senders = tuple(Sender(platform="Gradescope", **people[number]) for number in sorted(people))
            source = "" if moment is None else "Gradescope"
            known[folder + item] = Arrival(file=item, senders=senders, submitted_at=moment, time_from=source)
    return known, listings


_Owners = dict[int, dict[str, str]]


def _facts(data: bytes) -> Mapping[str, tuple[_Owners, datetime | None]]:
    """Return the submitters and the time of each submission. Raises `ValueError` if the data is not YAML."""
    fields = {":name": "name", ":sid": "id", ":email": "email"}
    people: dict[str, _Owners] = {}
    moments: dict[str, datetime] = {}
    for path, value in walk_scalars(data):
        match path:
            case [str(item), ":submitters", int(number), str(field)] if field in fields:
                people.setdefault(item, {}).setdefault(number, {})[fields[field]] = value
            case [str(item), ":created_at"] if found := _TIME.fullmatch(value):
                moments[item] = datetime.fromisoformat(f"{found[1]}T{found[2]}{found[3] or 'Z'}").astimezone(UTC)
    return {item: (people.get(item, {}), moments.get(item)) for item in sorted({*people, *moments})}
