"""Export the training loop `train`, and define `python -m harness.trainer`, which makes one run (see its `--help`)."""

if __name__ == "__main__":
    # This process only starts another process, which trains. It must get its environment variables before it imports
    # torch. `python -m` imports modules from the current folder first. A random.py in this folder must not replace
    # Python's module.
    import sys

    if not sys.flags.safe_path:
        sys.path.pop(0)
    from harness.student.trainer_command import trainer_command

    trainer_command()

from harness.run.training import TrainingRun, train

__all__ = ["TrainingRun", "train"]
