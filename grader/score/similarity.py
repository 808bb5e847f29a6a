"""Find students whose work for one exercise is similar. An instructor looks at the pairs; points never change.

Texts are compared by their shingles, which are all sequences of a few words (`runs` in the code), as in Schleimer,
Wilkerson and Aiken, "Winnowing" (2003). Submissions are short, so all their shingles are indexed, without winnowing.
Words contain only the letters that a page shows. The comparison ignores words from texts that students get from us: our
pages, the broken experiment, the reference fix. It does not ignore passages that many students share: they may come
from a lecture, or from students who copied from each other. docs/grading.md explains how we measured the limits.
"""

import re
import unicodedata
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import accumulate, chain, combinations, groupby, islice, pairwise
from keyword import iskeyword

from grader.score.identity import SIMILAR, is_invisible, look_alike_key
from grader.score.verdict import Flag, SubmissionScore
from harness.errors import printable
from harness.recipes.personal import login
from harness.recipes.recipe import EXERCISES, ROOT, SOLUTIONS
from harness.recipes.suite import suite_path
from harness.student.check_commands import documentation
from harness.submission.document import count_words
from harness.submission.report import body_of

_SHOWN = 100  # show the texts of at most this many pairs of an exercise side by side
_NAMED = 3  # a flag names at most this many similar students
# A passage is listed if more than a tenth of the class have it, or more than _FEW students in a small class, or more
# than _MANY students in a large class.
# If more than _MANY students share a shingle, only the pairs with the first of these students are compared.
_FEW, _MANY = 5, 30
_COMMON_WORDS, _MOST_COMMON = 12, 20  # the least number of words in a listed passage; the most passages to list
_LIMIT = 4_000  # compare at most this many words; the longest experiment has 1,729, and a report may have 500
_CONTEXT, _LINES, _COLUMNS = 2, 200, 300  # of an excerpt: lines around each marked line, maximum lines and columns
_CERTAIN = 2.0  # the strength of a reason that cannot be a coincidence; other reasons have at most 1

Piece = tuple[str, bool]  # a piece of text, and whether the other student's work also has this piece
Side = tuple[str, tuple[Piece, ...], tuple[Piece, ...]]  # a title, the text of one work, and the text of the other work


@dataclass(frozen=True, slots=True)
class Work:
    """The parts of a submission that are compared with other submissions. All parts are untrusted.

    program: the experiment, or the Python file of a written exercise. answer: the file of a written exercise, which the
    student wrote completely. logs: the SHA-256 of the log of each run.
    """

    submission: str
    student: str
    exercise: str
    report: str = ""
    program: str = ""
    answer: str = ""
    seed: int | None = None
    logs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AlikePair:
    """Two similar works: how similar they are, the reasons as sentences, and the texts to show side by side."""

    one: Work
    other: Work
    strength: float
    reasons: tuple[str, ...]
    sides: tuple[Side, ...] = ()


@dataclass(frozen=True)
class Common:
    """A passage that many students have: from a common source, or copied from each other."""

    exercise: str
    text: str
    students: tuple[str, ...]


@dataclass(frozen=True)
class Likeness:
    """The similar pairs of works in a class, the most similar first, and the passages that many students have."""

    pairs: tuple[AlikePair, ...] = ()
    common: tuple[Common, ...] = ()


NOTHING_ALIKE = Likeness()


@dataclass(frozen=True)
class AlikeGroup:
    """A group of similar works of one exercise: each work is similar to at least one other work of the group.

    pairs: the most similar pairs that connect all works of the group. more: the number of the other similar pairs.
    """

    exercise: str
    members: tuple[Work, ...]
    pairs: tuple[AlikePair, ...]
    more: int = 0


