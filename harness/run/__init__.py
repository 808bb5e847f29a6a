"""Make a training run: start its process, train, record, write the log, and write checkpoints."""
