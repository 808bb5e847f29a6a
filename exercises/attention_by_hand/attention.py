"""Attention of one head and its gradients, derived by hand, in NumPy only.

B sequences, T queries, S keys, D features of queries and keys, E features of values. All arrays are float64.

    scores  = q @ k^T / sqrt(D)                             (B, T, S)
    weights = softmax of the scores over the S keys         (B, T, S)
    out     = weights @ v                                   (B, T, E)

`hidden` is True where a query may not see a key. A hidden key has a weight of exactly 0.
"""

import numpy as np

# Write here how you derive the gradients of the scores and of q, k and v. Your instructor reads it.
DERIVATION = ""


def shapes(B, T, S, D, E):
    """Return the shapes of arrays as tuples of integers.

    returns {"scores": ..., "weights": ..., "out": ..., "q": ..., "k": ..., "v": ...}, the last three for the gradients
    """
    raise NotImplementedError


def forward(q, k, v, hidden):
    """Return (out, weights, cache).

    q:       (B, T, D)
    k:       (B, S, D)
    v:       (B, S, E)
    hidden:  (T, S), True where a query may not see a key; each query sees at least one key
    out:     (B, T, E)
    weights: (B, T, S)
    cache:   whatever backward needs; nothing else reads it
    """
    raise NotImplementedError


def backward(dout, cache):
    """Return the derivative of a loss by the scores, q, k and v, given its derivative by out.

    dout:  (B, T, E), the derivative of the loss by out
    cache: as forward returned it
    returns {"scores": (B, T, S), "q": (B, T, D), "k": (B, S, D), "v": (B, S, E)}; "scores" is the derivative by the
    scores as they enter the softmax
    """
    raise NotImplementedError


def check(q, k, v, hidden, dout, gradient):
    """Return the largest difference between a gradient of q and central differences, relative to its largest entry.

    gradient: (B, T, D), perhaps wrong
    returns a number: below 1e-6 for the right gradient, and above 0.1 for a gradient that has nothing to do with it
    """
    raise NotImplementedError
