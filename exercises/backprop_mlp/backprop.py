"""A classifier of two layers and its gradients, derived by hand, in NumPy only.

B samples, D features, H hidden units, C classes. All arrays are float64, except the labels.

    z1     = x @ W1 + b1              (B, H)
    h      = max(z1, 0)               (B, H)
    logits = h @ W2 + b2              (B, C)
    loss   = mean over the batch of -log softmax(logits)[y]
"""

import numpy as np


def forward(params, x):
    """Return (logits, cache).

    params: {"W1": (D, H), "b1": (H,), "W2": (H, C), "b2": (C,)}
    x:      (B, D)
    logits: (B, C)
    cache:  whatever backward needs; nothing else reads it
    """
    raise NotImplementedError


def loss(logits, y):
    """Return the mean cross-entropy over the batch, one number.

    logits: (B, C), which may be as large as 10,000 in either direction
    y:      (B,), integers from 0 to C - 1
    """
    raise NotImplementedError


def backward(params, cache, y):
    """Return the derivative of the loss by each parameter and by x.

    params: the same as in forward
    cache:  as forward returned it
    y:      (B,)
    returns {"W1": (D, H), "b1": (H,), "W2": (H, C), "b2": (C,), "x": (B, D)}
    """
    raise NotImplementedError
