"""The names of the files of a run, and the hash of a source."""

import hashlib

EXPERIMENT = "experiment.py"
RESULT = "result.json"
METRICS_LOG = "metrics.log"
CHECKPOINT = "checkpoint.pt"
CHECKSUM = "checkpoint.pt.sha256"
META = "checkpoint.pt.meta.json"
INPUT_SHEET = "inputs.json"
RUN_PAGE = "run.html"


def source_hash(source: str) -> str:
    """Return the SHA-256 of a source text, in hexadecimal digits."""
    return hashlib.sha256(source.encode()).hexdigest()
