"""The causes that a report names: where it offers the right one, and where others beside it."""

from dataclasses import dataclass

from grader.score.beside import is_told_of
from grader.score.document import Document
from grader.score.enumerations import is_enumeration
from grader.score.lexicon import Lexicon, Rival
from grader.score.mentions import Mention, find_loose, find_mentions

# So many causes at once explain nothing: whatever is right among them was not found, but listed.
CATCH_ALL = 3


@dataclass(frozen=True)
class Causes:
    """The causes that a text names: where it offers the right one, and where each rival.

    `about` are places that present the right thing as the cause without saying what is wrong with it, or only
    say what would follow. `remarks` are rivals named outside the part in which the right cause is told.
    """

    own: tuple[Mention, ...]
    refuted: tuple[Mention, ...]
    about: tuple[Mention, ...]
    rivals: tuple[tuple[Rival, Mention], ...]
    remarks: tuple[tuple[Rival, Mention], ...] = ()

    @property
    def named(self) -> tuple[Mention, ...]:
        """Every cause offered, right or wrong."""
        return (*self.own, *(mention for _, mention in self.rivals))

    @property
    def all_rivals(self) -> tuple[tuple[Rival, Mention], ...]:
        """Every rival once, wherever it is named."""
        return tuple(
            {rival.id: (rival, mention) for rival, mention in (*self.remarks, *self.rivals)}.values()
        )

    @property
    def is_catch_all(self) -> bool:
        """Whether so many causes are named that none is.

        Those that were only supposed, one after the other, count against a text that supposes the right one as well.
        """
        offered = any(mention.stance == "offered" for _, mention in self.all_rivals)
        return len(self.all_rivals) >= CATCH_ALL and bool(self.own or self.about or offered)


def told(rivals: tuple[tuple[Rival, Mention], ...]) -> str:
    """Return rivals with the words that name them."""
    return "; ".join(f"{mention.quote} ({rival.says})" for rival, mention in rivals)


def find_causes(document: Document, lexicon: Lexicon) -> Causes:
    """Return the causes that a text offers.

    A cause that is only supposed ("I suspect ...", "often ...") counts where none is offered outright, the right
    one and the rivals alike: whoever supposes every cause has supposed none. What a cause would do counts for
    nothing, but against a text that names the right one in no other way than many others.
    """
    own = find_mentions(document, lexicon.causes, across=True)
    offered = [m for m in own if m.stance == "offered"]
    loose_own = [m for m in find_loose(document, lexicon.causes) if m.stance in ("offered", "supposed")]
    rivals = [
        (rival, mention)
        for rival in lexicon.rivals
        for mention in _mentions_of(document, rival, [*own, *loose_own], headed=not offered)
        if not is_told_of(document, mention, offered, lexicon)
    ]
    for stance in ("offered", "supposed", "imagined"):
        named = [m for m in own if m.stance == stance]
        first: dict[str, tuple[Rival, Mention]] = {}
        for rival, mention in rivals:
            if mention.stance == stance:
                first.setdefault(rival.id, (rival, mention))
        if stance == "offered" and _are_only_edits(named) and _are_supposed_under_root_cause(own, rivals):
            continue
        if named or (first and stance != "imagined"):
            break
    about = loose_own
    if stance == "imagined":
        first = first if named and len(first) >= CATCH_ALL else {}
        about, named = loose_own + named, []
    refuted = [m for m in own if m.stance == "ruled out"]
    headed = any(m.sentence.part == "root cause" for m in named)
    outside = [headed and m.sentence.part in ("symptom", "fix", "verification") for _, m in first.values()]
    pairs = list(zip(first.values(), outside, strict=True))
    return Causes(
        own=tuple(named),
        refuted=tuple(refuted),
        about=tuple(about),
        rivals=tuple(item for item, is_outside in pairs if not is_outside),
        remarks=tuple(item for item, is_outside in pairs if is_outside),
    )


def _are_only_edits(named: list[Mention]) -> bool:
    return all(m.sentence.part in ("fix", "verification") for m in named)


def _are_supposed_under_root_cause(own: list[Mention], rivals: list[tuple[Rival, Mention]]) -> bool:
    """Say whether Root cause supposes a cause, or imagines many: what was edited offers none in their place."""
    there = [(rival.id, m.stance) for rival, m in rivals if m.sentence.part == "root cause"]
    there += [("own", m.stance) for m in own if m.sentence.part == "root cause"]
    imagined = {name for name, stance in there if stance == "imagined"}
    return any(stance == "supposed" for _, stance in there) or len(imagined) >= CATCH_ALL


def _mentions_of(document: Document, rival: Rival, own: list[Mention], *, headed: bool) -> list[Mention]:
    """Return where a rival is named; not where the same words, or fewer, name the right cause.

    With `headed`, a few words under the heading "Root cause" name what they name.
    """
    own = [m for m in own if m.stance != "ruled out"]
    whole = [
        m
        for m in find_mentions(document, rival.causes, accusing=True)
        if not any(m.sentence is o.sentence and _is_part_of(m, o) for o in own if not o.loose)
    ]
    loose = [
        m
        for m in find_loose(document, rival.causes, headed=headed)
        if is_enumeration(m.sentence) or not any(m.sentence is o.sentence for o in own)
    ]
    return whole + loose


def _is_part_of(rival: Mention, own: Mention) -> bool:
    # "Its learning rate is 10 times too small" says more than "learning rate is 10".
    says_more = rival.span.holds(own.span) and rival.span != own.span
    return rival.span.overlaps(own.span) and not says_more
