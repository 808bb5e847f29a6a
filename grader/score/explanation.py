"""Judge the explanation: compare the diagnosis with our own replays, and check the form of the text.

A report may be in any language, because this module does not read its sentences. It reads `cause`, `where`,
`first_wrong` and `ruled_out` from the front matter of the report. It judges only the length and the sections of the
text.
"""

from collections.abc import Iterator, Mapping, Sequence

from grader.score.evidence import Evidence, sound_logs
from grader.score.verdict import RubricItem, ShownRow, full, lost, open_item
from grader.syntax.edit_size import functions_changed
from grader.syntax.program import Unparsable
from harness.checks.core.outcomes import check_of_value, outcomes_of, rival_outcome, suggests, trips_of
from harness.errors import UserError, printable
from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import HEALTHY, Recipe
from harness.run.signals import place_of
from harness.submission.document import TOO_LONG, Body
from harness.submission.log_values import (
    OFF_BY,
    find_contradicted,
    first_departure,
    load_causes,
    log_values,
    no_first_sign,
)
from harness.submission.places import place_named, places_of
from harness.submission.report import (
    AREAS,
    BY_CHECKS,
    PARTS,
    RIVALS,
    WORD_LIMIT,
    Diagnosis,
    Report,
    RuledOut,
    Sign,
    parse_report,
)

_CAUSE = ("cause", "The diagnosis names the cause", 3.0)
_WHERE = ("where", "The diagnosis names the function that contains the cause", 2.0)
_FIRST_WRONG = ("first_wrong", "The diagnosis cites the first sign of the fault", 3.0)
_RULED_OUT = ("ruled_out", "Facts rule out other causes that could explain the run", 4.0)
_FORM = ("form", f"The text has at most {WORD_LIMIT} words under four headings", 3.0)

_RIVALS_READ, _AREAS_READ = 4, 6  # later entries are ignored, so that a long list of guesses earns nothing


def judge_explanation(evidence: Evidence, accepted: bool | None) -> tuple[RubricItem, ...]:
    """Return the five rubric items of this criterion.

    accepted: whether the fix is correct; None if the instructor has to decide that.
    """
    try:
        report = parse_report(evidence.report or "")
    except UserError as error:
        problem = "There is no report.md." if evidence.report is None else str(error)
        remedy = "Fill in the front matter of report.md. The command make check says what is missing."
        data = [lost(*check, problem, remedy) for check in (_CAUSE, _WHERE, _FIRST_WRONG, _RULED_OUT)]
    else:
        data = [
            _judge_cause(evidence, report.diagnosis),
            _judge_where(evidence, report.diagnosis, accepted),
            _judge_first_wrong(evidence, report.diagnosis, accepted),
            _judge_ruled_out(evidence, report),
        ]
    return *data, _judge_form(evidence.body)


def _judge_cause(evidence: Evidence, diagnosis: Sequence[Diagnosis]) -> RubricItem:
    recipe, known = evidence.recipe, load_causes()
    verb = "The cause is" if len(recipe.causes) == 1 else "The causes are"
    right = f"{verb} {' and '.join(recipe.causes)}: {recipe.cause}."
    named = {entry.cause: None for entry in diagnosis}
    hits = [cause for cause in recipe.causes if cause in named]
    if len(hits) == len(named) == len(recipe.causes):
        return full(*_CAUSE, right)
    strangers = [printable(name) for name in named if name not in known]
    wrong = f" The list that harness causes prints does not contain {strangers[0]}." if strangers else ""
    listed = ", ".join(map(printable, named)) or "no cause"
    points = _CAUSE[2] * len(hits) / max(len(named), len(recipe.causes), 1)
    if len(recipe.causes) == 1:
        points = 0.0  # a student who names several causes, although there is only one, is guessing
    return lost(*_CAUSE, f"Your diagnosis names {listed}.{wrong}", right, points=points)


