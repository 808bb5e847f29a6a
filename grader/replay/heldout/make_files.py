"""Make the data sets of the kind "files": python grader/replay/heldout/make_files.py NAME...

Every example is in one split alone. With the same versions of Python and NumPy, the files get the same bytes. The lines
of a table are in the order of time: the grader's are the last.
"""

import datetime
import hashlib
import io
import math
import random
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HELDOUT = Path(__file__).parent
EMBEDDED = HELDOUT.parents[2] / "harness" / "data" / "embedded"
_ONE = ("sailor", "baker", "child", "captain", "dog", "farmer")
_MANY = ("sailors", "bakers", "children", "captains", "dogs", "farmers")
_KINDS = ("old", "small", "red", "happy", "quiet", "tall")
_PLACES = ("harbour", "garden", "market", "river", "tower")
_DOES, _DO = ("sees", "paints", "finds", "carries"), ("see", "paint", "find", "carry")
_THINGS = ("boat", "lamp", "basket", "letter", "stone")
_SIDE = 48
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip


def tale(rng: random.Random) -> str:
    """Return a sentence whose verb has the number of its subject."""
    many = rng.random() < 0.5
    who, does = rng.choice(_MANY if many else _ONE), rng.choice(_DO if many else _DOES)
    text = f"the {rng.choice(_KINDS)} {who} {does} the {rng.choice(_KINDS)} {rng.choice(_THINGS)}"
    return text + (f" near the {rng.choice(_PLACES)}." if rng.random() < 0.5 else ".")


def date(rng: random.Random) -> str:
    """Return a date as people write it, a tab, and the same date as year-month-day."""
    year, month, day = rng.randint(1950, 2049), rng.randint(1, 12), rng.randint(1, 28)
    name = _MONTHS[month - 1]
    forms = (
        f"{day} {name} {year}",
        f"{name} {day}, {year}",
        f"{name[:3]} {day}, {year}",
        f"{day}/{month}/{year}",
        f"{day} {name[:3]} {year}",
    )
    return f"{rng.choice(forms)}\t{year}-{month:02d}-{day:02d}"


_CARRIERS = {"northline": -0.9, "quickpost": -0.2, "hansen": 0.4, "roadrunner": 1.0, "ferry": 0.6, "tram": 0.0}
_DEPOTS = {"aberg": -0.6, "brunn": 0.0, "celle": 0.5, "dorn": 0.9}
_COLUMNS = {
    "shipments": "date,carrier,depot,service,distance,items,weight,value,late",
    "demand": "date,store,demand",
    "rings": "x,y",
    "pole": "position,velocity,angle,angular_velocity",
}
_WEEKDAYS = (0.0, -0.4, -0.4, -0.2, 0.7, 1.3, 1.0)


def shipments(rng: random.Random) -> list[str]:
    """Return shipments in the order of time, ten a day: what is known of each when it leaves, and whether it is late.

    The carrier "meridian" starts during the last quarter; "ferry" and "tram" are rare.
    """
    lines = []
    for day in range(280):
        when = datetime.date(2024, 1, 8) + datetime.timedelta(day)
        for _ in range(10):
            [carrier] = rng.choices(list(_CARRIERS), (30, 30, 20, 20, 0.7, 0.7))
            effect = _CARRIERS[carrier]
            if day >= 210 and rng.random() < 0.05:
                carrier, effect = "meridian", 0.0
            depot, service = rng.choice(list(_DEPOTS)), rng.choice(("standard", "standard", "express"))
            distance, items = rng.lognormvariate(5.0, 0.7), rng.randint(1, 12)
            weight = items * rng.lognormvariate(0.3, 0.5)
            value = weight * rng.lognormvariate(2.5, 0.8) * (1 + day / 1000)
            score = effect + _DEPOTS[depot] + _WEEKDAYS[when.weekday()] + 1.3 * (math.log(distance) - 5.0) - 0.7
            score += 0.12 * (weight - 9.0) if service == "standard" else -1.5
            late = int(rng.random() < 1 / (1 + math.exp(-2.8 * score)))
            columns = [
                when.isoformat(),
                "" if rng.random() < 0.04 else carrier,
                depot,
                service,
                f"{distance:.0f}",
                str(items),
                "" if rng.random() < 0.12 else f"{weight:.1f}",
                "" if rng.random() < 0.08 else f"{value:.2f}",
                str(late),
            ]
            lines.append(",".join(columns))
    return lines


