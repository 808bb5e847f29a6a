"""The problem `layernorm` written out in NumPy, right or with any of the usual mistakes in it."""

from collections.abc import Mapping

import numpy as np

from harness.written.derivation.problem import Array

# As the end of "it looks as if ...".
MISTAKES: Mapping[str, str] = {
    "over samples": "mean and variance were taken over the samples (axis 0), as batch normalization does",
    "one pass": "the variance were the mean of the squares less the square of the mean, which loses its digits",
    "unbiased": "the variance were divided by D - 1 and not by D",
    "unbiased term": "the term of the variance were divided by D - 1 and not by D",
    "eps outside": "eps were added outside of the root",
    "eps outside, derived": "eps were added outside of the root",
    "no eps": "eps were left out",
    "gamma left out": "gamma were left out on the way back",
    "mean term missing": "the term that comes back through the mean were missing",
    "variance term missing": "the term that comes back through the variance were missing",
    "statistics constant": "mean and variance were taken for constants: both of their terms are missing",
    "terms summed": "the terms of mean and variance were sums where means over the D features belong",
    "scale missing": "the division by the standard deviation were missing",
    "gamma from x": "the gradient of gamma were made with x and not with the normalized x",
    "gamma from centred": "the gradient of gamma were made with x - mean, not divided by the standard deviation",
    "averaged": "it were averaged over the samples, and not summed",
    "not summed": "it were not summed over the samples",
    "of one row": "it kept the dimension of the batch (keepdims)",
    "beta not added": "beta were not added",
    "gamma after beta": "gamma were multiplied with beta as well",
}


def layernorm(given: Mapping[str, Array], wrong: frozenset[str] = frozenset()) -> dict[str, Array]:
    """Return the outputs with these mistakes in them."""
    x, gamma, beta, dout, eps = given["x"], given["gamma"], given["beta"], given["dout"], float(given["eps"])
    axis = 0 if "over samples" in wrong else 1
    count = x.shape[axis]
    centred = x - x.mean(axis=axis, keepdims=True)
    var = (centred**2).mean(axis=axis, keepdims=True)
    if "one pass" in wrong:
        var = (x**2).mean(axis=axis, keepdims=True) - x.mean(axis=axis, keepdims=True) ** 2
    if "unbiased" in wrong:
        if count == 1:
            raise ValueError("one value has no unbiased variance")
        var = var * count / (count - 1)
    std = np.sqrt(var + eps)
    if wrong & {"eps outside", "eps outside, derived"}:
        std = np.sqrt(var) + eps
    if "no eps" in wrong:
        std = np.sqrt(var)
    xhat = centred / std
    out = gamma * xhat + (0 if "beta not added" in wrong else beta)
    if "gamma after beta" in wrong:
        out = gamma * (xhat + beta)
    dxhat = dout if "gamma left out" in wrong else dout * gamma
    scale = 1.0 if "terms summed" in wrong else 1 / count
    of_mean = scale * dxhat.sum(axis=axis, keepdims=True)
    of_var = xhat * scale * (dxhat * xhat).sum(axis=axis, keepdims=True)
    if "unbiased term" in wrong:
        of_var = of_var * count / max(count - 1, 1)
    if "eps outside, derived" in wrong:
        of_var = of_var * std / np.sqrt(var)
    if wrong & {"mean term missing", "statistics constant"}:
        of_mean = np.zeros_like(of_mean)
    if wrong & {"variance term missing", "statistics constant"}:
        of_var = np.zeros_like(of_var)
    dx = (dxhat - of_mean - of_var) / (1.0 if "scale missing" in wrong else std)
    factor = xhat
    if "gamma from x" in wrong:
        factor = x
    if "gamma from centred" in wrong:
        factor = centred
    return {"out": out, "dx": dx, "dgamma": _summed(dout * factor, wrong), "dbeta": _summed(dout, wrong)}


def _summed(d: Array, wrong: frozenset[str]) -> Array:
    if "not summed" in wrong:
        return d
    found: Array = d.mean(axis=0) if "averaged" in wrong else d.sum(axis=0)
    return found[None, :] if "of one row" in wrong else found
