"""The table of a tree's page: for each kind of experiment the ways that it took, and what became of it."""

from collections.abc import Mapping, Sequence

from grader.score.exhibits import Finding
from grader.written.decision_tree.arrivals import Arrival
from harness.written.decision_tree.walk import Taken

_COLUMNS = ("Experiment", "Way through the tree", "Minutes", "Reference", "Concludes", "Verdict")


def paths_table(found: Sequence[Arrival], reference: Sequence[Arrival]) -> Finding:
    """Return a row for each kind of experiment and each way that experiments of it took."""
    groups: dict[tuple[str, tuple[Taken, ...]], list[tuple[Arrival, Arrival]]] = {}
    counts: dict[str, int] = {}
    for pair in zip(found, reference, strict=True):
        truth = pair[0].experiment.truth
        groups.setdefault((truth, pair[0].walked.steps), []).append(pair)
        counts[truth] = counts.get(truth, 0) + 1
    ordered = sorted(groups.items(), key=lambda item: (list(counts).index(item[0][0]), -len(item[1])))
    return Finding(
        caption="The way that each experiment took; minutes as the checks declare them, the reference's as their mean",
        columns=_COLUMNS,
        rows=tuple(_row(truth, pairs, counts) for (truth, _), pairs in ordered),
    )


def _row(truth: str, pairs: Sequence[tuple[Arrival, Arrival]], counts: Mapping[str, int]) -> tuple[str, ...]:
    arrival = pairs[0][0]
    reference = sum(other.walked.minutes for _, other in pairs) / len(pairs)
    verdict: str = arrival.verdict
    if arrival.verdict == "a guess":
        verdict = f"a guess: {', '.join(arrival.others)} came here, too"
    return (
        f"{truth}, {len(pairs)} of {counts[truth]}",
        arrival.walked.path,
        f"{arrival.walked.minutes:g}",
        f"{reference:.3g}",
        arrival.walked.conclusion,
        verdict,
    )
