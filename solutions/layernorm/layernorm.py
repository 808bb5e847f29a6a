"""Layer normalization and its gradients, derived by hand, in NumPy only."""

import numpy as np


def forward(x, gamma, beta, eps):
    """Return (out, cache); the cache is for `backward`."""
    mean = x.mean(axis=1, keepdims=True)
    centred = x - mean
    var = (centred**2).mean(axis=1, keepdims=True)
    rstd = 1 / np.sqrt(var + eps)
    xhat = centred * rstd
    return gamma * xhat + beta, (xhat, rstd, gamma)


def backward(dout, cache):
    """Return the derivatives of the loss with respect to x, gamma and beta."""
    xhat, rstd, gamma = cache
    dgamma = (dout * xhat).sum(axis=0)
    dbeta = dout.sum(axis=0)
    dxhat = dout * gamma
    along_mean = dxhat.mean(axis=1, keepdims=True)
    along_var = xhat * (dxhat * xhat).mean(axis=1, keepdims=True)
    dx = rstd * (dxhat - along_mean - along_var)
    return {"x": dx, "gamma": dgamma, "beta": dbeta}
