"""What an instrument looks at: a source, the settings of its run, and the data; each look starts from the seed anew."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.checks.workbench import Bench
from harness.data.datasets import Dataset
from harness.run.experiment import Experiment, TensorData, load_experiment, tensor_data
from harness.run.settings import RunSettings


@dataclass(frozen=True)
class Subject:
    """An experiment as its run would load it; `path` is the file that errors name.

    `checkpoint` is that of a finished run of this source with these settings, if there is one.
    """

    path: Path
    source: str
    settings: RunSettings
    data: Dataset
    checkpoint: Path | None = None

    def experiment(self, **switches: Any) -> Experiment:
        """Return the experiment, loaded anew; `switches` are further settings, such as `disable_amp=True`."""
        experiment = load_experiment(self.path, self.source)
        experiment.apply(replace(self.settings, **switches))
        return experiment

    def tensors(self) -> TensorData:
        """Return the data as `load_data` receives it, copied."""
        return tensor_data(self.data)

    def bench(self, experiment: Experiment | None = None, **options: Any) -> Bench:
        """Return a bench whose first epoch is that of the run, to the bit; `options` are those of `Bench`."""
        experiment = experiment or self.experiment()
        return Bench(experiment, self.tensors(), self.settings.seed, as_run=True, **options)
