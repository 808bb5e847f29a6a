"""Batch normalization with padding, and its gradients, derived by hand, in NumPy only.

N rows, D features. All arrays are float64. Only the rows where `valid` is True are examples; n is their number. For
each feature, over the valid rows:

    mean = the mean of x              (D,)
    var  = the mean of (x - mean)^2   (D,)
    out  = gamma * (x - mean) / sqrt(var + eps) + beta      for valid rows, and 0 for all others
"""

import numpy as np

# Write here how you derive the gradient of x: x is in the numerator, in the mean and in the variance. Your instructor
# reads it.
DERIVATION = ""


def shapes(N, D):
    """Return the shapes of arrays as tuples of integers.

    returns {"mean": ..., "out": ..., "x": ..., "gamma": ..., "beta": ...}, the last three for the gradients
    """
    raise NotImplementedError


def forward(x, gamma, beta, eps, valid):
    """Return (out, cache).

    x:     (N, D)
    gamma: (D,)
    beta:  (D,)
    eps:   a small positive number
    valid: (N,), True for at least two rows
    out:   (N, D)
    cache: whatever backward needs; nothing else reads it
    """
    raise NotImplementedError


def running(running_mean, running_var, x, valid, momentum):
    """Return the running statistics after this batch, (mean, var), as PyTorch does.

    The new value is (1 - momentum) * old + momentum * batch. The variance of the batch is unbiased here: divide by
    n - 1.

    running_mean, running_var: (D,)
    """
    raise NotImplementedError


def backward(dout, cache):
    """Return the derivative of a loss by x, gamma and beta, given its derivative by out.

    dout:  (N, D), the derivative of the loss by out; rows that are not valid do not count
    cache: as forward returned it
    returns {"x": (N, D), "gamma": (D,), "beta": (D,)}
    """
    raise NotImplementedError


def check(x, gamma, beta, eps, valid, dout, gradient):
    """Return the largest difference between a gradient of x and central differences, relative to its largest entry.

    gradient: (N, D), perhaps wrong
    returns a number: below 1e-6 for the right gradient, and above 0.1 for a gradient that has nothing to do with it
    """
    raise NotImplementedError
