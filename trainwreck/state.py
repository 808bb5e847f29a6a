"""Watch a training: keep the state that checks share, and pass events to them."""

from __future__ import annotations

import time
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from trainwreck.agreement import Agreement
from trainwreck.events import (
    AnyOptimizer,
    BackwardPass,
    HandMadeOptimizer,
    KeptCall,
    KeptLoss,
    LoaderUse,
    LossCall,
    ModelCall,
    Noise,
    ParameterState,
    SchedulerUse,
    first_entries,
)
from trainwreck.finding import DEFAULT_STEPS, Finding, by_level
from trainwreck.places import Place
from trainwreck.trees import clone, tensors
from trainwreck.trial import MOST_COPIED, Probe, Trial, begin_trial, can_fork, is_alone, run_probe

_KEPT = 200  # calls of one update that are kept, and losses
_EVALUATIONS = 4  # the latest ones are kept
_PARTS = 16
_CLOSE = 1e-4
_CLASSES, _IGNORED = ("cross_entropy", "nll_loss"), -100  # losses that ignore a label, and the one by default
# The kind of outputs that a loss for classes gets.
_ANSWERS = {
    "cross_entropy": "logits",
    "nll_loss": "logits",
    "binary_cross_entropy_with_logits": "binary logits",
    "binary_cross_entropy": "shares",
}


class Listener(Protocol):
    """A check, as a watch sees it: it also has a handler for each event, named like the event."""

    findings: dict[tuple[str, Place | None], Finding]

    @property
    def name(self) -> str:
        """The name of the check in findings."""

    def handles(self, event: str) -> bool:
        """Return whether the check does something at an event."""

    def trials(self) -> Generator[Trial | Probe, Any, None]:
        """Yield trials and probes, and get their answers."""


