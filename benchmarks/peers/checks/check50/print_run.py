"""Prints what came of a student's experiment as one line of JSON, for the check that started this."""

import json
import sys

from experiment_run import LEAST_ACCURACY, reported_sha256, run_experiment

from harness.errors import UserError

try:
    result = run_experiment()
except UserError as error:
    sys.exit(str(error))
print(json.dumps({**result, "reported_sha256": reported_sha256(), "least_accuracy": LEAST_ACCURACY}))
