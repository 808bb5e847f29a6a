"""Fixtures that more than one test module needs, and how long hypothesis looks for counterexamples."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# The suite looks at the same examples each time, `make fuzz` at others each time, and a hundred times as many.
settings.register_profile("suite", derandomize=True, deadline=None, database=None)
settings.register_profile(
    "fuzz", max_examples=10_000, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))


@pytest.fixture
def torch_as_found() -> Iterator[None]:
    """Put back what a run switches in this process: other tests are not to notice that it trained."""
    import torch

    deterministic, dtype = torch.are_deterministic_algorithms_enabled(), torch.get_default_dtype()
    precision, grad = torch.get_float32_matmul_precision(), torch.is_grad_enabled()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in a run; and two busy threads on two busy cores wait for each other
    yield
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(deterministic)
    torch.set_default_dtype(dtype)
    torch.set_float32_matmul_precision(precision)
    torch.set_grad_enabled(grad)
