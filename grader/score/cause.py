"""Whether a report names the right layer and the right cause, and offers no other cause beside it."""

from grader.score.causes import Causes, told
from grader.score.claims import find_claims
from grader.score.document import Document
from grader.score.lexicon import Lexicon
from grader.score.verdict import Check, full, lost, open_check
from grader.score.wording import VAGUE
from harness.recipe import Area

ID, TITLE, POINTS = "cause", "The right layer and the right cause, and no other cause beside it", 6.0
LAYER_POINTS = 2.0


def judge_cause(
    document: Document, lexicon: Lexicon, causes: Causes, layer: Area | None, right: Area, why: str
) -> Check:
    """Judge layer (2 points) and cause (4). `why` says what hinders the layer from being read, if it is None."""
    layer_points = LAYER_POINTS if layer == right else 0.0
    layer_told = _layer_told(layer, right, why)
    remedy = f"Name the one cause that you found, and only that one. It was: {lexicon.says}."
    if causes.rivals:
        return _judge_rivals(document, lexicon, causes, layer_points, layer_told, remedy)
    if causes.own:
        where = causes.own[0].sentence
        reason = f"The cause is named: {causes.own[0].quote} in {where.quoted()}. {layer_told}"
        if document.headed.get("root cause") and all(
            m.sentence.part in ("fix", "verification") for m in causes.own
        ):
            reason = (
                f"What the text says under Fix or Verification names the cause ({causes.own[0].quote} in"
                f" {where.quoted()}), and what it says under Root cause does not, in words that the rules know;"
                f" please read it. {layer_told}"
            )
            return open_check(ID, TITLE, POINTS, reason)
        if layer_points:
            return full(ID, TITLE, POINTS, reason)
        return lost(ID, TITLE, POINTS, reason, f"The layer is {right}.", points=POINTS - LAYER_POINTS)
    contrary = [m for m in causes.refuted if m.contrary and m.sentence.part != "fix"]
    if contrary and len(contrary) == len(causes.refuted):
        reason = f"It says the contrary of the cause: {contrary[0].sentence.quoted()}. {layer_told}"
        return lost(ID, TITLE, POINTS, reason, remedy)
    if causes.refuted:
        reason = f"It rules the cause out: {causes.refuted[0].sentence.quoted()}. {layer_told}"
        return lost(ID, TITLE, POINTS, reason, remedy, points=layer_points)
    return _judge_unnamed(document, lexicon, causes, layer_points, layer_told, remedy)


def _judge_rivals(
    document: Document, lexicon: Lexicon, causes: Causes, layer_points: float, layer_told: str, remedy: str
) -> Check:
    quoted = told(causes.rivals)
    if causes.own:
        points = layer_points if len(causes.rivals) == 1 else 0.0
        count = "another one" if len(causes.rivals) == 1 else f"{len(causes.rivals)} others"
        reason = f"The right cause is named ({causes.own[0].quote}), but beside it {count}: {quoted}."
        return lost(ID, TITLE, POINTS, f"{reason} {layer_told}", remedy, points=points)
    supposing = [mention.sentence for _, mention in causes.rivals if mention.stance == "supposed"]
    others = [s for s in find_claims(document, lexicon) if not any(s is other for other in supposing)]
    if layer_points and others and len(supposing) == len(causes.rivals):
        reason = (
            f"It supposes {quoted}, and says more in words that the rules do not know: {others[0].quoted()}"
        )
        return open_check(ID, TITLE, POINTS, f"{reason}; please read it.")
    return lost(ID, TITLE, POINTS, f"It offers {quoted}, which is not the cause. {layer_told}", remedy)


def _judge_unnamed(
    document: Document, lexicon: Lexicon, causes: Causes, layer_points: float, layer_told: str, remedy: str
) -> Check:
    claims = find_claims(document, lexicon)
    if layer_points and claims:
        about = f" It speaks of {causes.about[0].quote} as the cause." if causes.about else ""
        reason = (
            "The layer is right, and the text names neither the cause nor another one in words that the rules"
            f" know; please read it.{about}"
        )
        return open_check(ID, TITLE, POINTS, reason)
    # "The loss was bad" is how a symptom may be told.
    places = [s for s in document.sentences if s.part in ("root cause", "fix", None)]
    vague = [(s, span) for s in places for span in s.find(VAGUE)]
    if vague:
        sentence, span = vague[0]
        reason = (
            f'It stays vague: "{sentence.at(span)}" in {sentence.quoted()} could be said of any experiment.'
        )
        return lost(ID, TITLE, POINTS, f"{reason} {layer_told}", remedy, points=layer_points)
    where = f" It names {causes.about[0].quote}, and not what is wrong with it." if causes.about else ""
    return lost(ID, TITLE, POINTS, f"No cause is named.{where} {layer_told}", remedy, points=layer_points)


def _layer_told(layer: Area | None, right: Area, why: str) -> str:
    if layer is None:
        return f"The layer could not be read: {why}"
    if layer == right:
        return f"The layer ({layer}) is right."
    return f"The layer named in the front matter, {layer}, is not the one."
