"""The operations in the golden table: small, fixed computations whose results must have equal bytes on every machine.

An operation returns its value, followed by the gradients of its inputs and weights. The inputs are computed exactly
from whole numbers, without random numbers or rounding. So if a digest differs, the operation itself gives other
results.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

Operation = Callable[[], Iterable[Tensor]]


def numbers(*shape: int, salt: int = 0, low: float = -1.0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return numbers that are spread over [low, low + 2) and are exact in float32 if `low` is -1 or about 0.

    They are multiples of 2**-22, computed in integers from the index by multiplicative hashing (Knuth, The Art of
    Computer Programming, volume 3, 6.4).
    """
    index = torch.arange(math.prod(shape), dtype=torch.int64) + 7919 * salt + 1
    mixed = (index * 2654435761) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 15)) * 2246822519) & 0xFFFFFFFF
    return ((mixed >> 9).to(torch.float64) / 2**22 + low).to(dtype).reshape(shape)


def classes(count: int, number: int) -> Tensor:
    """Return `count` class indices from 0 to number - 1, in a fixed irregular order."""
    return (torch.arange(count, dtype=torch.int64) * 7 + 3) % number


def _both_ways(function: Callable[..., Tensor], *inputs: Tensor, weights: Iterable[Tensor] = ()) -> list[Tensor]:
    """Return `function(*inputs)`, then the gradients of inputs and weights for a fixed gradient of the output."""
    leaves = [value.clone().requires_grad_() for value in inputs]
    output = function(*leaves)
    output.backward(numbers(*output.shape, salt=99, dtype=output.dtype))
    return [output.detach(), *(leaf.grad for leaf in (*leaves, *weights) if leaf.grad is not None)]


def _computes(
    function: Callable[..., Tensor], *shapes: tuple[int, ...], low: float = -1.0, dtype: torch.dtype = torch.float32
) -> Operation:
    """Return an operation that applies the function to inputs of these shapes, by default to one input of 64 x 65."""
    return lambda: _both_ways(
        function,
        *(numbers(*shape, salt=salt, low=low, dtype=dtype) for salt, shape in enumerate(shapes or ((64, 65),))),
    )


def _reduces(function: Callable[..., Tensor]) -> Operation:
    """Return an operation that reduces a 64 x 65 tensor over its first dimension, its second dimension, and both."""

    def reduce(x: Tensor) -> Tensor:
        cubes = x * x * x  # the sums of the numbers themselves would be exact in any order
        return torch.cat([function(cubes, dim=0), function(cubes, dim=1), function(cubes, dim=(0, 1))[None]])

    return _computes(reduce)


