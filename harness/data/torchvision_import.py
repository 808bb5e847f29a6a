"""Imports torchvision, even if its compiled operators do not load beside the installed torch.

The package index serves torchvision for Linux as a CUDA build. Beside a CPU-only torch its compiled library does not
load. `datasets` and `transforms` do not need that library, but at import torchvision registers shape functions for two
of its operators, and torch refuses: `RuntimeError: operator torchvision::nms does not exist`. Defining the two
signatures, without an implementation, makes the import work.
"""

import importlib
import sys
from types import ModuleType

from harness.errors import UserError

_MISSING_OPERATOR = "operator torchvision::nms does not exist"
# As torchvision's C++ sources declare them.
_SIGNATURES = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
# A torch.library.Library takes its definitions back when Python collects it.
_definitions: list[object] = []


def import_torchvision_datasets() -> ModuleType:
    """Return the module `torchvision.datasets`; the first call takes over a second.

    Raises `UserError` if torchvision is not installed.
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
    # Otherwise the second attempt finds the modules that the failed import left behind.
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    _define_missing_operators()
    return importlib.import_module("torchvision.datasets")


def _define_missing_operators() -> None:
    import torch

    library = torch.library.Library("torchvision", "FRAGMENT")
    for signature in _SIGNATURES:
        library.define(signature)
    _definitions.append(library)
