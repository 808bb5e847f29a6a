"""One small, fixed computation for each operation and optimizer that a recipe may use."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from harness.doctor.golden_kernels import (
    Operation,
    attention,
    autocast,
    batch_norm,
    classes,
    dropout,
    embedding,
    float32,
    float64,
    kaiming,
    low_precision,
    numpy,
    numpy_random,
    pointwise,
    python_math,
    python_random,
    recurrent,
    reduction,
    seeded,
    train,
    transformer,
)

# Known to differ between processors even in portable numerics: MKL's vector library starts these from the
# processor's approximate reciprocal square root, and optimizers that are not fused call that square root.
DIFFERS = frozenset(
    {
        "sqrt",
        "asin",
        "acos",
        "atan",
        "optimizer adam",
        "optimizer adamw",
        "optimizer rmsprop",
        "optimizer adagrad",
    }
)

# One or more for each setting that portable numerics make, each of which notices when its setting is missing.
SENTINELS = (
    "linear", "conv2d", "conv2d nnpack", "exp", "softmax", "gelu", "sum", "softmax float64", "python math",
    "numpy exp", "numpy matmul",
)  # fmt: skip

OPERATIONS: dict[str, Operation] = {
    "linear": float32(F.linear, (33, 65), (40, 65), (40,)),
    "matmul": float32(torch.matmul, (64, 130), (130, 47)),
    "matmul batched": float32(torch.matmul, (5, 17, 31), (5, 31, 13)),
    "conv2d": float32(lambda x, w, b: F.conv2d(x, w, b, padding=1), (4, 3, 16, 16), (8, 3, 3, 3), (8,)),
    # NNPACK takes over from a batch of 16 on.
    "conv2d nnpack": float32(lambda x, w, b: F.conv2d(x, w, b, padding=1), (16, 3, 8, 8), (6, 3, 3, 3), (6,)),
    "conv1d": float32(lambda x, w: F.conv1d(x, w, padding=2), (4, 5, 33), (7, 5, 5)),
    "conv2d strided": float32(lambda x, w: F.conv2d(x, w, stride=2), (2, 8, 15, 15), (12, 8, 5, 5)),
    "batch norm": float32(batch_norm, (8, 6, 9, 9), (6,), (6,)),
    "layer norm": float32(lambda x, w, b: F.layer_norm(x, (65,), w, b), (33, 65), (65,), (65,)),
    "group norm": float32(lambda x, w, b: F.group_norm(x, 3, w, b), (4, 6, 9, 9), (6,), (6,)),
    "relu": pointwise(F.relu),
    "elu": pointwise(F.elu, scale=4),
    "gelu": pointwise(F.gelu, scale=4),
    "gelu tanh": pointwise(lambda x: F.gelu(x, approximate="tanh"), scale=4),
    "silu": pointwise(F.silu, scale=8),
    "tanh": pointwise(torch.tanh, scale=4),
    "sigmoid": pointwise(torch.sigmoid, scale=8),
    "softplus": pointwise(F.softplus, scale=8),
    "softmax": pointwise(lambda x: torch.softmax(x, 1), scale=8),
    "log_softmax": pointwise(lambda x: torch.log_softmax(x, 1), scale=8),
    "cross_entropy": pointwise(lambda x: F.cross_entropy(x, classes(64, 65)), scale=8),
    "mse": float32(F.mse_loss, (64, 65), (64, 65)),
    "l1": float32(F.l1_loss, (64, 65), (64, 65)),
    "smooth_l1": float32(lambda x, y: F.smooth_l1_loss(x * 2, y), (64, 65), (64, 65)),
    "binary_cross_entropy": pointwise(
        lambda x: F.binary_cross_entropy_with_logits(x, (x.detach() > 1).to(x.dtype)), scale=8
    ),
    "dropout": dropout,
    "max_pool": float32(lambda x: F.max_pool2d(x, 2), (4, 6, 16, 16)),
    "avg_pool": float32(lambda x: F.avg_pool2d(x, 3) + F.adaptive_avg_pool2d(x, 5), (4, 6, 15, 15)),
    "embedding": float32(embedding, (20, 16)),
    "lstm": recurrent(nn.LSTM),
    "gru": recurrent(nn.GRU),
    "attention": float32(attention, (2, 3, 12, 16)),
    "transformer layer": transformer,
    "exp": pointwise(torch.exp, scale=8),
    "log": pointwise(torch.log, low=2**-20),
    "sin": pointwise(torch.sin, scale=16),
    "cos": pointwise(torch.cos, scale=16),
    "erf": pointwise(torch.erf, scale=3),
    "pow": pointwise(lambda x: x**0.7, low=2**-20),
    "rsqrt": pointwise(torch.rsqrt, low=2**-20),
    "sqrt": pointwise(torch.sqrt, low=2**-20),
    "asin": pointwise(torch.asin, scale=0.875),
    "acos": pointwise(torch.acos, scale=0.875),
    "atan": pointwise(torch.atan, scale=8),
    "sum": reduction(torch.sum),
    "mean": reduction(torch.mean),
    "var": reduction(torch.var),
    "std": reduction(torch.std),
    "vector_norm": reduction(torch.linalg.vector_norm),
    "cumsum": pointwise(lambda x: x.cumsum(1)),
    "quantile": pointwise(lambda x: torch.quantile(x, 0.3, dim=1)),
    "randn": seeded(
        lambda g: torch.cat([torch.randn(n, generator=g, dtype=torch.float32) for n in (7, 4000)])
    ),
    "rand": seeded(lambda g: torch.rand(4000, generator=g, dtype=torch.float32)),
    "randint": seeded(lambda g: torch.randint(0, 1000, (1000,), generator=g)),
    "randperm": seeded(lambda g: torch.randperm(2000, generator=g)),
    "bernoulli": seeded(lambda g: torch.empty(4000, dtype=torch.float32).bernoulli_(0.3, generator=g)),
    "initialization": kaiming,
    "matmul float16": low_precision(torch.float16),
    "matmul bfloat16": low_precision(torch.bfloat16),
    "autocast float16": autocast(torch.float16),
    "autocast bfloat16": autocast(torch.bfloat16),
    "linear float64": float64(F.linear, (33, 65), (40, 65), (40,)),
    "conv2d float64": float64(lambda x, w: F.conv2d(x, w, padding=1), (4, 3, 16, 16), (8, 3, 3, 3)),
    "batch norm float64": float64(batch_norm, (8, 6, 9, 9), (6,), (6,)),
    "layer norm float64": float64(lambda x: F.layer_norm(x, (65,)), (33, 65)),
    "gelu float64": float64(lambda x: F.gelu(x * 4), (64, 65)),
    "tanh float64": float64(lambda x: torch.tanh(x * 4), (64, 65)),
    "sigmoid float64": float64(lambda x: torch.sigmoid(x * 8), (64, 65)),
    "softmax float64": float64(lambda x: torch.softmax(x * 8, 1), (64, 65)),
    "cross_entropy float64": float64(lambda x: F.cross_entropy(x * 8, classes(64, 65)), (64, 65)),
    "exp float64": float64(lambda x: torch.exp(x * 8), (64, 65)),
    "log float64": float64(torch.log, (64, 65), low=2**-20),
    "sin float64": float64(lambda x: torch.sin(x * 16), (64, 65)),
    "cos float64": float64(lambda x: torch.cos(x * 16), (64, 65)),
    "sum float64": reduction(torch.sum, torch.float64),
    "var float64": reduction(torch.var, torch.float64),
    "randn float64": seeded(lambda g: torch.randn(4000, generator=g, dtype=torch.float64)),
    "clip_grad_norm_": train(lambda p: torch.optim.SGD(p, lr=0.5), clip=True),
    "optimizer sgd": train(lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.01)),
    "optimizer sgd momentum": train(lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)),
    "optimizer sgd nesterov": train(lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True)),
    "optimizer sgd fused": train(lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, fused=True)),
    "optimizer adam fused": train(lambda p: torch.optim.Adam(p, lr=0.01, fused=True)),
    "optimizer adamw fused": train(lambda p: torch.optim.AdamW(p, lr=0.01, fused=True)),
    "optimizer adagrad fused": train(lambda p: torch.optim.Adagrad(p, lr=0.01, fused=True)),
    "optimizer adam": train(lambda p: torch.optim.Adam(p, lr=0.01)),
    "optimizer adamw": train(lambda p: torch.optim.AdamW(p, lr=0.01)),
    "optimizer rmsprop": train(lambda p: torch.optim.RMSprop(p, lr=0.01)),
    "optimizer adagrad": train(lambda p: torch.optim.Adagrad(p, lr=0.01)),
    "python math": python_math,
    "python random": python_random,
    "numpy exp": numpy(np.exp),
    "numpy log": numpy(np.log, low=2**-20),
    "numpy matmul": numpy(lambda x: x @ x),
    "numpy mean": numpy(
        lambda x: np.concatenate([(x * x * x).mean(0), (x * x * x).std(1), (x * x * x).sum(keepdims=True)[0]])
    ),
    # What harness.run.scalars makes of a gradient for the log.
    "numpy sums": numpy(
        lambda x: np.array([np.add.reduce(np.abs(x.reshape(-1))), np.dot(x.reshape(-1), x.reshape(-1))])
    ),
    "numpy random": numpy_random,
}
