"""One step of AdamW, in NumPy only."""

import numpy as np

DERIVATION = """
Written out, m_t is the sum over i of (1 - beta1) * beta1^(t - i) * g_i. If all gradients have the same mean, E[m_t] is
this mean times (1 - beta1) * (1 + beta1 + ... + beta1^(t-1)) = 1 - beta1^t. So m_t / (1 - beta1^t) has the right mean.
The same holds for v with beta2 and the squares.
"""


def init(p):
    """Return the state before the first step."""
    return np.zeros_like(p), np.zeros_like(p)


def step(p, g, m, v, t, lr, beta1, beta2, eps, weight_decay, decays):
    """Return (p, m, v) after a step."""
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    m_hat = m / (1 - beta1**t)
    v_hat = v / (1 - beta2**t)
    decay = lr * weight_decay * np.where(decays, p, 0)
    return p - decay - lr * m_hat / (np.sqrt(v_hat) + eps), m, v


def check(g, lr, beta1, beta2, eps, steps):
    """Return the update of each step with a constant gradient."""
    p = np.zeros_like(g)
    m, v = init(p)
    updates = []
    for t in range(1, steps + 1):
        after, m, v = step(p, g, m, v, t, lr, beta1, beta2, eps, 0.0, np.zeros(p.shape, dtype=bool))
        updates.append(p - after)
        p = after
    return np.array(updates)
