"""Attention of one head and its gradients, derived by hand, in NumPy only."""

import numpy as np

DERIVATION = """
out = P v, so dv = P^T dout and dP = dout v^T.
P is the softmax of each row of the scores. Its Jacobian for one row is diag(p) - p p^T. So
dscores = P * (dP - sum over the keys of P * dP). A hidden key has p = 0, so its dscores is 0 as well.
scores = q k^T / sqrt(D), so dq = dscores k / sqrt(D) and dk = dscores^T q / sqrt(D).
"""


def shapes(B, T, S, D, E):
    """Return the shapes of the arrays."""
    scores = (B, T, S)
    return {"scores": scores, "weights": scores, "out": (B, T, E), "q": (B, T, D), "k": (B, S, D), "v": (B, S, E)}


def forward(q, k, v, hidden):
    """Return (out, weights, cache); the cache is for `backward`."""
    scale = 1 / np.sqrt(q.shape[-1])
    scores = q @ k.swapaxes(1, 2) * scale
    scores = np.where(hidden, -np.inf, scores)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return weights @ v, weights, (q, k, v, weights, scale)


def backward(dout, cache):
    """Return the derivatives of the loss with respect to the scores, q, k and v."""
    q, k, v, weights, scale = cache
    dv = weights.swapaxes(1, 2) @ dout
    dweights = dout @ v.swapaxes(1, 2)
    dscores = weights * (dweights - (weights * dweights).sum(axis=-1, keepdims=True))
    dq = dscores @ k * scale
    dk = dscores.swapaxes(1, 2) @ q * scale
    return {"scores": dscores, "q": dq, "k": dk, "v": dv}


def check(q, k, v, hidden, dout, gradient):
    """Return the relative difference between a gradient of q and central differences."""
    measured = np.zeros_like(q)
    for place in np.ndindex(q.shape):
        step = np.zeros_like(q)
        step[place] = 1e-5
        rise = forward(q + step, k, v, hidden)[0] - forward(q - step, k, v, hidden)[0]
        measured[place] = (dout * rise).sum() / 2e-5
    return np.abs(gradient - measured).max() / max(np.abs(gradient).max(), np.abs(measured).max())
