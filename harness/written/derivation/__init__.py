"""Derivations: what a student's forward and backward pass must take and return, and how it is called and counted."""

from collections.abc import Mapping

from harness.written.derivation.layernorm import LAYERNORM
from harness.written.derivation.mlp import MLP
from harness.written.derivation.problem import Problem

# By the `problem` of `exercise.toml`.
PROBLEMS: Mapping[str, Problem] = {"mlp": MLP, "layernorm": LAYERNORM}
