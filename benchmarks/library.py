"""Applies the checks of one library to experiments: the worker of `make bench-checks`, in the library's environment.

The name of the library is the only argument. Standard input has a subject a line, `{"key", "source", "seed",
"dataset"}`; standard output gets what the library said of it, `{"key", "said": {check: message}, "seconds"}`. Each
library is given all that it can take: the network, the optimizer, the loss function and a prepared batch of the
experiment, and its own training step and checkpoint functions if the library asks for them.
"""

import contextlib
import io
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from harness.canonical_setup import apply_numerics
from harness.data.loading import load_dataset
from harness.run.experiment import load_experiment, tensor_data
from harness.run.settings import RunSettings
from harness.run.setup import TrainingSetup, deterministic_minibatches

PATH = Path("experiment.py")
OVERFIT_STEPS, TRAIN_STEPS = 300, 60
Said = dict[str, str]


class Parts:
    """What an experiment has for a library: `make()` sets it up anew from the seed; `inputs`, `labels` are a batch."""

    def __init__(self, subject: Mapping[str, Any]) -> None:
        self.settings = RunSettings(seed=subject["seed"], dataset=subject["dataset"])
        self.experiment = load_experiment(PATH, subject["source"])
        self.data = load_dataset(subject["dataset"])
        setup = self.make()
        order = setup.generators["order"]
        raw = deterministic_minibatches(setup.inputs, setup.labels, setup.batch_size, order)
        self.batches = [setup.prepare(*batch) for batch in islice(raw, TRAIN_STEPS)]
        self.inputs, self.labels = self.batches[0]

    def make(self) -> TrainingSetup:
        """Return the parts of the training, in the state before its first step."""
        return TrainingSetup(self.experiment, tensor_data(self.data), self.settings)

    def model(self) -> nn.Module:
        """Return the network as it is before the first step."""
        return self.make().model

    def loss(self, outputs: Tensor) -> Tensor:
        """Return the loss of the network's outputs for `inputs`."""
        return self.experiment.compute_loss(outputs, self.labels)

    @property
    def classes(self) -> int | None:
        """The number of classes, if the labels are classes."""
        if self.labels.is_floating_point():
            return None
        with torch.no_grad():
            outputs = self.model().eval()(self.inputs)
        return outputs.shape[-1] if outputs.dim() == self.labels.dim() + 1 else None


def trainwreck(parts: Parts, subject: Mapping[str, Any]) -> Said:
    """The checks of `harness triage`."""
    from harness.checks import check_names, load_check, make_check
    from harness.checks.core.subject import Subject

    made = Subject(PATH, subject["source"], parts.settings, parts.data)
    said = {}
    for name in check_names():
        check = load_check(name)
        if check.in_triage and not check.outcome((found := make_check(made, name)).outcome).sound:
            said[f"{name} {found.outcome}"] = found.summary
    return said


def torchtest2(parts: Parts, _: Mapping[str, Any]) -> Said:
    """All checks of `check_model`, failures and warnings."""
    from torchtest2 import check_model  # type: ignore[import-not-found]

    setup = parts.make()
    report = check_model(
        setup.model, parts.inputs, parts.labels, loss_fn=parts.experiment.compute_loss, optimizer=setup.optimizer,
        frozen=parts.experiment.frozen, overfit_steps=OVERFIT_STEPS,
    )  # fmt: skip
    return {one.name: one.message for one in (*report.failures, *report.warnings)}


def neural_net_checklist(parts: Parts, _: Mapping[str, Any]) -> Said:
    """The assertions for a classifier; those of a causal network if each symbol has a label."""
    from neural_net_checklist import torch_diagnostics as nnc  # type: ignore[import-not-found]

    def train(model: nn.Module, batch: Any, **options: Any) -> Iterator[Any]:
        options["optimizer"] = parts.experiment.build_optimizer(model)
        yield from nnc.train_batch(model, batch, **options)

    batch, loss, classes = (parts.inputs, parts.labels), parts.experiment.compute_loss, parts.classes
    steps: dict[str, Callable[[], Any]] = {
        "forward_batch_independence": lambda: nnc.assert_forward_batch_independence(parts.model, batch),
        "non_zero_gradients": lambda: nnc.assert_non_zero_gradients(parts.model(), batch),
        "backward_batch_independence": lambda: nnc.assert_backward_batch_independence(parts.model, batch),
        "input_independent_baseline": lambda: nnc.assert_input_independent_baseline_worse(
            parts.model, batch, train_batch_fn=train, loss_fn=loss
        ),
        "overfit_to_batch": lambda: nnc.assert_overfit_to_batch(
            parts.model(), batch, train_batch_fn=train, loss_fn=loss, threshold=0.1, max_steps=OVERFIT_STEPS
        ),
    }
    if classes is not None:
        steps["loss_at_init"] = lambda: nnc.assert_balanced_classification_cross_entropy_loss_at_init(
            parts.model(), batch, num_classes=classes, loss_fn=loss
        )
        steps["init_calibrated"] = lambda: nnc.assert_balanced_classification_cross_entropy_init_calibrated(
            parts.model(), batch, num_classes=classes
        )
    if parts.labels.dim() == 2 and not parts.inputs.is_floating_point():
        steps["forward_causal"] = lambda: nnc.assert_forward_causal_property(parts.model, batch)
    return _failures(steps)


