"""Batch norm has enough values for its statistics, and averages them over many batches."""

from typing import ClassVar

import torch
from torch import nn

from trainwreck.check import Check
from trainwreck.events import ModelCall
from trainwreck.finding import Outcome
from trainwreck.trees import tensors

# figure                                    | usual                    | broken                        | bound
# examples of a batch                       | 8 and more (source below) | 1 or 2                       | FEW 4
# share of the latest batch in the averages | 0.1 (default of torch)    | 0.99 (a momentum of Keras)   | LARGE 0.5
# cosine of the weights of a copy and of the network | 0 (a new network) | 1 (a copy) | COPY 0.5, an estimate
FEW, LARGE, COPY = 4, 0.5, 0.5
_CALLS = 3  # the last batch of an epoch may be small


class BatchNorm(Check):
    """Batch norm sees at least four examples, and the latest batch has a small share in its running averages.

    Source: Y. Wu and K. He, "Group Normalization" (2018), figure 1: the error grows below 8 examples.
    """

    name = "batch-norm"
    question = "Does batch norm have enough examples, and slow averages?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "few-examples": Outcome(
            "advice",
            "Batch norm computes its statistics from very few examples.",
            "Use larger batches, group norm, or frozen statistics.",
        ),
        "never-updated": Outcome(
            "advice",
            "A network is evaluated with running averages of batch norm that no batch has changed.",
            "Copy the buffers along with the weights, or update them with torch.optim.swa_utils.update_bn.",
            "average_without_buffers",
        ),
        "not-copied": Outcome(
            "advice",
            "A copy of the trained network is evaluated with running averages of batch norm that no batch has changed.",
            "Copy the buffers along with the averaged weights.",
            "average_without_buffers",
        ),
        "fast-averages": Outcome(
            "advice",
            "The running averages of batch norm follow the latest batch, so eval mode depends on it.",
            "The momentum of torch is the share of the new batch. Its default is 0.1.",
        ),
    }
    _small = 0

    def on_call(self, call: ModelCall) -> None:
        """Look at the batch norm layers that ran in training mode."""
        if not call.with_gradients:
            self._judge_evaluation(call)
            return
        layers = [
            layer for layer, training in call.layers if isinstance(layer, nn.modules.batchnorm._BatchNorm) and training
        ]
        given = next((tensor for tensor in tensors((call.args, call.kwargs)) if tensor.dim() > 1), None)
        network = type(call.network).__name__
        for layer in layers:
            if layer.track_running_stats and layer.momentum is not None and layer.momentum > LARGE:
                self.tell("fast-averages", f"momentum {layer.momentum:g} in {network}", call.place)
        if layers and given is not None and given.size(0) < FEW:
            self._small += 1
            if self._small == _CALLS:
                self.tell("few-examples", f"{given.size(0)} examples in a batch of {network}", call.place)

    def _judge_evaluation(self, call: ModelCall) -> None:
        """Look at averages that are as they were made, after some updates of another network."""
        if call.training or self.watch.step < _CALLS or id(call.network) in self.watch.networks:
            return
        for layer, _ in call.layers:
            if not isinstance(layer, nn.modules.batchnorm._BatchNorm) or layer.running_mean is None:
                continue
            is_new = layer.num_batches_tracked is not None and int(layer.num_batches_tracked) == 0
            if is_new and not bool(layer.running_mean.any()):
                is_copy = any(_is_copy(call.network, network) for network in self.watch.networks.values())
                self.tell(
                    "not-copied" if is_copy else "never-updated",
                    f"a {type(layer).__name__} of {type(call.network).__name__}",
                    call.place,
                )


def _is_copy(network: nn.Module, other: nn.Module) -> bool:
    """Return whether two networks of one class have similar weights, as an average of the weights has."""
    if type(network) is not type(other):
        return False
    pairs = zip(network.parameters(), other.parameters(), strict=False)
    alike = [
        float(torch.cosine_similarity(one.detach().flatten(), own.detach().flatten(), dim=0))
        for one, own in pairs
        if one.dim() > 1 and one.shape == own.shape
    ]
    return bool(alike) and min(alike) > COPY
