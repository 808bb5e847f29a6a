"""A logger that keeps nothing."""

from typing import Any


class _Silent:
    def __getattr__(self, name: str) -> "_Silent":
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *positional: Any, **named: Any) -> "_Silent":
        return self


run = config = init = log = watch = finish = _Silent()
Image = Histogram = Table = Settings = run
