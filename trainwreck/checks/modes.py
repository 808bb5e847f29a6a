"""Networks are trained in training mode and evaluated in eval mode."""

from collections import Counter
from typing import Any, ClassVar

from torch import nn

from trainwreck.check import Check
from trainwreck.events import AnyOptimizer, BackwardPass, ModelCall, is_in_training_mode
from trainwreck.finding import Outcome


class Modes(Check):
    """Dropout and batch norm are in training mode while a network trains, and in eval mode while it is evaluated."""

    name = "modes"
    question = "Is each network in the right mode?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "evaluates-in-training-mode": Outcome(
            "alarm",
            "The network is evaluated while dropout or batch norm is in training mode, so its metrics are wrong.",
            "Call model.eval() before the evaluation, and model.train() after it.",
            "forgotten_eval",
        ),
        "layer-in-training-mode": Outcome(
            "advice",
            "The network is in eval mode, but one of its layers is in training mode.",
            "Call eval() on the whole network, unless the layer should stay random.",
        ),
        "trains-in-eval-mode": Outcome(
            "alarm",
            "The network is trained in eval mode: its dropout and batch norm do not act.",
            "Call model.train() at the start of each epoch.",
            "train_in_eval_mode",
        ),
        "dropout-in-eval-mode": Outcome(
            "alarm",
            "Dropout acts although the network is in eval mode.",
            "Pass training=self.training to F.dropout, or use nn.Dropout.",
            "dropout_never_off",
        ),
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._single: tuple[ModelCall, nn.Module] | None = None
        self._in_eval_mode: Counter[int] = Counter()

    def on_call(self, call: ModelCall) -> None:
        """Look at a call without gradients: two in a row, or one that no backward pass follows, are an evaluation."""
        if call.with_gradients:
            return
        layers = [module for module, training in call.layers if training and _acts(module)]
        if layers and self.watch.calls_without_gradients > 1 and self.watch.step:
            self._report(call, layers[0])
        elif layers and call.loaders:
            self._single = (call, layers[0])

    def after_backward(self, backward: BackwardPass) -> None:
        """A batch that a backward pass follows was not evaluated, unless its loader is never trained on."""
        if self._single is not None and not any(use.training for use in self._single[0].loaders):
            self._report(*self._single)
        self._single = None

    def _report(self, call: ModelCall, layer: nn.Module) -> None:
        text = f"{type(call.network).__name__} without gradients, {type(layer).__name__} in training mode"
        self.tell("evaluates-in-training-mode" if call.training else "layer-in-training-mode", text, call.place)

    def on_operation(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        """Look at functional dropout inside a network."""
        call = self.watch.inside
        if name != "dropout" or call is None:
            return
        given, options = args
        p = options.get("p", given[1] if len(given) > 1 else 0.5)
        if (
            options.get("training", given[2] if len(given) > 2 else True)
            and p
            and not is_in_training_mode(call.network)
        ):
            self.tell("dropout-in-eval-mode", f"p = {p:g} in {type(call.network).__name__}")

    def before_step(self, optimizer: AnyOptimizer) -> None:
        """Look at the calls that the update learns from."""
        wrong = [
            call
            for call in self.watch.calls
            if not call.training and any(not training and _acts(module) for module, training in call.layers)
        ]
        if wrong:
            self._in_eval_mode[0] += 1
            if self._in_eval_mode[0] == 2:
                network = type(wrong[-1].network).__name__
                self.tell("trains-in-eval-mode", f"{network} in eval mode in two updates", wrong[-1].place)


def _acts(module: nn.Module) -> bool:
    """Return whether the mode of a layer changes its outputs."""
    if isinstance(module, nn.modules.batchnorm._BatchNorm):
        return bool(module.track_running_stats)
    return bool(getattr(module, "p", 0) > 0)
