"""Decide to which student each submission belongs: the file name, the manifest and the platform must agree.

Otherwise a student could replace the work of another student. Names are compared after Unicode normalization (NFC).
This module reads only names, so it also works for rejected archives.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from grader.intake.folder import Sender, platform_of
from grader.score.verdict import Flag, SubmissionScore
from harness.errors import printable
from harness.recipes.personal import login

Choose = Callable[[Sequence[SubmissionScore]], SubmissionScore | None]
OTHER_NAME = "other name"
STRANGER = "not on the roster"
DECIDED_NAME = "decided name"
ODD_NAME = "odd name"
# Flags that depend on other students in the class. Only the instructor sees these flags, and no student's page shows
# them.
SAME_STUDENT, _LOOK_ALIKE, SIMILAR, OTHER_SEED = "same student", "look alike", "similar", "other seed"
ABOUT_OTHERS = (SAME_STUDENT, _LOOK_ALIKE, SIMILAR, OTHER_SEED)

# A learning platform that `grader.intake.folder` does not know may put a prefix before the file name. The prefix must
# end with a character that is rare in logins, or with a number.
_BEFORE = re.compile(r"(.*[^\w.@+-]|(.*[_-])?\d+_([a-z]+_)*)?", re.DOTALL)
_LOST = str.maketrans("", "", "&'`")  # Moodle removes these characters from file names
_BEHIND = re.compile(r"([\W_].*)?", re.DOTALL)  # a suffix such as "-1" or " (2)"
# Letters that look like Latin letters: Cyrillic and Greek letters, a Turkish i, and digits, all in lower case.
_LOOKS = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04bb\u051b\u051d\u043a\u043c\u0442\u0432"
    "\u043d\u03b1\u03bf\u03bd\u03c1\u03c4\u03c5\u03b9\u03ba\u03c7\u03b3\u03b7\u03b2\u03b5\u013101",
    "aeopcyxijsdhqwkmtbhaovptuikxynbeiol",
)
# Invisible characters that Unicode classifies as letters, marks or symbols. `str.isprintable` finds all other invisible
# characters.
_NO_INK = re.compile(
    r"\b(FILLER|VARIATION SELECTOR[ -]\w+|GRAPHEME JOINER|VOWEL INHERENT \w+|PATTERN BLANK|NULL NOTEHEAD|FILL SPACE)$"
)
_ALPHABETS = ("LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "CHEROKEE")


def identify(
    name: str, student: str | None, exercise: str | None, exercises: Iterable[str]
) -> tuple[str, str, tuple[Flag, ...]]:
    """Return the student and the exercise of the submission `name`, and flags about its names.

    student, exercise: the names in the manifest, or None if the manifest cannot be read. exercises: the ids of all
    exercises of the class. If the file name and the manifest name different students, the file name decides.
    """
    stem = platform_of(name).stem
    known = next((known for known in exercises if stem.endswith(f"_{known}")), "")
    named = stem.removesuffix(f"_{known}") if known else stem or name
    flags = []
    if student is not None and exercise is not None and not any(_agree(one, student, exercise) for one in (name, stem)):
        message = f"The manifest names {printable(student)} and {printable(exercise)}, but the file name does not."
        flags.append(Flag(id=OTHER_NAME, message=message))
        student = None
    odd = ((text, _oddity(text)) for text in (name, student or ""))
    flags += [Flag(id=ODD_NAME, message=f"{_spell_name(text)} {why}.") for text, why in odd if why][:1]
    return student or named, exercise or known, tuple(flags)


def name_student(row: SubmissionScore, exercises: Iterable[str]) -> SubmissionScore:
    """Return the row with the student, the exercise and the flags that `identify` finds."""
    student, exercise, flags = identify(row.submission, row.student or None, row.recipe or None, exercises)
    return replace(row, student=student, recipe=exercise, flags=(*row.flags, *flags))


@dataclass(frozen=True)
class Student:
    """A line of the roster. Only the login is required. ids: further ids of the student on learning platforms."""

    login: str
    name: str = ""
    email: str = ""
    section: str = ""
    ids: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All names under which a platform may know the student."""
        return (self.login, self.name, self.email, *self.ids)


