"""Python's own functions that loop in C, written in Python: so that their loops are counted like any other."""

import builtins
from collections.abc import Callable, Iterable, Iterator
from typing import Any


def _sum(iterable: Iterable[Any], /, start: Any = 0) -> Any:
    for item in iterable:
        start = start + item
    return start


def _map(function: Callable[..., Any], /, *iterables: Iterable[Any]) -> Iterator[Any]:
    return (function(*items) for items in zip(*iterables, strict=False))


def _filter(function: Callable[[Any], Any] | None, iterable: Iterable[Any], /) -> Iterator[Any]:
    return (item for item in iterable if (item if function is None else function(item)))


def _looking_at_each(name: str) -> Callable[..., Any]:
    """Return the builtin function, which first goes through its one iterable argument in Python."""
    function = getattr(builtins, name)

    def counted(*arguments: Any, **named: Any) -> Any:
        if len(arguments) == 1:
            arguments = ([item for item in arguments[0]],)  # noqa: C416 - it is to be a loop
        return function(*arguments, **named)

    return counted


def counted_builtins() -> dict[str, Any]:
    """Return the builtin names for a module whose operations are counted."""
    looking = {name: _looking_at_each(name) for name in ("min", "max", "any", "all", "sorted")}
    return {**vars(builtins), "sum": _sum, "map": _map, "filter": _filter, **looking}
