"""One step of AdamW, in NumPy only. All arrays are float64 and have the shape of the parameter.

m = beta1 * m + (1 - beta1) * g             the mean of the gradients
v = beta2 * v + (1 - beta2) * g * g         the mean of their squares
m and v begin at 0, so both are too small in the first steps: correct this bias
p = p - lr * m / (sqrt(v) + eps)            with the corrected m and v
p = p - lr * weight_decay * p               decoupled: with the parameter from before the step, where `decays` is True
"""

import numpy as np

# Write here why m and v need a correction, and which factor the expected value of m has after t steps. Your instructor
# reads it.
DERIVATION = ""


def init(p):
    """Return the state before the first step, (m, v)."""
    raise NotImplementedError


def step(p, g, m, v, t, lr, beta1, beta2, eps, weight_decay, decays):
    """Return (p, m, v) after a step, without changing the arguments.

    p:      the parameter
    g:      its gradient
    m, v:   the state before the step
    t:      the number of this step; the first step is 1
    decays: True for the entries that weight decay makes smaller
    """
    raise NotImplementedError


def check(g, lr, beta1, beta2, eps, steps):
    """Make several steps with a constant gradient, without weight decay, from p = 0. Return the update of each step.

    returns an array with the shape (steps, *g.shape): p before the step minus p after it
    """
    raise NotImplementedError
