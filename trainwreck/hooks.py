"""Put hooks into torch that report a training to a `Watch`, and take them out again.

A script needs no change: the hooks see each call of a network, loss, backward pass, optimizer step, clipping, gradient
scaler and data loader of the thread that installed them. They change no value and no random state.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.overrides import TorchFunctionMode

from trainwreck.events import LoaderUse, LossCall, ModelCall
from trainwreck.places import here
from trainwreck.state import Watch
from trainwreck.trees import clone, tensors
from trainwreck.trial import send_answer

LOSSES = {
    getattr(F, name): name
    for name in (
        "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cross_entropy",
        "ctc_loss", "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss",
        "margin_ranking_loss", "mse_loss", "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss",
        "nll_loss", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss", "triplet_margin_loss",
    )
}  # fmt: skip
DROPOUTS = {
    getattr(F, name)
    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
}
_DIFFERENCES = {"sub", "__sub__", "rsub", "__rsub__", "subtract"}
_COMPARISONS = {"eq", "__eq__", "ne", "__ne__"}
# Layers that behave differently in training and in eval mode.
MODAL_LAYERS = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._BatchNorm)
_MOST_LAYERS = 200  # of one call


class Hooks:
    """The hooks of one watch. Use it as a context manager, or call `install` and `remove`."""

    def __init__(self, watch: Watch, on_update: Callable[[], None] | None = None) -> None:
        self.watch = watch
        self._on_update = on_update
        self._undo: list[Callable[[], object]] = []
        self._rates: list[Any] = []  # the learning rates that a trial has changed for one update
        self._thread = threading.get_ident()
        self._mode = _Operations(self)
        # Loaders that gave a batch since the last call of a network, since the last backward pass, and to a call
        # without gradients that no backward pass has followed yet.
        self._since_call: list[LoaderUse] = []
        self._since_backward: set[LoaderUse] = set()
        self._unanswered: set[LoaderUse] = set()

    def __enter__(self) -> Hooks:
        self.install()
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    @property
    def sees(self) -> bool:
        """Whether what runs now is an event: not a check, another thread, or a compilation."""
        watch = self.watch
        if not watch.active or watch.busy or torch.compiler.is_compiling():
            return False
        return threading.get_ident() == self._thread

    def install(self) -> None:
        """Put all hooks in."""
        self._wrap(nn.Module, "__call__", self._module_call)
        self._wrap(torch.autograd, "backward", self._backward)
        self._wrap(torch.utils.data.DataLoader, "__iter__", self._loader_iter)
        for module in (nn.utils, nn.utils.clip_grad):
            for name in ("clip_grad_norm_", "clip_grad_value_"):
                self._wrap(module, name, self._clip)
        for name in ("scale", "unscale_", "step", "update"):
            self._wrap(torch.amp.GradScaler, name, self._scaler_method(name))
        self._undo += [
            register_optimizer_step_pre_hook(self._before_step).remove,
            register_optimizer_step_post_hook(self._after_step).remove,
        ]
        self._mode.__enter__()  # type: ignore[no-untyped-call]
        self._undo.append(lambda: self._mode.__exit__(None, None, None))  # type: ignore[no-untyped-call]
        self.watch.active = True

    def remove(self) -> None:
        """Take all hooks out. A second call does nothing."""
        self.watch.active = False
        while self._undo:
            self._undo.pop()()

    def _wrap(self, owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        """Replace a function of a class or a module by one that calls it."""
        own = name in vars(owner)
        old = vars(owner)[name] if own else getattr(owner, name)
        setattr(owner, name, make(old))
        self._undo.append(lambda: setattr(owner, name, old) if own else delattr(owner, name))

    # --- networks

    def _module_call(self, old: Callable[..., Any]) -> Callable[..., Any]:
        def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if not self.sees:
                return old(module, *args, **kwargs)
            if self.watch.inside is not None:
                self._note_layer(self.watch.inside, module)
                return old(module, *args, **kwargs)
            if next(module.parameters(), None) is None:  # a loss or an activation, not a network
                return old(module, *args, **kwargs)
            return self._call_network(old, module, args, kwargs)

        return call

    def _call_network(
        self, old: Callable[..., Any], network: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        loaders, self._since_call = tuple(self._since_call), []
        call = ModelCall(network, args, kwargs, torch.is_grad_enabled(), network.training, here(), loaders)
        self._note_layer(call, network)
        self._since_backward |= set(loaders)
        if not call.with_gradients:
            self._unanswered |= set(loaders)
        self.watch.inside = call
        try:
            output = old(network, *args, **kwargs)
        finally:
            self.watch.inside = None
        self.watch.model_called(call)
        return output

    @staticmethod
    def _note_layer(call: ModelCall, module: nn.Module) -> None:
        if isinstance(module, MODAL_LAYERS) and len(call.layers) < _MOST_LAYERS:
            call.layers.append((module, module.training))

    # --- gradients and updates

    def _backward(self, old: Callable[..., Any]) -> Callable[..., Any]:
        def backward(*args: Any, **kwargs: Any) -> Any:
            if not self.sees:
                return old(*args, **kwargs)
            roots = list(tensors(args[0] if args else kwargs.get("tensors")))
            for use in self._since_backward | set(self._since_call):
                use.training += 1
            self._since_call, self._since_backward, self._unanswered = [], set(), set()
            begun = self.watch.backward_begins(roots, here())
            result = old(*args, **kwargs)
            self.watch.backward_ended(begun)
            return result

        return backward

    def _before_step(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not self.sees:
            return None
        if self.watch.trial is not None:
            self._rates = [group["lr"] for group in optimizer.param_groups]
            for group in optimizer.param_groups:
                group["lr"] = group["lr"] * self.watch.trial.rate
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        if closure is None:
            self.watch.step_begins(optimizer)
            return None
        calls = 0

        def counted() -> Any:
            nonlocal calls
            loss = closure()
            calls += 1
            if calls == 1:
                self.watch.step_begins(optimizer)
            else:
                self.watch.emit("on_repeated_closure", optimizer)
            return loss

        return ((args[0], counted, *args[2:]), kwargs) if len(args) > 1 else (args, {**kwargs, "closure": counted})

    def _after_step(self, optimizer: Optimizer, _args: tuple[Any, ...], _kwargs: dict[str, Any]) -> None:
        if not self.sees:
            return
        for group, rate in zip(optimizer.param_groups, self._rates, strict=False):
            group["lr"] = rate
        self._rates = []
        self.watch.step_ended(optimizer)
        trial = self.watch.trial
        if trial is not None and trial.is_over(self.watch.step):
            send_answer({"losses": trial.losses})
        if trial is None and self._on_update is not None:
            self._on_update()

    def _clip(self, old: Callable[..., Any]) -> Callable[..., Any]:
        def clip(parameters: Any, *args: Any, **kwargs: Any) -> Any:
            if self.sees:
                parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
                self.watch.emit("on_clip", parameters)
            return old(parameters, *args, **kwargs)

        return clip

    def _scaler_method(self, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def make(old: Callable[..., Any]) -> Callable[..., Any]:
            def method(scaler: Any, *args: Any, **kwargs: Any) -> Any:
                if self.sees and scaler.is_enabled():
                    self.watch.scale = scaler.get_scale()
                    optimizer = args[0] if args and isinstance(args[0], Optimizer) else kwargs.get("optimizer")
                    self.watch.emit("on_scaler", name, scaler, optimizer)
                before = self.watch.step
                result = old(scaler, *args, **kwargs)
                if name == "step" and self.sees and scaler.is_enabled() and self.watch.step == before:
                    self.watch.emit("on_skipped_step", args[0] if args else kwargs["optimizer"])
                return result

            return method

        return make

    # --- data

    def _loader_iter(self, old: Callable[..., Any]) -> Callable[..., Any]:
        def make_iterator(loader: Any) -> Any:
            iterator = old(loader)
            return _Batches(self, loader, iterator) if self.sees else iterator

        return make_iterator

    def loader_asked(self, use: LoaderUse) -> None:
        """Note that the script asks a loader for a batch: a batch without a backward pass was only evaluated."""
        if use in self._unanswered:
            self._unanswered.discard(use)
            self._since_backward.discard(use)

    def batch_given(self, use: LoaderUse, batch: Any) -> None:
        """Note a batch."""
        use.last = batch
        self._since_call.append(use)


class _Batches:
    """The iterator of a data loader, which reports the batches. Other attributes are the real iterator's."""

    def __init__(self, hooks: Hooks, loader: Any, inner: Any) -> None:
        self._hooks, self._inner = hooks, inner
        self._use = hooks.watch.loaders.setdefault(id(loader), LoaderUse(loader))

    def __iter__(self) -> Iterator[Any]:
        return self

    def __len__(self) -> int:
        return len(self._inner)

    def __next__(self) -> Any:
        sees = self._hooks.sees
        if sees:
            self._hooks.loader_asked(self._use)
            trial = self._hooks.watch.trial
            if trial is not None and trial.same_batch and self._use.kept is not None and self._use.training:
                return self._give(clone(self._use.kept))
        batch = next(self._inner)
        return self._give(batch) if sees else batch

    def _give(self, batch: Any) -> Any:
        self._hooks.batch_given(self._use, batch)
        return batch

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_inner"], name)


