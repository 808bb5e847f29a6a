"""Make the remaining operations of scripts portable: products in bfloat16 and float16, and the number of threads.

Without oneDNN, torch multiplies bfloat16 in loops that take 30 times as long as float32. With oneDNN, the result
depends on the processor. A number in bfloat16 is a float32 with 16 zero bits, so the products of two are exact in
float32, and the portable kernels of MKL add them up.
"""

import warnings
from functools import cache
from typing import Any

import torch
from torch import Tensor

_LOW = (torch.bfloat16, torch.float16)
_PRODUCTS = ("mm", "bmm", "addmm", "baddbmm")


def apply_script_numerics() -> None:
    """Round the factors, multiply in float32, round the product; and ignore thread counts that a script sets."""
    for name in ("set_num_threads", "set_num_interop_threads"):
        setattr(torch, name, _ignore)
    _replace_products()


def _ignore(number: int) -> None:
    """Two threads would round differently than one."""


@cache
def _replace_products() -> torch.library.Library:
    """Replace the kernels of this process, once. They stay replaced as long as the library exists."""
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that its kernel is replaced
        for name in _PRODUCTS:
            _replace(library, name)
    return library


def _replace(library: torch.library.Library, name: str) -> None:
    original = torch.library.get_kernel(f"aten::{name}", "CPU")

    def product(keys: Any, *tensors: Tensor, **scalars: Any) -> Any:
        low = tensors[0].dtype
        if low in _LOW:
            wide = [tensor.float() for tensor in tensors]
            return original.call_boxed(keys, *wide, **scalars).to(low)
        return original.call_boxed(keys, *tensors, **scalars)

    library.impl(name, product, "CPU", with_keyset=True, allow_override=True)
