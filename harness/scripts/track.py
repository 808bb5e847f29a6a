"""The module `track` that scripts import: `track.log` notes figures, as `wandb.log` does. Alone, it prints them."""

from collections.abc import Mapping


def log(values: Mapping[str, float], *, step: int | None = None) -> None:
    """Note figures by name. Those of the validation have names that start with `val_`."""
    words = [] if step is None else [f"step {step}"]
    print(*words, *(f"{name} {value:.4g}" for name, value in values.items()))
