"""A classifier with two layers and its gradients, derived by hand, in NumPy only."""

import numpy as np


def forward(params, x):
    """Return (logits, cache); the cache is for `backward`."""
    z1 = x @ params["W1"] + params["b1"]
    h = np.maximum(z1, 0)
    logits = h @ params["W2"] + params["b2"]
    return logits, (x, z1, h, logits)


def log_softmax(logits):
    """Return the log-softmax along the last axis. The largest logit is subtracted first, so that nothing overflows."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def loss(logits, y):
    """Return the mean cross-entropy over the batch."""
    return -log_softmax(logits)[np.arange(len(y)), y].mean()


def backward(params, cache, y):
    """Return the derivatives of the loss with respect to each parameter and x."""
    x, z1, h, logits = cache
    dlogits = np.exp(log_softmax(logits))
    dlogits[np.arange(len(y)), y] -= 1
    dlogits /= len(y)
    dW2 = h.T @ dlogits
    db2 = dlogits.sum(axis=0)
    dh = dlogits @ params["W2"].T
    dz1 = dh * (z1 > 0)
    dW1 = x.T @ dz1
    db1 = dz1.sum(axis=0)
    dx = dz1 @ params["W1"].T
    return {"W1": dW1, "b1": db1, "W2": dW2, "b2": db2, "x": dx}