_Senders = tuple[Sender, ...]


def settle_students(rows: Sequence[SubmissionScore], roster: Iterable[Student] = ()) -> tuple[SubmissionScore, ...]:
    """Return the rows, each assigned to the student who sent it according to the platform.

    The roster maps senders to students. Without a roster, a sender is the student whom most of the sender's files name.
    If two senders claim the same login, it belongs to the sender whose name or address fits the login. If a file
    names another student than its sender, its row gets a flag and the sender's name. So it cannot replace the work of
    the other student. For a rejected archive, only the platform is trusted, because anybody can write any name into a
    file. A file name inside an upload that looks like a sender's name proves nothing: the row gets a flag.
    """
    claims: dict[_Senders, Counter[str]] = defaultdict(Counter)
    for row in rows:
        if _senders(row) and row.status != "rejected" and all(flag.id != OTHER_NAME for flag in row.flags):
            claims[_senders(row)][login(row.student)] += 1
    owned = _assign_logins({_senders(row): claims[_senders(row)] for row in rows if _senders(row)}, tuple(roster))
    return tuple(_settle(row, owned[_senders(row)]) if _senders(row) else _doubt_sender(row) for row in rows)


def _doubt_sender(row: SubmissionScore) -> SubmissionScore:
    """Return a row that has no sender. Add a flag if a name in its path looks like a sender from a platform."""
    claimed = row.arrival and platform_of(row.arrival.file).sender
    if not claimed or any(flag.id == ODD_NAME for flag in row.flags):
        return row
    message = (
        f"A file name inside the upload looks like a name from {claimed.platform}. This name does not prove who sent"
        " the file."
    )
    return replace(row, flags=(*row.flags, Flag(id=ODD_NAME, message=message)))


def _settle(row: SubmissionScore, own: set[str]) -> SubmissionScore:
    """Return the row with the students who handed it in. `own` has the logins of the senders."""
    senders = _senders(row)
    if login(row.student) in own:
        return row
    sender = " and ".join(one.name or one.email or one.id for one in senders)
    student = next(iter(own)) if len(own) == 1 else sender
    if row.status == "rejected":
        if not own and fits(senders, login(row.student)):
            return row
        return replace(row, student=student)
    flags = row.flags
    if all(flag.id != OTHER_NAME for flag in flags):
        message = (
            f"According to {senders[0].platform}, {printable(sender)} sent this file. But the file names the student"
            f" {printable(row.student)}."
        )
        flags = (*flags, Flag(id=OTHER_NAME, message=message))
    return replace(row, student=student, flags=flags)


def _senders(row: SubmissionScore) -> _Senders:
    return row.arrival.senders if row.arrival else ()


def _assign_logins(claims: Mapping[_Senders, Counter[str]], roster: Sequence[Student]) -> dict[_Senders, set[str]]:
    """Return the logins of each sender. `claims` says how often the files of each sender name each login."""
    people: dict[str, set[str]] = defaultdict(set)
    for student in roster:
        for key in {letters_of(student.name), *map(login, (student.login, student.email, *student.ids))}:
            people[key].add(login(student.login))
    owned, listed = {}, set()
    for senders, names in claims.items():
        known = set()
        for one in senders:
            keys = (login(one.email), login(one.id), letters_of(one.name))
            known |= next((people[key] for key in keys if key and len(people.get(key, ())) == 1), set())
        top = names.most_common(2)
        clear = top[:1] if len(top) == 1 or (top and top[0][1] > top[1][1]) else []
        owned[senders] = known or {name for name, _ in clear}
        listed |= {senders} if known else set()
    claimants: dict[str, list[_Senders]] = defaultdict(list)
    for senders, logins in owned.items():
        for name in logins:
            claimants[name].append(senders)
    for name, rivals in claimants.items():
        # A group and one of its members may have the same login. The id is not compared if there is a name, because
        # Moodle gives a student another id in each assignment.
        if set.intersection(*({(one.platform, one.name or one.id) for one in senders} for senders in rivals)):
            continue
        sure = [one for one in rivals if one in listed] or [one for one in rivals if fits(one, name)]
        for senders in rivals:
            if senders not in sure:
                owned[senders] = owned[senders] - {name}
    return owned