def _batch_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Normalize a (B, C, H, W) tensor by batch statistics, then by moving averages as in eval mode."""
    mean, variance = torch.zeros(x.shape[1], dtype=x.dtype), torch.ones(x.shape[1], dtype=x.dtype)
    trained = F.batch_norm(x, mean, variance, weight, bias, training=True)
    return torch.cat([trained, F.batch_norm(x, mean, variance, weight, bias, training=False)])


def _attention(x: Tensor) -> Tensor:
    """Apply causal self-attention to a (B, heads, T, D) tensor that is query, key and value."""
    return F.scaled_dot_product_attention(x, x.roll(1, 2), x.roll(2, 2), is_causal=True)


def _fill(module: nn.Module) -> nn.Module:
    """Replace the random parameters of a module by fixed numbers, and return it."""
    with torch.no_grad():
        for salt, parameter in enumerate(module.parameters()):
            parameter.copy_(numbers(*parameter.shape, salt=salt, dtype=parameter.dtype) / 4)
    return module


def _lstm() -> list[Tensor]:
    """Run an LSTM with two layers on a (5, 9, 12) batch."""
    network = _fill(nn.LSTM(12, 20, num_layers=2, batch_first=True, dtype=torch.float32))
    return _both_ways(lambda x: network(x)[0], numbers(5, 9, 12), weights=network.parameters())


def _seed(draw: Callable[[torch.Generator], Tensor]) -> Operation:
    """Return an operation that draws from a generator with seed 42."""
    return lambda: [draw(torch.Generator().manual_seed(42))]


def _dropout() -> list[Tensor]:
    """Apply dropout to single numbers and to whole channels."""
    torch.manual_seed(42)  # dropout takes no generator; compute_goldens restores the state
    return _both_ways(lambda x: F.dropout(x, 0.3) + F.dropout2d(x, 0.3), numbers(4, 8, 9, 9))


def _initialization() -> list[Tensor]:
    """Return the default initial weights of several layers, and weights from two functions in `torch.nn.init`."""
    torch.manual_seed(42)
    layers = [nn.Linear(30, 20, dtype=torch.float32), nn.Conv2d(3, 8, 3, dtype=torch.float32)]
    extra = torch.empty(20, 30, dtype=torch.float32)
    drawn = [initialize(extra.clone()) for initialize in (nn.init.kaiming_normal_, nn.init.xavier_uniform_)]
    return [*drawn, *(p.detach() for layer in layers for p in layer.parameters())]


def _optimizer(kind: Callable[..., torch.optim.Optimizer], clip: bool = False, **options: Any) -> Operation:
    """Return an operation that trains a two-layer classifier (24 inputs, 10 classes) for four steps.

    The operation returns the trained weights.
    """

    def operation() -> list[Tensor]:
        model = _fill(nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 10)).float())
        optimizer = kind(model.parameters(), **options)
        for step in range(4):
            optimizer.zero_grad()
            F.cross_entropy(model(numbers(16, 24, salt=step)), classes(16, 10)).backward()
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
        return [parameter.detach() for parameter in model.parameters()]

    return operation


def _autocast() -> list[Tensor]:
    """Train a convolutional network for three steps in mixed precision, and return its weights."""
    layers = (nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(216, 10))
    network = _fill(nn.Sequential(*layers).float())
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01, fused=True)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for step in range(3):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.cross_entropy(network(numbers(8, 3, 8, 8, salt=step)), classes(8, 10))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return [parameter.detach() for parameter in network.parameters()]


def _train(network: nn.Module, loss: Callable[[int], Tensor]) -> list[Tensor]:
    """Make three clipped steps of AdamW on `loss(step)`, and return the weights of the network."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01, fused=True)
    for step in range(3):
        optimizer.zero_grad()
        loss(step).backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
    return [parameter.detach() for parameter in network.parameters()]


def _transformer() -> list[Tensor]:
    """Train a causal attention block on 6 texts of 12 letters; the last layer shares the weights of the embedding."""
    letters, norm, mix, out = nn.Embedding(8, 16), nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)
    network = _fill(nn.ModuleList([letters, norm, mix, out]).float())
    text = classes(78, 8).reshape(6, 13)
    later = torch.ones(12, 12, dtype=torch.bool).triu(1)

    def loss(step: int) -> Tensor:
        x = letters(text[:, :-1].roll(step, 0))
        query, key, value = mix(norm(x)).chunk(3, dim=2)
        weights = (query @ key.mT / 4).masked_fill(later, -math.inf).softmax(dim=2)
        x = x + F.gelu(out(weights @ value))
        return F.cross_entropy(F.linear(x, letters.weight).flatten(0, 1), text[:, 1:].roll(step, 0).flatten())

    return _train(network, loss)


def _recurrent() -> list[Tensor]:
    """Train a GRU and a recurrent cell, which stops at the end of a text, on 6 texts of 9 symbols in four classes."""
    symbols, layer = nn.Embedding(13, 12, padding_idx=0), nn.GRU(12, 20, batch_first=True)
    cell, head = nn.GRUCell(20, 20), nn.Linear(20, 4)
    network = _fill(nn.ModuleList([symbols, layer, cell, head]).float())
    texts = classes(54, 13).reshape(6, 9).sort(dim=1, descending=True).values

    def loss(step: int) -> Tensor:
        states = layer(symbols(texts.roll(step, 0)))[0]
        state = torch.zeros_like(states[:, 0])
        for place in range(9):
            going_on = (texts.roll(step, 0)[:, place] != 0).unsqueeze(1)
            state = torch.where(going_on, cell(states[:, place], state), state)
        return F.cross_entropy(head(state), classes(6, 4))

    return _train(network, loss)


