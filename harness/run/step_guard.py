"""Check each step before the optimizer makes it: end the run in strict mode, and keep the first non-finite step.

A `.badstep` file contains what one needs to repeat the step: the batch, the state before the step, the largest
gradients by layer, and quantiles of the activations. Read it with `torch.load(..., weights_only=True)`.
"""

import copy
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from harness.errors import UserError
from harness.run.checkpoint import canonical, restore_rng_states, rng_states, save_checkpoint
from harness.run.diagnostics import activation_quantiles, describe_non_finite
from harness.run.guardrails import SMALL_BATCH, GuardrailFinding, Guardrails, GuardrailStop, make_finding
from harness.run.metrics_log import Record
from harness.run.recorder import BatchMeasurements, gradient_norm, skips_step
from harness.run.settings import GuardrailPolicy
from harness.run.step_hooks import note_losses

BAD_STEP = ".badstep"
MOST_LAYERS = 20  # layers whose gradients a `.badstep` file lists
_NON_FINITE = ("loss", "logits", "gradient")


class StepGuard:
    """Judges each step before the optimizer makes it. `batch` is the batch of the step.

    folder: the folder for the `.badstep` file, or None to write no file. step: returns the number of the step.
    """

    def __init__(self, policy: GuardrailPolicy, folder: Path | None, step: Callable[[], int]) -> None:
        self._policy, self._folder, self._step = policy, folder, step
        self._strict = policy.mode == "strict"
        self._guardrails = Guardrails(policy)
        self._losses: list[float] = []
        self._networks: list[nn.Module] = []
        self._call: tuple[nn.Module, tuple[Any, ...], dict[str, Any], bool, torch.dtype] | None = None
        self._hooks = ExitStack()
        self._stop: GuardrailStop | None = None
        self._is_first = True
        self.batch: Sequence[Tensor] = ()

    @contextmanager
    def install(self) -> Iterator[None]:
        """Note, in strict mode, the losses from which backward passes start. Remove all hooks at the end."""
        with self._hooks:
            if self._strict:
                self._hooks.enter_context(note_losses(self._losses))
            yield
        if self._stop is not None:
            raise self._stop  # the code of the experiment has caught it

    def recall(self, record: Record) -> None:
        """Check the record of a step before the interruption of a resumed run."""
        self._guardrails.check(record)

    def add(self, network: nn.Module) -> None:
        """Note the arguments of the last training call of a network, with which a bad step calls it again."""
        self._networks.append(network)
        if self._folder is not None:
            # A function, because a copy of a network has a copy of each hook, and a method would copy this object.
            def note(network: nn.Module, inputs: tuple[Any, ...], options: dict[str, Any]) -> None:
                if torch.is_grad_enabled():
                    device = self.batch[0].device.type if self.batch else "cpu"
                    autocast = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
                    self._call = network, inputs, options, *autocast

            self._hooks.callback(network.register_forward_pre_hook(note, with_kwargs=True).remove)

    def before_step(self, optimizer: torch.optim.Optimizer, measure: Callable[[], BatchMeasurements]) -> None:
        """Check a step that the optimizer is about to make. Raises `GuardrailStop` in strict mode.

        measure: returns the measurements of the batch so far; its loss is ignored.
        """
        if self._stop is not None:
            raise self._stop
        if skips_step(optimizer):
            return
        if self._strict:
            loss = math.fsum(self._losses) if self._losses else None  # None: there was no backward pass
            self._judge({**measure().record(), "step": self._step(), "loss": loss}, optimizer)
        elif self._folder is not None and self._policy.mode == "warn" and not measure().has_finite_gradients:
            self._keep(optimizer, "a gradient is not finite")

    def after_batch(self, measured: BatchMeasurements) -> list[GuardrailFinding]:
        """Check a batch after its steps, and return soft findings.

        Raises `GuardrailStop` in strict mode if the loss is not finite: a loss scaler may have skipped the step.
        """
        self._losses.clear()
        if self._stop is not None:
            raise self._stop
        if self._strict and not math.isfinite(measured.loss):
            self._judge({**measured.record(), "step": self._step()}, None)
        first, self._is_first = self._is_first, False
        return self._check_batch_norm(len(self.batch[0])) if first and self.batch else []

    def _check_batch_norm(self, batch_size: int) -> list[GuardrailFinding]:
        """Return a soft finding if a layer of batch norm is in training mode on a small batch."""
        layers = [m for network in self._networks for m in network.modules() if isinstance(m, _BatchNorm)]
        trains = any(layer.training for layer in layers)
        if not trains or batch_size >= SMALL_BATCH or self._policy.allows("batch-norm-small"):
            return []
        examples = f"{batch_size} example{'' if batch_size == 1 else 's'}"
        message = f"batch norm computes its statistics from {examples} in a batch, fewer than {SMALL_BATCH}"
        return [make_finding(0, "batch-norm-small", message)]

    def _judge(self, record: Record, optimizer: torch.optim.Optimizer | None) -> None:
        for finding in self._guardrails.check(record):
            if finding.level == "hard":
                self._end(finding, optimizer)

    def _end(self, finding: GuardrailFinding, optimizer: torch.optim.Optimizer | None) -> None:
        kept = self._keep(optimizer, finding.message) if finding.kind in _NON_FINITE else None
        place = f" The batch, the weights and the gradients are in {kept}." if kept else ""
        self._stop = GuardrailStop(
            f"The guardrails ended the run at step {finding.step}, before the optimizer changed the weights:"
            f" {finding.message}. Fix the cause, or run again with --allow {finding.kind} and your reason.{place}"
        )
        raise self._stop

    def _keep(self, optimizer: torch.optim.Optimizer | None, message: str) -> Path | None:
        """Write the `.badstep` file of the first bad step, and return its path, or None if no file is written."""
        folder, self._folder = self._folder, None
        if folder is None:
            return None
        state = {
            "format_version": 1,
            "step": self._step(),
            "message": message,
            "batch": list(self.batch),
            "model": [_storable(network.state_dict()) for network in self._networks],
            "optimizer": None if optimizer is None else _storable(optimizer.state_dict()),
            "rng": rng_states(),
            "gradients": largest_gradients(self._networks),
            "activation_quantiles": self._activations(),
        }
        path = folder / f"step-{self._step()}{BAD_STEP}"
        save_checkpoint(path, state)
        return path

    def _activations(self) -> dict[str, Any]:
        """Call a copy of the network again, and return quantiles of the output of each layer, by its name."""
        if self._call is None:
            return {}
        network, inputs, options, autocast, dtype = self._call
        generators, found = rng_states(), dict[str, Any]()
        with _without_hooks(network):
            clone = copy.deepcopy(network)

        def hook(name: str) -> Callable[..., None]:
            def note(module: nn.Module, _: object, output: object) -> None:
                if isinstance(output, Tensor) and output.is_floating_point():
                    found[name] = {**activation_quantiles(output), "non-finite": describe_non_finite(output)}

            return note

        for name, layer in clone.named_modules():
            layer.register_forward_hook(hook(name or "output"))
        device = next((p.device.type for p in clone.parameters()), "cpu")
        try:
            with torch.no_grad(), torch.autocast(device, dtype, enabled=autocast):
                clone(*inputs, **options)
        except Exception:  # noqa: S110 - a network may refuse a second call; then the file has no quantiles
            pass
        finally:
            restore_rng_states(generators)
        return found


