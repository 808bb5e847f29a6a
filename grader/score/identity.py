"""Whose submission it is: file name, manifest and platform must agree, and nobody takes another student's place.

Names are compared after Unicode normalization (NFC). All this looks at names alone, so it holds for rejected
archives, too.
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
# Flags that depend on who else is in the class. They are for the instructor: no student's page shows them.
SAME_STUDENT, _LOOK_ALIKE, SIMILAR, OTHER_SEED = "same student", "look alike", "similar", "other seed"
ABOUT_OTHERS = (SAME_STUDENT, _LOOK_ALIKE, SIMILAR, OTHER_SEED)

# What a platform that `grader.intake.folder` does not know puts before a file's name ends with a character that few
# logins have, or with a number of the platform's.
_BEFORE = re.compile(r"(.*[^\w.@+-]|(.*[_-])?\d+_([a-z]+_)*)?", re.DOTALL)
_LOST = str.maketrans("", "", "&'`")  # Moodle takes them out of a file's name
_BEHIND = re.compile(r"([\W_].*)?", re.DOTALL)  # "-1", " (2)"
# Letters of Cyrillic and Greek, a Turkish i, and digits that look like Latin letters, in lower case.
_LOOKS = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04bb\u051b\u051d\u043a\u043c\u0442\u0432"
    "\u043d\u03b1\u03bf\u03bd\u03c1\u03c4\u03c5\u03b9\u03ba\u03c7\u03b3\u03b7\u03b2\u03b5\u013101",
    "aeopcyxijsdhqwkmtbhaovptuikxynbeiol",
)
# Unicode calls these letters, marks and symbols; by their names they leave no ink. `str.isprintable` tells all others.
_NO_INK = re.compile(
    r"\b(FILLER|VARIATION SELECTOR[ -]\w+|GRAPHEME JOINER|VOWEL INHERENT \w+|PATTERN BLANK|NULL NOTEHEAD|FILL SPACE)$"
)
_ALPHABETS = ("LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "CHEROKEE")


def identify(
    name: str, student: str | None, exercise: str | None, exercises: Iterable[str]
) -> tuple[str, str, tuple[Flag, ...]]:
    """Return student and exercise of the submission `name`, and the flags of these names.

    student, exercise: what the manifest says, or None if it cannot be read. exercises: all that may be handed in.
    The file's name decides about the student if the manifest says something else.
    """
    stem = platform_of(name).stem
    known = next((known for known in exercises if stem.endswith(f"_{known}")), "")
    named = stem.removesuffix(f"_{known}") if known else stem or name
    flags = []
    if student is not None and exercise is not None and not any(_agree(one, student, exercise) for one in (name, stem)):
        message = f"Its manifest says {printable(student)} and {printable(exercise)}, and the file's name does not."
        flags.append(Flag(id=OTHER_NAME, message=message))
        student = None
    odd = ((text, _oddity(text)) for text in (name, student or ""))
    flags += [Flag(id=ODD_NAME, message=f"{_spell_name(text)} {why}.") for text, why in odd if why][:1]
    return student or named, exercise or known, tuple(flags)


def name_student(row: SubmissionScore, exercises: Iterable[str]) -> SubmissionScore:
    """Return a row whose student and exercise are those of the manifest, with `identify` applied to them."""
    student, exercise, flags = identify(row.submission, row.student or None, row.recipe or None, exercises)
    return replace(row, student=student, recipe=exercise, flags=(*row.flags, *flags))


@dataclass(frozen=True)
class Student:
    """A line of the roster; all but the login may be empty. ids: further ones that a platform has for the student."""

    login: str
    name: str = ""
    email: str = ""
    section: str = ""
    ids: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Everything that a platform may call the student."""
        return (self.login, self.name, self.email, *self.ids)


_Senders = tuple[Sender, ...]