def _table() -> list[Tensor]:
    """Train an MLP with batch norm for binary classification, on 32 standardized rows with 7 columns."""
    network = _fill(nn.Sequential(nn.Linear(7, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 1)).float())

    def loss(step: int) -> Tensor:
        rows = 100 * numbers(32, 7, salt=step)
        rows = (rows - rows.mean(dim=0)) / rows.std(dim=0)
        return F.binary_cross_entropy_with_logits(network(rows).squeeze(1), (classes(32, 3) == 0).float())

    return _train(network, loss)


def _python_math() -> list[Tensor]:
    """Return the results of functions in Python's `math` at 2000 points, and a cosine schedule."""
    # Functions that a schedule may call with a step number or with the finished fraction of the training.
    points = [(k * 2654435761 % 2**20) / 2**17 + 2**-10 for k in range(2000)]
    names = ("exp", "log", "sin", "cos", "tan", "tanh", "erf", "sqrt", "expm1", "log1p")
    values = [getattr(math, name)(x) for name in names for x in points] + [0.999**x for x in points]
    values += [math.cos(math.pi * step / 2000) for step in range(2000)]
    return [torch.tensor(values, dtype=torch.float64)]


def _numpy(function: Callable[[NDArray[Any]], NDArray[Any]], low: float = -1.0) -> Operation:
    """Return an operation that applies a NumPy function to a 64 x 64 array, in float32 and in float64."""
    return lambda: [
        torch.from_numpy(np.ascontiguousarray(function(numbers(64, 64, low=low, dtype=dtype).numpy())))
        for dtype in (torch.float32, torch.float64)
    ]


def _numpy_random() -> list[Tensor]:
    """Return random numbers from `numpy.random.default_rng` and from `numpy.random.RandomState`."""
    old, new = np.random.RandomState(42), np.random.default_rng(42)
    drawn = (old.normal(size=4000), old.permutation(500), new.normal(size=4000), new.permutation(500))
    return [torch.from_numpy(values) for values in drawn]


# The results of these operations differ between processors even with portable numerics. MKL's vector library computes
# them from the processor's approximate reciprocal square root, and optimizers that are not fused call MKL's square
# root.
DIFFERS = frozenset((
    "sqrt", "asin", "acos", "atan", "optimizer adam", "optimizer adamw", "optimizer rmsprop", "optimizer adagrad",
))  # fmt: skip

# If a setting of portable numerics is missing, at least one of these operations computes other bytes.
SENTINELS = (
    "linear", "conv2d", "conv2d nnpack", "exp", "softmax", "gelu", "sum", "softmax float64", "python math",
    "numpy exp", "numpy matmul",
)  # fmt: skip

