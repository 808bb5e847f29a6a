"""Imports torchvision, also where its compiled operators do not load beside the installed torch.

The package index serves torchvision for Linux as a CUDA build. Beside a CPU-only torch its compiled
library cannot be loaded, which torchvision itself tolerates: `datasets` and `transforms` need none of it.
Yet at import it registers shape functions for two operators of that library, and torch refuses to register
anything for an operator that nobody defined: `RuntimeError: operator torchvision::nms does not exist`.
Defining the two signatures, without an implementation, is all that the import lacks.
"""

import importlib
import sys
from types import ModuleType

from harness.errors import UserError

_MISSING_OPERATOR = "operator torchvision::nms does not exist"

# As torchvision's own C++ sources declare them.
_SIGNATURES = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)

# A torch.library.Library takes its definitions back when it is collected, so it lives as long as we do.
_definitions: list[object] = []


def import_torchvision_datasets() -> ModuleType:
    """Return the module `torchvision.datasets`; this costs over a second the first time.

    Where the plain import works, nothing else happens. Calling it again is free.
    Raises UserError when torchvision is not installed.
    """
    try:
        return importlib.import_module("torchvision.datasets")
    except ModuleNotFoundError as error:
        if error.name != "torchvision":
            raise
        raise UserError(
            "torchvision, which reads MNIST and CIFAR-10, is not installed in "
            f"{sys.prefix}: run `{sys.executable} -m pip install torchvision`, or choose digits or shapes."
        ) from error
    except RuntimeError as error:
        if _MISSING_OPERATOR not in str(error):
            raise
    _drop_half_imported_modules()
    _define_missing_operators()
    return importlib.import_module("torchvision.datasets")


def _drop_half_imported_modules() -> None:
    """Forget what the failed import left behind, or the second attempt would find it in part."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]


def _define_missing_operators() -> None:
    import torch

    library = torch.library.Library("torchvision", "FRAGMENT")
    for signature in _SIGNATURES:
        library.define(signature)
    _definitions.append(library)