@contextmanager
def _without_hooks(network: nn.Module) -> Iterator[None]:
    """Take the forward hooks off all layers of a network, so that a copy does not call the recorder."""
    layers = list(network.modules())
    before = [(layer._forward_hooks, layer._forward_pre_hooks) for layer in layers]
    for layer in layers:
        layer._forward_hooks, layer._forward_pre_hooks = OrderedDict(), OrderedDict()
    try:
        yield
    finally:
        for layer, (after, ahead) in zip(layers, before, strict=True):
            layer._forward_hooks, layer._forward_pre_hooks = after, ahead


def _storable(state: dict[str, Any]) -> Any:
    """Return a state that a checkpoint can store, or None if it contains other objects."""
    try:
        return canonical(state)
    except UserError:
        return None


def largest_gradients(networks: Iterable[nn.Module]) -> list[dict[str, Any]]:
    """Return name, norm and non-finite entries of the gradients with the largest norms, the largest first.

    A NaN is larger than any number.
    """
    found: list[dict[str, Any]] = [
        {"name": name, "norm": float(gradient_norm(p.grad)), "non-finite": describe_non_finite(p.grad)}
        for network in networks
        for name, p in network.named_parameters()
        if p.grad is not None
    ]
    return sorted(found, key=lambda one: (math.isnan(one["norm"]), one["norm"]), reverse=True)[:MOST_LAYERS]