OPERATIONS: dict[str, Operation] = {
    "linear": _computes(F.linear, (33, 65), (40, 65), (40,)),
    "matmul": _computes(torch.matmul, (64, 130), (130, 47)),
    "conv2d": _computes(lambda x, w, b: F.conv2d(x, w, b, padding=1), (4, 3, 16, 16), (8, 3, 3, 3), (8,)),
    # torch uses NNPACK for batches of 16 or more examples.
    "conv2d nnpack": _computes(lambda x, w, b: F.conv2d(x, w, b, padding=1), (16, 3, 8, 8), (6, 3, 3, 3), (6,)),
    "batch norm": _computes(_batch_norm, (8, 6, 9, 9), (6,), (6,)),
    "layer norm": _computes(lambda x, w, b: F.layer_norm(x, (65,), w, b), (33, 65), (65,), (65,)),
    "relu": _computes(F.relu),
    "gelu": _computes(lambda x: F.gelu(x * 4)),
    "tanh": _computes(lambda x: torch.tanh(x * 4)),
    "sigmoid": _computes(lambda x: torch.sigmoid(x * 8)),
    "softmax": _computes(lambda x: torch.softmax(x * 8, 1)),
    "cross_entropy": _computes(lambda x: F.cross_entropy(x * 8, classes(64, 65))),
    "mse": _computes(F.mse_loss, (64, 65), (64, 65)),
    "binary_cross_entropy": _computes(
        lambda x: F.binary_cross_entropy_with_logits(x * 8, (x.detach() * 8 > 1).to(x.dtype))
    ),
    "dropout": _dropout,
    "max_pool": _computes(lambda x: F.max_pool2d(x, 2), (4, 6, 16, 16)),
    "embedding": _computes(lambda weight: F.embedding(classes(64, 20), weight), (20, 16)),
    "lstm": _lstm,
    "attention": _computes(_attention, (2, 3, 12, 16)),
    "exp": _computes(lambda x: torch.exp(x * 8)),
    "log": _computes(torch.log, low=2**-20),
    "sin": _computes(lambda x: torch.sin(x * 16)),
    "cos": _computes(lambda x: torch.cos(x * 16)),
    "sqrt": _computes(torch.sqrt, low=2**-20),
    "rsqrt": _computes(torch.rsqrt, low=2**-20),
    "asin": _computes(lambda x: torch.asin(x * 0.875)),
    "acos": _computes(lambda x: torch.acos(x * 0.875)),
    "atan": _computes(lambda x: torch.atan(x * 8)),
    "sum": _reduces(torch.sum),
    "var": _reduces(torch.var),
    "randn": _seed(lambda g: torch.cat([torch.randn(n, generator=g, dtype=torch.float32) for n in (7, 4000)])),
    "rand": _seed(lambda g: torch.rand(4000, generator=g, dtype=torch.float32)),
    "randperm": _seed(lambda g: torch.randperm(2000, generator=g)),
    "initialization": _initialization,
    "matmul float16": _computes(torch.matmul, (33, 40), (40, 27), dtype=torch.float16),
    "autocast float16": _autocast,
    "linear float64": _computes(F.linear, (33, 65), (40, 65), (40,), dtype=torch.float64),
    "exp float64": _computes(lambda x: torch.exp(x * 8), dtype=torch.float64),
    "softmax float64": _computes(lambda x: torch.softmax(x * 8, 1), dtype=torch.float64),
    "randn float64": _seed(lambda g: torch.randn(4000, generator=g, dtype=torch.float64)),
    "clip_grad_norm_": _optimizer(torch.optim.SGD, lr=0.5, clip=True),
    "optimizer sgd": _optimizer(torch.optim.SGD, lr=0.1, weight_decay=0.01),
    "optimizer sgd momentum": _optimizer(torch.optim.SGD, lr=0.1, momentum=0.9),
    "optimizer adam fused": _optimizer(torch.optim.Adam, lr=0.01, fused=True),
    "optimizer adamw fused": _optimizer(torch.optim.AdamW, lr=0.01, fused=True),
    "optimizer adam": _optimizer(torch.optim.Adam, lr=0.01),
    "optimizer adamw": _optimizer(torch.optim.AdamW, lr=0.01),
    "optimizer rmsprop": _optimizer(torch.optim.RMSprop, lr=0.01),
    "optimizer adagrad": _optimizer(torch.optim.Adagrad, lr=0.01),
    "transformer step": _transformer,
    "recurrent step": _recurrent,
    "table step": _table,
    "python math": _python_math,
    "numpy exp": _numpy(np.exp),
    "numpy matmul": _numpy(lambda x: x @ x),
    # The recorder writes these sums over a gradient into the log.
    "numpy sums": _numpy(
        lambda x: np.array([np.add.reduce(np.abs(x.reshape(-1))), np.dot(x.reshape(-1), x.reshape(-1))])
    ),
    "numpy random": _numpy_random,
}
