"""Define the names of a run's files, and hash the source of an experiment."""

import hashlib

EXPERIMENT = "experiment.py"
RESULT = "result.json"
METRICS_LOG = "metrics.log"
DETAILS_LOG = "details.log"
CHECKPOINT = "checkpoint.pt"
CHECKSUM = "checkpoint.pt.sha256"
META = "checkpoint.pt.meta.json"
INPUT_SHEET = "inputs.json"
RUN_PAGE = "run.html"


def source_hash(source: str) -> str:
    """Return the SHA-256 of an experiment's source, in hexadecimal digits."""
    return hashlib.sha256(source.encode()).hexdigest()
