"""Whose submission it is: file name and manifest must agree, and nobody takes another student's place.

Names are compared after Unicode normalization (NFC). All this looks at names alone, so it holds for rejected
archives, too.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from grader.score.verdict import Flag, SubmissionScore
from harness.cases import handed_in_ids
from harness.errors import printable
from harness.personal import login as login  # noqa: PLC0414 (others import it from here)
from harness.written.exercise import exercise_ids

OTHER_NAME = "other name"
DECIDED_NAME = "decided name"
# Flags that depend on who else is in the class. They are for the instructor: no student's page shows them.
_SAME_STUDENT, _LOOK_ALIKE, SIMILAR, OTHER_SEED = "same student", "look alike", "similar", "other seed"
ABOUT_OTHERS = (_SAME_STUDENT, _LOOK_ALIKE, SIMILAR, OTHER_SEED)

# What a learning platform puts before a file's name ends with a character that no login has, or with a number of the
# platform's: "Ada Lovelace_123_assignsubmission_file_", "lovelaceada_LATE_123_456_".
_BEFORE = re.compile(r"(.*[^\w.-]|(.*[_-])?\d+_([a-z]+_)*)?", re.DOTALL)
_BEHIND = re.compile(r"([\W_].*)?", re.DOTALL)  # "-1", " (2)"
# Letters of Cyrillic and Greek, a Turkish i, and digits that look like Latin letters, in lower case.
_LOOKS = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04bb\u051b\u051d\u043a\u043c\u0442\u0432"
    "\u043d\u03b1\u03bf\u03bd\u03c1\u03c4\u03c5\u03b9\u03ba\u03c7\u03b3\u03b7\u03b2\u03b5\u013101",
    "aeopcyxijsdhqwkmtbhaovptuikxynbeiol",
)
_ALPHABETS = ("LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "CHEROKEE")


def identified(name: str, student: str | None, exercise: str | None) -> tuple[str, str, tuple[Flag, ...]]:
    """Return student and exercise of the submission `name`, and the flags of these names.

    student, exercise: what the manifest says, or None if it cannot be read. The file's name decides about the student
    if the manifest says something else.
    """
    known = next((known for known in (*handed_in_ids(), *_exercises()) if name.endswith(f"_{known}")), "")
    named = name.removesuffix(f"_{known}") if known else name
    flags = []
    if student is not None and exercise is not None and not _agree(name, student, exercise):
        message = f"Its manifest says {printable(student)} and {printable(exercise)}, and the file's name does not."
        flags.append(Flag(id=OTHER_NAME, message=message))
        student = None
    odd = ((text, _oddity(text)) for text in (name, student or ""))
    flags += [Flag(id="odd name", message=f"{printable(text)} {why}.") for text, why in odd if why][:1]
    return student or named, exercise or known, tuple(flags)


@cache
def _exercises() -> tuple[str, ...]:
    return tuple(exercise_ids())


def compared(rows: Sequence[SubmissionScore]) -> tuple[SubmissionScore, ...]:
    """Return the rows of a class with the flags that tell of each other: one student twice, names that look alike."""
    found: dict[str, list[Flag]] = defaultdict(list)
    for row, why in _same_student(rows).values():
        found[row.submission].append(Flag(id=_SAME_STUDENT, message=why))
    for name, (student, others) in _look_alike(rows).items():
        # In ASCII, because on the page they would look alike.
        message = f"The student {student!a} looks like {', '.join(map(ascii, others[:3]))}."
        found[name].append(Flag(id=_LOOK_ALIKE, message=message))
    return tuple(row.model_copy(update={"flags": (*own_flags(row), *found[row.submission])}) for row in rows)


def own_flags(row: SubmissionScore) -> tuple[Flag, ...]:
    """Return the flags of a row that do not depend on who else is in the class."""
    return tuple(flag for flag in row.flags if flag.id not in ABOUT_OTHERS)


def left_out(rows: Iterable[SubmissionScore]) -> dict[str, str]:
    """Return which submissions have no place in gradebook and exports until the instructor decides, and why."""
    rows = tuple(rows)
    other = {row.submission: flag.message for row in rows for flag in row.flags if flag.id == OTHER_NAME}
    return other | {name: why for name, (row, why) in _same_student(rows).items() if not why.endswith(_COUNTS)}


def decided_student(row: SubmissionScore, student: str, comment: str) -> SubmissionScore:
    """Return the row as that of the student whom the instructor named: it counts before all others."""
    flag = Flag(id=DECIDED_NAME, message=f"The instructor decided that it is {printable(student)}'s. {comment}")
    flags = (flag, *(flag for flag in row.flags if flag.id != OTHER_NAME))
    return row.model_copy(update={"student": student, "flags": flags})


def same_name(text: str) -> str:
    """Return a name in the form in which names are compared."""
    return unicodedata.normalize("NFC", text)


def _agree(name: str, student: str, exercise: str) -> bool:
    """Return whether a file's name holds `student_exercise`, with nothing but words of a platform around it."""
    wanted, name = same_name(f"{student}_{exercise}"), same_name(name)
    before, found, behind = name.rpartition(wanted)
    touches_mark = any(unicodedata.category(char)[0] == "M" for char in (before[-1:], behind[:1]) if char)
    return bool(found and _BEFORE.fullmatch(before) and _BEHIND.fullmatch(behind)) and not touches_mark


