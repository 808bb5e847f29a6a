"""Imports what the other scripts here import, for a process that forks for each of them."""

import numpy as np  # noqa: F401
import torch

import harness.canonical_setup
import harness.checks.probes
import harness.data.loading
import harness.doctor.golden
import harness.recipe
import harness.run.evaluation
import harness.run.experiment
import harness.run.settings
import harness.trainer  # noqa: F401

# The first one that is made imports torch's compiler.
torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