def demand(rng: random.Random) -> list[str]:
    """Return what twelve stores sell each day, in the order of time.

    Each store has its own level and its own kind of week; busy and quiet times come and go within weeks.
    """
    stores = []
    for number in range(12):
        week = [rng.gauss(0.0, 0.35) for _ in range(5)] + [rng.gauss(0.5, 0.4), rng.gauss(-0.6, 0.5)]
        stores.append((f"store{number + 1:02d}", rng.uniform(2.5, 5.5), week, rng.uniform(-0.3, 0.3)))
    lines, mood = [], [0.0] * len(stores)
    for day in range(440):
        when = datetime.date(2023, 3, 6) + datetime.timedelta(day)
        for i, (name, level, week, growth) in enumerate(stores):
            mood[i] = 0.93 * mood[i] + rng.gauss(0.0, 0.09)
            mean = level + week[when.weekday()] + growth * day / 440 + mood[i] + rng.gauss(0.0, 0.18)
            lines.append(f"{when.isoformat()},{name},{math.exp(mean):.0f}")
    return lines


def ring_point(rng: random.Random) -> str:
    """Return x and y of a point near one of three linked rings."""
    x, y = rng.choice(((-1.1, 0.3), (0.0, -0.3), (1.1, 0.3)))
    angle, radius = rng.uniform(0, 2 * math.pi), rng.gauss(0.7, 0.03)
    return f"{x + radius * math.cos(angle):.4f},{y + radius * math.sin(angle):.4f}"


# WordForms, each with two forms: for one and for many.
WordForms = tuple[tuple[str, str], ...]
_DETERMINERS = (
    ("this", "these"), ("that", "those"), ("every", "all"), ("one", "two"), ("each", "many"), ("the", "the"),
    ("my", "my"),
)  # fmt: skip
_LIVING = (*zip(_ONE, _MANY, strict=True), ("painter", "painters"), ("woman", "women"), ("mouse", "mice"))
_LIFELESS = tuple((word, f"{word}s") for word in (*_THINGS, *_PLACES))
_VERBS = (
    *zip(_DOES, _DO, strict=True), ("likes", "like"), ("cleans", "clean"), ("watches", "watch"), ("knows", "know"),
)  # fmt: skip
_PREPOSITIONS = ("near", "behind", "beside")


def _phrase(rng: random.Random, number: int, nouns: WordForms, is_subject: bool = False) -> WordForms:
    """Return the words of a noun phrase, each in the form for this number (0: one, 1: many) and in the other form.

    If the other form of a noun would be right, too, as in "finds the boats", both forms are the same.
    """
    determiner, noun = rng.choice(_DETERMINERS), rng.choice(nouns)
    words = [determiner, noun if number == 0 else (noun[1], noun[0])]
    if determiner[0] == determiner[1] and not is_subject:
        words[1] = (words[1][0], words[1][0])
    elif number == 1:
        words[0] = (determiner[1], determiner[0])
    if rng.random() < 0.5:
        words.insert(1, (adjective := rng.choice(_KINDS), adjective))
    return tuple(words)


def _place(rng: random.Random) -> WordForms:
    preposition = rng.choice(_PREPOSITIONS)
    return (preposition, preposition), *_phrase(rng, rng.randrange(2), _LIFELESS)


def grammatical(rng: random.Random) -> WordForms:
    """Return the words of a sentence, each with its form for the other number.

    The verb has the number of its subject. A second noun may stand between them.
    """
    number, verb = rng.randrange(2), rng.choice(_VERBS)
    return (
        *_phrase(rng, number, _LIVING, is_subject=True),
        *(_place(rng) if rng.random() < 0.5 else ()),
        verb if number == 0 else (verb[1], verb[0]),
        *_phrase(rng, rng.randrange(2), (*_LIVING, *_LIFELESS)),
        *(_place(rng) if rng.random() < 0.3 else ()),
    )


