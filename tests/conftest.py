"""Fixtures that more than one test module needs, and how long hypothesis looks for counterexamples."""

import os
import shutil
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from helpers.honest_class import HonestClass
    from selenium.webdriver import Chrome

# make test tries the same examples each time; make fuzz tries a hundred times as many, others each time.
settings.register_profile("suite", derandomize=True, deadline=None, database=None)
settings.register_profile(
    "fuzz", max_examples=10_000, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

# Containers often set this and shells do not: output must be buffered as it is for users.
os.environ.pop("PYTHONUNBUFFERED", None)
# `make test` sets it, and then messages name make's variables in place of options.
os.environ.pop("MAKELEVEL", None)


# The slowest files first: the last files are short, so all workers end together.
LONGEST = (
    "test_behaviour.py", "test_grader_class.py", "test_attacks.py", "test_watch_checks.py", "test_grader_fix.py",
    "test_faults.py", "test_watch_ways.py", "test_watch_output.py", "test_watch.py", "test_bad_input.py",
    "test_course_assignment.py", "test_recipes.py", "test_exercise.py", "test_selfcheck.py", "test_gradescope.py",
    "test_grader_replay.py", "test_launch.py", "test_ranks.py", "test_scripts.py", "test_script_judging.py",
    "test_grader_cluster.py", "test_doctor.py",
    "test_grader_sandbox_worker.py", "test_bench.py", "test_demo_run.py",
    "test_check_commands.py",
)  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Have pytest-xdist hand the files out in the order of the collection, not by how many tests they hold."""
    config.option.loadscopereorder = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(LONGEST)))


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    """Compute with one thread, as a run does: two busy threads on two busy cores spend their time on waiting."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture(scope="session")
def working_sandbox() -> None:
    """Skip, or fail, if no sandbox starts here."""
    from helpers.sandbox_marks import require_sandbox

    require_sandbox()


@pytest.fixture(scope="session")
def honest(working_sandbox: None, tmp_path_factory: pytest.TempPathFactory) -> "HonestClass":
    """Honest submissions and their replays, made once for the whole session."""
    from helpers.honest_class import shared_class

    return shared_class(tmp_path_factory)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Chrome"]:
    """A browser without a window; skip if none can be driven here."""
    binary, driver = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("needs a browser that can be driven: apt-get install chromium chromium-driver")
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = binary
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    folder = tmp_path_factory.mktemp("browser")
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", f"user-data-dir={folder}"):
        options.add_argument(f"--{argument}")
    browser = Chrome(options=options, service=Service(driver))
    yield browser
    browser.quit()


@pytest.fixture
def torch_as_found() -> Iterator[None]:
    """Put back what a run switches in this process: other tests are not to notice that it trained."""
    import torch

    deterministic, dtype = torch.get_deterministic_debug_mode(), torch.get_default_dtype()
    precision, grad = torch.get_float32_matmul_precision(), torch.is_grad_enabled()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    torch.set_deterministic_debug_mode(deterministic)
    torch.set_default_dtype(dtype)
    torch.set_float32_matmul_precision(precision)
    torch.set_grad_enabled(grad)
