"""A checkpoint that tells where training stopped has all that is needed to resume it."""

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from trainwreck.check import Check
from trainwreck.events import HandMadeOptimizer
from trainwreck.finding import Outcome
from trainwreck.places import Place
from trainwreck.trees import parts_of

_COUNTERS = ("epoch", "step", "iter")


class Saving(Check):
    """A file with weights and the number of the epoch also has the states of the optimizer and of the scheduler."""

    name = "saving"
    question = "Does a checkpoint have all that is needed to resume?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "optimizer-missing": Outcome(
            "advice",
            "A checkpoint has the weights and the epoch, but not the state of the optimizer.",
            "Save optimizer.state_dict(), too, and load it to resume.",
            "restart_without_moments",
        ),
        "schedule-missing": Outcome(
            "advice",
            "A checkpoint has the state of the optimizer, but not the state of the scheduler.",
            "Save scheduler.state_dict(), too, and load it to resume.",
            "restart_without_moments",
        ),
        "other-names": Outcome(
            "alarm",
            "A network loads no tensor of a checkpoint, because the names differ and strict is False.",
            "Remove the prefix from the names, such as `module.`, and load with strict=True.",
            "restart_from_guesses",
        ),
    }

    def on_save(self, saved: Any, place: Place) -> None:
        """Look at what a script saves."""
        if not isinstance(saved, Mapping) or not any(self._is_of_network(one) for one in saved.values()):
            return
        if not any(str(key).lower().startswith(_COUNTERS) and isinstance(saved[key], int) for key in saved):
            return  # weights to use, not to resume from
        states = [part for part in parts_of(saved) if isinstance(part, Mapping) and part is not saved]
        used = [one for one in self.watch.optimizers.values() if not isinstance(one, HandMadeOptimizer)]
        keys = ", ".join(map(str, saved))
        if not any({"state", "param_groups"} <= one.keys() for one in states):
            if any(one.state for one in used):
                self.tell("optimizer-missing", f"the keys are {keys}", place)
        elif self.watch.schedulers and not any("last_epoch" in one for one in states):
            self.tell("schedule-missing", f"the keys are {keys}", place)

    def on_load(self, module: nn.Module, state: Any, place: Place) -> None:
        """Compare the names that a network loads with its own names."""
        own = module.state_dict().keys()
        if own and isinstance(state, Mapping) and state and not own & state.keys():
            self.tell("other-names", f"{next(iter(state))} for {next(iter(own))}", place)

    def _is_of_network(self, value: Any) -> bool:
        if not isinstance(value, Mapping) or not value or not isinstance(next(iter(value.values())), Tensor):
            return False
        return any(network.state_dict().keys() == value.keys() for network in self.watch.networks.values())
