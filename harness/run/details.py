"""Write `details.log`: clipping, the loss scaler, and the distributions of gradients and activations.

The grader does not read this file, and it has no influence on the run. Each line is a strict JSON object. Clipping and
scaler are recorded for each batch. Quantiles and the norm of the parameters take more time, so they are recorded for
few steps (see `is_sampled`), of few layers (see `layers_of_interest`).
"""

import json
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad

from harness.run.diagnostics import activation_quantiles, compute_global_grad_norm, compute_global_norm
from harness.run.evaluation import IGNORED, is_classification
from harness.run.files import DETAILS_LOG
from harness.run.metrics_log import Record, format_record, log_lines
from harness.run.recorder import guard_hook, skips_step

MOST_LAYERS = 4
MOST_CLASSES = 50  # a larger confusion matrix is not written, because nobody can read it


def is_sampled(step: int) -> bool:
    """Return whether quantiles are recorded for a step. This depends on the step alone, so that a run can resume."""
    return step % (10 if step < 500 else 100) == 0


def layers_of_interest(model: nn.Module) -> dict[str, nn.Module]:
    """Return at most `MOST_LAYERS` layers that train a matrix of weights, by name: first, last, and evenly between."""
    own = {
        name: layer
        for name, layer in model.named_modules()
        if any(p.requires_grad and p.dim() > 1 for p in layer.parameters(recurse=False))
    }
    names = list(own)
    if len(names) > MOST_LAYERS:
        names = [names[round(at * (len(names) - 1) / (MOST_LAYERS - 1))] for at in range(MOST_LAYERS)]
    return {name: own[name] for name in names}


