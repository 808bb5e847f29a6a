"""Part `texts`: each model explanation of every recipe, scored by the rubric, against its label."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from grader.replay.replays import Replays
from grader.replay.request import Request, trusted_requests
from grader.score.explanation import judge_explanation
from grader.score.lexicon import load_lexicon
from grader.score.solutions import Text
from grader.score.verdict import Check
from grader.selfcheck.labels import BANDS, HOLLOW, RIGHT, complaint, points_of
from grader.selfcheck.progress import StagesCounted
from grader.selfcheck.rank_agreement import spearman
from grader.selfcheck.section import Row, Section, Table
from harness.recipe import Recipe
from harness.run.metrics_log import Record

# Rank agreement of points with labels, over all recipes.
TARGET = 0.9


@dataclass(frozen=True)
class ScoredText:
    """A text of a recipe, and the checks of its explanation."""

    recipe: str
    text: Text
    checks: tuple[Check, ...]

    @property
    def points(self) -> float | None:
        """The points of 15, None where it waits for the instructor."""
        return points_of(self.checks)

    @property
    def complaint(self) -> str:
        """What is wrong with these points, "" where nothing is."""
        return complaint(self.text.label, self.checks)

    @property
    def waits(self) -> bool:
        """Whether it waits for the instructor, though its label says otherwise: no wrong verdict, and no right one."""
        return self.points is None and self.text.label in BANDS

    @property
    def agrees(self) -> bool:
        """Whether the points are those of the label."""
        return not self.waits and not self.complaint


def report_around(body: str, layer: str) -> str:
    """Return a whole report with this text and this layer; the evidence it cites earns nothing here."""
    evidence = "  - {run: broken, signal: loss, step: 2, value: 6305.9}"
    return f"---\nroot_cause_layer: {layer}\nevidence:\n{evidence}\n---\n\n{body}\n"


def score_texts(
    recipe: Recipe,
    texts: Iterable[Text],
    broken_log: Sequence[Record],
    healthy_log: Sequence[Record],
) -> Iterator[ScoredText]:
    """Yield the texts of a recipe, scored; the logs are those of its own data and seed."""
    lexicon = load_lexicon(recipe.id)
    for text in texts:
        checks = judge_explanation(
            report_around(text.body, text.layer),
            recipe,
            lexicon,
            broken_log=broken_log,
            fixed_log=healthy_log,
            broken_source=recipe.broken_source(),
            fixed_source=recipe.healthy_source(),
        )
        yield ScoredText(recipe.id, text, checks)


def texts_section(wanted: Sequence[tuple[Recipe, Sequence[Text]]], replays: Replays) -> Section:
    """Score these texts of each recipe; `replays` brings the logs, which are remembered."""
    requests = {recipe.id: trusted_requests(recipe.id) for recipe, _ in wanted}
    wanted_logs = [(recipe, request) for recipe, pair in requests.items() for request in pair]
    with StagesCounted() as progress:
        replays.make("replays", wanted_logs, progress)
    scored: list[ScoredText] = []
    for recipe, texts in wanted:
        broken, healthy = (_log(replays, request) for request in requests[recipe.id])
        scored += score_texts(recipe, texts, broken, healthy)
    return judged_section(scored)


def _log(replays: Replays, request: Request) -> Sequence[Record]:
    replay = replays.of(request)
    if replay.status != "OK":
        raise RuntimeError(f"a run of the suite's own did not come to its end: {replay.message}")
    return replay.records()


def judged_section(scored: Sequence[ScoredText]) -> Section:
    """Return the table of texts, the rank agreements, and what disagrees."""
    rows = []
    for item in scored:
        band = BANDS.get(item.text.label)
        held = "held back" if item.text.held_back else ""
        given = "waits" if item.points is None else f"{item.points:g}"
        expected = "waits" if band is None else str(band)
        cells = (item.recipe, item.text.id, item.text.label, held, expected, given)
        rows.append(Row(cells, agrees=item.agrees))
    wrong = [
        f"{item.recipe} {item.text.id} ({item.text.label}): {item.complaint}"
        for item in scored
        if item.complaint
    ]
    wrong += hollow_above_vague(scored)
    for name, own in (("open", _part(scored, False)), ("held back", _part(scored, True))):
        found = rank_agreement(own)
        if found is not None and found < TARGET:
            wrong.append(f"the rank agreement of the {name} texts is {found:.3f}, below {TARGET:g}")
    columns = ("recipe", "text", "label", "", "expected", "given")
    return Section(
        title="Texts",
        says="Every explanation of `solutions/<id>/texts.toml`, scored by the rubric: the points for the explanation,"
        " of 15, against those of its label, and the rank agreement (Spearman) of the points with the order of the"
        " labels. What *waits* is for an instructor to read: no wrong verdict, and no agreement either. What is"
        " *held back* was not looked at while the rules were made.",
        tables=(Table(columns, tuple(rows)), _rank_table(scored)),
        figures=f"{_figures('open', _part(scored, False))}; {_figures('held back', _part(scored, True))}.",
        disagreements=tuple(wrong),
        notes=tuple(
            f"{item.recipe} {item.text.id} ({item.text.label}) waits for the instructor: {_first_open(item)}"
            for item in scored
            if item.waits
        ),
    )


def rank_agreement(scored: Sequence[ScoredText], *, excellent_first: bool = False) -> float | None:
    """Return Spearman's correlation of the points with the places of the labels; what waits has no rank.

    `excellent_first` ranks an excellent text above other right ones, though these may earn as many points.
    """
    ranked = [
        (points, BANDS[item.text.label].place + 0.5 * (excellent_first and item.text.label == "excellent"))
        for item in scored
        if item.text.label in BANDS and (points := item.points) is not None
    ]
    return spearman([points for points, _ in ranked], [place for _, place in ranked])


def hollow_above_vague(scored: Sequence[ScoredText]) -> Iterator[str]:
    """Yield each text without an explanation in it that earns more than the poorest honest one of its recipe."""
    for recipe in dict.fromkeys(item.recipe for item in scored):
        own = [(item.text, item.points) for item in scored if item.recipe == recipe]
        vague = [points for text, points in own if text.label == "vague" and points is not None]
        for text, points in own:
            if text.label in HOLLOW and points is not None and vague and points > min(vague):
                yield (
                    f"{recipe} {text.id} ({text.label}): {points:g} points, and a vague honest text has {min(vague):g}"
                )


def _rank_table(scored: Sequence[ScoredText]) -> Table:
    rows = []
    names = list(dict.fromkeys(item.recipe for item in scored))
    for name in (*names, "all"):
        own = [item for item in scored if name in (item.recipe, "all")]
        found = [rank_agreement(part) for part in (_part(own, False), _part(own, True), own)]
        rows.append(Row((name, *("-" if value is None else f"{value:.3f}" for value in found))))
    return Table(("rank agreement", "open", "held back", "both"), tuple(rows))


def _part(scored: Sequence[ScoredText], held_back: bool) -> list[ScoredText]:
    return [item for item in scored if item.text.held_back == held_back]


def _figures(name: str, own: Sequence[ScoredText]) -> str:
    waiting = [item for item in own if item.waits]
    right = sum(item.text.label in RIGHT for item in waiting)
    agreement = rank_agreement(own)
    strictly = rank_agreement(own, excellent_first=True)
    rank = "-" if agreement is None else f"{agreement:.3f}"
    rank += "" if strictly is None else f" ({strictly:.3f} with excellent above other right texts)"
    return (
        f"{name} {sum(item.agrees for item in own)} of {len(own)} agree, {len(waiting)} wait for the instructor"
        f" ({right} of them right), rank agreement {rank}"
    )


def _first_open(item: ScoredText) -> str:
    return next(check.reason for check in item.checks if check.points is None)