def fits(senders: _Senders, student: str) -> bool:
    """Return whether a login matches the address, the id or a part of the name of one of the senders."""
    local = student.partition("@")[0]
    letters = letters_of(local)
    for one in senders:
        if student in (login(one.email), login(one.email).partition("@")[0], login(one.id)):
            return True
        joined = "".join(filter(str.isalpha, login(one.name)))
        if letters and (letters == letters_of(one.name) or "".join(filter(str.isalpha, local)) in joined):
            return True
    return False


def letters_of(name: str) -> str:
    """Return the sorted letters of a name, so that "Ada Lovelace" and "Lovelace, Ada" give the same result."""
    return "".join(sorted(filter(str.isalpha, login(name))))


def compare_rows(rows: Sequence[SubmissionScore], choose: Choose | None = None) -> tuple[SubmissionScore, ...]:
    """Return the rows of a class with flags for repeated attempts and for names that look alike.

    choose: a function that picks which of a student's attempts counts. By default, the attempt with the file name
    `student_exercise` counts, perhaps with a platform's prefix. If the instructor chose an attempt, that attempt
    counts.
    """
    found: dict[str, list[Flag]] = defaultdict(list)
    outside = {row.submission: flag.message for row in rows for flag in row.flags if flag.id == OTHER_NAME}
    for name, (why, counts) in _same_student(rows, choose or _best_named).items():
        found[name].append(Flag(id=SAME_STUDENT, message=why))
        if not counts:
            outside[name] = why
    for name, (student, others) in _look_alike(rows).items():
        # Print the names in ASCII, because the original names would look the same on the page.
        message = f"The student name {student!a} looks like {', '.join(map(ascii, others[:3]))}."
        found[name].append(Flag(id=_LOOK_ALIKE, message=message))
    return tuple(
        replace(row, flags=(*own_flags(row), *found[row.submission]), not_counting=outside.get(row.submission, ""))
        for row in rows
    )


def own_flags(row: SubmissionScore) -> tuple[Flag, ...]:
    """Return the flags of a row that do not depend on other students."""
    return tuple(flag for flag in row.flags if flag.id not in ABOUT_OTHERS)


def find_left_out(rows: Iterable[SubmissionScore]) -> dict[str, str]:
    """Return the submissions that gradebook and exports leave out until the instructor decides, with the reasons.

    `compare_rows` finds these reasons.
    """
    return {row.submission: row.not_counting for row in rows if row.not_counting}


def decided_student(row: SubmissionScore, student: str, comment: str) -> SubmissionScore:
    """Return the row, assigned to the student whom the instructor named. It counts before the student's other rows."""
    flag = Flag(
        id=DECIDED_NAME, message=f"The instructor decided that {printable(student)} sent this submission. {comment}"
    )
    flags = (flag, *(flag for flag in row.flags if flag.id != OTHER_NAME))
    return replace(row, student=student, flags=flags)


def same_name(text: str) -> str:
    """Return the normalized form (NFC) of a name, which is used to compare names."""
    return unicodedata.normalize("NFC", text)


def _agree(name: str, student: str, exercise: str) -> bool:
    """Return whether a file name is `student_exercise`, perhaps with a platform's prefix and suffix."""
    wanted, name = (same_name(text).translate(_LOST) for text in (f"{student}_{exercise}", name))
    before, found, behind = name.rpartition(wanted)
    touches_mark = any(unicodedata.category(char)[0] == "M" for char in (before[-1:], behind[:1]) if char)
    return bool(found and _BEFORE.fullmatch(before) and _BEHIND.fullmatch(behind)) and not touches_mark


