"""The problem `mlp` written out in NumPy, right or with any of the usual mistakes in it."""

from collections.abc import Mapping

import numpy as np

from harness.written.derivation.problem import Array

# What each mistake looks like to whoever made it, as the end of "it looks as if ...".
MISTAKES: Mapping[str, str] = {
    "loss summed": "the losses were summed and not averaged over the batch",
    "loss over entries": "the loss was averaged over all entries (B times C) and not over the samples",
    "gradient summed": "the division by the batch size were missing",
    "divided twice": "it were divided by the batch size twice",
    "no largest logit": "the softmax were taken without subtracting the largest logit first, so that exp overflows",
    "log of softmax": "the logarithm were taken of a softmax that has become 0: log softmax is a formula of its own",
    "overflow": "the softmax were taken without subtracting the largest logit first, so that exp overflows",
    "b1 missing": "b1 were not added",
    "b2 missing": "b2 were not added",
    "no one-hot": "the one-hot labels were not subtracted from the softmax",
    "other sign": "it were subtracted the other way round: labels less softmax",
    "softmax over samples": "the softmax were taken over the samples (axis 0) and not over the classes",
    "mask missing": "the backward pass of the ReLU were missing: the mask was not applied",
    "mask of the gradient": "the mask of the ReLU were made of the gradient that comes back, not of its input z1",
    "mask without bias": "the mask of the ReLU were made of x @ W1 without the bias",
    "mask inverted": "the mask of the ReLU let through what was below 0",
    "mask at zero": "the ReLU had the derivative 1 at exactly 0",
    "mask of the output": "the mask of the ReLU were applied to h and not to the gradient",
    "W2 from z1": "the gradient of W2 were made with z1, and not with h, what came out of the ReLU",
    "product transposed": "the product of the two matrices were transposed: its factors are in the wrong order",
    "W2 not transposed": "the gradient were sent back through W2 where its transpose belongs",
    "W1 not transposed": "the gradient were sent back through W1 where its transpose belongs",
    "bias not summed": "the gradient of the bias were not summed over the samples",
    "bias averaged": "the gradient of the bias were averaged over the samples, and not summed",
    "bias of one row": "the gradient of the bias kept the dimension of the batch (keepdims), or had one added",
}


def mlp(given: Mapping[str, Array], wrong: frozenset[str] = frozenset()) -> dict[str, Array]:
    """Return the outputs with these mistakes in them. Raises `ValueError` where shapes do not allow a mistake."""
    x, y, second = given["x"], given["y"], given["W2"]
    rows, batch = np.arange(len(y)), len(y)
    z1 = x @ given["W1"] + (0 if "b1 missing" in wrong else given["b1"])
    h = np.maximum(z1, 0)
    logits = h @ second + (0 if "b2 missing" in wrong else given["b2"])
    axis = 0 if "softmax over samples" in wrong else 1
    shifted = logits - logits.max(axis=axis, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))
    if "no largest logit" in wrong:
        logs = logits - np.log(np.exp(logits).sum(axis=axis, keepdims=True))
    if "overflow" in wrong:
        logs = np.log(np.exp(logits) / np.exp(logits).sum(axis=axis, keepdims=True))
    if "log of softmax" in wrong:
        logs = np.log(np.exp(shifted) / np.exp(shifted).sum(axis=axis, keepdims=True))
    losses = -logs[rows, y]
    loss = losses.sum() if "loss summed" in wrong else losses.mean()
    if "loss over entries" in wrong:
        loss = losses.sum() / logits.size
    d = np.exp(logs)
    if "no one-hot" not in wrong:
        d[rows, y] -= 1
    d *= -1 if "other sign" in wrong else 1
    d *= batch ** -(1.0 + ("divided twice" in wrong) - ("gradient summed" in wrong))
    dh = d @ (second if "W2 not transposed" in wrong else second.T)
    dz1 = _through_relu(dh, x @ given["W1"], z1, h, wrong)
    dx = dz1 @ (given["W1"] if "W1 not transposed" in wrong else given["W1"].T)
    gradients = {
        "dW1": x.T @ dz1,
        "db1": _summed(dz1, wrong),
        "dW2": (z1 if "W2 from z1" in wrong else h).T @ d,
        "db2": _summed(d, wrong),
        "dx": dx,
    }
    if "product transposed" in wrong:
        gradients |= {name: gradients[name].T for name in ("dW1", "dW2", "dx")}
    return {"logits": logits, "loss": np.asarray(loss), **gradients}


def _through_relu(dh: Array, without_bias: Array, z1: Array, h: Array, wrong: frozenset[str]) -> Array:
    mask = z1 > 0
    if "mask missing" in wrong:
        mask = np.ones_like(mask)
    if "mask of the gradient" in wrong:
        mask = dh > 0
    if "mask without bias" in wrong:
        mask = without_bias > 0
    if "mask inverted" in wrong:
        mask = z1 < 0
    if "mask at zero" in wrong:
        mask = z1 >= 0
    masked: Array = (h if "mask of the output" in wrong else dh) * mask
    return masked


def _summed(d: Array, wrong: frozenset[str]) -> Array:
    if "bias not summed" in wrong:
        return d
    found: Array = d.mean(axis=0) if "bias averaged" in wrong else d.sum(axis=0)
    return found[None, :] if "bias of one row" in wrong else found
