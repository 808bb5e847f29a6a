"""How an entry of the golden table is computed: its inputs, and what of its outcome is hashed.

An operation returns what it gave: the value, then the gradients of its inputs and weights. The inputs come from
whole numbers by exact steps, with no random numbers and no rounding, so that a digest which differs convicts
the operation and not its inputs.
"""

import math
import random
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

Operation = Callable[[], Iterable[Tensor]]


def numbers(*shape: int, salt: int = 0, low: float = -1.0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return scattered multiples of 2**-22 in [low, low + 2), exact in float32 where low is -1 or about 0.

    Multiplicative hashing (Knuth, The Art of Computer Programming, volume 3, 6.4) of the index, in integers.
    """
    index = torch.arange(math.prod(shape), dtype=torch.int64) + 7919 * salt + 1
    mixed = (index * 2654435761) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 15)) * 2246822519) & 0xFFFFFFFF
    return ((mixed >> 9).to(torch.float64) / 2**22 + low).to(dtype).reshape(shape)


def classes(count: int, number: int) -> Tensor:
    """Return class indices 0 .. number - 1 in a fixed uneven order, shape (count,)."""
    return (torch.arange(count, dtype=torch.int64) * 7 + 3) % number


def both_ways(function: Callable[..., Tensor], *inputs: Tensor) -> list[Tensor]:
    """Return `function(*inputs)` and the gradients of its inputs, for an uneven gradient from above."""
    leaves = [value.clone().requires_grad_() if value.is_floating_point() else value for value in inputs]
    output = function(*leaves)
    output.backward(numbers(*output.shape, salt=99, dtype=output.dtype))
    return [output.detach(), *(leaf.grad for leaf in leaves if leaf.grad is not None)]


def pointwise(function: Callable[[Tensor], Tensor], low: float = -1.0, scale: float = 1.0) -> Operation:
    """Apply the function to `scale` times 64 x 65 numbers from `low` on."""
    return lambda: both_ways(lambda x: function(x * scale), numbers(64, 65, low=low))


def float64(function: Callable[..., Tensor], *shapes: tuple[int, ...], low: float = -1.0) -> Operation:
    """Apply the function to float64 inputs of these shapes."""
    return lambda: both_ways(
        function, *(numbers(*shape, salt=i, low=low, dtype=torch.float64) for i, shape in enumerate(shapes))
    )


def float32(function: Callable[..., Tensor], *shapes: tuple[int, ...]) -> Operation:
    """Apply the function to float32 inputs of these shapes."""
    return lambda: both_ways(function, *(numbers(*shape, salt=i) for i, shape in enumerate(shapes)))


def reduction(function: Callable[..., Tensor], dtype: torch.dtype = torch.float32) -> Operation:
    """Reduce 64 x 65 numbers over the first, the second and both dimensions."""

    def reduce(x: Tensor) -> Tensor:
        cubes = x * x * x  # plain numbers of this size add up exactly, in any order
        return torch.cat([function(cubes, dim=0), function(cubes, dim=1), function(cubes, dim=(0, 1))[None]])

    return lambda: both_ways(reduce, numbers(64, 65, dtype=dtype))


def batch_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Normalize (B, C, H, W) by batch statistics, then by the moving ones, as in evaluation."""
    mean, variance = torch.zeros(x.shape[1], dtype=x.dtype), torch.ones(x.shape[1], dtype=x.dtype)
    trained = F.batch_norm(x, mean, variance, weight, bias, training=True)
    return torch.cat([trained, F.batch_norm(x, mean, variance, weight, bias, training=False)])


def embedding(weight: Tensor) -> Tensor:
    """Look 64 indices up in a (20, D) table."""
    return F.embedding(classes(64, 20), weight)


def fill(module: nn.Module) -> nn.Module:
    """Give every parameter fixed numbers in place of its random ones, and return the module."""
    with torch.no_grad():
        for salt, parameter in enumerate(module.parameters()):
            parameter.copy_(numbers(*parameter.shape, salt=salt, dtype=parameter.dtype) / 4)
    return module


def recurrent(kind: type[nn.LSTM | nn.GRU]) -> Operation:
    """Run two recurrent layers over a (5, 9, 12) batch."""

    def operation() -> list[Tensor]:
        network = fill(kind(12, 20, num_layers=2, batch_first=True, dtype=torch.float32))
        x = numbers(5, 9, 12).requires_grad_()
        output = network(x)[0]
        output.backward(numbers(*output.shape, salt=99))
        return [output.detach(), *gradients([x, *network.parameters()])]

    return operation


def transformer() -> list[Tensor]:
    """Run one transformer encoder layer over a (3, 7, 16) batch."""
    layer = fill(nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True, dtype=torch.float32))
    x = numbers(3, 7, 16).requires_grad_()
    output = layer(x)
    output.backward(numbers(*output.shape, salt=99))
    return [output.detach(), *gradients([x, *layer.parameters()])]


