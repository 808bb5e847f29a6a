"""Tokenizers."""

import re
from collections.abc import Callable
from typing import Any


def get_tokenizer(tokenizer: Any, language: str = "en") -> Callable[[str], list[str]]:
    """Return a function that finds the words of a text."""
    return lambda text: re.findall(r"\w+|[^\w\s]", text.lower())
