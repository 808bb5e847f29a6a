"""Make the data sets of the kind "files": python grader/replay/heldout/make_files.py NAME...

Every line is in one split alone. With the same version of Python, the files get the same bytes.
"""

import hashlib
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


# The maker of a line, the suffix of the files, and the numbers of lines for training, validation and the grader.
MADE: dict[str, tuple[Callable[[random.Random], str], str, tuple[int, int, int]]] = {
    "tales": (tale, "txt", (1440, 160, 160)),
    "dates": (date, "tsv", (1440, 160, 300)),
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


def main() -> None:
    """Make the named data sets."""
    for name in sys.argv[1:]:
        make, suffix, sizes = MADE[name]
        lines = different(make, random.Random(name))
        train, validation, heldout = ("".join(f"{next(lines)}\n" for _ in range(size)) for size in sizes)
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
