"""Put hooks into torch that report a training to a `Watch`, and take them out again.

A script needs no change: the hooks see each call of a network, loss, backward pass, optimizer step, clipping, gradient
scaler and data loader of the thread that installed them. They change no value and no random state.
"""

from __future__ import annotations

import builtins
import re
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.overrides import TorchFunctionMode, _pop_mode, _push_mode

from trainwreck.answers import answers_for
from trainwreck.events import LoaderUse, LossCall, ModelCall, Noise, is_in_training_mode
from trainwreck.places import Place, here, names_of
from trainwreck.state import Watch, node_number
from trainwreck.trees import checksum, clone, tensors

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
_DROPOUT_AT = 4  # the place of dropout_p among the arguments of scaled_dot_product_attention
_DIFFERENCES = {"sub", "__sub__", "rsub", "__rsub__", "subtract"}
_PRODUCTS = {"mul", "__mul__", "__rmul__", "multiply", "div", "__truediv__", "true_divide"}
_SUMS = {"add", "__add__", "__radd__", "__iadd__", "add_"} | _DIFFERENCES
_SQUASHES = {"sigmoid", "softmax", "log_softmax"}
_THRESHOLDS = {"gt", "__gt__", "ge", "__ge__", "lt", "__lt__", "le", "__le__"}
_MAXIMA = {"argmax", "max", "topk"}
_COMPARISONS = {"eq", "__eq__", "ne", "__ne__"}
_DRAWS = {"normal_", "uniform_", "kaiming_uniform_", "kaiming_normal_"}
_OF_DATA = {"normal_", "uniform_", "copy_"}  # which scripts also apply to `parameter.data`
_FILLS = _DRAWS | {"copy_", "fill_", "zero_", "__setitem__"}
_PARTS = {"__getitem__", "index_select", "split", "chunk"}
_RESHAPES = {"reshape", "view", "reshape_as", "view_as"}
_RESHAPING = {getattr(owner, name) for owner in (torch, Tensor) for name in _RESHAPES if hasattr(owner, name)}
_RANDOM = {"randn", "randn_like", "rand", "rand_like", "randint", "randint_like", "normal"}
_MADE = {"tensor", "as_tensor"}
_NORMS = {"norm", "linalg_norm", "linalg_vector_norm"}
_JOINS = {"cat", "concat", "concatenate", "stack"}
_ASSIGNED = re.compile(r"transforms?|augment(ation)?s?")  # attributes of a data set
_CASTS = {"float", "double", "long", "int", "to", "type", "cpu"}
_KINDS = {"difference": _DIFFERENCES, "comparison": _COMPARISONS, "product": _PRODUCTS}
# The names of operations that a check may want to know: everywhere, and only outside of networks.
_EVERYWHERE = _SQUASHES | _FILLS | _RESHAPES | _RANDOM | _MADE | _JOINS | {"detach", "scaled_dot_product_attention"}
_OUTSIDE = _NORMS | _PARTS | _MAXIMA | _THRESHOLDS | _COMPARISONS | _SUMS | _PRODUCTS
_MOST_FUNCTIONS = 2000
# Layers that behave differently in training and in eval mode.
MODAL_LAYERS = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._BatchNorm)
_MOST_LAYERS = 200  # of one call
_MOST_IDLE = 50
_FEW = 2  # classes
_EPOCHS = 6  # Where epochs are made short, later ones have one batch, so that the script comes to its end.


