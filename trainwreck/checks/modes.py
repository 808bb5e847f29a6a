"""Networks are trained in training mode and evaluated in eval mode."""

from collections import Counter
from typing import Any, ClassVar

from torch import nn

from trainwreck.check import Check
from trainwreck.events import AnyOptimizer, BackwardPass, ModelCall, is_in_training_mode
from trainwreck.finding import Outcome

_TRAINED, _SHOWN = 3, 2  # updates before the train method of a network is looked at; names


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
            "dropout_never_off",
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
        "own-train-unused": Outcome(
            "advice",
            "The network has a train method that freezes weights, but the script never calls it, so they are trained.",
            "Call model.train() before the training, or freeze the weights where the network is made.",
        ),
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._single: tuple[ModelCall, nn.Module] | None = None
        self._in_eval_mode: Counter[int] = Counter()
        self._updates: Counter[int] = Counter()  # by network with a train method of its own

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
        for network in {id(call.network): call.network for call in self.watch.calls if call.training}.values():
            if any(type(module).train is not nn.Module.train for module in network.modules()):
                self._updates[id(network)] += 1
                if self._updates[id(network)] == _TRAINED:
                    self._judge_train(network)
        wrong = [
            call
            for call in self.watch.calls
            if not call.training and any(not training and _acts(module) for module, training in call.layers)
        ]
        if wrong:
            self._in_eval_mode[0] += 1
            if self._in_eval_mode[0] == 2:
                text = f"{type(wrong[-1].network).__name__} in eval mode in two updates"
                self.tell("trains-in-eval-mode", text, wrong[-1].place)

    def _judge_train(self, network: nn.Module) -> None:
        """Let a child call the train method of a network, and see whether it freezes weights that get gradients."""
        frozen = self.watch.probe(lambda: _frozen_by_train(network))
        if frozen:
            network_name = type(network).__name__
            shown = ", ".join(f"{network_name}.{name}" for name in frozen[:_SHOWN])
            text = f"train() freezes {len(frozen)} parameters that are trained, such as {shown}"
            self.tell("own-train-unused", text, f"the train method of {network_name}")


def _frozen_by_train(network: nn.Module) -> list[str]:
    """Return the names of the parameters with a gradient that `train` freezes. Leave the network as it is."""
    trained = [(name, one) for name, one in network.named_parameters() if one.requires_grad and one.grad is not None]
    modes = [(module, module.training) for module in network.modules()]
    network.train()
    frozen = [(name, one) for name, one in trained if not one.requires_grad]
    for _, one in frozen:
        one.requires_grad_(True)
    for module, mode in modes:
        module.training = mode
    return [name for name, _ in frozen]


def _acts(module: nn.Module) -> bool:
    """Return whether the mode of a layer changes its outputs."""
    if isinstance(module, nn.modules.batchnorm._BatchNorm):
        return bool(module.track_running_stats)
    return bool(getattr(module, "p", 0) > 0)