class _Operations(TorchFunctionMode):
    """Sees losses, functional dropout, `detach` inside a network, and differences of tensors outside of networks."""

    def __init__(self, hooks: Hooks) -> None:
        super().__init__()
        self._hooks = hooks

    def __torch_function__(
        self, function: Any, _types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        hooks = self._hooks
        if not hooks.sees:
            return function(*args, **kwargs)
        if function in LOSSES:
            return self._loss(function, args, kwargs)
        if function in DROPOUTS:
            if hooks.watch.trial is not None and not hooks.watch.trial.dropout:
                return args[0] if args else kwargs["input"]
            hooks.watch.emit("on_operation", "dropout", (args, kwargs), None)
        elif function is Tensor.detach:
            if hooks.watch.inside is not None and torch.is_grad_enabled() and args[0].requires_grad:
                hooks.watch.emit("on_operation", "detach", args, None)
        elif (
            hooks.watch.inside is None
            and len(args) == 2
            and isinstance(args[0], Tensor)
            and isinstance(args[1], Tensor)
        ):
            name = getattr(function, "__name__", "")
            kind = "difference" if name in _DIFFERENCES else "comparison" if name in _COMPARISONS else ""
            if kind and args[0].shape != args[1].shape:
                result = function(*args, **kwargs)
                hooks.watch.emit("on_operation", kind, args, result)
                return result
        return function(*args, **kwargs)

    def _loss(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        watch = self._hooks.watch
        value = function(*args, **kwargs)
        given = {**dict(zip(("input", "target"), args, strict=False)), **kwargs}
        outputs = given.pop("input", None)
        targets = given.pop("target", None)
        if isinstance(outputs, Tensor) and isinstance(targets, Tensor) and isinstance(value, Tensor):
            watch.emit("on_loss", LossCall(LOSSES[function], outputs, targets, given, value, here()))
        return value
