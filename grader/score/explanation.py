"""The explanation: a diagnosis as data, checked against our own replays, and the form of the text.

Nothing here reads sentences, so a report may be in any language. `cause`, `where`, `first_wrong` and `ruled_out` come
from the front matter; of the text only its length and its parts count.
"""

from collections.abc import Iterator, Sequence

from grader.intake.program import Unparsable
from grader.score.evidence import Evidence
from grader.score.solutions import outcomes_of, trips_of
from grader.score.verdict import Check, Row, full, lost, open_check
from grader.syntax.edit_size import functions_changed
from harness.errors import UserError, printable
from harness.submission.document import TOO_LONG, Body
from harness.submission.log_values import OFF_BY, contradicted, first_departure, load_causes, log_values, place_of
from harness.submission.report import HEALTHY, PARTS, WORD_LIMIT, Diagnosis, Report, RuledOut, Sign, parse_report

_CAUSE = ("cause", "The diagnosis names the cause", 3.0)
_WHERE = ("where", "It names the function that holds the cause", 2.0)
_FIRST_WRONG = ("first_wrong", "It cites the first sign of the fault", 3.0)
_RULED_OUT = ("ruled_out", "Two other causes are ruled out by facts", 4.0)
_FORM = ("form", f"At most {WORD_LIMIT} words under four headings", 3.0)

# How far behind the first departure of its signal a value may stand and still be a first sign: in the logs of the
# recipes that do not explode, a swing back towards the healthy run hides a fault for up to seven steps.
_STEPS, _EPOCHS = 10, 1
_RIVALS, _RIVALS_READ = 2, 4  # two count, of the first four: a list of guesses is no argument


def judge_explanation(evidence: Evidence, accepted: bool | None) -> tuple[Check, ...]:
    """Return the five checks of the criterion.

    accepted: whether the fix was judged right; None if the instructor has to decide that.
    """
    try:
        report = parse_report(evidence.report or "")
    except UserError as error:
        problem = "There is no report.md." if evidence.report is None else str(error)
        remedy = "Fill in the front matter of report.md; make check says what is missing."
        data = [lost(*check, problem, remedy) for check in (_CAUSE, _WHERE, _FIRST_WRONG, _RULED_OUT)]
    else:
        data = [
            _judge_cause(evidence, report.diagnosis),
            _judge_where(evidence, report.diagnosis, accepted),
            _judge_first_wrong(evidence, report.diagnosis),
            _judge_ruled_out(evidence, report),
        ]
    return *data, _judge_form(evidence.body)


def _judge_cause(evidence: Evidence, diagnosis: Sequence[Diagnosis]) -> Check:
    recipe = evidence.recipe
    right = f"It was {recipe.id}: {recipe.cause}."
    if len(diagnosis) != 1:
        return lost(*_CAUSE, f"You name {len(diagnosis)} causes, and this run has one.", right)
    named = diagnosis[0].cause
    if named == recipe.id:
        return full(*_CAUSE, f"The cause is {recipe.id}: {recipe.cause}.")
    known = "" if named in load_causes() else ", which is no cause that harness causes lists"
    return lost(*_CAUSE, f"You name {printable(named)}{known}.", right)


def _judge_where(evidence: Evidence, diagnosis: Sequence[Diagnosis], accepted: bool | None) -> Check:
    recipe = evidence.recipe
    holds = functions_changed(recipe.healthy_source(), recipe.broken_source())
    right = f"It is in {' or '.join(sorted(holds))}."
    named = {entry.where for entry in diagnosis}
    if len(named) != 1:
        return lost(*_WHERE, f"You name {len(named)} places.", right)
    (where,) = named
    if where in holds:
        return full(*_WHERE, f"{where} holds the cause.")
    edited = where in _edited(evidence)
    if edited and accepted:
        return full(*_WHERE, f"Your right fix is in {printable(where)}.")
    if edited and accepted is None:
        reason = f"Your edit is in {printable(where)}, and it is not decided whether it is right."
        return open_check(*_WHERE, reason)
    return lost(*_WHERE, f"{printable(where)} does not hold the cause.", right)


def _edited(evidence: Evidence) -> frozenset[str]:
    try:
        return functions_changed(evidence.recipe.broken_source(), evidence.source)
    except Unparsable:
        return frozenset()


def _not_compared(check: Row, evidence: Evidence) -> Check | None:
    """Return the verdict if there are no logs to compare with."""
    for name, replay in (("broken", evidence.broken), ("reference", evidence.reference)):
        if replay.status != "OK":
            return open_check(*check, f"The {name} run could not be replayed: {replay.message}")
    return None