def attention(x: Tensor) -> Tensor:
    """Attend causally within one (B, heads, T, D) tensor."""
    return F.scaled_dot_product_attention(x, x.roll(1, 2), x.roll(2, 2), is_causal=True)


def gradients(leaves: Iterable[Tensor]) -> list[Tensor]:
    """Return the gradients that these leaves have."""
    return [leaf.grad for leaf in leaves if leaf.grad is not None]


def seeded(draw: Callable[[torch.Generator], Tensor]) -> Operation:
    """Draw from a generator with seed 42."""

    def operation() -> list[Tensor]:
        return [draw(torch.Generator().manual_seed(42))]

    return operation


def dropout() -> list[Tensor]:
    """Drop single numbers and whole channels."""
    torch.manual_seed(42)  # dropout takes no generator of its own; compute_goldens puts the state back
    return both_ways(lambda x: F.dropout(x, 0.3) + F.dropout2d(x, 0.3), numbers(4, 8, 9, 9))


def kaiming() -> list[Tensor]:
    """Draw the initial weights of layers, and two of the explicit initializations."""
    torch.manual_seed(42)
    layers = [nn.Linear(30, 20, dtype=torch.float32), nn.Conv2d(3, 8, 3, dtype=torch.float32)]
    extra = torch.empty(20, 30, dtype=torch.float32)
    drawn = [initialize(extra.clone()) for initialize in (nn.init.kaiming_normal_, nn.init.xavier_uniform_)]
    return [*drawn, *(p.detach() for layer in layers for p in layer.parameters())]


def network() -> nn.Module:
    """Return a two-layer classifier of 24 numbers into 10 classes."""
    return fill(nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 10)).float())


def train(make: Callable[[Iterable[Tensor]], torch.optim.Optimizer], clip: bool = False) -> Operation:
    """Train the classifier for four steps with the optimizer that `make` makes, and return its weights."""

    def operation() -> list[Tensor]:
        model = network()
        optimizer = make(model.parameters())
        for step in range(4):
            optimizer.zero_grad()
            F.cross_entropy(model(numbers(16, 24, salt=step)), classes(16, 10)).backward()
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
        return [parameter.detach() for parameter in model.parameters()]

    return operation


def autocast(dtype: torch.dtype) -> Operation:
    """Train a convolutional network for three steps in mixed precision, and return its weights."""

    def operation() -> list[Tensor]:
        layers = (nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(216, 10))
        network = fill(nn.Sequential(*layers).float())
        optimizer = torch.optim.Adam(network.parameters(), lr=0.01, fused=True)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, enabled=dtype is torch.float16)
        for step in range(3):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=dtype):
                loss = F.cross_entropy(network(numbers(8, 3, 8, 8, salt=step)), classes(8, 10))
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        return [parameter.detach() for parameter in network.parameters()]

    return operation


def low_precision(dtype: torch.dtype) -> Operation:
    """Multiply two matrices of this dtype."""
    return lambda: both_ways(
        torch.matmul, numbers(33, 40, dtype=torch.float32).to(dtype), numbers(40, 27, salt=1).to(dtype)
    )


def python_math() -> list[Tensor]:
    """Return what Python's `math` gives on 2000 points, and a cosine schedule."""
    # A schedule calls these on step counts and fractions of them.
    points = [(k * 2654435761 % 2**20) / 2**17 + 2**-10 for k in range(2000)]
    one = (
        math.exp,
        math.log,
        math.sin,
        math.cos,
        math.tan,
        math.tanh,
        math.erf,
        math.sqrt,
        math.expm1,
        math.log1p,
    )
    values = [function(x) for function in one for x in points] + [0.999**x for x in points]
    values += [math.cos(math.pi * step / 2000) for step in range(2000)]
    return [torch.tensor(values, dtype=torch.float64)]


def python_random() -> list[Tensor]:
    """Return draws and a shuffle of Python's `random`."""
    source = random.Random(42)
    order = list(range(50))
    source.shuffle(order)
    return [torch.tensor([source.random(), source.gauss(0, 1), *order], dtype=torch.float64)]


def numpy(function: Callable[[NDArray[Any]], NDArray[Any]], low: float = -1.0) -> Operation:
    """Apply a NumPy function to a 64 x 64 array in float32 and in float64."""

    def operation() -> list[Tensor]:
        return [
            torch.from_numpy(np.ascontiguousarray(function(numbers(64, 64, low=low, dtype=dtype).numpy())))
            for dtype in (torch.float32, torch.float64)
        ]

    return operation


def numpy_random() -> list[Tensor]:
    """Return draws of both kinds of NumPy generator."""
    old, new = np.random.RandomState(42), np.random.default_rng(42)
    drawn = (old.normal(size=4000), old.permutation(500), new.normal(size=4000), new.permutation(500))
    return [torch.from_numpy(values) for values in drawn]