def _judge_where(evidence: Evidence, diagnosis: Sequence[Diagnosis], accepted: bool | None) -> RubricItem:
    recipe = evidence.recipe
    if recipe.is_healthy:
        if [entry.cause for entry in diagnosis] == [HEALTHY]:
            return full(*_WHERE, "Nothing is broken, so no function contains a cause.")
        return lost(*_WHERE, "Nothing is broken, so no function contains a cause.", f'Write "cause: {HEALTHY}".')
    holds = places_of_causes(recipe)
    every = frozenset.union(*holds.values())
    listed = " and ".join(" or ".join(sorted(names)) for names in holds.values())
    right = f"{'The cause is' if len(holds) == 1 else 'The causes are'} in {listed}."
    names = places_of(recipe.broken_source())
    places = [(entry.cause, place_named(entry.where, names)) for entry in diagnosis]
    if not 1 <= len({place for _, place in places}) <= len(recipe.causes):
        wanted = "is one cause" if len(recipe.causes) == 1 else f"are {len(recipe.causes)} causes"
        return lost(*_WHERE, f"You name {len({place for _, place in places})} functions, but there {wanted}.", right)
    wrong = {place for cause, place in places if place not in holds.get(cause, every)}
    listed = " and ".join(sorted(map(printable, wrong)))
    if not wrong and len(diagnosis) == len(recipe.causes):
        return full(*_WHERE, "Each function that you name contains the cause that you give for it.")
    if wrong and wrong <= functions_edited(evidence) and accepted:
        return full(*_WHERE, f"Your edit is in {listed}, and your fix is correct.")
    if wrong and wrong <= functions_edited(evidence) and accepted is None:
        return open_item(
            *_WHERE, f"Your edit is in {listed}. The instructor has to decide first whether your fix is correct."
        )
    hits = sum(place not in wrong for _, place in places)
    reason = f"{listed} does not contain the cause."
    if not wrong:
        named = f"{len(diagnosis)} function{'s' if len(diagnosis) > 1 else ''}"
        reason = f"You name only {named}, but there are {len(recipe.causes)} causes."
    return lost(*_WHERE, reason, right, points=_WHERE[2] * hits / max(len(diagnosis), len(recipe.causes)))


def places_of_causes(recipe: Recipe) -> Mapping[str, frozenset[str]]:
    """Return, for each cause of a broken experiment, the functions that its break changes."""
    if len(recipe.causes) == 1:
        return {recipe.causes[0]: functions_changed(recipe.healthy_source(), recipe.broken_source())}
    parts = map(load_recipe, recipe.causes)
    return {part.id: functions_changed(part.healthy_source(), part.broken_source()) for part in parts}


def functions_edited(evidence: Evidence) -> frozenset[str]:
    """Return the functions that a submission changes; an empty set if its program cannot be parsed."""
    try:
        return functions_changed(evidence.recipe.broken_source(), evidence.source)
    except Unparsable:
        return frozenset()


def _not_compared(check: ShownRow, evidence: Evidence) -> RubricItem | None:
    """Return an open item if the broken run or the reference run could not be replayed, else None."""
    for name, replay in (("broken", evidence.broken), ("reference", evidence.reference)):
        if replay.status != "OK":
            return open_item(*check, f"We could not replay the {name} run: {replay.message}")
    return None


def _judge_first_wrong(evidence: Evidence, diagnosis: Sequence[Diagnosis], accepted: bool | None) -> RubricItem:
    remedy = "Cite the first value of the broken log that differs from a healthy run."
    if not diagnosis:
        return lost(*_FIRST_WRONG, "The report has no diagnosis.", remedy)
    if (verdict := _not_compared(_FIRST_WRONG, evidence)) is not None:
        return verdict
    if evidence.recipe.is_healthy:
        if [entry.cause for entry in diagnosis] == [HEALTHY]:
            return full(*_FIRST_WRONG, "Nothing is broken, so no value is wrong.")
        return lost(*_FIRST_WRONG, "Nothing is broken, so no value is wrong.", f'Write "cause: {HEALTHY}".')
    # If there are several causes, the first sign of any cause earns the points.
    signs = [entry.first_wrong for entry in diagnosis[: len(evidence.recipe.causes)]]
    judged = [_judge_sign(evidence, sign, accepted, remedy) for sign in signs]
    return max(judged, key=lambda check: 0.5 if check.points is None else check.points)


