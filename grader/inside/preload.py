"""Imports what the other scripts here import, for a process that forks for each of them."""

import numpy as np  # noqa: F401
import torch

import harness.data.loading
import harness.evaluation
import harness.golden
import harness.load_experiment
import harness.numerics
import harness.probes
import harness.recipe
import harness.settings
import harness.trainer  # noqa: F401

# The first one that is made imports torch's compiler.
torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
