"""Import modules and read data that all runs need. This script runs once, in the process that forks for each run."""

import importlib

import numpy as np  # noqa: F401
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import harness.behaviour.measure
import harness.checks
import harness.checks.core.subject
import harness.data.folder
import harness.data.loading
import harness.doctor.golden
import harness.recipes.recipe
import harness.run.evaluation
import harness.run.experiment
import harness.run.settings
import harness.run.training
import harness.scripts.run
from harness.canonical_setup import canonical_setup
from harness.checks.core.of_scripts import load_library
from harness.data import DATASETS, EMBEDDED
from harness.run.provenance import platform_class

# Import the checks that a replay may run.
for _name in harness.checks.check_names():
    importlib.import_module(f"harness.checks.{_name}")

load_library()

for _name in EMBEDDED:
    if DATASETS[_name].kind != "files":
        harness.data.loading.load_dataset(_name)

canonical_setup(0, numerics="portable")
# Train briefly, so that Python and torch do their initialization here and not in each run.
_model = nn.Linear(784, 10)
_optimizer = torch.optim.SGD(_model.parameters(), lr=0.1)
for _inputs, _labels in DataLoader(TensorDataset(torch.rand(320, 784), torch.arange(320) % 10), batch_size=64):
    _optimizer.zero_grad()
    functional.cross_entropy(_model(_inputs), _labels).backward()
    _optimizer.step()
platform_class("portable", "cpu")
