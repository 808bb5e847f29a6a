"""Stored weights are a copy, averaged weights are used, and trained weights are not drawn again."""

import weakref
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from trainwreck.check import Check
from trainwreck.events import AnyOptimizer, ModelCall, first_entries
from trainwreck.finding import Outcome
from trainwreck.places import Place
from trainwreck.state import parameters_of
from trainwreck.trees import parts_of

_UPDATES = 2  # that change a stored state, at least
_MOST_STATES = 20


class _Kept(NamedTuple):
    """A state that the script keeps: the updates before, one of its tensors, its entries then, and the line."""

    state: weakref.ref[Any]
    step: int
    followed: Tensor
    begin: Tensor
    place: Place


class Snapshots(Check):
    """Weights that a script stores stay as they are, averages are evaluated, and training goes on from its weights."""

    name = "snapshots"
    question = "Are stored weights a copy, averaged weights used, and trained weights kept?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "own-weights": Outcome(
            "alarm",
            "The network loads its own tensors: the stored weights are no copy, so they were trained along.",
            "Store copy.deepcopy(model.state_dict()), or save it to a file.",
        ),
        "follows-training": Outcome(
            "advice",
            "The script keeps a state_dict() that is no copy, so its weights are trained along.",
            "Keep copy.deepcopy(model.state_dict()), or save it to a file.",
        ),
        "overwritten": Outcome(
            "advice",
            "A network writes its weights into a stored state. It does not load them.",
            "Call model.load_state_dict(state) to go back to stored weights.",
        ),
        "drawn-again": Outcome(
            "advice",
            "Weights that were trained are drawn at random again, and the same optimizer goes on.",
            "Draw the first weights once, before the training.",
        ),
        "average-unused": Outcome(
            "advice",
            "An averaged model is updated, but evaluations call only the network that is trained.",
            "Evaluate the averaged model, and save its weights.",
        ),
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._averages: dict[int, nn.Module] = {}
        self._evaluated: dict[int, nn.Module] = {}
        self._states: list[_Kept] = []
        self._drawn: dict[int, Place] = {}  # parameters that were drawn since the latest update of their optimizer
        self._stepped: set[int] = set()  # optimizers

    def on_load(self, module: nn.Module, state: Any, place: Place) -> None:
        """Compare what a network loads with what it has."""
        own = {name: value for name, value in module.state_dict(keep_vars=True).items() if isinstance(value, Tensor)}
        trained = {key for key, one in self.watch.parameters.items() if one.in_step}
        same = [
            name
            for name, value in own.items()
            if id(value) in trained
            and isinstance(state.get(name), Tensor)
            and state[name].data_ptr() == value.data_ptr()
            and value.numel()
        ]
        if same and self.watch.step:
            # The repair belongs where the state was taken. It is not told again at the end.
            taken = [one.place for one in self._states if one.state() is state]
            self._states = [one for one in self._states if one.state() is not state]
            text = f"{len(same)} tensors of {type(module).__name__}, as {same[0]}"
            if taken:
                text = f"{text}, loaded at {place}"
            self.tell("own-weights", text, taken[0] if taken else place)

    def on_state(self, module: nn.Module, state: Any, place: Place) -> None:
        """Note a state that the script takes from a network during the training."""
        alike = {one.tensor.data_ptr(): one.tensor for one in self.watch.parameters.values() if one.in_step}
        followed = next((alike[one.data_ptr()] for one in _tensors_of(state) if one.data_ptr() in alike), None)
        self._states = [one for one in self._states if one.state() is not None]
        if followed is not None and len(self._states) < _MOST_STATES:
            begin = first_entries(followed).clone()
            self._states.append(_Kept(weakref.ref(state), self.watch.step, followed, begin, place))

    def on_fill_state(self, module: nn.Module, state: Any, place: Place) -> None:
        """See a stored state that gets the present weights."""
        own = {name for name, _ in module.named_parameters()}
        if self.watch.step and own and own <= state.keys():
            self.tell("overwritten", f"{len(own)} tensors of a stored state of {type(module).__name__}", place)

    def on_save(self, saved: Any, place: Place) -> None:
        """A state that is saved may be kept."""
        kept = {id(part) for part in parts_of(saved)}
        self._states = [one for one in self._states if id(one.state()) not in kept]

    def on_fill(self, is_random: bool, tensor: Tensor, place: Place) -> None:
        """Note a parameter that is filled with random numbers after an update."""
        if not self._stepped or not is_random:
            return
        for key, one in self.watch.parameters.items():
            if one.in_step and one.tensor.data_ptr() == tensor.data_ptr() and one.tensor.numel() == tensor.numel():
                self._drawn[key] = place

    def before_step(self, optimizer: AnyOptimizer) -> None:
        """Look at the weights that the update goes on from."""
        drawn = [one for one in parameters_of(optimizer) if id(one) in self._drawn]
        if drawn and id(optimizer) in self._stepped:
            text = f"{len(drawn)} tensors, as {self.watch.name_of(drawn[0])}, after {self.watch.step} updates"
            self.tell("drawn-again", text, self._drawn[id(drawn[0])])
        self._drawn = {}
        self._stepped.add(id(optimizer))

    def on_call(self, call: ModelCall) -> None:
        """Note averaged models, and which networks are evaluated."""
        if not call.with_gradients and not call.training:
            self._evaluated[id(call.network)] = call.network

    def on_average(self, model: nn.Module) -> None:
        """Note an averaged model that is updated."""
        self._averages[id(model)] = model

    def at_end(self) -> None:
        """Look at the states that are still kept, and at averaged models that no evaluation calls."""
        for one in self._states:
            is_kept = one.state() is not None and self.watch.step >= one.step + _UPDATES
            if is_kept and not torch.equal(one.begin, first_entries(one.followed)):
                self.tell("follows-training", f"taken after {one.step} updates, and changed since", one.place)
        unused = [one for key, one in self._averages.items() if key not in self._evaluated]
        if unused and any(id(network) in self._evaluated for network in self.watch.networks.values()):
            self.tell("average-unused", f"{len(unused)} averaged models", "where the network is evaluated")


def _tensors_of(state: Any) -> list[Tensor]:
    return [one for one in state.values() if isinstance(one, Tensor) and one.numel()]
