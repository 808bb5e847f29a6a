"""What `run_autograder` of a Gradescope image starts: all tests, into the file that the platform reads."""

import os
import sys
import unittest
from pathlib import Path

from gradescope_utils.autograder_utils.json_test_runner import JSONTestRunner

sys.path.insert(0, str(Path(__file__).parent))
# On the platform it is /autograder; here it is a folder of the benchmark's.
autograder = Path(os.environ.get("AUTOGRADER", "/autograder"))
os.chdir(autograder / "submission")
suite = unittest.defaultTestLoader.discover(str(Path(__file__).parent))
with (autograder / "results" / "results.json").open("w") as results:
    JSONTestRunner(visibility="visible", stream=results).run(suite)