class Details:
    """Records the details of a run while it trains. `add` gives it the network, once.

    Call `before_step` before each optimizer step, `end_batch` after each batch, and `write` with the record of each
    batch. step: returns the number of the step.
    """

    def __init__(self, step: Callable[[], int]) -> None:
        self._step = step
        self._layers: dict[str, nn.Module] = {}
        self._parameters: list[Tensor] = []
        self._hooks = ExitStack()
        self._batches: deque[Record] = deque()
        self._confusion: Record = {}
        self._steps = 0
        self._start_batch()

    def _start_batch(self) -> None:
        self._clips: list[tuple[Tensor | float, float]] = []
        self._batch: Record = {}

    @contextmanager
    def install(self, folder: Path, *, continues: bool) -> Iterator[None]:
        """Open `details.log` in the folder of a run, and watch clipping and loss scalers. Remove all hooks at the end.

        continues: whether to write after what is in the file.
        """
        scaled_step, by_norm, by_value = torch.amp.GradScaler.step, clip_grad._clip_grads_with_norm_, _CLIP_VALUE

        def step(scaler: torch.amp.GradScaler, optimizer: torch.optim.Optimizer, *rest: Any, **options: Any) -> Any:
            steps = self._steps
            result = scaled_step(scaler, optimizer, *rest, **options)
            if scaler.is_enabled():
                self._batch["loss_scale"] = scaler.get_scale()
                self._batch["skipped_steps"] = self._batch.get("skipped_steps", 0) + (self._steps == steps)
            return result

        def clip_by_norm(parameters: Any, max_norm: float, total_norm: Tensor, *rest: Any, **options: Any) -> None:
            self._clips.append((total_norm, float(max_norm)))
            by_norm(parameters, max_norm, total_norm, *rest, **options)

        def clip_by_value(parameters: Any, clip_value: float, *rest: Any, **options: Any) -> None:
            parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
            before = compute_global_grad_norm(parameters)
            by_value(parameters, clip_value, *rest, **options)
            self._clips.append((before, compute_global_grad_norm(parameters)))

        with (
            self._hooks,
            (folder / DETAILS_LOG).open("a" if continues else "w", encoding="utf-8") as self._file,
            patch.object(torch.amp.GradScaler, "step", step),
            # `clip_grad_norm_` calls this function, under whatever name an experiment has imported `clip_grad_norm_`.
            patch.object(clip_grad, "_clip_grads_with_norm_", clip_by_norm),
            patch.object(clip_grad, "clip_grad_value_", clip_by_value),
            patch.object(nn.utils, "clip_grad_value_", clip_by_value),
        ):
            yield

    def add(self, network: nn.Module) -> None:
        """Record the layers of interest of the first network, and the norm of the parameters of all networks."""
        self._parameters += [p for p in network.parameters() if p.requires_grad]
        if self._layers:
            return
        self._layers = layers_of_interest(network)
        for name, layer in self._layers.items():
            handle = layer.register_forward_hook(guard_hook(self._output_hook(name)))
            self._hooks.callback(handle.remove)

    def _output_hook(self, name: str) -> Callable[..., None]:
        def note(layer: nn.Module, _: object, output: object) -> None:
            if torch.is_grad_enabled() and is_sampled(self._step()) and isinstance(output, Tensor):
                self._batch.setdefault("activation_quantiles", {})[name] = activation_quantiles(output)

        return note

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Record the gradients that the optimizer is about to use, and the norm of the parameters."""
        self._steps += not skips_step(optimizer)
        if not is_sampled(self._step()):
            return
        self._batch["parameter_norm"] = compute_global_norm(self._parameters)
        self._batch["gradient_quantiles"] = {
            f"{name}.{own}" if name else own: activation_quantiles(p.grad)
            for name, layer in self._layers.items()
            for own, p in layer.named_parameters(recurse=False)
            if p.grad is not None and p.dim() > 1
        }

    def end_batch(self) -> None:
        """End the batch. Its line is written when `write` gets the record of the batch."""
        if self._clips:
            self._batch["clips"] = self._clips
        self._batches.append(self._batch)
        self._start_batch()

    def write(self, record: Record) -> None:
        """Write the line of the oldest batch that ended. record: its record in `metrics.log`."""
        if not self._batches:  # the batch is from before the interruption of a resumed run
            return
        batch = self._batches.popleft()
        clips = [(float(norm), most) for norm, most in batch.pop("clips", ())]
        line = {
            "step": record["step"],
            "grad_norm_before_clipping": max((norm for norm, _ in clips), default=None),
            "grad_norm": record["grad_norm"],
            # With a maximum of 1 and a norm of 1, torch multiplies by 0.999999, which nobody calls clipping.
            "clipped": any(norm > most for norm, most in clips) if clips else None,
            **batch,
        }
        self._file.write(format_record(line))

    def add_confusion(self, record: Record) -> None:
        """Keep the confusion matrix of an epoch, which follows the lines of its batches."""
        self._confusion = record

    def end_epoch(self) -> None:
        """Write the lines of the epoch to the disk. The log has written its batches, so `write` got their records."""
        if self._confusion:
            self._file.write(format_record(self._confusion))
        self._confusion = {}
        self._file.flush()


def cut_details(folder: Path, *, steps: int, epochs: int) -> None:
    """Remove the lines of later steps and epochs from the `details.log` of a run that resumes. It may be open."""
    path = folder / DETAILS_LOG
    if path.is_file():
        kept = [line for line in log_lines(path.read_text(encoding="utf-8")) if _is_before(line, steps, epochs)]
        path.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")


_CLIP_VALUE = clip_grad.clip_grad_value_


def _is_before(line: str, steps: int, epochs: int) -> bool:
    try:
        record = json.loads(line)
    except ValueError:  # the process was killed while it wrote this line
        return False
    return int(record["step"]) < steps if "step" in record else int(record["epoch"]) < epochs


@torch.no_grad()
def confusion_matrix(model: nn.Module, inputs: Tensor, labels: Tensor) -> list[list[int]] | None:
    """Return how often each class (row) was predicted as each class (column).

    Return None if the network is no classifier of whole examples, or has more than `MOST_CLASSES` classes. This does
    not change the mode of the network.
    """
    try:
        outputs = model(inputs)
    except (RuntimeError, ValueError, IndexError):  # `evaluate` may prepare the inputs first
        return None
    if not isinstance(outputs, Tensor) or outputs.dim() != 2 or not is_classification(outputs, labels):
        return None
    classes = outputs.shape[1]
    known = labels != IGNORED
    labels, predicted = labels[known], outputs[known].argmax(dim=1)
    if classes > MOST_CLASSES or not len(labels) or int(labels.min()) < 0 or int(labels.max()) >= classes:
        return None
    counts: list[list[int]] = (
        torch.bincount(labels * classes + predicted, minlength=classes**2).view(-1, classes).tolist()
    )
    return counts