def pytest_torch(parts: Parts, _: Mapping[str, Any]) -> Said:
    """The inference contract, and the assertions on training, with the experiment's own step."""
    import pytest_torch as pt  # type: ignore[import-not-found]

    experiment = parts.experiment

    def make() -> Any:
        setup = parts.make()
        return pt.TrainingSetup(setup.model, setup.optimizer, setup.scheduler)

    def without_schedule() -> Any:
        setup = parts.make()
        return pt.TrainingSetup(setup.model, setup.optimizer)

    def step(setup: Any, batch: tuple[Tensor, Tensor]) -> Tensor:
        loss = experiment.train_step(setup.model, setup.optimizers["optimizer"], *batch)
        for scheduler in setup.schedulers.values():
            scheduler.step()
        return loss

    def kept(setup: Any) -> tuple[Any, Any, Any]:
        return setup.model, setup.optimizers["optimizer"], next(iter(setup.schedulers.values()), None)

    def save(setup: Any, path: Path) -> None:
        torch.save(experiment.call("save_checkpoint", *kept(setup)), path)

    def load(setup: Any, path: Path) -> None:
        experiment.call("load_checkpoint", torch.load(path), *kept(setup))

    one = parts.batches[0]
    setup = parts.make()
    steps: dict[str, Callable[[], Any]] = {
        "gradients_finite": lambda: pt.assert_gradients_finite(parts.model(), parts.inputs, parts.loss),
        "all_params_receive_grad": lambda: pt.assert_all_params_receive_grad(parts.model(), parts.inputs, parts.loss),
        "optimizer_coverage": lambda: pt.assert_optimizer_coverage(setup.model, setup.optimizer),
        "run_finite": lambda: pt.run_training(make, parts.batches, step, steps=TRAIN_STEPS).assert_finite(),
        "loss_decreases": lambda: pt.run_training(
            make, parts.batches, step, steps=TRAIN_STEPS
        ).assert_loss_decreases(0.1),
        "overfits_one_batch": lambda: pt.run_training(
            without_schedule, one, step, steps=OVERFIT_STEPS
        ).assert_loss_decreases(0.9),
    }  # fmt: skip
    if experiment.interrupted_at is not None:
        steps["resume_equivalent"] = lambda: pt.assert_resume_equivalent(
            make, parts.batches, step, steps=16, save=save, load=load
        )
    if experiment.frozen:
        patterns = [f"{prefix}*" for prefix in experiment.frozen]
        steps["frozen"] = lambda: pt.assert_frozen(parts.model(), parts.inputs, parts.loss, patterns)
    for name in ("finite_outputs", "deterministic", "batch_invariance", "no_state_mutation"):
        steps[name] = partial(pt.check_inference_contract, parts.model().eval(), parts.inputs, checks=[name])
    return _failures(steps)


def _failures(steps: Mapping[str, Callable[[], Any]]) -> Said:
    """Return the message of each assertion that fails. One that cannot take the experiment says nothing."""
    said = {}
    for name, assertion in steps.items():
        try:
            assertion()
        except AssertionError as failure:
            said[name] = str(failure).strip().split("\n")[0][:200]
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {str(error)[:200]}", file=sys.__stderr__)
    return said


LIBRARIES = {one.__name__: one for one in (trainwreck, torchtest2, neural_net_checklist, pytest_torch)}


def main() -> None:
    """Answer the subjects on standard input, one after the other."""
    apply_numerics("portable")
    check = LIBRARIES[sys.argv[1]]
    answer = partial(print, file=sys.stdout, flush=True)
    for line in sys.stdin:
        subject = json.loads(line)
        start = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            said = check(Parts(subject), subject)
        seconds = round(time.perf_counter() - start, 3)
        answer(json.dumps({"key": subject["key"], "said": said, "seconds": seconds}))


if __name__ == "__main__":
    main()
