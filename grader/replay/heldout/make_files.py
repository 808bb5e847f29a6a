"""Make the data sets of the kind "files": python grader/replay/heldout/make_files.py NAME...

Every line is in one split alone. With the same version of Python, the files get the same bytes. Lines of a table are in
the order of time: the grader's are the last.
"""

import datetime
import hashlib
import math
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

HELDOUT = Path(__file__).parent
EMBEDDED = HELDOUT.parents[2] / "harness" / "data" / "embedded"
_ONE = ("sailor", "baker", "child", "captain", "dog", "farmer")
_MANY = ("sailors", "bakers", "children", "captains", "dogs", "farmers")
_KINDS = ("old", "small", "red", "happy", "quiet", "tall")
_PLACES = ("harbour", "garden", "market", "river", "tower")
_DOES, _DO = ("sees", "paints", "finds", "carries"), ("see", "paint", "find", "carry")
_THINGS = ("boat", "lamp", "basket", "letter", "stone")
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


# The maker of a line, the suffix of the files, and the numbers of lines for training, validation and the grader.
MADE: dict[str, tuple[Callable[[random.Random], str], str, tuple[int, int, int]]] = {
    "tales": (tale, "txt", (1440, 160, 160)),
    "dates": (date, "tsv", (1440, 160, 300)),
}
# The maker of all lines of a table in the order of time, its columns, and the numbers of lines.
TABLES: dict[str, tuple[Callable[[random.Random], list[str]], str, tuple[int, int, int]]] = {
    "shipments": (shipments, "date,carrier,depot,service,distance,items,weight,value,late", (2000, 400, 400))
}


def different(make: Callable[[random.Random], str], rng: random.Random) -> Iterator[str]:
    """Yield lines without end, each one once."""
    seen = set()
    while True:
        line = make(rng)
        if line not in seen:
            seen.add(line)
            yield line


def list_sums(folder: Path, names: list[str]) -> None:
    """Write the SHA-256 of these files into SHA256SUMS, and keep the other lines."""
    path = folder / "SHA256SUMS"
    sums = {line.split()[1]: line for line in path.read_text(encoding="utf-8").splitlines()}
    for name in names:
        sums[name] = f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}"
    path.write_text("".join(f"{sums[name]}\n" for name in sorted(sums)), encoding="utf-8")


def splits(name: str) -> tuple[str, list[str]]:
    """Return the suffix of a data set's files, and their texts: training, validation, and the grader's."""
    if name in TABLES:
        table, columns, sizes = TABLES[name]
        lines, suffix, head = iter(table(random.Random(name))), "csv", f"{columns}\n"
    else:
        make, suffix, sizes = MADE[name]
        lines, head = different(make, random.Random(name)), ""
    return suffix, [head + "".join(f"{next(lines)}\n" for _ in range(size)) for size in sizes]


def main() -> None:
    """Make the named data sets."""
    for name in sys.argv[1:]:
        suffix, (train, validation, heldout) = splits(name)
        (EMBEDDED / name).mkdir(exist_ok=True)
        for path, text in (
            (EMBEDDED / name / f"train.{suffix}", train),
            (EMBEDDED / name / f"val.{suffix}", validation),
            (HELDOUT / f"{name}.{suffix}", heldout),
        ):
            path.write_text(text, encoding="utf-8")
        list_sums(EMBEDDED, [f"{name}/train.{suffix}", f"{name}/val.{suffix}"])
        list_sums(HELDOUT, [f"{name}.{suffix}"])


if __name__ == "__main__":
    main()
