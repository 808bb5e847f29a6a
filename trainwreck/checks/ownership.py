"""The loss, the networks and the optimizers mean the same tensors."""

import re
import weakref
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from trainwreck.check import Check
from trainwreck.events import AnyOptimizer
from trainwreck.finding import Outcome
from trainwreck.places import Place
from trainwreck.state import Watch, parameters_of

_SHOWN = 4
_LEAST_UPDATES = 3
_ZEROS = 8  # updates
_MISSPELLED = re.compile(r"requires?d?_?grad\w*", re.IGNORECASE)


class Ownership(Check):
    """Every parameter that gets a gradient belongs to an optimizer, and every parameter of an optimizer gets one."""

    name = "ownership"
    question = "Do the optimizers own the parameters that the loss reaches?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "not-owned": Outcome(
            "alarm",
            "Parameters get gradients, but no optimizer owns them, so they never change.",
            "Make the optimizer after the last layer, and give it all parameters. Keep layers in an nn.ModuleList.",
            "head_replaced_after_optimizer",
        ),
        "foreign": Outcome(
            "alarm",
            "An optimizer owns tensors that belong to no network that was called.",
            "Make the optimizer from the network that you train, after it was moved, copied or wrapped.",
            "stale_optimizer",
        ),
        "nothing-moves": Outcome(
            "alarm", "No parameter has changed.", "Look at the learning rate, and at what multiplies the gradients."
        ),
        "flag-on-module": Outcome(
            "alarm",
            "requires_grad is set on a module, where it has no effect: its parameters are trained.",
            "Call module.requires_grad_(False), which sets it for all parameters.",
        ),
        "flag-misspelled": Outcome(
            "alarm",
            "An attribute of a parameter looks like requires_grad and is another name, so it has no effect.",
            "Write parameter.requires_grad = False, or parameter.requires_grad_(False).",
        ),
        "not-reached": Outcome(
            "advice",
            "Trainable parameters never got a gradient.",
            "If the forward pass should use them, look for a branch, a detach() or a layer that is not called.",
        ),
        "frozen": Outcome(
            "advice",
            "An optimizer owns parameters that require no gradient.",
            "Give the optimizer only the trainable parameters.",
        ),
        "no-pull": Outcome(
            "advice",
            "The gradients of some weights are exactly zero in every update.",
            "Look for a factor of zero in front of them, such as a second matrix that is zero, too.",
            "lora_both_zero",
        ),
        "frozen-at-random": Outcome(
            "advice",
            "Weights of the network are frozen as they were drawn, so they are not trained, and no training made them.",
            "Load trained weights before you freeze them, or train them.",
        ),
        "some-rest": Outcome(
            "advice",
            "Some parameters get gradients and do not change.",
            "Look at their group: its learning rate may be 0.",
        ),
        "detached": Outcome(
            "advice",
            "The forward pass of a network cuts a gradient.",
            "Remove detach(), unless the part before it should not be trained.",
            "detached_hidden",
        ),
    }

    def on_operation(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        """Look at a `detach` inside a network."""
        if name == "detach" and args[0].grad_fn is not None:
            self.tell("detached", f"detach() of a tensor of shape {tuple(args[0].shape)}")

    def __init__(self, watch: Watch) -> None:
        super().__init__(watch)
        self._pulled: set[int] = set()  # parameters with a gradient that is not zero
        self._drawn: dict[int, weakref.ref[Tensor]] = {}  # parameters that hold random numbers, by address
        self._zeros: Counter[int] = Counter()  # updates with a gradient of zeros, by parameter

    def on_fill(self, is_random: bool, tensor: Tensor, place: Place) -> None:
        """Note a parameter that is drawn at random, until it gets other values."""
        if not is_random:
            self._drawn.pop(tensor.data_ptr(), None)
        elif isinstance(tensor, nn.Parameter):
            self._drawn[tensor.data_ptr()] = weakref.ref(tensor)

    def before_step(self, optimizer: AnyOptimizer) -> None:
        """Note which gradients are not zero. The gradient of a bias may be zero in exact arithmetic."""
        for parameter in parameters_of(optimizer):
            gradient = parameter.grad
            if id(parameter) not in self._pulled and gradient is not None:
                dense = gradient.layout is torch.strided
                if not dense or bool(torch.any(gradient != 0)):
                    self._pulled.add(id(parameter))
                else:
                    self._zeros[id(parameter)] += 1

    def at_end(self) -> None:
        """Compare the parameters with gradients, the parameters of optimizers and the parameters of networks."""
        watch = self.watch
        if not watch.optimizers or watch.step < _LEAST_UPDATES:
            return
        for network in watch.networks.values():
            self._judge_flags(network)
        owned = watch.owned()
        known = {id(parameter) for network in watch.networks.values() for parameter in network.parameters()}
        reached = [
            state for state in watch.parameters.values() if state.backwards and isinstance(state.tensor, nn.Parameter)
        ]
        lost = [state.tensor for state in reached if id(state.tensor) not in owned and not state.has_moved()]
        if lost:
            self.tell("not-owned", f"{self._names(lost)}: gradients, but no optimizer", watch.place_of_owner())
        # A script may also assign gradients that it has computed in another way.
        reached_ids = self._pulled | {key for key, state in watch.parameters.items() if state.backwards}
        idle = [p for key, p in owned.items() if p.requires_grad and key not in reached_ids]
        # A layer that was replaced after the optimizer was made is one fault: its old tensors and its new ones.
        foreign = [p for p in idle if id(p) not in known]
        if foreign and (not lost or len(foreign) == len(owned)):
            text = f"{len(foreign)} of {len(owned)} tensors of the optimizers"
            self.tell("foreign", text, watch.place_of_owner(foreign[0]))
        if apart := [p for p in idle if id(p) in known]:
            self.tell("not-reached", f"{self._names(apart)}: no gradient", "the forward pass of the network")
        # A parameter that was trained and then frozen may still belong to an optimizer that makes no more updates.
        if frozen := [p for key, p in owned.items() if not p.requires_grad and key not in self._pulled]:
            self.tell("frozen", f"{self._names(frozen)}: requires_grad is False", watch.place_of_owner(frozen[0]))
        flat = [p for key, p in owned.items() if self._zeros[key] >= _ZEROS and key not in self._pulled and p.dim() > 1]
        if flat and self._pulled:
            self.tell("no-pull", f"{self._names(flat)}: zero in every update", "the forward pass of the network")
        moving = [state for state in reached if id(state.tensor) in owned and state.in_step]
        still = [state.tensor for state in moving if not state.has_moved()]
        if moving and len(still) == len(moving) and self._pulled:
            self.tell("nothing-moves", f"{watch.step} updates", watch.place_of_owner())
        elif still := [one for one in still if id(one) in self._pulled]:
            text = f"{self._names(still)}: unchanged after {watch.step} updates"
            self.tell("some-rest", text, watch.place_of_owner(still[0]))

    def _judge_flags(self, network: nn.Module) -> None:
        """Look at the flags of a network that say what is trained."""
        for name, module in network.named_modules():
            if vars(module).get("requires_grad") is False and any(p.requires_grad for p in module.parameters()):
                self.tell("flag-on-module", f"{type(network).__name__}.{name}", "where requires_grad is set")
        for name, parameter in network.named_parameters():
            if wrong := [key for key in vars(parameter) if _MISSPELLED.fullmatch(key)]:
                self.tell("flag-misspelled", f"{wrong[0]} of {type(network).__name__}.{name}", "where it is set")
        raw = [p for p in network.parameters() if not p.requires_grad and self._is_as_drawn(p)]
        if raw:
            self.tell("frozen-at-random", f"{self._names(raw)}: requires_grad is False", "where they are frozen")

    def _is_as_drawn(self, parameter: Tensor) -> bool:
        drawn = self._drawn.get(parameter.data_ptr())
        state = self.watch.parameters.get(id(parameter))
        is_trained = state is not None and state.in_step and state.backwards > 0
        return drawn is not None and drawn() is parameter and parameter.dim() > 1 and not is_trained

    def _names(self, parameters: Sequence[Tensor]) -> str:
        shown = ", ".join(map(self.watch.name_of, parameters[:_SHOWN]))
        more = len(parameters) - _SHOWN
        return f"{shown} and {more} more" if more > 0 else shown
