"""Make the tables and texts: `python -m grader.replay.heldout.make_tables`.

Each data set is drawn once from a seeded PCG64. NumPy's normal numbers and sines may differ in their last bit on other
machines, so the arrays are shipped and not drawn again.
"""

import hashlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from harness.data.datasets import EMBEDDED_FOLDER

Rows = tuple[NDArray[Any], NDArray[Any]]
SPLITS = ("train", "validation", "heldout")


def _sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-x))


def visits(random: Generator) -> dict[str, Rows]:
    """360 patients, six visits each: does the patient return? Every fifth patient is for validation or held out."""
    patients, each = 420, 6
    patient = np.repeat(np.arange(patients), each)
    day = random.integers(0, 1000, len(patient))
    habit = random.standard_normal((patients, 4))[patient]
    x = random.standard_normal((len(patient), 11))
    x[:, :4] = habit + 0.05 * x[:, :4]
    trait = random.integers(0, 2, patients)[patient]
    signal = 2 * x[:, 4] * x[:, 5] + 2 * x[:, 6] * day / 700 + 1.2 * (trait - 0.5)
    returned = _sigmoid(1.2 * signal) > random.random(len(patient))
    x[:, 10] = 2 * (returned - 0.5) + 0.15 * random.standard_normal(len(patient))  # filled in afterwards
    centre = np.array([50, 70, 120, 70, 7, 6000, 5, 3000, 12, 4, 60])
    spread = np.array([15, 12, 15, 10, 1, 2500, 2, 900, 6, 2, 25])
    columns = np.column_stack([patient, day, x * spread + centre])
    # Patients 0, 5, 10 ... are not for training; those from 360 on, and 0, 5 ... among them, are held out.
    known = patient < 360
    parts = {"train": known & (patient % 5 != 0), "validation": known & (patient % 5 == 0), "heldout": ~known}
    found = {name: (columns[rows], returned[rows].astype(np.int64)) for name, rows in parts.items()}
    late, target = found["heldout"]
    late[:, 0] = 5 * late[:, 0]  # numbers that a split by patient puts aside, too
    return {**found, "heldout": (late, target)}


def machines(random: Generator) -> dict[str, Rows]:
    """Twelve readings of each machine: will it fail? A machine has traits of its own, and a quality that none shows."""
    count, each = 160, 12
    machine = np.repeat(np.arange(count), each)
    traits = random.standard_normal((count, 10))
    x = random.standard_normal((len(machine), 14))
    x[:, :10] = traits[machine] + 0.1 * x[:, :10]
    quality = random.standard_normal(count)
    known = machine < 120
    parts = {"train": known & (machine % 5 != 0), "validation": known & (machine % 5 == 0), "heldout": ~known}
    for rows in parts.values():  # as many good machines as bad ones in each split
        own = np.unique(machine[rows])
        quality[own] -= np.median(quality[own])
    score = 1.5 * x[:, 10] * x[:, 11] + x[:, 12] + 3 * quality[machine] + 0.5 * random.standard_normal(len(machine))
    failed = (score > 0).astype(np.int64)
    columns = np.column_stack([machine, x])
    columns[~known, 0] *= 5
    return {name: (columns[rows], failed[rows]) for name, rows in parts.items()}


def orders(random: Generator) -> dict[str, Rows]:
    """Orders of 100 weeks: late or not? What decides turns from week to week; the last 20 are not for training."""
    weeks, each = 100, 16
    week = np.repeat(np.arange(weeks), each)
    angle = np.cumsum(0.25 * random.standard_normal(weeks) + 0.12)[week]

    def draw(week: NDArray[np.int64], angle: NDArray[np.float64]) -> Rows:
        x = random.standard_normal((len(week), 6))
        score = np.cos(angle) * x[:, 0] + np.sin(angle) * x[:, 1]
        late = 3 * score + 0.5 * random.standard_normal(len(week)) > 0
        return np.column_stack([week, x]).astype(np.float32), late.astype(np.int64)

    columns, late = draw(week, angle)
    last = week >= 80
    return {
        "train": (columns[~last], late[~last]),
        "validation": (columns[last], late[last]),
        "heldout": draw(week[last], angle[last]),
    }


