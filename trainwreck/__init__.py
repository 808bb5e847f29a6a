"""Watch a PyTorch training, and find the faults that raise no error.

python -m trainwreck train.py --its --own arguments

with trainwreck.watch():
    main()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from trainwreck.finding import Finding
    from trainwreck.session import Unsound, watch
    from trainwreck.state import Watch
    from trainwreck.training import Training, assert_sound

__all__ = ["Finding", "Training", "Unsound", "Watch", "assert_sound", "watch"]
# Imported on first use: torch takes seconds.
_PLACES = {
    "Finding": "finding",
    "Training": "training",
    "Unsound": "session",
    "Watch": "state",
    "assert_sound": "training",
    "watch": "session",
    "load_ipython_extension": "notebook",
    "unload_ipython_extension": "notebook",
}
_MODULES = ("lightning", "transformers")


def __getattr__(name: str) -> Any:
    """Import a public name, or the module for one of the libraries, when it is first used, and return it."""
    import importlib

    if name in _MODULES:
        return importlib.import_module(f"trainwreck.{name}")
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"trainwreck.{_PLACES[name]}"), name)
    globals()[name] = value
    return value