def settle_students(rows: Sequence[SubmissionScore], roster: Iterable[Student] = ()) -> tuple[SubmissionScore, ...]:
    """Return the rows, each with the student whom the platform names, too.

    The roster says who a sender is. Without it, a sender is who most of his files say, and if two senders are one
    student so, the one whose name or address fits the login is. A row that names somebody else gets a flag and the
    sender's name, so it takes no place of the student it names. Who sent a rejected archive is known from the platform
    alone: its names are what somebody wrote on it. A sender's name inside an upload proves nothing, and is flagged.
    """
    claims: dict[_Senders, Counter[str]] = defaultdict(Counter)
    for row in rows:
        if _senders(row) and row.status != "rejected" and all(flag.id != OTHER_NAME for flag in row.flags):
            claims[_senders(row)][login(row.student)] += 1
    owned = _assign_logins({_senders(row): claims[_senders(row)] for row in rows if _senders(row)}, tuple(roster))
    return tuple(_settle(row, owned[_senders(row)]) if _senders(row) else _doubt_sender(row) for row in rows)


def _doubt_sender(row: SubmissionScore) -> SubmissionScore:
    """Return a row without a sender, with a flag if a name in its path claims one."""
    claimed = row.arrival and platform_of(row.arrival.file).sender
    if not claimed or any(flag.id == ODD_NAME for flag in row.flags):
        return row
    message = f"A name inside an upload has the form of {claimed.platform}'s names: it does not say who sent the file."
    return replace(row, flags=(*row.flags, Flag(id=ODD_NAME, message=message)))


def _settle(row: SubmissionScore, own: set[str]) -> SubmissionScore:
    """Return the row with the student whom its senders are; `own` are their logins."""
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
        message = f"{senders[0].platform} has it from {printable(sender)}, and its names say {printable(row.student)}."
        flags = (*flags, Flag(id=OTHER_NAME, message=message))
    return replace(row, student=student, flags=flags)


def _senders(row: SubmissionScore) -> _Senders:
    return row.arrival.senders if row.arrival else ()


def _assign_logins(claims: Mapping[_Senders, Counter[str]], roster: Sequence[Student]) -> dict[_Senders, set[str]]:
    """Return whose logins each sender has; `claims` counts the logins that are on his files."""
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
        # A group and one of its members are no rivals. Moodle gives a student another id in each assignment.
        if set.intersection(*({(one.platform, one.name or one.id) for one in senders} for senders in rivals)):
            continue
        sure = [one for one in rivals if one in listed] or [one for one in rivals if fits(one, name)]
        for senders in rivals:
            if senders not in sure:
                owned[senders] = owned[senders] - {name}
    return owned


def fits(senders: _Senders, student: str) -> bool:
    """Return whether a login looks like that of a sender: an address, an id, or a part of the name."""
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
    """Return the letters of a name, sorted: platforms write its parts in any order, some without blanks."""
    return "".join(sorted(filter(str.isalpha, login(name))))


def compare_rows(rows: Sequence[SubmissionScore], choose: Choose | None = None) -> tuple[SubmissionScore, ...]:
    """Return the rows of a class with what follows from each other: which attempt counts, names that look alike.

    choose: which of a student's attempts counts, by default the one whose file is named just `student_exercise`; a
    platform may have put its words before that name. The one that the instructor chose counts before all.
    """
    found: dict[str, list[Flag]] = defaultdict(list)
    outside = {row.submission: flag.message for row in rows for flag in row.flags if flag.id == OTHER_NAME}
    for name, (why, counts) in _same_student(rows, choose or _best_named).items():
        found[name].append(Flag(id=SAME_STUDENT, message=why))
        if not counts:
            outside[name] = why
    for name, (student, others) in _look_alike(rows).items():
        # In ASCII, because on the page they would look alike.
        message = f"The student {student!a} looks like {', '.join(map(ascii, others[:3]))}."
        found[name].append(Flag(id=_LOOK_ALIKE, message=message))
    return tuple(
        replace(row, flags=(*own_flags(row), *found[row.submission]), not_counting=outside.get(row.submission, ""))
        for row in rows
    )


