"""Which experiments could know where they run."""

import pytest
from runs import edited

from grader.score.known_edits import known_fixes
from grader.syntax.surroundings import looks_around
from harness.recipe import experiment_source, load_recipe, recipe_ids

MLP = experiment_source("digits_mlp")


def with_top(lines: str) -> str:
    return edited(MLP, ("EPOCHS = 5\n", f"{lines}\nEPOCHS = 5\n"))


@pytest.mark.parametrize("recipe", recipe_ids())
def test_no_variant_looks_around(recipe: str) -> None:
    for fix in known_fixes(load_recipe(recipe))[0]:
        assert looks_around(fix.source) is None, fix.id


@pytest.mark.parametrize("lines", [
    "import os\nX = os.path.exists('/input')", "import os as o\nX = o.getpid()",
    "from os import environ\nX = len(environ)", "import socket\nX = socket.gethostname()",
    "import time\nX = time.time()", "from time import time\nX = time()", "import sys\nY = sys\nX = Y.argv",
    "from os import *", "import random\nX = random._os", "import warnings\nX = warnings.sys",
    "import numpy as np\nX = np.fromfile('x')", "import numpy as np\nX = np.random.default_rng()",
    "X = torch.os.environ", "X = torch.hub", "X = torch.backends.cudnn.torch", "X = open('x')",
    "X = ().__class__", "X = torch._C", "class A:\n    import os", "(((",
])  # fmt: skip
def test_what_could_tell_where_it_runs_is_named(lines: str) -> None:
    found = looks_around(with_top(lines))
    assert found is not None
    assert not found.message.endswith(".")


@pytest.mark.parametrize("lines", [
    "import os", "import os, sys, time", "import random\nrandom.seed(1)",
    "import numpy as np\nnp.random.seed(1)", "torch.manual_seed(1)",
    "torch.use_deterministic_algorithms(True)", "torch.backends.cudnn.benchmark = False",
    "import warnings\nwarnings.filterwarnings('ignore')",
    "from torch.utils.data import TensorDataset\nX = TensorDataset", "import math\nX = math.pi",
])  # fmt: skip
def test_what_is_the_same_everywhere_is_not(lines: str) -> None:
    assert looks_around(with_top(lines)) is None
