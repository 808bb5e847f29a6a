"""Export the training loop `train`, and define `python -m harness.trainer`, which makes one run (see its `--help`)."""

if __name__ == "__main__":
    # This process only starts the training process, which needs its environment variables before it imports torch.
    # A file called random.py in the current folder, where `python -m` looks first, must not replace Python's own.
    import sys

    if not sys.flags.safe_path:
        sys.path.pop(0)
    from harness.student.trainer_command import trainer_command

    trainer_command()

from harness.run.training import TrainingRun, train

__all__ = ["TrainingRun", "train"]
