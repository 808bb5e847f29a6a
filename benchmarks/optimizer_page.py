"""Writes docs/optimizers.md from docs/optimizers.csv, which holds each update in the form that Python evaluates.

python -m benchmarks.optimizer_page
"""

import csv
from pathlib import Path

TABLE = Path(__file__).resolve().parents[1] / "docs" / "optimizers.csv"
PAGE = TABLE.with_suffix(".md")

_BEGINNING = """\
# Optimizers

What one step does, in the terms of PyTorch: `p` is a parameter, `g` its gradient, `t` the number of the step, counted
from 1. State begins at 0. The same table is in `docs/optimizers.csv`, whose updates are Python; a test runs
each of them beside `torch.optim` for 50 steps in float64, where they agree to 1e-12, and compares the defaults.

"""
_END = """
Defaults are PyTorch's own, but for the momentum, which is 0 there. The usual rates are where people begin to look, for
networks of the usual initialization: 0.1 with momentum 0.9 trained ResNet (He et al., 2015), 0.001 is what Adam was
published with (Kingma and Ba, 2015), and pretrained transformers are fine-tuned with Adam at 0.00002 to 0.00005 (Devlin
et al., 2018). RMSProp is from Hinton's lecture 6e (2012), AdamW from Loshchilov and Hutter (2019). Your own network may
want another rate: look for it.
"""


def rows() -> list[dict[str, str]]:
    """Return the rows of the table by the names of its columns."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def page() -> str:
    """Return the page that the table makes."""
    lines = [
        "| optimizer | update | keeps | defaults | usual learning rates | stability tip |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows():
        update = "<br>".join(f"`{step}`" for step in row["update"].split("; "))
        cells = (row["keeps"], f"`{row['defaults']}`", row["usual learning rates"], row["stability tip"])
        lines.append(f"| {row['optimizer']} | {update} | {' | '.join(cells)} |")
    return _BEGINNING + "\n".join(lines) + "\n" + _END


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
