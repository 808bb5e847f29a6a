"""Train an experiment: `train` is the one training loop; `python -m harness.trainer` makes one run (see `--help`)."""

if __name__ == "__main__":
    # This process only starts the one that trains, which needs its environment variables before torch is imported.
    # A file called random.py in the current folder, where `python -m` looks first, must not replace Python's own.
    import sys

    if not sys.flags.safe_path:
        sys.path.pop(0)
    from harness.student.trainer_command import trainer_command

    trainer_command()

from harness.run.training import TrainingRun, train

__all__ = ["TrainingRun", "train"]