def _judge_sign(evidence: Evidence, sign: Sign, accepted: bool | None, remedy: str) -> RubricItem:
    broken, healthy = log_values(evidence.broken.log), log_values(evidence.reference.log)
    earliest = first_departure(broken, healthy)
    if earliest is not None:
        signal, start = earliest
        remedy = f"The first value that differs from a healthy run is {signal} at {place_of(signal)} {start}."
    if sign.check:
        shown = earliest is not None and bool(evidence.recipe.symptoms)
        return _judge_first_check(evidence, sign, shown_by_log=shown, remedy=remedy)
    place = broken.find(sign, within=OFF_BY)
    if place is None:
        return lost(*_FIRST_WRONG, f"You cite {sign} of the broken run, but {broken.untrue(sign)}", remedy)
    value, problems = broken.of(sign.signal)[place], []
    for sound in sound_logs(evidence, accepted):
        problems.append(no_first_sign(sign.signal, place, broken, sound))
        if not problems[-1]:
            theirs = broken.beside(sign.signal, place, sound)
            return full(*_FIRST_WRONG, f"{sign} is {value:.4g}, and {theirs:.4g} in a healthy run.")
    return lost(
        *_FIRST_WRONG, f"{sign} is {value:.4g}, but this is not the first sign of the fault: {problems[0]}.", remedy
    )


def _judge_first_check(evidence: Evidence, sign: Sign, *, shown_by_log: bool, remedy: str) -> RubricItem:
    if shown_by_log:
        reason = f"You cite the {sign}. But here you may cite a check only if the log does not show the fault."
        return lost(*_FIRST_WRONG, reason, remedy)
    trips = trips_of(evidence.recipe)
    if trips.get(sign.check) == sign.outcome:
        return full(*_FIRST_WRONG, f"The {sign} finds {sign.outcome}, and the log shows no symptom of this fault.")
    unsound = f"These checks find this fault: {', '.join(trips)}." if trips else "No check finds this fault."
    return lost(*_FIRST_WRONG, f"The {sign} does not find {printable(sign.outcome)}.", unsound)


def _judge_ruled_out(evidence: Evidence, report: Report) -> RubricItem:
    healthy = evidence.recipe.is_healthy
    needed, read = (AREAS, _AREAS_READ) if healthy else (RIVALS, _RIVALS_READ)
    remedy = (
        "Rule out two other causes that could explain the symptom. For each of these causes, cite a fact about the"
        " broken run that contradicts the cause."
    )
    if healthy:
        remedy = (
            f"Rule out causes from {AREAS} areas (the command harness causes lists the areas). For each cause, cite a"
            f" fact that contradicts the cause. At least {BY_CHECKS} of these facts must be outcomes of checks."
        )
    if not report.ruled_out:
        return lost(*_RULED_OUT, "The report rules out no other cause.", remedy)
    if (verdict := _not_compared(_RULED_OUT, evidence)) is not None:
        return verdict
    judged = list(_rivals(evidence, report.ruled_out[:read]))
    accepted = [(entry, reason) for entry, verdict, reason in judged if verdict]
    good = _areas(accepted) if healthy else [reason for _, reason in accepted]
    if len(good) >= needed:
        return full(*_RULED_OUT, " ".join(good[:needed]))
    words = {True: "Accepted", False: "Refused", None: "Open"}
    reasons = " ".join(f"{words[verdict]}: {reason}" for _, verdict, reason in judged)
    if any(verdict is None for _, verdict, _ in judged):
        return open_item(*_RULED_OUT, f"{reasons} The instructor decides.")
    return lost(*_RULED_OUT, reasons, remedy, points=_RULED_OUT[2] / needed * len(good))


def _areas(accepted: Sequence[tuple[RuledOut, str]]) -> list[str]:
    """Return the reasons that count for a healthy run: one for each area, but only a few reasons from log values."""
    known = load_causes()
    checks = {known[entry.cause].area: reason for entry, reason in accepted if entry.check}
    values = {known[entry.cause].area: reason for entry, reason in accepted if known[entry.cause].area not in checks}
    return [*checks.values(), *[*values.values()][: AREAS - BY_CHECKS]]


def _rivals(evidence: Evidence, entries: Sequence[RuledOut]) -> Iterator[tuple[RuledOut, bool | None, str]]:
    """Yield each entry, whether it rules out the cause that it names (None if this is unknown), and the reason."""
    first: dict[str, RuledOut] = {}
    for entry in entries:
        first.setdefault(entry.cause, entry)
    for entry in first.values():
        yield entry, *_judge_rival(evidence, entry)