def _judge_first_wrong(evidence: Evidence, diagnosis: Sequence[Diagnosis]) -> Check:
    remedy = "Cite the first value of the broken log that a healthy run would not show."
    if not diagnosis:
        return lost(*_FIRST_WRONG, "There is no diagnosis.", remedy)
    if (verdict := _not_compared(_FIRST_WRONG, evidence)) is not None:
        return verdict
    sign = diagnosis[0].first_wrong
    broken, healthy = log_values(evidence.broken.log), log_values(evidence.reference.log)
    earliest = first_departure(broken, healthy)
    if earliest is not None:
        signal, start = earliest
        remedy = f"The log first departs from a healthy run with {signal} at {place_of(signal)} {start}."
    if sign.check:
        return _judge_first_check(evidence, sign, shown_by_log=earliest is not None, remedy=remedy)
    place = broken.find(sign, within=OFF_BY)
    if place is None:
        return lost(*_FIRST_WRONG, f"You cite {sign} of the broken run, but {broken.untrue(sign)}", remedy)
    value, theirs = broken.series[sign.signal][place], broken.beside(sign.signal, place, healthy)
    if theirs is None or not broken.departs(sign.signal, place, healthy):
        there = "" if theirs is None else f": a healthy run has {theirs:.4g} there"
        return lost(*_FIRST_WRONG, f"{sign} is {value:.4g}, which is not wrong{there}.", remedy)
    first = next(broken.departures(sign.signal, healthy))
    reach = _STEPS if place_of(sign.signal) == "step" else _EPOCHS
    if place - first > reach:
        reason = f"{sign} is wrong, but {sign.signal} is wrong from {place_of(sign.signal)} {first} on."
        return lost(*_FIRST_WRONG, reason, remedy)
    return full(*_FIRST_WRONG, f"{sign} is {value:.4g}, and {theirs:.4g} in a healthy run.")


def _judge_first_check(evidence: Evidence, sign: Sign, *, shown_by_log: bool, remedy: str) -> Check:
    if shown_by_log:
        reason = f"You cite the {sign}, but the log shows the fault: a check stands in only if no signal does."
        return lost(*_FIRST_WRONG, reason, remedy)
    trips = trips_of(evidence.recipe.id)
    if trips.get(sign.check) == sign.outcome:
        return full(*_FIRST_WRONG, f"No signal shows the fault, and the {sign} finds {sign.outcome}.")
    unsound = f"The checks that find it unsound: {', '.join(trips) or 'none'}."
    return lost(*_FIRST_WRONG, f"The {sign} does not find {printable(sign.outcome)}.", unsound)


def _judge_ruled_out(evidence: Evidence, report: Report) -> Check:
    remedy = "Rule out two other causes, each with a fact of the broken run that the other cannot explain."
    if not report.ruled_out:
        return lost(*_RULED_OUT, "No other cause is ruled out.", remedy)
    if (verdict := _not_compared(_RULED_OUT, evidence)) is not None:
        return verdict
    judged = list(_rivals(evidence, report))
    good = [reason for verdict, reason in judged if verdict]
    unclear = [reason for verdict, reason in judged if verdict is None]
    if len(good) >= _RIVALS:
        return full(*_RULED_OUT, " ".join(good[:_RIVALS]))
    reasons = " ".join(reason for _, reason in judged)
    if unclear:
        return open_check(*_RULED_OUT, f"{reasons} The instructor decides.")
    points = _RULED_OUT[2] / _RIVALS * len(good)
    return lost(*_RULED_OUT, reasons, remedy, points=points)


def _rivals(evidence: Evidence, report: Report) -> Iterator[tuple[bool | None, str]]:
    """Yield for each cause that is ruled out whether it is, and why; None if that cannot be judged."""
    known, seen = load_causes(), set()
    for entry in report.ruled_out[:_RIVALS_READ]:
        name = printable(entry.cause)
        if entry.cause in seen:
            continue
        seen.add(entry.cause)
        if entry.cause not in known or entry.cause == HEALTHY:
            yield False, f"{name} is no cause that could be ruled out."
        elif entry.cause == evidence.recipe.id:
            yield False, f"{name} is the cause of this run."
        elif entry.check:
            yield _by_check(evidence, entry)
        else:
            yield _by_value(evidence, entry)


def _by_value(evidence: Evidence, entry: RuledOut) -> tuple[bool, str]:
    log = log_values(evidence.broken.log)
    if log.find(entry, within=OFF_BY) is None:
        return False, f"You cite {entry} of the broken run, but {log.untrue(entry)}"
    symptoms = load_causes()[entry.cause].on(evidence.settings.dataset)
    symptom = contradicted(entry, symptoms, evidence.broken.records(), log)
    if symptom is None:
        return False, f"{entry} is {entry.value}, which {entry.cause} allows."
    return True, f"{entry} is {entry.value}, so it is not {entry.cause}: there {symptom.says}."


def _by_check(evidence: Evidence, entry: RuledOut) -> tuple[bool | None, str]:
    try:
        found = outcomes_of(evidence.recipe.id).get(entry.check)
        tripped = trips_of(entry.cause).get(entry.check)
    except UserError:  # a recipe that was never measured
        found = tripped = None
    if found is None:
        return None, f"What the {entry} finds is not recorded for this exercise."
    if found != entry.outcome:
        return False, f"The {entry} finds {found} here, not {printable(entry.outcome)}."
    if tripped is None or tripped == found:
        return False, f"The {entry} finds {found}, which {entry.cause} allows."
    return True, f"The {entry} finds {found}, so it is not {entry.cause}: there it finds {tripped}."


def _judge_form(body: Body) -> Check:
    if not body.prose_words:
        return lost(*_FORM, "The report has no text.", "Write what you found.")
    if body.cut:
        return lost(*_FORM, "The text is too long.", f"Of a report, {TOO_LONG}")
    if body.words > WORD_LIMIT:
        return lost(*_FORM, f"The text has {body.words} words.", f"At most {WORD_LIMIT} are allowed.")
    if body.filled_sections < len(PARTS):
        reason = f"Headings with text under them: {body.filled_sections}."
        return lost(*_FORM, reason, f"Write {', '.join(PARTS)}, each under a heading of its own.")
    return full(*_FORM, f"{body.words} words under {body.filled_sections} headings.")