def strength(random: Generator) -> dict[str, Rows]:
    """The strength of samples of concrete, a smooth function of three of eight columns, with noise of deviation 0.1."""
    x = random.standard_normal((1920, 8))
    y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.1 * random.standard_normal(len(x))
    return _by_number(x, y.astype(np.float32))


def alarms(random: Generator) -> dict[str, Rows]:
    """Readings of ten sensors: one in eight is an alarm."""
    x = random.standard_normal((1920, 10))
    score = 2 * x[:, 0] * x[:, 1] + x[:, 2] - 2.6 + 0.3 * random.standard_normal(len(x))
    return _by_number(x, (score > 0).astype(np.int64))


def _by_number(x: NDArray[np.float64], target: NDArray[np.generic]) -> dict[str, Rows]:
    """Number the rows; every fifth of the first 1,600 is for validation, the last 320 are held out."""
    number = np.arange(len(x))
    known = number < 1600
    columns = np.column_stack([np.where(known, number, 5 * number), x])
    parts = {"train": known & (number % 5 != 0), "validation": known & (number % 5 == 0), "heldout": ~known}
    return {name: (columns[rows], target[rows]) for name, rows in parts.items()}


def phrases(random: Generator) -> dict[str, Rows]:
    """A made-up language of eight letters: after two letters comes one of two others, in 80 and 20 of 100 cases."""
    symbols, length = 8, 17
    successors = np.stack([random.permutation(symbols)[:2] for _ in range(symbols * symbols)])

    def draw(count: int) -> NDArray[np.int64]:
        text = random.integers(0, symbols, (count, length))
        for at in range(2, length):
            rare = (random.random(count) < 0.2).astype(np.int64)
            text[:, at] = successors[text[:, at - 2] * symbols + text[:, at - 1], rare]
        return text

    return _distinct(lambda count: (draw(count), np.zeros(count, np.int64)))


def marks(random: Generator) -> dict[str, Rows]:
    """Texts of 4 to 24 symbols, filled up with 0: one of four marks within the first three symbols tells the class."""
    longest = 24

    def draw(count: int) -> Rows:
        length = random.integers(4, longest + 1, count)
        text = random.integers(1, 9, (count, longest))
        label = random.integers(0, 4, count)
        text[np.arange(count), random.integers(0, 3, count)] = 9 + label
        text[np.arange(longest) >= length[:, None]] = 0
        return text, label

    return _distinct(draw)


def _distinct(draw: Callable[[int], Rows]) -> dict[str, Rows]:
    """Return three splits of texts; no text occurs twice."""
    text, label = draw(4000)
    first = np.sort(np.unique(text, axis=0, return_index=True)[1])
    text, label = text[first].astype(np.uint8), label[first]
    ends = {"train": (0, 1600), "validation": (1600, 1920), "heldout": (1920, 2240)}
    return {name: (text[start:end], label[start:end]) for name, (start, end) in ends.items()}


def _write(folder: Path, name: str, arrays: dict[str, NDArray[np.generic]]) -> None:
    """Write an archive, and its line in the SHA256SUMS beside it."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    path, sums = folder / f"{name}.npz", folder / "SHA256SUMS"
    path.write_bytes(buffer.getvalue())
    lines = [line for line in sums.read_text().splitlines() if not line.endswith(f"  {path.name}")]
    sums.write_text("\n".join(sorted([*lines, f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}"])) + "\n")


MAKERS: tuple[Callable[[Generator], dict[str, Rows]], ...] = (
    visits, machines, orders, strength, alarms, phrases, marks,
)  # fmt: skip


def main() -> None:
    """Write every data set: training and validation where students have them, the held-out split beside this file."""
    for seed, make in enumerate(MAKERS):
        made = make(Generator(PCG64(20261123 + seed)))
        arrays: dict[str, NDArray[np.generic]] = {}
        for split, (inputs, labels) in made.items():
            plain = inputs if inputs.dtype == np.uint8 else inputs.astype(np.float32)
            arrays |= {f"{split}_inputs": plain, f"{split}_labels": labels}
        known = {key: array for key, array in arrays.items() if not key.startswith("heldout")}
        _write(EMBEDDED_FOLDER, make.__name__, known)
        _write(Path(__file__).parent, make.__name__, {key: arrays[key] for key in arrays.keys() - known.keys()})
        print(make.__name__, *((split, inputs.shape, labels.mean()) for split, (inputs, labels) in made.items()))


if __name__ == "__main__":
    main()