def _judge_rival(evidence: Evidence, entry: RuledOut) -> tuple[bool | None, str]:
    name = printable(entry.cause)
    if entry.cause not in load_causes() or entry.cause == HEALTHY:
        return False, f"{name} is not a cause that you can rule out."
    if entry.cause in evidence.recipe.causes:
        return False, f"{name} is the cause of the fault, so you cannot rule it out."
    if not _is_suggested(evidence.recipe, entry.cause):
        return False, f"Nothing in the broken run suggests {name}, because {name} has other symptoms."
    if not entry.check:
        return _by_value(evidence, entry)
    if untrue := _untrue_outcome(evidence, entry):
        return False, untrue
    return _by_check(evidence, entry.cause, entry.check)


def _is_suggested(recipe: Recipe, rival: str) -> bool:
    try:
        return suggests(recipe, rival)
    except UserError:  # a recipe that was never measured
        return True


def _by_value(evidence: Evidence, entry: RuledOut) -> tuple[bool | None, str]:
    log = log_values(evidence.broken.log)
    if log.find(entry, within=OFF_BY) is None:
        return False, f"You cite {entry} of the broken run, but {log.untrue(entry)}"
    symptoms = load_causes()[entry.cause].on(evidence.settings.dataset)
    # Any healthy log contradicts most symptoms of faults in other experiments, so such a symptom proves nothing.
    foreign = evidence.recipe.is_healthy and load_recipe(entry.cause).experiment != evidence.recipe.experiment
    symptom = None if foreign else find_contradicted(entry, symptoms, evidence.broken.records(), log)
    if symptom is None:
        check = check_of_value(entry.signal, entry.step)
        excluded, why = _by_check(evidence, entry.cause, check) if check else (False, "")
        if excluded:
            return excluded, why
        if foreign:
            return False, f"We have not measured {entry.cause} in this experiment: cite the outcome of a check instead."
        return False, f"{entry} is {entry.value}, which is also possible with {entry.cause}."
    return True, f"{entry} is {entry.value}, so {entry.cause} is not the cause: with {entry.cause}, {symptom.says}."


def _by_check(evidence: Evidence, cause: str, check: str) -> tuple[bool | None, str]:
    try:
        found = outcomes_of(evidence.recipe).get(check)
        theirs = rival_outcome(cause, check, found) if found else ""
    except UserError:
        found, theirs = None, ""
    if found is None:  # a recipe was never measured, or the outcome depends on the seed
        return None, f"We have no recorded outcome of the check {printable(check)} for this exercise and for {cause}."
    if not theirs:
        return False, f"The check {check} finds {found}, which is also possible with {cause}."
    return (
        True,
        f"The check {check} finds {found}, so {cause} is not the cause: with {cause}, the check finds {theirs}.",
    )


def _untrue_outcome(evidence: Evidence, entry: RuledOut) -> str:
    """Return a sentence if the recorded outcome of a check differs from the outcome that the entry cites, else ""."""
    try:
        found = outcomes_of(evidence.recipe).get(entry.check, entry.outcome)
    except UserError:
        return ""
    return (
        ""
        if found == entry.outcome
        else f"The {entry} finds {found} in this experiment, not {printable(entry.outcome)}."
    )


def _judge_form(body: Body) -> RubricItem:
    if not body.prose_words:
        return lost(*_FORM, "The report has no text.", "Describe what you found.")
    if body.cut:
        return lost(*_FORM, "The report is too long.", f"{TOO_LONG[:1].upper()}{TOO_LONG[1:]}")
    if body.words > WORD_LIMIT:
        return lost(*_FORM, f"The text has {body.words} words.", f"A report may have at most {WORD_LIMIT} words.")
    if body.filled_sections < len(PARTS):
        reason = f"The report has text in {body.filled_sections} of {len(PARTS)} sections."
        return lost(*_FORM, reason, f"Write some text under each of these headings: {', '.join(PARTS)}.")
    return full(*_FORM, f"The text has {body.words} words under {body.filled_sections} headings.")
