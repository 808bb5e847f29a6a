"""Stored weights are a copy, and averaged weights are used."""

from typing import Any, ClassVar

from torch import Tensor, nn

from trainwreck.check import Check
from trainwreck.events import ModelCall
from trainwreck.finding import Outcome
from trainwreck.places import Place


class Snapshots(Check):
    """Weights that a script stores stay as they are, and the weights that it averages are evaluated."""

    name = "snapshots"
    question = "Are stored weights a copy, and averaged weights used?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "own-weights": Outcome(
            "alarm",
            "The network loads its own tensors: the stored weights are no copy, so they were trained along.",
            "Store copy.deepcopy(model.state_dict()), or save it to a file.",
            "best_weights_alias",
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
            self.tell("own-weights", f"{len(same)} tensors of {type(module).__name__}, as {same[0]}", place)

    def on_call(self, call: ModelCall) -> None:
        """Note averaged models, and which networks are evaluated."""
        if not call.with_gradients and not call.training:
            self._evaluated[id(call.network)] = call.network

    def on_average(self, model: nn.Module) -> None:
        """Note an averaged model that is updated."""
        self._averages[id(model)] = model

    def at_end(self) -> None:
        """Say whether an averaged model is never called, although evaluations take place."""
        unused = [one for key, one in self._averages.items() if key not in self._evaluated]
        if unused and any(id(network) in self._evaluated for network in self.watch.networks.values()):
            self.tell("average-unused", f"{len(unused)} averaged models", "where the network is evaluated")