def _oddity(name: str) -> str:
    """Return why a name looks suspicious, as the end of a sentence, or ""."""
    if any(map(is_invisible, name)):
        return "has invisible characters"
    if "\\" in name:
        return "has a backslash, or bytes that are not UTF-8"
    if unicodedata.normalize("NFKC", name) != same_name(name):
        return "has unusual forms of letters"
    for word in re.findall(r"[^\W\d_]+", name):
        scripts = {unicodedata.name(char, "").split(" ")[0] for char in word}
        if len(scripts.intersection(_ALPHABETS)) > 1:
            return "mixes letters of several alphabets in a word"
    return ""


def _spell_name(name: str) -> str:
    """Return a name for a message, with codes in place of invisible characters."""
    return printable("".join(ascii(char)[1:-1] if is_invisible(char) else char for char in name[:80]))


@lru_cache(maxsize=2**15)
def is_invisible(char: str) -> bool:
    """Return whether a character is invisible or unassigned: a control, a joiner, a filler, or an unusual space.

    Some invisible characters are letters or symbols according to Unicode. `_NO_INK` finds them by their names.
    """
    return not char.isprintable() or _NO_INK.search(unicodedata.name(char, "")) is not None


def _same_student(rows: Iterable[SubmissionScore], choose: Choose) -> dict[str, tuple[str, bool]]:
    """If a student has several submissions of an exercise, return a sentence on each, and whether it counts."""
    groups = defaultdict(list)
    for row in rows:
        if row.recipe and all(flag.id != OTHER_NAME for flag in row.flags):
            groups[same_name(row.student), row.recipe].append(row)
    found = {}
    for (student, exercise), group in groups.items():
        decided = [row for row in group if any(flag.id == DECIDED_NAME for flag in row.flags)]
        chosen = decided[0] if len(decided) == 1 else None if decided else choose(group)
        for row in group if len(group) > 1 else ():
            which = "it is not clear which file counts, so no file counts."
            if chosen is not None:
                which = "this file counts." if row is chosen else f"only {printable(chosen.submission)} counts."
            files = f"{printable(row.submission)} is one of {len(group)} files of {printable(student)}"
            found[row.submission] = f"{files} for {printable(exercise)}: {which}", row is chosen
    return found


def _best_named(group: Sequence[SubmissionScore]) -> SubmissionScore | None:
    """Return the attempt with the file name `student_exercise`, or None if that is not clear. Prefer valid archives."""
    name = f"{same_name(group[0].student)}_{group[0].recipe}"
    whole = [row for row in group if row.status != "rejected"] or group
    exact = [row for row in whole if same_name(row.submission) == name]
    chosen = exact or [row for row in whole if same_name(platform_of(row.submission).stem) == name] or whole
    return chosen[0] if len(chosen) == 1 else None


def _look_alike(rows: Sequence[SubmissionScore]) -> dict[str, tuple[str, list[str]]]:
    """Return, for each submission, its student and the other students whose names look like that student's name."""
    students = sorted({same_name(row.student) for row in rows})
    others: dict[str, set[str]] = defaultdict(set)
    forms: tuple[Callable[[str], str], ...] = (login, look_alike_key)
    for form in forms:
        groups = defaultdict(list)
        for student in students:
            groups[form(student)].append(student)
        for group in groups.values():
            for student in group:
                others[student] |= {*group} - {student}
    named = ((row.submission, same_name(row.student)) for row in rows)
    return {name: (student, sorted(others[student])) for name, student in named if others[student]}


def look_alike_key(student: str) -> str:
    """Return a key of a name. Names that look alike, or differ only in accents, have the same key."""
    parts = unicodedata.normalize("NFKD", student)
    shown = "".join(char for char in parts if unicodedata.category(char) not in ("Mn", "Zs") and not is_invisible(char))
    return shown.replace("I", "l").casefold().translate(_LOOKS)