def groups_of(pairs: Iterable[AlikePair]) -> list[AlikeGroup]:
    """Return the groups that these pairs form, the most similar group first. `pairs` must have the same order."""
    # Kruskal's algorithm: skip a pair if other pairs already connect its two works.
    groups: dict[tuple[str, str], AlikeGroup] = {}
    for pair in pairs:
        one, other = (
            groups.setdefault((work.exercise, work.submission), AlikeGroup(work.exercise, (work,), ()))
            for work in (pair.one, pair.other)
        )
        if one is other:
            joined = replace(one, more=one.more + 1)
        else:
            members = (*one.members, *other.members)
            joined = AlikeGroup(one.exercise, members, (*one.pairs, *other.pairs, pair), one.more + other.more)
        groups |= dict.fromkeys([(work.exercise, work.submission) for work in joined.members], joined)
    found = {id(group): replace(group, pairs=tuple(sorted(group.pairs, key=_rank))) for group in groups.values()}
    return sorted(found.values(), key=lambda group: _rank(group.pairs[0]))


@dataclass(frozen=True)
class _TextKind:
    """A kind of text, compared by shingles of `run` words.

    Two texts are similar if they share at least `least` words, and if at least for one of the students, the shared
    words are at least the fraction `share` of all words that this student wrote.
    """

    name: str
    run: int
    least: int
    share: float
    says: str


_OF = "which is {share:.0%} of what {whose} wrote"
_REPORT = _TextKind("report", 3, 24, 0.2, f"Both reports share {{count}} words, in sequences of 3 or more, {_OF}.")
_COMMENTS = _TextKind("comments", 3, 16, 0.5, f"Comments in both programs share {{count}} words, {_OF}.")
_CODE = _TextKind(
    "code", 5, 64, 0.95, f"Both programs share {{count}} symbols (names do not count) that our programs lack, {_OF}."
)
_KINDS = (_REPORT, _COMMENTS, _CODE)
_LEAST_EQUAL = 12  # reports with fewer words by the student are never called equal


def find_alike(works: Iterable[Work], given: Callable[[str], Collection[str]]) -> Likeness:
    """Return the similar works of different students, exercise by exercise.

    works: the works, grouped by exercise, so that only the works of one exercise are in memory at a time.
    given: a function that returns the programs that students may have from us: the broken program and the reference fix
    of an exercise.
    """
    printed = _our_prose()
    found = [
        _compare(sorted(group, key=lambda work: (login(work.student), work.submission)), given(exercise), printed)
        for exercise, group in groupby(works, key=lambda work: work.exercise)
    ]
    pairs = sorted((pair for one in found for pair in one.pairs), key=_rank)
    return Likeness(tuple(pairs), tuple(passage for one in found for passage in one.common))


def _rank(pair: AlikePair) -> tuple[object, ...]:
    return -pair.strength, pair.one.exercise, pair.one.submission, pair.other.submission


# --- Texts ---

_WIDE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Chinese and Japanese: each character is a word
# A pattern for the words of a text after `_legible`, which replaces accents and invisible characters by \0.
_WORD = re.compile(
    rf"(?P<key>\"[\w.]+\": *(?=[-\d{{\"]|null))|\{{[^{{}}\n]*\}}|[{_WIDE}]"
    rf"|(?:(?![{_WIDE}\d_])\w)(?:(?![{_WIDE}\d_])[\w\0])*"
)
_SENTENCE = re.compile(r"(?:[^\W\d_]+[,;:]? ){5}[^\W\d_]")  # six words, which neither code nor a log contains
_SPELLED = re.compile(r"<U\+([0-9A-F]{4,5})>")  # how a page shows an invisible character
_TITLE_WORDS = 5  # a longer heading counts as a sentence
_TOKEN = re.compile(r'(?P<comment>#[^\n]*|("""|\'\'\')(?s:.*?)\2)|\w+|[^\w\s]')
_SEAM = re.compile(r'"\s*\n\s*f?"')  # the place where source code breaks a long string into two literals

_Token = tuple[str, int, int]  # a normalized word, and its start and end


@lru_cache(maxsize=2**15)
def _legible_char(char: str) -> str:
    """Return the character, \0 for an accent or an invisible character, or a space for a filler."""
    kind = unicodedata.category(char)
    # A filler is a letter or a symbol according to Unicode, but on a page it looks like a space.
    joins = kind[0] == "M" or (kind[0] == "C" and not char.isspace() and is_invisible(char))
    return "\0" if joins else " " if is_invisible(char) else char