class Hooks:
    """The hooks of one watch. Use it as a context manager, or call `install` and `remove`."""

    def __init__(self, watch: Watch, on_update: Callable[[], None] | None = None) -> None:
        self.watch = watch
        self._on_update = on_update
        self._undo: list[Callable[[], object]] = []
        self._inside_scheduler = 0
        self.in_update = False  # an optimizer makes an update, whose operations no check wants to know
        self.in_loader = False  # a loader makes a batch
        self._inside_state = False  # a module collects the states of its parts
        self._made_by_hand = False  # a script without an optimizer has made an update
        # Samples of distributions, and the distributions.
        self._actions: dict[int, tuple[weakref.ref[Tensor], weakref.ref[Any]]] = {}
        self._rates: list[Any] = []  # the learning rates that a trial has changed for one update
        self._thread = threading.get_ident()
        self.last_call: ModelCall | None = None
        self.idle: list[tuple[Tensor, Place]] = []  # losses without gradients, and multiples of them
        # The latest comparison of predictions with labels, of which a loss ignores some: its result, and both.
        self.hits: tuple[Tensor, tuple[Any, ...]] | None = None
        # The latest gradient of a value for each example, as for a penalty.
        self.gradient: weakref.ref[Tensor] | None = None
        self.unreduced: tuple[Tensor, Tensor] | None = None  # the latest losses of an evaluation, one for each target
        self._has_kept_inputs = False  # in a trial without a loader, the latest call got the kept inputs
        self._labels: Tensor | None = None  # in a trial with answers, the labels of the latest evaluated batch
        self._targets: dict[Any, tuple[list[float], float]] = {}  # in a trial: sums of the inputs, and of the targets
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
        """Whether what runs now is an event: not a check, another thread, a compilation, or a transform of torch.func.

        Values inside of a transform such as `vmap` are wrappers, which cannot be copied or compared.
        """
        watch = self.watch
        if not watch.active or watch.busy or torch.compiler.is_compiling() or torch._C._get_tracing_state():
            return False
        if torch._C._functorch.peek_interpreter_stack() is not None:
            return False
        return threading.get_ident() == self._thread

    @property
    def follows_tensors(self) -> bool:
        """Whether there are tensors whose later uses a check wants to know."""
        watch = self.watch
        return bool(watch.drawn or watch.made or watch.noise or self.idle or self.hits is not None)

    def install(self) -> None:
        """Put all hooks in."""
        self._wrap(nn.Module, "__call__", self._module_call)
        self._wrap(torch.autograd, "backward", self._backward)
        self._wrap(torch.autograd, "grad", self._gradient)
        self._wrap(torch.utils.data.DataLoader, "__iter__", self._loader_iter)
        for module in (nn.utils, nn.utils.clip_grad):
            for name in ("clip_grad_norm_", "clip_grad_value_"):
                self._wrap(module, name, self._clip)
        self._wrap(torch.utils.data.DataLoader, "__len__", self._loader_length)
        self._wrap(torch.utils.data.Dataset, "__setattr__", self._assign)
        self._wrap(torch, "save", self._save)
        self._wrap(builtins, "print", self._print)
        for module in (torch, torch.random):
            self._wrap(module, "manual_seed", self._seed)
        self._wrap(Optimizer, "__init__", self._make_optimizer)
        self._wrap(warnings, "showwarning", self._show_warning)
        self._wrap(nn.Module, "load_state_dict", self._load)
        self._wrap(nn.Module, "state_dict", self._state)
        self._wrap(torch.optim.swa_utils.AveragedModel, "update_parameters", self._average)
        for name, make in (("sample", self._sample), ("log_prob", self._log_prob)):
            for distribution in _classes_with(name, torch.distributions):
                self._wrap(distribution, name, make)
        for name in ("scale", "unscale_", "step", "update"):
            self._wrap(torch.amp.GradScaler, name, self._scaler_method(name))
        for scheduler in _classes_with("step", torch.optim.lr_scheduler):
            self._wrap(scheduler, "step", self._scheduler_step)
        self._undo += [
            register_optimizer_step_pre_hook(self._before_step).remove,
            register_optimizer_step_post_hook(self._after_step).remove,
        ]
        self._mode.__enter__()  # type: ignore[no-untyped-call]
        self._undo.append(self._leave_mode)
        self.watch.active = True

    def _leave_mode(self) -> None:
        """Leave the function mode, and keep those that the script has entered since, such as `torch.device`."""
        later = []
        while (mode := _pop_mode()) is not self._mode:
            later.append(mode)
        for mode in reversed(later):
            _push_mode(mode)

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
            if self._made_by_hand and self._on_update is not None:
                self._made_by_hand = False
                self._on_update()  # not inside the backward pass, where the mode is switched off and cannot be removed
                if not self.sees:
                    return old(module, *args, **kwargs)
            if next(module.parameters(), None) is None:  # a loss or an activation, not a network
                return old(module, *args, **kwargs)
            return self._call_network(old, module, args, kwargs)

        return call

    def _call_network(
        self, old: Callable[..., Any], network: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        self.in_update = False  # the step of an optimizer that failed does not end
        loaders, self._since_call = tuple(self._since_call), []
        call = ModelCall(network, args, kwargs, torch.is_grad_enabled(), is_in_training_mode(network), here(), loaders)
        self._note_layer(call, network)
        if call.with_gradients and loaders:
            for use in self._unanswered - set(loaders):  # a batch of another loader came: theirs were evaluated
                self.loader_asked(use)
        self._since_backward |= set(loaders)
        if not call.with_gradients:
            self._unanswered |= set(loaders)
        if self._replaces_inputs and call.with_gradients:
            args, kwargs = call.args, call.kwargs = self._kept_inputs(call)
        self.watch.inside = call
        try:
            output = old(network, *args, **kwargs)
        finally:
            self.watch.inside = None
        made = list(tensors(output))
        call.output_shapes = tuple(tuple(one.shape) for one in made)
        call.outputs = tuple(map(weakref.ref, made))
        numbers = [node_number(one.grad_fn) for one in made if one.grad_fn is not None]
        call.nodes = frozenset(number for number in numbers if number is not None)
        if self.watch.trial is not None and self.watch.trial.answers and not call.with_gradients:
            output = self._answer(call, output)
        self.last_call = call
        self.watch.model_called(call)
        return output

    def _answer(self, call: ModelCall, output: Any) -> Any:
        """In a trial, return right or wrong answers in place of the outputs for a batch of an evaluation."""
        batch = call.loaders[-1].last if call.loaders else None
        assert self.watch.trial is not None
        if not isinstance(batch, tuple | list) or len(batch) != 2 or call.loaders[-1].training:
            return output
        kinds = self.watch.answered
        if len(kinds) != 1:
            return output
        is_right, shares = self.watch.trial.answers == "right", "shares" in kinds
        answer = answers_for(output, batch[1], are_right=is_right, are_shares=shares)
        if answer is None:
            return output
        self._labels = batch[1].flatten()
        return answer

    def compare(self, args: tuple[Any, ...], result: Any) -> None:
        """In a trial with answers, count the predictions that equal the labels of the latest batch."""
        labels = self._labels
        if labels is None or not isinstance(result, Tensor) or result.numel() != labels.numel():
            return
        with torch.no_grad(), torch._C.DisableTorchFunction():
            flat = [one.flatten().to(labels.device) for one in args if one.numel() == labels.numel()]
            if any(bool((one == labels).all()) for one in flat):
                self.watch.compared[0] += int(result.sum())
                self.watch.compared[1] += result.numel()
                self._labels = None  # a second metric of the same batch may mean something else

    @property
    def _replaces_inputs(self) -> bool:
        """Whether a trial wants the same batch, and no loader can give it."""
        trial = self.watch.trial
        return trial is not None and trial.same_batch and not any(use.training for use in self.watch.loaders.values())

    def _kept_inputs(self, call: ModelCall) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the kept inputs of a network, or the inputs of this call if the kept ones have other shapes."""
        kept = self.watch.kept.get(id(call.network))
        given = (call.args, call.kwargs)
        self._has_kept_inputs = kept is not None and _have_equal_shapes(given, (kept.args, kept.kwargs))
        if kept is None or not self._has_kept_inputs:
            return given
        return clone(kept.args), clone(kept.kwargs)

    def kept_targets(self, targets: Any) -> Any:
        """Return the kept targets of a loss, or its own ones if they have other shapes."""
        if not self._replaces_inputs or not isinstance(targets, Tensor):
            return targets
        call = self.watch.inside or self.last_call
        kept = self.watch.kept.get(id(call.network)) if call is not None else None
        equal = [one.targets for one in kept.losses if one.targets.shape == targets.shape] if kept is not None else []
        if not equal and kept is not None and kept.losses and self._has_kept_inputs:
            self.watch.mixes_batches = True
        return equal[0].clone() if equal else targets

    def compare_targets(self, loss: LossCall) -> None:
        """In a trial with the same batch, note a loss whose targets change while the inputs of the network stay."""
        watch = self.watch
        if watch.trial is None or not watch.trial.same_batch or not loss.with_gradients or loss.call is None:
            return
        inputs = [one for one in tensors((loss.call.args, loss.call.kwargs)) if one.shape != loss.targets.shape]
        targets = loss.targets
        if not inputs or (targets.is_floating_point() and not bool(((targets == 0) | (targets == 1)).all())):
            return  # targets may be computed, as by a teacher
        with torch.no_grad(), torch._C.DisableTorchFunction():
            key = (len(watch.loss_calls), tuple(loss.targets.shape))
            now = ([float(checksum(one)) for one in inputs], float(checksum(loss.targets)))
        before = self._targets.setdefault(key, now)
        if before[0] == now[0] and before[1] != now[1]:
            watch.targets_vary = loss.place

    @staticmethod
    def _note_layer(call: ModelCall, module: nn.Module) -> None:
        if isinstance(module, MODAL_LAYERS) and len(call.layers) < _MOST_LAYERS:
            call.layers.append((module, module.training))

    def _load(self, old: Callable[..., Any]) -> Callable[..., Any]:
        def load(module: nn.Module, state: Any, *args: Any, **kwargs: Any) -> Any:
            if self.sees:
                self.watch.emit("on_load", module, state, here())
            return old(module, state, *args, **kwargs)

        return load

    def _state(self, old: Callable[..., Any]) -> Callable[..., Any]:
        def state_dict(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            # A module calls this method of its parts with the dictionary to fill.
            is_outer, self._inside_state = not self._inside_state, True
            filled = args[0] if args else kwargs.get("destination")
            try:
                if is_outer and filled and self.sees:
                    self.watch.emit("on_fill_state", module, filled, here())
                found = old(module, *args, **kwargs)
            finally:
                self._inside_state = not is_outer
            if is_outer and filled is None and self.sees and self.watch.step:
                self.watch.emit("on_state", module, found, here())
            return found

        return state_dict

    def _assign(self, old: Callable[..., Any]) -> Callable[..., Any]:
        del old  # of `object`: a class may have a parent after `Dataset` that sets attributes itself

        def assign(data: torch.utils.data.Dataset[Any], name: str, value: Any) -> None:
            if _ASSIGNED.fullmatch(name) and name in vars(data) and self.sees:
                self.watch.emit("on_transform", data, name, value, here())
            super(torch.utils.data.Dataset, data).__setattr__(name, value)

        return assign

    def _print(self, old: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(old)  # so that it can be pickled
        def show(*values: Any, **options: Any) -> None:
            if self.sees and self.watch.step:
                self.watch.emit("on_print", values, here())
            old(*values, **options)

        return show

    def _save(self, old: Callable[..., Any]) -> Callable[..., Any]:
        def save(thing: Any, *args: Any, **kwargs: Any) -> Any:
            if self.sees:
                self.watch.emit("on_save", thing, here())
            return old(thing, *args, **kwargs)

        return save

    def _average(self, old: Callable[..., Any]) -> Callable[..., Any]:
        def update(model: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if self.sees:
                self.watch.emit("on_average", model)
            return old(model, *args, **kwargs)

        return update

    def _sample(self, old: Callable[..., Any]) -> Callable[..., Any]:
        def sample(distribution: Any, *args: Any, **kwargs: Any) -> Any:
            drawn = old(distribution, *args, **kwargs)
            if self.sees and self.watch.inside is None and isinstance(drawn, Tensor):
                self._actions[id(drawn)] = weakref.ref(drawn), weakref.ref(distribution)
            return drawn

        return sample

    def _log_prob(self, old: Callable[..., Any]) -> Callable[..., Any]:
        def log_prob(distribution: Any, value: Any) -> Any:
            score = old(distribution, value)
            action, source = self._actions.get(id(value), (None, None))
            if action is None or source is None or not self.sees or not isinstance(score, Tensor):
                return score
            if action() is value and source() is distribution and score.requires_grad and self.last_call is not None:
                self.watch.emit("on_score", score, self.last_call)
            return score

        return log_prob

    # --- gradients and updates

    def _backward(self, old: Callable[..., Any]) -> Callable[..., Any]:
        def backward(*args: Any, **kwargs: Any) -> Any:
            if not self.sees:
                return old(*args, **kwargs)
            roots = list(tensors(args[0] if args else kwargs.get("tensors")))
            evaluated = {use for call in self.watch.set_evaluations_apart() for use in call.loaders}
            trained = {use for call in self.watch.calls for use in call.loaders}
            for use in self._since_backward | set(self._since_call):
                if use in evaluated - trained:
                    use.evaluating += 1
                else:
                    use.training += 1
            self._since_call, self._since_backward, self._unanswered, self.idle = [], set(), set(), []
            self._actions.clear()
            before = self.watch.step
            begun = self.watch.backward_begins(roots, here())
            self._made_by_hand |= self.watch.step > before
            result = old(*args, **kwargs)
            self.watch.backward_ended(begun)
            return result

        return backward

    def _gradient(self, old: Callable[..., Any]) -> Callable[..., Any]:
        def gradient(*args: Any, **kwargs: Any) -> Any:
            result = old(*args, **kwargs)
            if self.sees and kwargs.get("create_graph"):
                given = dict(zip(("outputs", "inputs"), args, strict=False)) | kwargs
                outputs, inputs = (list(tensors(given.get(name))) for name in ("outputs", "inputs"))
                if len(outputs) == len(inputs) == 1 and inputs[0].dim() and outputs[0].numel() == inputs[0].size(0) > 1:
                    self.gradient = weakref.ref(result[0])
            return result

        return gradient

    def _make_optimizer(self, old: Callable[..., Any]) -> Callable[..., Any]:
        def init(optimizer: Optimizer, *args: Any, **kwargs: Any) -> None:
            old(optimizer, *args, **kwargs)
            if self.sees:
                self.watch.made_at[optimizer] = here()

        return init

    def _show_warning(self, old: Callable[..., Any]) -> Callable[..., Any]:
        """Let a warning about the caller of a function of torch name the script, and not the hook around it."""

        def show(message: Any, category: Any, filename: str, lineno: int, *more: Any, **kwargs: Any) -> None:
            place = here() if filename == __file__ else None
            if place is not None and place.line:
                filename, lineno = place.file, place.line
            old(message, category, filename, lineno, *more, **kwargs)

        return show

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
            self.in_update = True
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
        self.in_update = False
        if not self.sees:
            return
        for group, rate in zip(optimizer.param_groups, self._rates, strict=False):
            group["lr"] = rate
        self._rates = []
        self.watch.step_ended(optimizer)
        if self._on_update is not None:
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

    def _scheduler_step(self, old: Callable[..., Any]) -> Callable[..., Any]:
        def step(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            place = here() if self.sees and not self._inside_scheduler else None
            self._inside_scheduler += 1  # a scheduler may call the same method of its parts or of its base class
            try:
                return old(scheduler, *args, **kwargs)
            finally:
                self._inside_scheduler -= 1
                if place is not None:
                    self.watch.scheduler_stepped(scheduler, place)

        return step

    # --- data

    def _seed(self, old: Callable[..., Any]) -> Callable[..., Any]:
        def manual_seed(seed: Any) -> Any:
            if self.sees:
                self.watch.seeds.append(int(seed))
            return old(seed)

        return manual_seed

    def _loader_length(self, old: Callable[..., Any]) -> Callable[..., Any]:
        def length(loader: Any) -> int:
            batches = self.watch.batches if self.sees or self.watch.busy else 0
            whole: int = old(loader)
            return min(whole, batches or whole)

        return length

    def _loader_iter(self, old: Callable[..., Any]) -> Callable[..., Any]:
        def make_iterator(loader: Any) -> Any:
            iterator = old(loader)
            return _Batches(self, loader, iterator) if self.sees else iterator

        return make_iterator

    def loader_asked(self, use: LoaderUse) -> None:
        """Note that the script asks a loader for a batch: a batch without a backward pass was only evaluated."""
        if use in self._unanswered:
            use.evaluating += 1
            self._unanswered.discard(use)
            self._since_backward.discard(use)

    def batch_given(self, use: LoaderUse, batch: Any, number: int) -> None:
        """Note a batch and its number in the epoch."""
        use.last = batch
        self._since_call.append(use)
        self.watch.emit("on_batch", use, batch, number)


class _Batches:
    """The iterator of a data loader, which reports the batches. Other attributes are the real iterator's."""

    def __init__(self, hooks: Hooks, loader: Any, inner: Any) -> None:
        self._hooks, self._inner = hooks, inner
        loaders = hooks.watch.loaders
        if id(loader) not in loaders:
            loaders[id(loader)] = LoaderUse(loader, frozenset(names_of(loader)))
        self._use = loaders[id(loader)]
        self._use.epochs += 1
        self._number = 0

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
                batch = clone(self._use.kept)
                return self._give(trial.edit(batch) if trial.edit is not None else batch)
            most = self._hooks.watch.batches
            if most and self._number >= (most if self._use.epochs <= _EPOCHS else 1):
                raise StopIteration
        hooks, was_inside = self._hooks, self._hooks.in_loader
        hooks.in_loader |= sees
        try:
            batch = next(self._inner)
        finally:
            hooks.in_loader = was_inside
        return self._give(batch) if sees else batch

    def _give(self, batch: Any) -> Any:
        self._hooks.batch_given(self._use, batch, self._number)
        self._number += 1
        return batch

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_inner"], name)


class _Operations(TorchFunctionMode):
    """Sees losses, functional dropout, `detach` inside a network, and differences of tensors outside of networks."""

    def __init__(self, hooks: Hooks) -> None:
        super().__init__()
        self._hooks = hooks
        # The functions seen so far, those that no check wants to know, and those that none wants to know in networks.
        self._sorted: set[Any] = set()
        self._plain: set[Any] = set()
        self._outer: set[Any] = set()

    def __torch_function__(
        self, function: Any, _types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        # A training calls some thousand operations in an update. Most of them must cost next to nothing.
        hooks, watch = self._hooks, self._hooks.watch
        if torch._C._get_tracing_state():  # torch.jit.trace compares two calls, also the lines that called an operation
            return function(*args, **(kwargs or {}))
        is_plain = function in self._plain or (watch.inside is not None and function in self._outer)
        # In a loader they are of single examples, and no check sees those of workers.
        is_skipped = hooks.in_update or (hooks.in_loader and function not in _RESHAPING)
        if is_skipped or (is_plain and not hooks.follows_tensors):
            return function(*args, **kwargs) if kwargs else function(*args)
        kwargs = kwargs or {}
        if function not in self._sorted:
            self._sort(function)
        if not hooks.sees:
            return function(*args, **kwargs)
        if function in LOSSES:
            return self._loss(function, args, kwargs)
        if (watch.drawn or watch.made) and getattr(function, "__name__", "") != "__get__":
            self._note_uses(args, kwargs)  # but the shape is not the values
        result = self._see(function, args, kwargs)
        if watch.noise:
            self._follow_noise(getattr(function, "__name__", ""), args, result)
        return result

    def _sort(self, function: Any) -> None:
        """Note whether a check may want to know a function, and where."""
        if len(self._sorted) > _MOST_FUNCTIONS:
            return
        self._sorted.add(function)
        name = getattr(function, "__name__", "")
        if not (name in _EVERYWHERE or function in LOSSES or function in DROPOUTS):
            (self._outer if name in _OUTSIDE else self._plain).add(function)

    def _see(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function that is no loss, and report what checks want to know."""
        hooks = self._hooks
        if hooks.idle and (place := self._idle_place(function, args)) is not None:
            return self._follow_idle(place, function, args, kwargs)
        if function in DROPOUTS or function is F.scaled_dot_product_attention:
            return self._dropout(function, args, kwargs)
        name = getattr(function, "__name__", "")
        if name in _RESHAPES or name in _RANDOM or name in _MADE:
            return self._new_tensor(name, function, args, kwargs)
        if name in _SQUASHES and args and isinstance(args[0], Tensor):
            hooks.watch.emit("on_operation", "squash", args, function.__name__)
        elif getattr(function, "__name__", "") in _FILLS:
            filled = args[0] if args else kwargs.get("tensor")  # the functions of nn.init name it
            if isinstance(filled, nn.Parameter) or (isinstance(filled, Tensor) and function.__name__ in _OF_DATA):
                hooks.watch.emit("on_fill", function.__name__ in _DRAWS, filled, here())
        elif function is Tensor.detach:
            if hooks.watch.inside is not None and torch.is_grad_enabled() and args[0].requires_grad:
                hooks.watch.emit("on_operation", "detach", args, None)
        elif hooks.watch.inside is None and args and isinstance(args[0], Tensor):
            return self._outside(function, args, kwargs)
        return function(*args, **kwargs)

    def _note_uses(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Forget the unused tensors that an operation uses."""
        for arg in (*args, *kwargs.values()):
            for part in arg if isinstance(arg, list | tuple) else (arg,):
                self._hooks.watch.drawn.pop(id(part), None)
                self._hooks.watch.made.pop(id(part), None)

    def _follow_noise(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        """Note products and sums with random tensors, and what such tensors become a part of."""
        noise = self._hooks.watch.noise
        joined = name in _JOINS and args and isinstance(args[0], list | tuple)
        if not joined and name not in _SUMS | _PRODUCTS:
            return
        for part in args[0] if joined else args:
            found = noise.get(id(part))
            if found is None or found.tensor() is not part or not isinstance(result, Tensor):
                continue
            if joined:
                found.is_joined = True
            elif id(result) not in noise or name in _SUMS:
                kind = "mixed" if name in _SUMS or found.kind == "mixed" else "scaled"
                noise[id(result)] = Noise(weakref.ref(result), kind, found.name, found.place)

    def _new_tensor(self, name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """See random tensors, tensors of other values, and tensors of another shape."""
        hooks, result = self._hooks, function(*args, **kwargs)
        if name in _RANDOM and isinstance(result, Tensor) and hooks.watch.step:
            ref = weakref.ref(result)
            hooks.watch.drawn[id(result)] = ref
            hooks.watch.noise[id(result)] = Noise(ref, "drawn", name, here())
        elif name in _MADE and kwargs.get("requires_grad") and any(one.requires_grad for one in tensors(args)):
            hooks.watch.emit("on_operation", "cut", args, result)
        elif name in _MADE and isinstance(result, Tensor) and result.dim() and hooks.watch.step:
            hooks.watch.made[id(result)] = weakref.ref(result), here()
        elif name in _RESHAPES and args and isinstance(args[0], Tensor) and _moves_axes(args[0].shape, result.shape):
            hooks.watch.emit("on_operation", "reshape", args, result)
        return result

    def _idle_place(self, function: Any, args: tuple[Any, ...]) -> Place | None:
        """Return the place of a loss without gradients that a sum or a product gets, or None."""
        if getattr(function, "__name__", "") not in _SUMS | _PRODUCTS:
            return None
        return next((place for loss, place in self._hooks.idle if any(loss is arg for arg in args)), None)

    def _follow_idle(self, place: Place, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """See whether a loss without gradients, or a multiple of it, is added to a value with gradients."""
        result = function(*args, **kwargs)
        if isinstance(result, Tensor) and not result.requires_grad:
            self._hooks.idle.append((result, place))
        elif function.__name__ in _SUMS:
            self._hooks.watch.emit("on_operation", "idle term", args, place)
        return result

    def _dropout(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """See dropout, also inside an attention, or leave it out in a trial without dropout."""
        hooks = self._hooks
        is_off = hooks.watch.trial is not None and not hooks.watch.trial.dropout
        if function in DROPOUTS:
            if is_off:
                return args[0] if args else kwargs["input"]
            hooks.watch.emit("on_operation", "dropout", (args, kwargs), None)
        else:
            by_place = len(args) > _DROPOUT_AT
            p = args[_DROPOUT_AT] if by_place else kwargs.get("dropout_p", 0.0)
            if p and is_off:
                args = (*args[:_DROPOUT_AT], 0.0, *args[_DROPOUT_AT + 1 :]) if by_place else args
                kwargs = kwargs if by_place else {**kwargs, "dropout_p": 0.0}
            elif p:
                hooks.watch.emit("on_operation", "dropout", ((None, p, True), {}), None)
        return function(*args, **kwargs)

    def _outside(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """See parts of tensors, maxima, differences and comparisons outside of networks."""
        hooks, name = self._hooks, getattr(function, "__name__", "")
        if hooks.hits is not None:
            if args[0] is hooks.hits[0]:
                return self._count_hits(name, function, args, kwargs)
            if name in ("numel", "nelement") and any(args[0] is one for one in hooks.hits[1]):
                hooks.watch.emit("on_operation", "hits mean", hooks.hits[1], None)
        if name in _PARTS:
            part = function(*args, **kwargs)
            if len(args) > 1 and isinstance(args[1], Tensor) and not args[0].requires_grad:
                hooks.watch.emit("on_operation", "selection", args, part)
            hooks.watch.parts.extend(one for one in tensors(part) if one.dim() and not one.requires_grad)
            return part
        if name in _MAXIMA:
            dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
            if isinstance(dim, int):
                hooks.watch.emit("on_operation", "maximum", (args[0], dim), None)
        elif name in _NORMS and hooks.gradient is not None and args[0] is hooks.gradient():
            norm = function(*args, **kwargs)
            hooks.watch.emit("on_operation", "gradient norm", args, norm)
            return norm
        elif len(args) == 2 and isinstance(args[1], float) and name in _THRESHOLDS:
            hooks.watch.emit("on_operation", "threshold", args, None)
        elif len(args) == 2 and isinstance(args[1], Tensor):
            return self._binary(name, function, args, kwargs)
        return function(*args, **kwargs)

    def _binary(self, name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """See differences, products and comparisons of two tensors."""
        hooks = self._hooks
        kind = next((kind for kind, names in _KINDS.items() if name in names), "")
        if kind == "product" and hooks.unreduced is not None and any(one is hooks.unreduced[0] for one in args):
            mask = args[1] if args[0] is hooks.unreduced[0] else args[0]
            hooks.watch.emit("on_operation", "masked losses", (hooks.unreduced[1], mask), None)
        trial = hooks.watch.trial
        answers = kind == "comparison" and trial is not None and trial.answers and not torch.is_grad_enabled()
        is_metric = name in ("eq", "__eq__") and args[0].shape == args[1].shape and not torch.is_grad_enabled()
        is_metric |= name in ("eq", "__eq__") and _are_one_hot(args[0], args[1])
        if is_metric and not answers:
            result = function(*args, **kwargs)
            hooks.hits = result, args
            self._note_answers(*args[:2])
            return result
        if answers or (kind and args[0].shape != args[1].shape):
            result = function(*args, **kwargs)
            if answers:
                hooks.compare(args, result if name in ("eq", "__eq__") else ~result)
            else:
                hooks.watch.emit("on_operation", kind, args, result)
            return result
        return function(*args, **kwargs)

    def _note_answers(self, one: Tensor, other: Tensor) -> None:
        """In a trial, note what an evaluation compares: a prediction and a label for each example of a call."""
        watch, call = self._hooks.watch, self._hooks.last_call
        if watch.trial is None or call is None or call.with_gradients or not call.output_shapes:
            return
        shape = call.output_shapes[0]
        if one.shape == other.shape and one.dim() and shape and one.numel() == shape[0]:
            with torch.no_grad(), torch._C.DisableTorchFunction():
                watch.agreement.add(watch.step, one, other)

    def _count_hits(self, name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """See whether the hits are counted as they are, or only where a mask says so."""
        hooks, result = self._hooks, function(*args, **kwargs)
        assert hooks.hits is not None
        compared = hooks.hits[1]
        if name in ("sum", "mean", "count_nonzero"):
            hooks.watch.emit("on_operation", f"hits {name}", compared, None)
        elif name == "__getitem__" and isinstance(args[1], Tensor):
            hooks.watch.emit("on_operation", "selected hits", (*compared, args[1]), None)
        # After a sum, the script may divide it by the number of the labels.
        hooks.hits = (result, compared) if name in _CASTS or name in ("sum", "item") else None
        return result

    def _loss(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        hooks, watch = self._hooks, self._hooks.watch
        for given in (*args, *kwargs.values()):
            watch.made.pop(id(given), None)
        if len(args) > 1 and torch.is_grad_enabled():
            args = (args[0], hooks.kept_targets(args[1]), *args[2:])
        value = function(*args, **kwargs)
        given = {**dict(zip(("input", "target"), args, strict=False)), **kwargs}
        outputs = given.pop("input", None)
        targets = given.pop("target", None)
        if isinstance(outputs, Tensor) and isinstance(targets, Tensor) and isinstance(value, Tensor):
            call = watch.inside or hooks.last_call
            loss = LossCall(LOSSES[function], outputs, targets, given, value, here(), call)
            hooks.compare_targets(loss)
            hooks.unreduced = (value, targets) if value.shape == targets.shape and not loss.with_gradients else None
            watch.loss_called(loss)
            is_trained = call is not None and call.with_gradients and call.training
            if is_trained and torch.is_grad_enabled() and not value.requires_grad and len(hooks.idle) < _MOST_IDLE:
                hooks.idle.append((value, loss.place))
        return value


def _have_equal_shapes(one: Any, other: Any) -> bool:
    """Return whether two trees have tensors of the same shapes."""
    return [tensor.shape for tensor in tensors(one)] == [tensor.shape for tensor in tensors(other)]


def _are_one_hot(one: Tensor, other: Tensor) -> bool:
    """Return whether two tables (N, C) have only the values 0 and 1, and a single 1 in each row of the second."""
    if one.dim() != 2 or one.shape != other.shape or other.size(1) <= _FEW or other.size(0) < _FEW:
        return False
    with torch.no_grad(), torch._C.DisableTorchFunction():
        is_binary = all(bool(((values == 0) | (values == 1)).all()) for values in (one, other))
        return is_binary and bool((other.sum(1) == 1).all())


def _moves_axes(before: Any, after: Any) -> bool:
    """Return whether one shape has the sizes of the other in another order. Sizes of 1 do not count."""
    if len(before) < 2 or before == after:
        return False
    one, other = ([size for size in shape if size != 1] for shape in (before, after))
    return len(one) > 1 and one != other and sorted(one) == sorted(other)


def _classes_with(method: str, module: Any) -> set[type]:
    """Return the classes of a module that have a method of their own, such as the `step` of a scheduler."""
    return {value for value in vars(module).values() if isinstance(value, type) and method in vars(value)}