def own_flags(row: SubmissionScore) -> tuple[Flag, ...]:
    """Return the flags of a row that do not depend on who else is in the class."""
    return tuple(flag for flag in row.flags if flag.id not in ABOUT_OTHERS)


def find_left_out(rows: Iterable[SubmissionScore]) -> dict[str, str]:
    """Return which submissions have no place in gradebook and exports until the instructor decides, and why.

    `compare_rows` has found that out.
    """
    return {row.submission: row.not_counting for row in rows if row.not_counting}


def decided_student(row: SubmissionScore, student: str, comment: str) -> SubmissionScore:
    """Return the row as that of the student whom the instructor named: it counts before all others."""
    flag = Flag(id=DECIDED_NAME, message=f"The instructor decided that it is {printable(student)}'s. {comment}")
    flags = (flag, *(flag for flag in row.flags if flag.id != OTHER_NAME))
    return replace(row, student=student, flags=flags)


def same_name(text: str) -> str:
    """Return a name in the form in which names are compared."""
    return unicodedata.normalize("NFC", text)


def _agree(name: str, student: str, exercise: str) -> bool:
    """Return whether a file's name holds `student_exercise`, with nothing but words of a platform around it."""
    wanted, name = (same_name(text).translate(_LOST) for text in (f"{student}_{exercise}", name))
    before, found, behind = name.rpartition(wanted)
    touches_mark = any(unicodedata.category(char)[0] == "M" for char in (before[-1:], behind[:1]) if char)
    return bool(found and _BEFORE.fullmatch(before) and _BEHIND.fullmatch(behind)) and not touches_mark


def _oddity(name: str) -> str:
    """Return what is odd about a name, as the end of a sentence, or ""."""
    if any(map(is_unseen, name)):
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


def _spell_name(name: str) -> str:
    """Return a name for a message, with codes for the characters that cannot be seen."""
    return printable("".join(ascii(char)[1:-1] if is_unseen(char) else char for char in name[:80]))


@lru_cache(maxsize=2**15)
def is_unseen(char: str) -> bool:
    """Return whether a character leaves no ink: a control, a joiner, a filler, an unusual blank; or has no meaning.

    These are the default-ignorable code points of Unicode, and blanks among letters and symbols.
    """
    return not char.isprintable() or _NO_INK.search(unicodedata.name(char, "")) is not None


def _same_student(rows: Iterable[SubmissionScore], choose: Choose) -> dict[str, tuple[str, bool]]:
    """Return each of several submissions of a student for one exercise, with a sentence, and whether it counts."""
    groups = defaultdict(list)
    for row in rows:
        if row.recipe and all(flag.id != OTHER_NAME for flag in row.flags):
            groups[same_name(row.student), row.recipe].append(row)
    found = {}
    for (student, exercise), group in groups.items():
        decided = [row for row in group if any(flag.id == DECIDED_NAME for flag in row.flags)]
        chosen = decided[0] if len(decided) == 1 else None if decided else choose(group)
        for row in group if len(group) > 1 else ():
            which = "it cannot be told which one counts, and none does."
            if chosen is not None:
                which = "this one counts." if row is chosen else f"{printable(chosen.submission)} counts."
            files = f"{printable(row.submission)} is one of {len(group)} files of {printable(student)}"
            found[row.submission] = f"{files} for {printable(exercise)}: {which}", row is chosen
    return found


def _best_named(group: Sequence[SubmissionScore]) -> SubmissionScore | None:
    """Return the attempt whose file is named just `student_exercise`. What was rejected takes no place."""
    name = f"{same_name(group[0].student)}_{group[0].recipe}"
    whole = [row for row in group if row.status != "rejected"] or group
    exact = [row for row in whole if same_name(row.submission) == name]
    chosen = exact or [row for row in whole if same_name(platform_of(row.submission).stem) == name] or whole
    return chosen[0] if len(chosen) == 1 else None


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
    shown = "".join(char for char in parts if unicodedata.category(char) not in ("Mn", "Zs") and not is_unseen(char))
    return shown.replace("I", "l").casefold().translate(_LOOKS)
