"""`make gallery`: train twelve small runs and draw their loss curves into docs/curves/, for docs/curves.md.

Each picture shows a real run with portable numerics, either of an exercise or of the healthy digits experiment with one
edit. The page shows shapes of curves without their causes, so a file is named after the shape of its curve.
"""

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from html import escape
from pathlib import Path

from harness.page.charts import LineChart, Point, Scale, Series, line_chart
from harness.recipes.recipe import ROOT, Edit, apply_edits, experiment_source
from harness.run.metrics_log import batch_records, epoch_records, read_metrics_log

PICTURES = ROOT / "docs" / "curves"
HEALTHY = "digits_mlp"
# The colours of the light theme, because the background of a picture in a text is always white.
COLOURS = ("#0067a8", "#cf4a00")
STYLE = "text{font:12px sans-serif;fill:#30343a}path{fill:none;stroke-width:1.6}"


@dataclass(frozen=True)
class Picture:
    """One run. `words` are options of `python -m harness.trainer`, and `edits` change the healthy experiment."""

    shape: str
    words: tuple[str, ...] = ()
    edits: tuple[tuple[str, str], ...] = ()
    scale: Scale = "linear"


GALLERY = (
    Picture("sound"),
    Picture("diverges", ("--break", "huge_lr"), scale="log"),
    Picture("flat", ("--break", "label_permute")),
    Picture("floor", ("--break", "double_softmax")),
    Picture("apart", ("--break", "dataset_mispaired", "--overfit-batch", "512", "--epochs", "25")),
    Picture("crossover", ("--break", "label_noise", "--overfit-batch", "256", "--epochs", "8")),
    Picture(
        "underfits",
        ("--epochs", "10"),
        (
            ("nn.Linear(784, 128)", "nn.Linear(784, 3)"),
            ("nn.Linear(128, 10)", "nn.Linear(3, 10)"),
            ("lr=0.1", "lr=0.02"),
        ),
    ),
    Picture("swings", ("--break", "missing_zero_grad", "--batch", "640", "--epochs", "30"), scale="log"),
    Picture("starts-high", ("--break", "unnormalized_input"), scale="log"),
    Picture(
        "plateau",
        ("--epochs", "8"),
        (("nn.Linear(128, 10)", f"{'nn.Linear(128, 128), nn.ReLU(), ' * 4}nn.Linear(128, 10)"),),
    ),
    Picture(
        "nan",
        edits=(
            ("momentum=0.9", "momentum=0.99"),
            ("F.cross_entropy(outputs, labels)", "F.nll_loss(outputs.softmax(dim=1).log(), labels)"),
        ),
    ),
    Picture(
        "restarts",
        ("--epochs", "6"),
        (
            ("lr=0.1", "lr=0.3"),
            ("return None", "return torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, total_steps // 3)"),
        ),
    ),
)


def main() -> None:
    """Make all runs, or only the runs for the shapes on the command line, and write their pictures."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for picture in (one for one in GALLERY if one.shape in (sys.argv[1:] or [one.shape])):
            chart = draw(picture, make_run(picture, Path(folder)))
            path = PICTURES / f"{picture.shape}.svg"
            path.write_text(as_svg(chart), encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: {chart.description}")


def make_run(picture: Picture, folder: Path) -> Path:
    """Make the run in a child process, and return the path of its log."""
    run, script = folder / picture.shape, folder / f"{picture.shape}.py"
    words = list(picture.words)
    if picture.edits:
        edits = [Edit(find=find, replace=replace) for find, replace in picture.edits]
        script.write_text(apply_edits(experiment_source(HEALTHY), edits, where=picture.shape), encoding="utf-8")
        words += ["--script", str(script)]
    command = [sys.executable, "-m", "harness.trainer", *words, "--out", str(run)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return run / "metrics.log"


def draw(picture: Picture, log: Path) -> LineChart:
    """Return a chart with the training loss of each step and the validation loss at the end of each epoch."""
    records = read_metrics_log(log)
    training: list[Point] = [(record["step"], record["loss"]) for record in batch_records(records)]
    epochs = epoch_records(records)
    steps = len(training) // len(epochs)
    validation: list[Point] = [((index + 1) * steps - 1, epoch["val_loss"]) for index, epoch in enumerate(epochs)]
    series = Series("training", training), Series("validation", validation, tone=1, dash=1)
    chart = line_chart(picture.shape, "Loss", series, y_label="loss", scale=picture.scale, include=[0.0])
    assert chart is not None
    return chart


def as_svg(chart: LineChart) -> str:
    """Return a chart as an SVG picture of 440 x 240 user units that needs no style sheet."""
    left, right, top, bottom = chart.left, chart.right, chart.top, chart.bottom
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {chart.width} {chart.height}" role="img">',
        f"<title>{escape(chart.title)}</title><desc>{escape(chart.description)}</desc><style>{STYLE}</style>",
        f'<rect width="{chart.width}" height="{chart.height}" fill="#fff"/>',
        f'<path stroke="#dfe3e8" d="{"".join(f"M{left} {y}H{right}" for y, _ in chart.y_ticks)}"/>',
        f'<path stroke="#30343a" d="M{left} {top}V{bottom}H{right}"/>',
        *(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>' for y, label in chart.y_ticks),
        *(f'<text x="{x}" y="{bottom + 17}" text-anchor="middle">{label}</text>' for x, label in chart.x_ticks),
        f'<text x="2" y="14">{escape(chart.y_label)}</text>',
        f'<text x="{right}" y="{chart.height - 7}" text-anchor="end">{chart.x_label}</text>',
    ]
    for index, line in enumerate(chart.lines):
        look = f'stroke="{COLOURS[line.tone]}" stroke-dasharray="{line.dash}"'
        parts.append(f'<path {look} d="{line.path}"/>')
        if line.dots:
            parts.append(
                f'<path stroke="{COLOURS[line.tone]}" style="stroke-width:5;stroke-linecap:round" d="{line.dots}"/>'
            )
        x = left + 150 + 100 * index
        parts.append(f'<path {look} d="M{x} 10h26"/><text x="{x + 32}" y="14">{escape(line.label)}</text>')
    for row, mark in enumerate(chart.marks):
        words, before = escape(mark.label), mark.x > 0.6 * chart.width
        parts.append(f'<path stroke="{COLOURS[mark.tone]}" d="M{mark.x} {top}V{bottom}"/>')
        place = f'x="{mark.x - 6 if before else mark.x + 6}" text-anchor="{"end" if before else "start"}"'
        parts.append(f'<text {place} y="{top + 12 + 15 * row}">{words}</text>')
    return "\n".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    main()
