"""Layer normalization and its gradients, derived by hand, in NumPy only.

B samples, D features. All arrays are float64. For each sample, over its D features:

    mean = the mean of x              (B, 1)
    var  = the mean of (x - mean)^2   (B, 1)
    out  = gamma * (x - mean) / sqrt(var + eps) + beta
"""

import numpy as np


def forward(x, gamma, beta, eps):
    """Return (out, cache).

    x:     (B, D)
    gamma: (D,)
    beta:  (D,)
    eps:   a small positive number
    out:   (B, D)
    cache: whatever backward needs; nothing else reads it
    """
    raise NotImplementedError


def backward(dout, cache):
    """Return the derivative of a loss by x, gamma and beta, given its derivative by out.

    dout:  (B, D), the derivative of the loss by out
    cache: as forward returned it
    returns {"x": (B, D), "gamma": (D,), "beta": (D,)}
    """
    raise NotImplementedError