def grammar(rng: random.Random) -> str:
    """Return 1, a tab and a grammatical sentence; or 0, a tab and a sentence with one mistake.

    The mistake is a word of the wrong number, two neighbours that are swapped, or a missing verb or preposition.
    """
    words = grammatical(rng)
    sentence, label = [word for word, _ in words], rng.randrange(2)
    if label == 0:
        kind = rng.random()
        if kind < 0.6:
            i = rng.choice([i for i, (word, other) in enumerate(words) if word != other])
            sentence[i] = words[i][1]
        elif kind < 0.8:
            i = rng.randrange(len(words) - 1)
            sentence[i : i + 2] = sentence[i + 1], sentence[i]
        else:
            needed = {*_PREPOSITIONS, *(form for verb in _VERBS for form in verb)}
            del sentence[rng.choice([i for i, word in enumerate(sentence) if word in needed])]
    return f"{label}\t{' '.join(sentence)}"


def pole(rng: random.Random) -> str:
    """Return the start of an episode from which a linear controller keeps a pole on a cart up for 200 steps of 40 ms.

    The physics is the one of `VecCartPole` in `harness/experiments/pole_policy.py`.
    """
    while True:
        start = [round(rng.uniform(-most, most), 3) for most in (1.8, 1.2, 0.15, 1.5)]
        x, v, angle, w = start
        for _ in range(200):
            force = 8.0 if 0.4 * x + 0.8 * v + 10.0 * angle + 2.0 * w > 0 else -8.0
            sin, cos = math.sin(angle), math.cos(angle)
            push = (force + 0.05 * w**2 * sin) / 1.1
            turn = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
            acceleration = push - 0.05 * turn * cos / 1.1
            x, v, angle, w = x + 0.04 * v, v + 0.04 * acceleration, angle + 0.04 * w, w + 0.04 * turn
            if abs(x) > 2.4 or abs(angle) > math.radians(12):
                break
        else:
            return ",".join(f"{value:.3f}" for value in start)


