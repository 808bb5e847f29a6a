"""Cross-entropy and the divergence of a distillation, with their gradients, derived by hand, in NumPy only."""

import numpy as np

DERIVATION = """
-log softmax(z)[y] = log sum exp(z) - z[y]. The derivative by z[c] is softmax(z)[c] - 1 if c is y, else softmax(z)[c].
The mean over n samples divides it by n; a sample that is not valid has the gradient 0.
In KL(p || q), only -sum p log q depends on the student. With q = softmax(s / T), its derivative by s is (q - p) / T,
because the p sum to 1. For large T, q - p shrinks like 1 / T as well: T^2 keeps the size of the gradient.
"""


def shapes(B, C):
    """Return the shapes of the arrays."""
    return {"loss": (), "p": (B, C), "logits": (B, C), "student": (B, C)}


def log_softmax(logits):
    """Return the log-softmax along the last axis."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def cross_entropy(logits, y, valid):
    """Return (loss, derivative of the loss with respect to the logits)."""
    n = valid.sum()
    rows = np.arange(len(y))
    labels = np.where(valid, y, 0)
    logp = log_softmax(logits)
    loss = -np.where(valid, logp[rows, labels], 0).sum() / n
    dlogits = np.exp(logp)
    dlogits[rows, labels] -= 1
    return loss, np.where(valid[:, None], dlogits, 0) / n


def divergence(teacher, student, T, valid):
    """Return (divergence, derivative of the divergence with respect to the student)."""
    n = valid.sum()
    logp, logq = log_softmax(teacher / T), log_softmax(student / T)
    p, q = np.exp(logp), np.exp(logq)
    rows = (p * (logp - logq)).sum(axis=1)
    return T**2 * np.where(valid, rows, 0).sum() / n, T * np.where(valid[:, None], q - p, 0) / n


def check(logits, y, valid, gradient):
    """Return the relative difference between a gradient of cross_entropy and central differences."""
    measured = np.zeros_like(logits)
    for place in np.ndindex(logits.shape):
        step = np.zeros_like(logits)
        step[place] = 1e-5
        rise = cross_entropy(logits + step, y, valid)[0] - cross_entropy(logits - step, y, valid)[0]
        measured[place] = rise / 2e-5
    return np.abs(gradient - measured).max() / max(np.abs(gradient).max(), np.abs(measured).max())
