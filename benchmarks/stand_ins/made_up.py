"""Made-up examples for public programs: images, sentences and graphs whose labels follow from their inputs.

Everything is drawn from a fixed seed, and the parts of a data set, such as `train` and `test`, have other examples.
"""

import functools
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
WORDS = [
    "river", "stone", "garden", "window", "orange", "silent", "copper", "basket", "market", "engine", "winter",
    "pepper", "ladder", "harbour", "mirror", "candle", "forest", "pocket", "button", "thunder", "meadow", "saddle",
    "anchor", "barrel", "velvet", "pillow", "lantern", "ribbon", "marble", "timber",
]  # fmt: skip
NAMES = ["Anna", "Bruno", "Clara", "David", "Elena", "Felix", "Greta", "Hugo", "Irene", "Jonas"]
PLACES = ["Aarhus", "Bergen", "Cadiz", "Delft", "Essen", "Faro", "Ghent", "Halle", "Izmir", "Jena"]
TOPICS = (
    ["election", "treaty", "minister", "border", "summit"],
    ["goal", "referee", "stadium", "coach", "penalty"],
    ["profit", "shares", "merger", "bank", "invoice"],
    ["planet", "circuit", "robot", "laser", "software"],
)


def random_numbers(*key: object) -> np.random.Generator:
    """Return a generator of random numbers that depends on `key` alone."""
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def _smooth(rng: np.random.Generator, size: int, channels: int, cells: int = 7) -> Array:
    """Return a random picture without sharp edges, with values from 0 to 1."""
    small = rng.random((channels, cells, cells))
    at = np.linspace(0, cells - 1, size)
    low = np.minimum(at.astype(int), cells - 2)
    part = at - low
    rows = small[:, low] * (1 - part)[:, None] + small[:, low + 1] * part[:, None]
    pixels: Array = rows[:, :, low] * (1 - part) + rows[:, :, low + 1] * part
    return pixels


@functools.lru_cache(maxsize=4)
def images(name: str, part: str, count: int, size: int, channels: int, classes: int) -> tuple[Array, Array]:
    """Return bytes [count, size, size, channels] and labels: each class has a picture, which is moved and noisy."""
    rng = random_numbers(name, part)
    patterns = [_smooth(random_numbers(name, "class", label), size, channels) for label in range(classes)]
    if channels == 1:  # bright strokes on a dark ground
        patterns = [np.clip(3 * pattern - 1.6, 0, 1) for pattern in patterns]
    labels = rng.permutation(np.arange(count) % classes)
    pixels = np.empty((count, size, size, channels), dtype=np.uint8)
    for at, label in enumerate(labels):
        moved = np.roll(patterns[label], rng.integers(-2, 3, size=2), axis=(1, 2))
        noisy = moved * rng.uniform(0.7, 1.0) + (moved > 0) * rng.normal(0, 0.08, moved.shape)
        pixels[at] = (255 * np.clip(noisy, 0, 1)).astype(np.uint8).transpose(1, 2, 0)
    return pixels, labels


def photo(*key: object, size: int) -> Array:
    """Return the bytes [size, size, 3] of one colour picture."""
    rng = random_numbers(*key)
    pixels = 0.7 * _smooth(rng, size, 3) + 0.3 * _smooth(rng, size, 3, cells=max(8, size // 6))
    return (255 * pixels).astype(np.uint8).transpose(1, 2, 0)


def sentences(part: str, count: int) -> Iterator[list[str]]:
    """Yield sentences in which a word is followed by one of three words."""
    table = random_numbers("grammar").integers(0, len(WORDS), (len(WORDS), 3))
    rng = random_numbers("sentences", part)
    for _ in range(count):
        word = int(rng.integers(len(WORDS)))
        sentence = []
        for _ in range(int(rng.integers(5, 14))):
            sentence.append(WORDS[word])
            word = int(table[word, rng.choice(3, p=(0.7, 0.2, 0.1))])
        yield sentence


def topics(part: str, count: int, classes: int = len(TOPICS)) -> Iterator[tuple[int, str]]:
    """Yield labels and texts; two or three words of a text belong to its label."""
    rng = random_numbers("topics", part)
    for words in sentences("topics " + part, count):
        label = int(rng.integers(classes))
        for _ in range(int(rng.integers(2, 4))):
            words.insert(int(rng.integers(len(words) + 1)), str(rng.choice(TOPICS[label])))
        yield label, " ".join(words)


def foreign(words: list[str]) -> list[str]:
    """Return the words in a made-up language: each word is spelled backwards, and neighbours change places."""
    turned = [word[::-1] for word in words]
    for at in range(0, len(turned) - 1, 2):
        turned[at], turned[at + 1] = turned[at + 1], turned[at]
    return turned


def tagged(part: str, count: int) -> Iterator[tuple[list[str], list[str]]]:
    """Yield sentences with a tag for each word: persons and places are tagged."""
    rng = random_numbers("tagged", part)
    for words in sentences("tagged " + part, count):
        tags = ["O"] * len(words)
        for names, tag in ((NAMES, "B-PER"), (PLACES, "B-LOC")):
            at = int(rng.integers(len(words) + 1))
            words.insert(at, str(rng.choice(names)))
            tags.insert(at, tag)
        yield words, tags


def citations(nodes: int, classes: int, words: int) -> tuple[Array, Array, Array]:
    """Return features, labels and links [links, 2] of a graph: most links join nodes of the same class."""
    rng = random_numbers("citations")
    labels = rng.integers(classes, size=nodes)
    typical = random_numbers("citations", "words").random((classes, words)) < 0.1
    features = (rng.random((nodes, words)) < np.where(typical[labels], 0.3, 0.02)).astype(np.int64)
    pairs = []
    for node in range(nodes):
        same = np.flatnonzero(labels == labels[node])
        pairs += [(node, int(rng.choice(same))), (node, int(rng.choice(same))), (node, int(rng.integers(nodes)))]
    links = np.array([pair for pair in pairs if pair[0] != pair[1]])
    return features, labels, links