def _legible(text: str) -> str:
    """Return a text of the same length in which words contain only letters and \0."""
    text = _SPELLED.sub(lambda match: _legible_char(chr(int(match[1], 16))) * len(match[0]), text)
    return text if text.isascii() else "".join(map(_legible_char, text))


def _words(text: str, start: int = 0, end: int | None = None) -> Iterator[_Token]:
    """Yield the words of a text, without records of a log. Ignore the characters between the words."""
    shown = _legible(text[start:end])
    places = [(0, len(shown))]
    while places:
        at, to = places.pop()
        for match in _WORD.finditer(shown, at, to):
            if match["key"]:
                continue
            if not match[0].startswith("{"):
                yield _looks(match[0].replace("\0", "")), start + match.start(), start + match.end()
            elif _SENTENCE.search(match[0]) or not re.search("[:=]", match[0]):
                places += [(match.end(), to), (match.start() + 1, match.end())]
                break


def _comment_words(program: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(program):
        if match["comment"]:
            yield from _words(program, match.start(), match.end())


def _code_tokens(program: str) -> Iterator[_Token]:
    """Yield the tokens of the code. Replace all names except attributes by "name", because renaming is easy."""
    before = ""
    for match in _TOKEN.finditer(program):
        if not match["comment"]:
            symbol = unicodedata.normalize("NFKC", match[0])  # as Python normalizes names
            is_name = symbol.isidentifier() and not iskeyword(symbol) and before != "."
            before = symbol
            yield "name" if is_name else before, match.start(), match.end()


_looks = lru_cache(maxsize=2**15)(look_alike_key)
_TOKENS: Mapping[_TextKind, Callable[[str], Iterator[_Token]]] = {
    _REPORT: _words,
    _COMMENTS: _comment_words,
    _CODE: _code_tokens,
}


class _Shingles:
    """The hashes of all shingles in the first `limit` words of a text."""

    def __init__(self, kind: _TextKind, text: str, limit: int | None = _LIMIT) -> None:
        words = [word for word, _, _ in islice(_TOKENS[kind](text), limit)]
        self.kind, self.text = kind, text
        self.letters = "".join(words) if kind is _REPORT else ""
        self.runs = array("q", (hash(tuple(words[at : at + kind.run])) for at in range(len(words) - kind.run + 1)))

    def places(self) -> list[tuple[int, int]]:
        """Return the start and the end of each word."""
        return [(start, end) for _, start, end in islice(_TOKENS[self.kind](self.text), _LIMIT)]

    def words_covered(self, holds: Callable[[int], bool]) -> list[int]:
        """Return the indices of the words in all shingles for which `holds` returns True."""
        found: list[int] = []
        end = 0
        for at, run in enumerate(self.runs):
            if holds(run):
                found += range(max(at, end), at + self.kind.run)
                end = at + self.kind.run
        return found


def _prose(report: str) -> str:
    """Return the prose of a report: its paragraphs, long headings, and lines of prose in code blocks and tables.

    Consecutive headings count as one heading.
    """
    pieces: list[str] = []
    heading: list[str] = []
    for block in body_of(report).blocks if report else ():
        if block.kind == "heading":
            heading.append(block.text)
        elif block.kind == "code":
            lines = [line for line in block.text.split("\n") if _SENTENCE.search(line)]
            pieces += lines
        else:
            pieces += [*_sentences(heading), block.text]
            heading = []
    return "\n\n".join([*pieces, *_sentences(heading)])


def _sentences(heading: Sequence[str]) -> Sequence[str]:
    return heading if sum(map(count_words, heading)) > _TITLE_WORDS else ()


@cache
def _our_prose() -> frozenset[int]:
    """Return the shingles of all texts that students get from us: documentation, tasks, hints, output of commands."""
    paths = [path for name in ("*.py", "*.md") for path in suite_path("harness").rglob(name)]
    paths += [*(ROOT / "docs").glob("*.md"), *EXERCISES.glob("*/*.toml"), *EXERCISES.glob("*/*.md"), *ROOT.glob("*.md")]
    paths += SOLUTIONS.glob("*/notes.md")  # `make reveal` shows them
    texts = [documentation(), *(path.read_text(encoding="utf-8") for path in paths)]
    return frozenset(run for text in texts for run in _Shingles(_REPORT, _SEAM.sub(" ", text), None).runs)


# --- Compare ---

_TwoStudents = tuple[int, int]  # the numbers of two students, the smaller number first


@dataclass(frozen=True, slots=True)
class _Reason:
    """A reason why two works are similar. `one` and `other` are the numbers of the works."""

    strength: float
    says: str
    one: int
    other: int


class _TextIndex:
    """All texts of one kind (such as reports) in a class, and an index from each shared shingle to its students.

    The index leaves out shingles from texts that students get from us. To stay small, the index also leaves out
    shingles that only one student has.
    """

    def __init__(self, kind: _TextKind, works: Sequence[Work], numbers: Sequence[int], ours: Set[int]) -> None:
        import numpy as np  # imported here, because modules that only show the result do not need NumPy

        self.kind = kind
        self._ours = ours
        self.texts = [_Shingles(kind, _prose(work.report) if kind is _REPORT else work.program) for work in works]
        own = [array("q", filter(self.is_own, text.runs)) for text in self.texts]
        runs, students = np.concatenate(own), np.repeat(numbers, [*map(len, own)])
        order = np.lexsort((students, runs))
        runs, students = runs[order], students[order]
        starts = np.flatnonzero(np.diff(runs, prepend=runs[:1] - 1))
        self.holders = {
            int(runs[start]): np.unique(students[start:end]).tolist()
            for start, end in pairwise([*starts, len(runs)])
            if students[start] != students[end - 1]
        }
        self._many = min(max(_FEW, len(set(numbers)) // 10), _MANY)
        self._own = [len(text.words_covered(self.is_own)) for text in self.texts]

    def is_own(self, run: int) -> bool:
        """Return whether a shingle does not occur in texts or programs that students get from us."""
        return run not in self._ours

    def candidates(self) -> list[_TwoStudents]:
        """Return the pairs of students who share enough shingles for their works to be similar."""
        shared = Counter(pair for held in self.holders.values() for pair in _pairs(held))
        return [pair for pair, runs in shared.items() if runs * self.kind.run >= self.kind.least]

    def runs_shared(self, one: int, other: int) -> Set[int]:
        """Return the shingles that two works share, without shingles from texts that students get from us."""
        return {*filter(self.is_own, {*self.texts[one].runs}.intersection(self.texts[other].runs))}

    def alike(self, one: int, other: int) -> tuple[float, int, int]:
        """Return the fraction of shared words in one of two works, the number of shared words, and this work.

        Of the two works, this is the work with the larger fraction. If the works are not similar enough, the fraction
        and the number are 0.
        """
        shared = self.runs_shared(one, other)
        if len(shared) * self.kind.run < self.kind.least:
            return 0.0, 0, one
        counts = [len(self.texts[work].words_covered(shared.__contains__)) for work in (one, other)]
        share, work = max((count / self._own[work], work) for count, work in zip(counts, (one, other), strict=True))
        enough = min(counts) >= self.kind.least and share >= self.kind.share
        return (share, min(counts), work) if enough else (0.0, 0, one)

    def common(self) -> Iterator[tuple[str, list[int]]]:
        """Yield each long passage that many students have, with the numbers of these students."""
        seen: set[int] = set()
        for text in self.texts:
            held = [len(self.holders.get(run, ())) > self._many for run in text.runs]
            for is_held, group in groupby(range(len(held)), key=held.__getitem__):
                runs = list(group)
                new = {text.runs[at] for at in runs} - seen
                if is_held and len(new) > _COMMON_WORDS - self.kind.run:
                    seen |= new
                    places = text.places()
                    start, end = places[runs[0]][0], places[runs[-1] + self.kind.run - 1][1]
                    yield text.text[start:end], min((self.holders[run] for run in new), key=len)


def _pairs(held: Sequence[int]) -> Iterable[_TwoStudents]:
    """Return all pairs of these students; if there are many students, only the pairs with the first student."""
    return combinations(held, 2) if len(held) <= _MANY else ((held[0], other) for other in held[1:])


def _compare(works: Sequence[Work], given: Collection[str], printed: frozenset[int]) -> Likeness:
    """Return the similar works of one exercise. `works` must be sorted by student."""
    logins = [login(work.student) for work in works]
    order = {name: number for number, name in enumerate(dict.fromkeys(logins))}
    numbers = [order[name] for name in logins]
    of_student: dict[int, list[int]] = defaultdict(list)
    for work, number in enumerate(numbers):
        of_student[number].append(work)
    ours = {
        _REPORT: printed.union(*(_Shingles(_REPORT, program).runs for program in given)),
        _COMMENTS: printed.union(*(_Shingles(_COMMENTS, program).runs for program in given)),
        _CODE: frozenset().union(*(_Shingles(_CODE, program).runs for program in given)),
    }
    indexes = [_TextIndex(kind, works, numbers, ours[kind]) for kind in _KINDS]
    found: dict[_TwoStudents, dict[str, _Reason]] = defaultdict(dict)
    for index in indexes:
        for pair in index.candidates():
            (share, count, whose), one, other = max(
                (index.alike(one, other), one, other) for one in of_student[pair[0]] for other in of_student[pair[1]]
            )
            if count:
                says = index.kind.says.format(count=count, share=share, whose=printable(works[whose].student))
                found[pair][index.kind.name] = _Reason(share, says, one, other)
    for name, reason in chain(_equal_texts(works, indexes[0], given), _equal_logs(works)):
        first, second = sorted((numbers[reason.one], numbers[reason.other]))
        if first != second:
            found[first, second][name] = reason
    made = (_pair(works, list(reasons.values())) for reasons in found.values())
    ranked = sorted(made, key=lambda item: _rank(item[0]))
    pairs = [
        replace(pair, sides=_sides(indexes, *places)) if at < _SHOWN else pair
        for at, (pair, places) in enumerate(ranked)
    ]
    names = [works[held[0]].student for _, held in sorted(of_student.items())]
    common = [
        Common(works[0].exercise, text, tuple(names[number] for number in holders))
        for index in indexes
        for text, holders in index.common()
    ]
    common.sort(key=lambda passage: (-len(passage.students), passage.text))
    return Likeness(tuple(pairs), tuple(common[:_MOST_COMMON]))


def _pair(works: Sequence[Work], reasons: Sequence[_Reason]) -> tuple[AlikePair, tuple[int, int]]:
    """Return the pair of two students, and the numbers of their two most similar works."""
    ranked = sorted(reasons, key=lambda reason: (-reason.strength, reason.says))
    one, other = sorted((ranked[0].one, ranked[0].other))
    strength = sum(reason.strength for reason in ranked)
    left, right = (replace(works[number], report="", program="", answer="") for number in (one, other))
    return AlikePair(left, right, strength, tuple(reason.says for reason in ranked)), (one, other)


def _equal_texts(works: Sequence[Work], reports: _TextIndex, given: Collection[str]) -> Iterator[tuple[str, _Reason]]:
    """Yield equal reports and equal answers. In each group of equal works, pair the first work with each other work."""
    groups: dict[object, list[int]] = defaultdict(list)
    long = set()
    for number, (work, text) in enumerate(zip(works, reports.texts, strict=True)):
        if len(text.words_covered(reports.is_own)) >= _LEAST_EQUAL:
            long.add(number)
            groups[array("q", filter(reports.is_own, text.runs)).tobytes()].append(number)
        # Reports are also equal if they have the same letters, but the spaces are in other places.
        groups[text.letters, _REPORT].append(number)
        if work.answer and work.answer not in given:
            groups[work.answer].append(number)
    for equal, (first, *others) in groups.items():
        if isinstance(equal, tuple) and long.isdisjoint((first, *others)):
            continue
        for other in others:
            if isinstance(equal, str):
                yield "answer", _Reason(_CERTAIN, "Both handed in the same answer file.", first, other)
            else:
                what = "are the same file" if works[first].report == works[other].report else "have the same text"
                yield _REPORT.name, _Reason(_CERTAIN, f"Both reports {what}.", first, other)


def _equal_logs(works: Sequence[Work]) -> Iterator[tuple[str, _Reason]]:
    """Yield the pairs of works that have equal logs, although their seeds differ."""
    logs: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, work in enumerate(works):
        for log in work.logs.items():
            logs[log].append(number)
    for (run, _), (first, *others) in sorted(logs.items()):
        for other in others:
            if works[other].seed != works[first].seed:
                says = f"The logs of both {run} runs have the same bytes, although their seeds differ."
                yield f"{run} log", _Reason(_CERTAIN, says, first, other)


# --- Show ---


def flag_alike(rows: Iterable[SubmissionScore], likeness: Likeness) -> tuple[SubmissionScore, ...]:
    """Return the rows, with a flag on each row whose work is similar to another work."""
    others: dict[str, list[str]] = defaultdict(list)
    for pair in likeness.pairs:
        for one, other in ((pair.one, pair.other), (pair.other, pair.one)):
            others[one.submission].append(f"Similar to {printable(other.submission)}. {' '.join(pair.reasons)}")

    def with_flag(row: SubmissionScore) -> SubmissionScore:
        found = others.get(row.submission, [])
        more = f" Also similar to {len(found) - _NAMED} more submissions." if len(found) > _NAMED else ""
        flag = Flag(id=SIMILAR, message=" ".join(found[:_NAMED]) + more)
        return replace(row, flags=(*row.flags, flag)) if found else row

    return tuple(map(with_flag, rows))


def _sides(indexes: Sequence[_TextIndex], one: int, other: int) -> tuple[Side, ...]:
    """Return the texts of two works, with the shared words marked. In programs, keep only lines near a mark."""
    prose, *programs = indexes
    sides = []
    for title, of_text in (("Report", [prose]), ("Program", programs)):
        marks = [_marks(of_text, work, one, other) for work in (one, other)]
        if any(map(any, marks)):
            texts = [of_text[0].texts[work].text for work in (one, other)]
            context = None if title == "Report" else _CONTEXT
            left, right = (_pieces(text, mark, context) for text, mark in zip(texts, marks, strict=True))
            sides.append((title, left, right))
    return tuple(sides)


def _marks(indexes: Sequence[_TextIndex], work: int, one: int, other: int) -> bytearray:
    """Return, for each character of a work's text, whether it is in a shared word or between two shared words."""
    marks = bytearray(len(indexes[0].texts[work].text))
    for index in indexes:
        text, before = index.texts[work], -2
        places = text.places()
        for at in text.words_covered(index.runs_shared(one, other).__contains__):
            start, end = places[at]
            if at == before + 1 and not any(map(str.isalnum, text.text[places[before][1] : start])):
                start = places[before][1]
            marks[start:end] = b"\1" * (end - start)
            before = at
    return marks


def _pieces(text: str, marks: bytearray, context: int | None) -> tuple[Piece, ...]:
    """Return a text in marked and unmarked pieces. With `context`, keep only that many lines around a marked line."""
    pieces: list[Piece] = []
    spans = list(pairwise(accumulate(map(len, text.splitlines(keepends=True)), initial=0)))
    hit = [any(marks[start:end]) for start, end in spans]
    near = [context is None or any(hit[max(at - context, 0) : at + context + 1]) for at in range(len(spans))]
    kept = [at for at, is_near in enumerate(near) if is_near][:_LINES]
    for before, at in pairwise([-1, *kept]):
        pieces += [("…\n", False)] if at > before + 1 else []
        start, end = spans[at]
        for is_marked, group in groupby(range(start, min(end, start + _COLUMNS)), key=marks.__getitem__):
            places = list(group)
            pieces.append((text[places[0] : places[-1] + 1], bool(is_marked)))
        pieces += [(" …\n", False)] if end > start + _COLUMNS else []
    return tuple(pieces)
