"""A training run: start its process, train, record, log, checkpoint."""
