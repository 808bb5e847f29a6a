"""Cross-entropy and the divergence of a distillation, with their gradients, derived by hand, in NumPy only.

B samples, C classes. All arrays are float64, except the labels. Only the samples where `valid` is True count; n is
their number.

    cross_entropy = mean over the n samples of -log softmax(logits)[y]
    p = softmax(teacher / T), q = softmax(student / T)      (B, C)
    divergence = T^2 * mean over the n samples of KL(p || q) = sum over the classes of p * (log p - log q)
"""

import numpy as np

# Write here how you derive the two gradients, and why the divergence is multiplied by T^2. Your instructor reads it.
DERIVATION = ""


def shapes(B, C):
    """Return the shapes of arrays as tuples of integers; () is the shape of one number.

    returns {"loss": ..., "p": ..., "logits": ..., "student": ...}, the last two for the gradients
    """
    raise NotImplementedError


def cross_entropy(logits, y, valid):
    """Return (loss, derivative of the loss by the logits).

    logits: (B, C), which may be as large as 10,000 in either direction
    y:      (B,), integers from 0 to C - 1, with any value where `valid` is False
    valid:  (B,), True for at least one sample
    """
    raise NotImplementedError


def divergence(teacher, student, T, valid):
    """Return (divergence, derivative of the divergence by `student`).

    teacher, student: (B, C), logits, which may be as large as 10,000 in either direction
    T:                the temperature, a positive number
    valid:            (B,)
    """
    raise NotImplementedError


def check(logits, y, valid, gradient):
    """Return the largest difference between a gradient of cross_entropy and central differences.

    gradient: (B, C), perhaps wrong
    returns a number, relative to the largest entry: below 1e-6 for the right gradient, and above 0.1 for a gradient
    that has nothing to do with it
    """
    raise NotImplementedError
