"""Whether a report names the right layer and the right cause, and offers no other cause beside it."""

from dataclasses import dataclass

from grader.rubric.document import Document
from grader.rubric.lexicon import Lexicon, Rival
from grader.rubric.mentions import Mention, find_loose, find_mentions
from grader.rubric.wording import CLAIMS, VAGUE
from grader.score import Check, full, lost, open_check
from harness.recipe import Layer

ID, TITLE, POINTS = "cause", "The right layer and the right cause, and no other cause beside it", 6.0
LAYER_POINTS = 2.0
# So many causes at once explain nothing: whatever is right among them was not found, but listed.
CATCH_ALL = 3
_LONG = 40  # words: a text as long as this may name the cause in words that the lexicon lacks


@dataclass(frozen=True)
class Causes:
    """The causes that a text names: where it offers the right one, and where each rival.

    `about` are places that present the right thing as the cause without saying what is wrong with it.
    """

    own: tuple[Mention, ...]
    refuted: tuple[Mention, ...]
    about: tuple[Mention, ...]
    rivals: tuple[tuple[Rival, Mention], ...]

    @property
    def named(self) -> tuple[Mention, ...]:
        """Every cause offered, right or wrong."""
        return (*self.own, *(mention for _, mention in self.rivals))

    @property
    def is_catch_all(self) -> bool:
        """Whether so many causes are offered that none is."""
        return sum(mention.stance == "offered" for _, mention in self.rivals) >= CATCH_ALL

    @property
    def rivals_quoted(self) -> str:
        """Every rival offered, with the words that offer it."""
        return "; ".join(f"{mention.quote} ({rival.says})" for rival, mention in self.rivals)


def find_causes(document: Document, lexicon: Lexicon) -> Causes:
    """Return the causes that a text offers.

    A cause that is only supposed ("I first suspected ...") counts where no other is offered outright.
    """
    own = find_mentions(document, lexicon.causes, across=True)
    rivals = [
        (rival, mention)
        for rival in lexicon.rivals
        for mention in _mentions_of(document, rival, own, lexicon)
    ]
    own_offered = [m for m in own if m.stance == "offered"]
    rivals_offered = [(r, m) for r, m in rivals if m.stance == "offered"]
    if not rivals_offered and not own_offered:
        own_offered = [m for m in own if m.stance == "supposed"]
    if not rivals_offered and not own_offered:
        rivals_offered = [(r, m) for r, m in rivals if m.stance == "supposed"]
    first: dict[str, tuple[Rival, Mention]] = {}
    for rival, mention in rivals_offered:
        first.setdefault(rival.id, (rival, mention))
    about = [m for m in find_loose(document, lexicon.causes) if m.stance in ("offered", "supposed")]
    refuted = [m for m in own if m.stance == "ruled out"]
    return Causes(tuple(own_offered), tuple(refuted), tuple(about), tuple(first.values()))


def _mentions_of(document: Document, rival: Rival, own: list[Mention], lexicon: Lexicon) -> list[Mention]:
    """Return where a rival is named; not where the same words name the right cause."""
    taken = [(m.sentence, m.span) for m in own]
    things = tuple(phrase for cause in lexicon.causes for phrase in cause.thing)
    whole = [
        m
        for m in find_mentions(document, rival.causes)
        if not any(s is m.sentence and span.overlaps(m.span) for s, span in taken)
    ]
    loose = [
        m
        for m in find_loose(document, rival.causes)
        if not any(s is m.sentence for s, _ in taken) and not m.sentence.find(things)
    ]
    return whole + loose


def judge_cause(
    document: Document, lexicon: Lexicon, causes: Causes, layer: Layer | None, right: Layer, why: str
) -> Check:
    """Judge layer (2 points) and cause (4). `why` says what hinders the layer from being read, if it is None."""
    layer_points = LAYER_POINTS if layer == right else 0.0
    told = _layer_told(layer, right, why)
    remedy = f"Name the one cause that you found, and only that one. It was: {lexicon.says}."
    if causes.rivals:
        points = layer_points if causes.own and len(causes.rivals) == 1 else 0.0
        if causes.own:
            count = "another one" if len(causes.rivals) == 1 else f"{len(causes.rivals)} others"
            reason = f"The right cause is named ({causes.own[0].quote}), but beside it {count}: {causes.rivals_quoted}."
        else:
            reason = f"It offers {causes.rivals_quoted}, which is not the cause."
        return lost(ID, TITLE, POINTS, f"{reason} {told}", remedy, points=points)
    if causes.own:
        reason = f"The cause is named: {causes.own[0].quote} in {causes.own[0].sentence.quoted()}. {told}"
        if layer_points:
            return full(ID, TITLE, POINTS, reason)
        return lost(ID, TITLE, POINTS, reason, f"The layer is {right}.", points=POINTS - LAYER_POINTS)
    if causes.refuted:
        mention = causes.refuted[0]
        return lost(ID, TITLE, POINTS, f"It rules the cause out: {mention.sentence.quoted()}. {told}", remedy)
    return _judge_unnamed(document, causes, layer_points, told, remedy)


def _judge_unnamed(document: Document, causes: Causes, layer_points: float, told: str, remedy: str) -> Check:
    # "The loss was bad" is how a symptom may be told.
    places = [s for s in document.sentences if s.part in ("root cause", "fix", None)]
    vague = [(s, span) for s in places for span in s.find(VAGUE)]
    if vague:
        sentence, span = vague[0]
        reason = f'It stays vague: "{sentence.at(span)}" in {sentence.quoted()} could be said of any experiment. {told}'
        return lost(ID, TITLE, POINTS, reason, remedy, points=layer_points)
    if layer_points and document.word_count >= _LONG and any(s.find(CLAIMS) for s in places):
        about = f" It speaks of {causes.about[0].quote} as the cause." if causes.about else ""
        return open_check(
            ID,
            TITLE,
            POINTS,
            "The layer is right, and the text names neither the cause nor another one in words that the rules"
            f" know; please read it.{about}",
        )
    where = f" It names {causes.about[0].quote}, and not what is wrong with it." if causes.about else ""
    return lost(ID, TITLE, POINTS, f"No cause is named.{where} {told}", remedy, points=layer_points)


def _layer_told(layer: Layer | None, right: Layer, why: str) -> str:
    if layer is None:
        return f"The layer could not be read: {why}"
    if layer == right:
        return f"The layer ({layer}) is right."
    return f"The layer named in the front matter, {layer}, is not the one."
