"""Batch normalization with padding, and its gradients, derived by hand, in NumPy only."""

import numpy as np

DERIVATION = """
xhat = (x - mean) * rstd. The gradient of xhat is dout * gamma, and 0 for padding.
Through the numerator: rstd * dxhat. Through the mean, which every valid row changes by 1 / n: minus the mean of this
over the valid rows. Through the variance: d rstd / d x_i = -rstd^2 * xhat_i / n, so minus rstd * xhat * mean(dxhat *
xhat). The mean inside the variance adds nothing, because the deviations sum to 0.
"""


def shapes(N, D):
    """Return the shapes of the arrays."""
    return {"mean": (D,), "out": (N, D), "x": (N, D), "gamma": (D,), "beta": (D,)}


def forward(x, gamma, beta, eps, valid):
    """Return (out, cache); the cache is for `backward`."""
    rows, n = valid[:, None], valid.sum()
    mean = np.where(rows, x, 0).sum(axis=0) / n
    centred = np.where(rows, x - mean, 0)
    var = (centred**2).sum(axis=0) / n
    rstd = 1 / np.sqrt(var + eps)
    xhat = centred * rstd
    return np.where(rows, gamma * xhat + beta, 0), (xhat, rstd, gamma, rows, n)


def running(running_mean, running_var, x, valid, momentum):
    """Return the running statistics after this batch."""
    rows = x[valid]
    mean = (1 - momentum) * running_mean + momentum * rows.mean(axis=0)
    var = (1 - momentum) * running_var + momentum * rows.var(axis=0, ddof=1)
    return mean, var


def backward(dout, cache):
    """Return the derivatives of the loss with respect to x, gamma and beta."""
    xhat, rstd, gamma, rows, n = cache
    dout = np.where(rows, dout, 0)
    dgamma = (dout * xhat).sum(axis=0)
    dbeta = dout.sum(axis=0)
    dxhat = dout * gamma
    along_mean = dxhat.sum(axis=0) / n
    along_var = xhat * ((dxhat * xhat).sum(axis=0) / n)
    dx = np.where(rows, rstd * (dxhat - along_mean - along_var), 0)
    return {"x": dx, "gamma": dgamma, "beta": dbeta}


def check(x, gamma, beta, eps, valid, dout, gradient):
    """Return the relative difference between a gradient of x and central differences."""
    measured = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = 1e-5
        rise = forward(x + step, gamma, beta, eps, valid)[0] - forward(x - step, gamma, beta, eps, valid)[0]
        measured[place] = (dout * rise).sum() / 2e-5
    return np.abs(gradient - measured).max() / max(np.abs(gradient).max(), np.abs(measured).max())
