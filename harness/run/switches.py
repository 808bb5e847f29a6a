"""What the settings of a run change in an experiment before it is built."""

from harness.run.experiment import Experiment
from harness.run.settings import RunSettings


def apply_switches(experiment: Experiment, settings: RunSettings) -> None:
    """Set those constants of the experiment that the settings ask for; one that it does not have is passed over."""
    if settings.epochs is not None:
        experiment.set_constant("EPOCHS", settings.epochs)
    if settings.batch_size is not None:
        experiment.set_constant("BATCH_SIZE", settings.batch_size)
    if settings.disable_augment or settings.overfit_batch:
        experiment.set_constant("AUGMENT", False)
    if settings.disable_amp or settings.verify:
        experiment.set_constant("AMP", False)
