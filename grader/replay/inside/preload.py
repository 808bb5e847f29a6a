"""Import, read and compute what all runs of the other scripts need, in the process that forks for each of them."""

import importlib

import numpy as np  # noqa: F401
import torch

import harness.checks
import harness.checks.core.subject
import harness.data.loading
import harness.doctor.golden
import harness.recipe
import harness.run.evaluation
import harness.run.experiment
import harness.run.settings
import harness.trainer
from harness.canonical_setup import apply_numerics
from harness.data import EMBEDDED
from harness.run.provenance import platform_class

# The checks that a replay may make.
for _name in harness.checks.check_names():
    importlib.import_module(f"harness.checks.{_name}")

# The first optimizer imports torch's compiler.
torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)

for _name in EMBEDDED:
    harness.data.loading.load_dataset(_name)

apply_numerics("portable")
platform_class("portable", "cpu")