class Watch:
    """The state of a watched training, and the checks that look at it.

    A check that raises is left out from then on, and `errors` contains its traceback: watching breaks no training.

    Attributes: `step`, the number of updates so far; `networks` that were trained; `optimizers` that made a step;
    `parameters`, `loaders` and `schedulers`, by `id`; `calls`, `loss_calls` and `backwards` since the last update;
    `evaluations`, the latest calls without gradients; `losses`, the loss of each update.
    """

    def __init__(
        self, checks: Iterable[Callable[[Watch], Listener]], steps: int = DEFAULT_STEPS, batches: int = 0
    ) -> None:
        self.steps = steps
        self.batches = batches  # the most batches of an epoch, or 0 for all
        self.seeds: list[int] = []  # the arguments of `torch.manual_seed`
        self.step = 0
        self.active = False
        self.busy = False  # a check is running: its own operations are no events
        self.networks: dict[int, nn.Module] = {}
        self.optimizers: dict[int, AnyOptimizer] = {}
        self.parameters: dict[int, ParameterState] = {}
        self.loaders: dict[int, LoaderUse] = {}
        self.schedulers: dict[int, SchedulerUse] = {}
        self.made_at: weakref.WeakKeyDictionary[Any, Place] = weakref.WeakKeyDictionary()  # optimizers, and their lines
        self.scale = 1.0  # the factor of an enabled GradScaler
        self.calls: list[ModelCall] = []
        self.loss_calls: list[LossCall] = []
        self.backwards: list[BackwardPass] = []
        self.evaluations: list[ModelCall] = []
        self.losses: list[float] = []
        self.calls_without_gradients = 0  # in a row
        self.parts: deque[Tensor] = deque(maxlen=_PARTS)  # the latest parts of tensors, as of data
        self.drawn: dict[int, weakref.ref[Tensor]] = {}  # random tensors of this update that no operation has used
        self.noise: dict[int, Noise] = {}  # random tensors of this update, and tensors computed from them
        # Tensors that the script made from other values in this update, no operation has used, and their places.
        self.made: dict[int, tuple[weakref.ref[Tensor], Place]] = {}
        self.ignored: set[int] = set()  # the labels that losses ignore
        self.ended = False  # the script has come to its end
        self.inside: ModelCall | None = None  # the call of a network that is running
        self.trial: Trial | None = None  # in a child that makes a trial
        self.ends_here = False  # the script does not go on after the watched updates, so probes may change its state
        self.run_fresh: Callable[[Trial], Any] | None = None  # makes a trial in a new process, where none can be forked
        self.kept: dict[int, KeptCall] = {}  # by network, the last call before the trials
        self.errors: dict[str, str] = {}
        # What the outputs of networks are that losses get as they are: "logits", "binary logits" or "shares".
        self.answered: set[str] = set()
        self.agreement = Agreement()  # in a trial: of the latest evaluation
        self.compared = [0, 0]  # in a trial with answers: predictions that equal the labels, and all
        self.mixes_batches = False  # in a trial, the kept inputs meet the targets of another batch
        self.targets_vary: Place | None = None  # in a trial, a loss whose targets change while its inputs stay
        self._numbers = 0
        self._hand_made: dict[int, Tensor] = {}
        self.checks = [check(self) for check in checks]
        self._listeners: dict[str, list[Listener]] = {}

    @property
    def findings(self) -> list[Finding]:
        """All findings: alarms first, then advice, then notes."""
        return by_level(finding for check in self.checks for finding in check.findings.values())

    @property
    def is_over(self) -> bool:
        """Whether all updates to watch were made."""
        return self.step >= self.steps

    @property
    def trained_bytes(self) -> int:
        """The size of the weights that optimizers own, their gradients, and the states of the optimizers."""
        found = [p for optimizer in self.optimizers.values() for p in parameters_of(optimizer)]
        found += [p.grad for p in found if p.grad is not None]
        states = [dict(getattr(optimizer, "state", {})) for optimizer in self.optimizers.values()]
        found += list(tensors(states))
        return sum(one.numel() * one.element_size() for one in found)

    @property
    def is_large(self) -> bool:
        """Whether a child that trains would need too much memory, so that no trial is made."""
        return self.trained_bytes > MOST_COPIED

    def is_late(self, end: float) -> bool:
        """Return whether this moment of `time.monotonic` has passed. If it has, the watch is over."""
        late = time.monotonic() > end
        if late:
            self.steps = min(self.steps, self.step)
        return late

    def name_of(self, parameter: Tensor) -> str:
        """Return the name of a parameter with its network, such as `Net.fc1.weight`."""
        for network in self.networks.values():
            for name, own in network.named_parameters():
                if own is parameter:
                    return f"{type(network).__name__}.{name}"
        return f"a tensor of shape {tuple(parameter.shape)}"

    def place_of(self, optimizer: AnyOptimizer) -> Place:
        """Return the line that made an optimizer, or a place in words if that was before the watch."""
        known = None if isinstance(optimizer, HandMadeOptimizer) else self.made_at.get(optimizer)
        return known or Place("where the optimizer is made")

    def place_of_owner(self, parameter: Tensor | None = None) -> Place:
        """Return the line that made the optimizer of a parameter, or the only optimizer."""
        those = [
            optimizer
            for optimizer in self.optimizers.values()
            if parameter is None or any(one is parameter for one in parameters_of(optimizer))
        ]
        return self.place_of(those[0]) if len(those) == 1 else Place("where the optimizers are made")

    def owned(self) -> dict[int, Tensor]:
        """Return the tensors of all optimizers that made a step, by `id`."""
        return {id(p): p for optimizer in self.optimizers.values() for p in parameters_of(optimizer)}

    def state_of(self, parameter: Tensor) -> ParameterState:
        """Return the state of a parameter, from now on if it is new."""
        if id(parameter) not in self.parameters:
            self.parameters[id(parameter)] = ParameterState(parameter, first_entries(parameter).clone())
        return self.parameters[id(parameter)]

    def emit(self, event: str, *arguments: Any) -> None:
        """Call the handlers of an event. The operations of handlers are no events. A trial needs no handler."""
        if self.busy or self.trial is not None:
            return
        self.busy = True
        try:
            with torch.no_grad(), torch._C.DisableTorchFunction():
                for check in self._listeners_of(event):
                    if check.name in self.errors:
                        continue
                    try:
                        getattr(check, event)(*arguments)
                    except Exception:  # a check must never break the training
                        self.errors[check.name] = traceback.format_exc(limit=-4)
        finally:
            self.busy = False

    def _listeners_of(self, event: str) -> list[Listener]:
        """Return the checks with a handler of their own for an event. Some events come a thousand times an update."""
        if event not in self._listeners:
            self._listeners[event] = [check for check in self.checks if check.handles(event)]
        return self._listeners[event]

    # What the hooks report.

    def model_called(self, call: ModelCall) -> None:
        """Note a call of a network."""
        for loss in self.loss_calls:
            if loss.call is call and not loss.is_direct:  # a network that computes its loss itself
                self._judge_direct(loss)
        if call.with_gradients:
            self.networks[id(call.network)] = call.network
            self.calls = [*self.calls[-_KEPT:], call]
            self.calls_without_gradients = 0
        else:
            self.calls_without_gradients += 1
            self.evaluations = [*self.evaluations[1 - _EVALUATIONS :], call]
        self.emit("on_call", call)

    def loss_called(self, loss: LossCall) -> None:
        """Note a loss."""
        if loss.with_gradients:
            if not loss.targets.is_floating_point() and loss.name in _CLASSES:
                self.ignored.add(int(loss.options.get("ignore_index", _IGNORED)))
            self._judge_direct(loss)
            self.loss_calls = [*self.loss_calls[-_KEPT:], loss]
        self.emit("on_loss", loss)

    def _judge_direct(self, loss: LossCall) -> None:
        """Note whether a loss gets the outputs of a network as they are, and what these outputs are then."""
        loss.is_direct = loss.call is not None and loss.call.has_made(loss.outputs)
        if loss.is_direct and loss.name in _ANSWERS:
            self.answered.add(_ANSWERS[loss.name])

    def set_evaluations_apart(self) -> list[ModelCall]:
        """Take the calls of an evaluation with gradients out of `calls` and their losses out of `loss_calls`.

        They were made in eval mode, and the same network was called in training mode after them, before any backward
        pass. Return them.
        """
        last = {id(call.network): at for at, call in enumerate(self.calls) if call.training}
        apart = [call for at, call in enumerate(self.calls) if not call.training and at < last.get(id(call.network), 0)]
        if apart:
            self.calls = [call for call in self.calls if call not in apart]
            self.loss_calls = [loss for loss in self.loss_calls if loss.call not in apart]
            self.evaluations = [*self.evaluations, *apart][-_EVALUATIONS:]
        return apart

    def scheduler_stepped(self, scheduler: Any, place: Place) -> None:
        """Note a step of a scheduler."""
        use = self.schedulers.setdefault(id(scheduler), SchedulerUse(scheduler, place, place))
        use.stepped_at = place
        if getattr(scheduler, "_step_count", 2) > 1:  # its constructor makes the first step
            use.steps.append(self.step)
            self.emit("on_schedule", use)

    def backward_begins(self, roots: list[Tensor], place: Place) -> BackwardPass:
        """Note a backward pass, which gives gradients to all leaves of its graph."""
        self._hand_made_update()
        self._numbers += 1
        leaves, nodes = walk_graph(roots)
        backward = BackwardPass(self._numbers, roots, leaves, place, nodes)
        for leaf in backward.leaves.values():
            self.state_of(leaf).backwards += 1
        self.calls_without_gradients = 0
        self.emit("before_backward", backward)
        return backward

    def backward_ended(self, backward: BackwardPass) -> None:
        """Note the end of a backward pass."""
        backward.roots = [root.detach() for root in backward.roots]
        self.backwards.append(backward)
        self.emit("after_backward", backward)
        if not self.optimizers:
            self._hand_made = {key: first_entries(one.tensor).clone() for key, one in self.parameters.items()}

    def _hand_made_update(self) -> None:
        """Note an update if a script without an optimizer has changed its weights since the last backward pass."""
        if self.optimizers or not self._hand_made:
            return
        moved = [
            self.parameters[key].tensor
            for key, before in self._hand_made.items()
            if not torch.equal(before, first_entries(self.parameters[key].tensor))
        ]
        self._hand_made = {}
        if moved:
            optimizer = HandMadeOptimizer([{"params": moved}])
            self.emit("before_step", optimizer)
            self.step_ended(optimizer)

    def step_begins(self, optimizer: AnyOptimizer) -> None:
        """Note an optimizer that uses its gradients next."""
        self.optimizers[id(optimizer)] = optimizer
        for parameter in parameters_of(optimizer):
            self.state_of(parameter)
        self.emit("before_step", optimizer)

    def step_ended(self, optimizer: AnyOptimizer) -> None:
        """Note an update."""
        for parameter in parameters_of(optimizer):
            self.state_of(parameter).in_step = True
        self.emit("after_step", optimizer)
        self.step += 1
        roots = [float(root.float().sum()) / self.scale for one in self.backwards for root in one.roots]
        self.losses.append(sum(roots) / max(1, len(roots)))
        if self.trial is None and self.step == self.steps - 1:
            self._keep_calls()
        self.calls, self.loss_calls, self.backwards = [], [], []
        self.parts.clear()
        for found in (self.drawn, self.noise, self.made):
            found.clear()

    def _keep_calls(self) -> None:
        """Keep a copy of the latest inputs of each trained network, and of the latest batch of each loader."""
        for call in self.calls:
            losses = [
                KeptLoss(
                    loss.name,
                    loss.targets.detach().clone(),
                    loss.options,
                    loss.place,
                    loss.is_direct,
                    self._is_whole(loss),
                    self._is_random(loss.targets),
                )
                for loss in self.loss_calls
                if loss.call is call
            ]
            own = set(call.network.modules())
            norms = (layer for layer, _ in call.layers if isinstance(layer, nn.modules.batchnorm._BatchNorm))
            foreign = any(layer not in own for layer in norms)
            self.kept[id(call.network)] = KeptCall(call.network, clone(call.args), clone(call.kwargs), losses, foreign)
        for use in self.loaders.values():
            use.kept = clone(use.last)

    def _is_random(self, tensor: Tensor) -> bool:
        """Return whether a tensor was drawn at random in this update, or computed from such a tensor."""
        noise = self.noise.get(id(tensor))
        return noise is not None and noise.tensor() is tensor

    def _is_whole(self, loss: LossCall) -> bool:
        """Return whether a loss is the single value that this update made a backward pass from."""
        roots = [root for one in self.backwards for root in one.roots]
        if len(roots) != 1 or roots[0].numel() != 1 or loss.value.numel() != 1:
            return False
        value = float(loss.value.detach())
        return abs(float(roots[0]) / self.scale - value) <= _CLOSE * abs(value)

    def _trial(self, trial: Trial) -> Any:
        """Return the answer of a trial, `{}` if none can be made, or None in a child that makes it."""
        # After the end of the script, its loop cannot go on.
        if not self.is_over or not is_alone() or self.is_large:
            return {}
        if can_fork():
            answer = begin_trial(trial, self.step)
        else:
            answer = self.run_fresh(trial) if self.run_fresh is not None else {}
        return {} if answer and answer.get("mixed") else answer

    def answer(self) -> dict[str, Any]:
        """Return what a child that makes a trial sends to its parent."""
        trial = self.trial
        return {
            "losses": self.losses[trial.first_step if trial is not None else 0 :],
            "optimizers": len(self.optimizers),
            "targets_vary": str(self.targets_vary or ""),
            "compared": self.compared,
            "mixed": self.mixes_batches,
            "agreement": self.agreement.counts(),
            "seconds": time.monotonic() - trial.began if trial is not None else 0.0,
        }

    def end(self) -> None:
        """Let the checks say what only the whole watched part shows."""
        self._hand_made_update()
        self.emit("at_end")

    def run_trials(self) -> bool:
        """Make the trials and probes of all checks.

        Return False in a child, where the script's loop must go on: the hooks end the process when the trial is over.
        """
        for check in self.checks:
            if check.name in self.errors:
                continue
            try:
                wanted = check.trials()
                answer: Any = None
                while True:
                    job = wanted.send(answer)
                    if isinstance(job, Trial):
                        answer = self._trial(job)
                        if answer is None:
                            self.trial = job
                            return False
                    else:
                        answer = self.probe(job)
            except StopIteration:
                continue
            except Exception:
                self.errors[check.name] = traceback.format_exc(limit=-4)
        return True

    def probe(self, probe: Probe) -> Any:
        """Return the answer of a probe, or None where it cannot be made without harm."""
        was_busy, self.busy = self.busy, True  # in the child, too: what a probe does is no event
        try:
            if can_fork():
                return run_probe(probe)
            return probe() if self.ends_here else None
        finally:
            self.busy = was_busy


def parameters_of(optimizer: AnyOptimizer) -> list[Tensor]:
    """Return the parameters of all groups of an optimizer."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def graph_leaves(roots: Iterable[Tensor]) -> dict[int, Tensor]:
    """Return the tensors, by `id`, that a backward pass from these roots gives gradients to."""
    return walk_graph(roots)[0]


def walk_graph(roots: Iterable[Tensor]) -> tuple[dict[int, Tensor], set[int]]:
    """Return the tensors, by `id`, that a backward pass from these roots gives gradients to, and its nodes' numbers."""
    found: dict[int, Tensor] = {}
    seen: set[Any] = set()
    ahead = [root.grad_fn for root in roots if root.grad_fn is not None]
    while ahead:
        node = ahead.pop()
        if node in seen:
            continue
        seen.add(node)
        if (leaf := getattr(node, "variable", None)) is not None:
            found[id(leaf)] = leaf
        ahead += [inner for inner, _ in node.next_functions if inner is not None]
    return found, {number for node in seen if (number := node_number(node)) is not None}


def node_number(node: Any) -> int | None:
    """Return the number of a node of a graph, or None for one that has no number, as of an own autograd function."""
    number = getattr(node, "_sequence_nr", None)
    return None if number is None else number()