def _oddity(name: str) -> str:
    """Return what is odd about a name, as the end of a sentence, or ""."""
    if not name.isprintable():
        return "has characters that cannot be seen"
    if "\\" in name:
        return "has a backslash, or bytes that are not UTF-8"
    if unicodedata.normalize("NFKC", name) != same_name(name):
        return "has unusual forms of letters"
    for word in re.findall(r"[^\W\d_]+", name):
        scripts = {unicodedata.name(char, "").split(" ")[0] for char in word}
        if len(scripts.intersection(_ALPHABETS)) > 1:
            return "mixes letters of several alphabets in a word"
    return ""


_COUNTS = "this one counts."


def _same_student(rows: Iterable[SubmissionScore]) -> dict[str, tuple[SubmissionScore, str]]:
    """Return the submissions of students who handed in one exercise more than once, each with a sentence.

    The one that the instructor chose counts, or else the one whose file is named just `student_exercise`.
    """
    groups = defaultdict(list)
    for row in rows:
        if row.recipe and all(flag.id != OTHER_NAME for flag in row.flags):
            groups[same_name(row.student), row.recipe].append(row)
    found = {}
    for (student, exercise), group in groups.items():
        decided = [row for row in group if any(flag.id == DECIDED_NAME for flag in row.flags)]
        exact = [row for row in group if same_name(row.submission) == f"{student}_{exercise}"]
        chosen = decided or exact
        for row in group if len(group) > 1 else ():
            which = f"none of these files is named {printable(f'{student}_{exercise}')}.tar.gz, and none counts."
            if len(chosen) == 1:
                which = _COUNTS if row is chosen[0] else f"{printable(chosen[0].submission)} counts."
            files = f"{printable(row.submission)} is one of {len(group)} files of {printable(student)}"
            found[row.submission] = row, f"{files} for {exercise}: {which}"
    return found


def _look_alike(rows: Sequence[SubmissionScore]) -> dict[str, tuple[str, list[str]]]:
    """Return, by submission, its student and the others whose names look like it."""
    students = sorted({same_name(row.student) for row in rows})
    others: dict[str, set[str]] = defaultdict(set)
    forms: tuple[Callable[[str], str], ...] = (login, look)
    for form in forms:
        groups = defaultdict(list)
        for student in students:
            groups[form(student)].append(student)
        for group in groups.values():
            for student in group:
                others[student] |= {*group} - {student}
    named = ((row.submission, same_name(row.student)) for row in rows)
    return {name: (student, sorted(others[student])) for name, student in named if others[student]}


def look(student: str) -> str:
    """Return what a name looks like: equal for names that differ in accents, alphabets, or what cannot be seen."""
    parts = unicodedata.normalize("NFKD", student)
    shown = "".join(char for char in parts if unicodedata.category(char) not in ("Mn", "Cf", "Zs"))
    return shown.replace("I", "l").casefold().translate(_LOOKS)
