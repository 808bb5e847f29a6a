"""Numbers for words."""

from collections import Counter
from collections.abc import Iterable

from torch import nn


class Vocab(nn.Module):
    """Gives each word its number."""

    def __init__(self, words: list[str]) -> None:
        super().__init__()
        self.words = words
        self.numbers = {word: number for number, word in enumerate(words)}
        self.default: int | None = None

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return word in self.numbers

    def __getitem__(self, word: str) -> int:
        if word not in self.numbers and self.default is not None:
            return self.default
        return self.numbers[word]

    def forward(self, tokens: list[str]) -> list[int]:
        """Return the numbers of the words."""
        return [self[word] for word in tokens]

    def set_default_index(self, index: int | None) -> None:
        """Set the number of unknown words."""
        self.default = index

    def get_itos(self) -> list[str]:
        """Return all words in the order of their numbers."""
        return self.words

    def get_stoi(self) -> dict[str, int]:
        """Return the number of each word."""
        return self.numbers

    def lookup_tokens(self, indices: list[int]) -> list[str]:
        """Return the words of the numbers."""
        return [self.words[index] for index in indices]


def build_vocab_from_iterator(
    iterator: Iterable[Iterable[str]], min_freq: int = 1, specials: list[str] | None = None, special_first: bool = True
) -> Vocab:
    """Count the words of texts, and number them from the most frequent one on."""
    counts = Counter(word for words in iterator for word in words)
    special = list(specials or [])
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    common = [word for word in ranked if counts[word] >= min_freq and word not in special]
    return Vocab(special + common if special_first else common + special)