def cells(rng: np.random.RandomState) -> bytes:
    """Return a grey picture of cells under a microscope, and after it the mask of its cells, both (48, 48) bytes.

    The light falls unevenly, a cell has a rim and a dark nucleus, and specks and threads are no cells.
    """
    rows, columns = np.mgrid[:_SIDE, :_SIDE].astype(float)
    slope, bend = rng.uniform(-45, 45, 2), rng.uniform(-25, 25)
    across, down = columns / _SIDE - 0.5, rows / _SIDE - 0.5
    picture = 110 + rng.uniform(-15, 15) + slope[0] * across + slope[1] * down + 4 * bend * across * down
    mask = np.zeros((_SIDE, _SIDE), dtype=np.uint8)
    for _ in range(rng.randint(2, 6)):
        distance = _ellipse(rows, columns, rng.uniform(0, _SIDE, 2), rng.uniform(5, 9, 2), rng.uniform(0, math.pi))
        inside, light = distance < 1, rng.uniform(14, 34)
        picture[inside] += light
        picture[inside & (distance > 0.72)] += rng.uniform(8, 20)
        nucleus = rng.uniform(0.35, 0.5)
        picture[distance < nucleus] -= light + rng.uniform(5, 20)
        mask[inside] = 1
    for _ in range(rng.randint(3, 8)):
        speck = _ellipse(rows, columns, rng.uniform(0, _SIDE, 2), rng.uniform(1, 2.2, 2), rng.uniform(0, math.pi)) < 1
        picture[speck & (mask == 0)] += rng.uniform(20, 50)
    for _ in range(rng.randint(0, 3)):
        long = rng.uniform(10, 22), rng.uniform(0.7, 1.2)
        thread = _ellipse(rows, columns, rng.uniform(0, _SIDE, 2), long, rng.uniform(0, math.pi)) < 1
        picture[thread & (mask == 0)] += rng.uniform(15, 40)
    padded = np.pad(picture, 1, mode="edge")
    picture = np.mean([padded[i : i + _SIDE, j : j + _SIDE] for i in range(3) for j in range(3)], axis=0)
    picture = np.clip(picture + rng.normal(0, 9, picture.shape), 0, 255)
    return bytes((picture // 8 * 8 + 4).astype(np.uint8).tobytes() + mask.tobytes())


def _ellipse(rows: Any, columns: Any, centre: Any, radii: Any, turn: float) -> NDArray[np.float64]:
    """Return for each pixel its distance from the centre of an ellipse; on the ellipse, it is 1."""
    down, across = rows - centre[0], columns - centre[1]
    first = (math.cos(turn) * across + math.sin(turn) * down) / radii[0]
    second = (math.cos(turn) * down - math.sin(turn) * across) / radii[1]
    distance: NDArray[np.float64] = np.hypot(first, second)
    return distance


def cells_file(examples: list[bytes]) -> bytes:
    """Return an .npz file of pictures and masks, uint8 (N, 1, 48, 48)."""
    both = np.frombuffer(b"".join(examples), dtype=np.uint8).reshape(-1, 2, 1, _SIDE, _SIDE)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, inputs=both[:, 0], labels=both[:, 1])
    return buffer.getvalue()


def numpy_random(name: str) -> np.random.RandomState:
    """Return random numbers for the data set with this name."""
    return np.random.RandomState(zlib.crc32(name.encode()))


def text_file(lines: list[str]) -> bytes:
    """Return a text file of these lines."""
    return "".join(f"{line}\n" for line in lines).encode()


def table_file(name: str) -> Callable[[list[str]], bytes]:
    """Return the maker of the files of a table: the names of its columns, and some lines."""
    return lambda lines: text_file([_COLUMNS[name], *lines])


# The examples of a data set, the maker of a file, the suffix of the files, and the numbers of examples for training,
# validation and the grader.
DrawnData = tuple[Callable[[], Iterator[Any]], Callable[[Any], bytes], str, tuple[int, int, int]]
MADE: dict[str, DrawnData] = {
    "tales": (lambda: different(tale, random.Random("tales")), text_file, "txt", (1440, 160, 160)),
    "dates": (lambda: different(date, random.Random("dates")), text_file, "tsv", (1440, 160, 300)),
    "grammar": (lambda: different(grammar, random.Random("grammar")), text_file, "tsv", (1920, 320, 320)),
    "pole": (lambda: different(pole, random.Random("pole")), table_file("pole"), "csv", (256, 160, 160)),
    "cells": (lambda: different(cells, numpy_random("cells")), cells_file, "npz", (160, 48, 60)),
    "shipments": (
        lambda: iter(shipments(random.Random("shipments"))),
        table_file("shipments"),
        "csv",
        (2000, 400, 400),
    ),
    "rings": (lambda: different(ring_point, random.Random("rings")), table_file("rings"), "csv", (2304, 400, 400)),
    "demand": (lambda: iter(demand(random.Random("demand"))), table_file("demand"), "csv", (3360, 960, 960)),
}


def different(make: Callable[[Any], Any], rng: Any) -> Iterator[Any]:
    """Yield examples without end, each one once."""
    seen = set()
    while True:
        example = make(rng)
        if example not in seen:
            seen.add(example)
            yield example


def list_sums(folder: Path, names: list[str]) -> None:
    """Write the SHA-256 of these files into SHA256SUMS, and keep the other lines."""
    path = folder / "SHA256SUMS"
    sums = {line.split()[1]: line for line in path.read_text(encoding="utf-8").splitlines()}
    for name in names:
        sums[name] = f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}"
    path.write_text("".join(f"{sums[name]}\n" for name in sorted(sums)), encoding="utf-8")


def main() -> None:
    """Make the named data sets."""
    for name in sys.argv[1:]:
        examples, file, suffix, sizes = MADE[name]
        found = examples()
        train, validation, heldout = (file([next(found) for _ in range(size)]) for size in sizes)
        (EMBEDDED / name).mkdir(exist_ok=True)
        for path, content in (
            (EMBEDDED / name / f"train.{suffix}", train),
            (EMBEDDED / name / f"val.{suffix}", validation),
            (HELDOUT / f"{name}.{suffix}", heldout),
        ):
            path.write_bytes(content)
        list_sums(EMBEDDED, [f"{name}/train.{suffix}", f"{name}/val.{suffix}"])
        list_sums(HELDOUT, [f"{name}.{suffix}"])


if __name__ == "__main__":
    main()
