"""Load an `experiment.py` and call its functions. Error messages name the line in the student's file.

An experiment is a module with the functions in `FUNCTIONS` and the constants in `CONSTANTS`. The functions in
`DEFAULTS` may be missing, and so may `predict`, which classifies raw examples.
"""

import inspect
import io
import linecache
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd
from torch.optim.lr_scheduler import LRScheduler

from harness.canonical_setup import canonical_setup
from harness.data import CLASS_NAMES, DATASETS
from harness.data.datasets import Dataset, Split
from harness.errors import UserError, printable, suggestion
from harness.recipes.form import DEFAULTS, FUNCTIONS
from harness.run.guardrails import GuardrailStop
from harness.run.settings import RunSettings

CONSTANTS = ("EPOCHS", "BATCH_SIZE")
_MODULE_NAME = "experiment"
T = TypeVar("T")


class HarnessFault(Exception):
    """An error in the harness during a call of a student's function.

    `Experiment.call` does not turn it into a `UserError`.
    """


@dataclass(frozen=True)
class TensorSplit:
    """The training or the validation examples as tensors.

    Inputs and labels are as in `Split`, but symbols are int64.
    """

    inputs: Tensor
    labels: Tensor

    @property
    def images(self) -> Tensor:
        """The inputs, if they are images: uint8 (N, C, H, W)."""
        return self.inputs

    @property
    def symbols(self) -> Tensor:
        """The inputs, if they are texts: int64 (N, T)."""
        return self.inputs


@dataclass(frozen=True)
class TensorData:
    """The data set that an experiment's `load_data` receives.

    Images and texts are already split into training and validation examples. A table is not split: `table` maps the
    name of each column, and of the target, to its values (N,), and the experiment splits the rows. The rows are sorted
    by the first column.
    """

    name: str
    train: TensorSplit
    validation: TensorSplit
    class_names: tuple[str, ...]
    table: Mapping[str, Tensor] = field(default_factory=dict)


def tensor_data(data: Dataset) -> TensorData:
    """Return the data set as torch tensors. They are copies, so an experiment may change them."""

    form = DATASETS[data.name]

    def split(part: Split) -> TensorSplit:
        inputs = torch.tensor(part.inputs)
        return TensorSplit(inputs.long() if form.kind == "tokens" else inputs, torch.tensor(part.labels))

    train, validation = split(data.train), split(data.validation)
    table: dict[str, Tensor] = {}
    if form.kind == "table":
        rows, target = torch.cat([train.inputs, validation.inputs]), torch.cat([train.labels, validation.labels])
        order = rows[:, 0].argsort(stable=True)
        table = dict(zip(form.columns, (*rows[order].unbind(dim=1), target[order]), strict=True))
    return TensorData(data.name, train, validation, CLASS_NAMES[data.name], table)


class Experiment:
    """A loaded experiment. Most methods call the experiment's function of the same name, and check what it returns.

    These methods raise `UserError` if the student's function raises an exception or returns the wrong type.
    """

    def __init__(self, path: Path, module: ModuleType) -> None:
        self.path = path
        self.module = module
        self._functions: dict[str, Callable[..., Any]] = {
            name: getattr(module, name) for name in (*FUNCTIONS, "predict") if hasattr(module, name)
        }

    @property
    def epochs(self) -> int:
        """The number of passes over the training split."""
        return int(self.module.EPOCHS)

    @property
    def batch_size(self) -> int:
        """The number of examples in a batch."""
        return int(self.module.BATCH_SIZE)

    @property
    def uses_amp(self) -> bool:
        """Whether the constant AMP says that the experiment trains under autocast."""
        return bool(getattr(self.module, "AMP", False))

    @property
    def serves(self) -> bool:
        """Whether the experiment has a function `predict`."""
        return "predict" in self._functions

    def set_up(self, settings: RunSettings) -> None:
        """Set the seeds, kernels and default dtype of this process for a new training run."""
        canonical_setup(settings.seed, settings.verify)

    def place(self, split: tuple[Tensor, Tensor], device: torch.device) -> tuple[Tensor, Tensor]:
        """Return inputs and labels on the device. Floating-point numbers get the default dtype."""
        dtype = torch.get_default_dtype()
        inputs, labels = (part.to(device, dtype if part.is_floating_point() else None) for part in split)
        return inputs, labels

    @property
    def frozen(self) -> tuple[str, ...]:
        """The name prefixes of parameters and buffers that training must not change, from the constant FROZEN."""
        given = getattr(self.module, "FROZEN", ())
        return (given,) if isinstance(given, str) else tuple(map(str, given))

    def apply(self, settings: RunSettings) -> None:
        """Set the experiment's constants to the values in the settings.

        Skip constants that the experiment does not have.
        """
        wanted = {
            "EPOCHS": settings.epochs,
            "BATCH_SIZE": settings.batch_size,
            "AUGMENT": False if settings.disable_augment or settings.overfits else None,
            "AMP": False if settings.disable_amp or settings.verify else None,
        }
        for name, value in wanted.items():
            if value is not None and hasattr(self.module, name):
                setattr(self.module, name, value)

    def scalers(self) -> dict[str, torch.amp.GradScaler]:
        """Return the gradient scalers among the experiment's module-level variables, by variable name."""
        found = vars(self.module).items()
        return {name: value for name, value in found if isinstance(value, torch.amp.GradScaler)}

    def call(self, name: str, *arguments: object) -> Any:
        """Call a function of the experiment.

        If it raises an exception, raise a `UserError` that shows the student's lines.
        """
        try:
            return self._functions[name](*arguments)
        except (HarnessFault, GuardrailStop, KeyboardInterrupt):
            raise
        except (Exception, SystemExit) as error:
            raise UserError(mistake(error, self.path, name)) from error

    def load_data(self, data: TensorData) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """Return ((train inputs, train targets), (validation inputs, validation targets)).

        The first dimension is the example.
        """
        result = self.call("load_data", data)
        if not (_is_pair(result) and all(_is_tensor_pair(part) for part in result)):
            raise self._wrong("load_data", "((inputs, labels), (inputs, labels)), each a tensor", result)
        train, validation = (self._examples("load_data", *split) for split in result)
        if any(not part.is_floating_point() and part.dtype != torch.int64 for part in (*train, *validation)):
            raise self._wrong("load_data", "tensors of floating-point numbers or torch.int64", result)
        return train, validation

    def _examples(self, function: str, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return inputs and labels.

        Raises `UserError` if there are no examples, or if inputs and labels differ in number.
        """
        if not len(inputs) or len(inputs) != len(labels):
            raise self._wrong(function, "as many labels as inputs, and at least one", (inputs, labels))
        return inputs, labels

    def build_model(self) -> nn.Module:
        """Return the network."""
        return self._call_for("a torch.nn.Module", nn.Module, "build_model")

    def build_optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """Return the optimizer that updates the network's parameters."""
        return self._call_for("a torch.optim.Optimizer", torch.optim.Optimizer, "build_optimizer", model)

    def build_scheduler(self, optimizer: torch.optim.Optimizer, total_steps: int) -> LRScheduler | None:
        """Return the learning-rate schedule, or None.

        It is stepped once a batch, but `ReduceLROnPlateau` once an epoch, with the validation loss.
        """
        expected = "a scheduler of torch.optim.lr_scheduler that steps once a batch, or None"
        if "build_scheduler" not in self._functions:
            return None
        scheduler = self.call("build_scheduler", optimizer, total_steps)
        if scheduler is not None and not isinstance(scheduler, LRScheduler):
            raise self._wrong("build_scheduler", expected, scheduler)
        return scheduler

    def prepare_batch(self, inputs: Tensor, labels: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return the batch as the experiment prepares it for the network."""
        if "prepare_batch" not in self._functions:
            return inputs, labels
        result = self.call("prepare_batch", inputs, labels, rng)
        if not _is_tensor_pair(result):
            raise self._wrong("prepare_batch", "(inputs, labels), two tensors", result)
        return self._examples("prepare_batch", *result)

    def compute_loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the loss, a scalar tensor."""
        loss = self._call_for("a scalar tensor", Tensor, "compute_loss", outputs, labels)
        if loss.numel() != 1:
            raise self._wrong("compute_loss", "a scalar tensor", loss)
        return loss

    def train_step(self, model: nn.Module, optimizer: torch.optim.Optimizer, inputs: Tensor, labels: Tensor) -> Tensor:
        """Make one training step and return the loss, a detached scalar tensor."""
        loss = self.call("train_step", model, optimizer, inputs, labels)
        if isinstance(loss, float):
            return torch.tensor(loss, dtype=torch.float64)
        if not (isinstance(loss, Tensor) and loss.numel() == 1):
            raise self._wrong("train_step", "the loss, a scalar tensor", loss)
        return loss.detach()

    def evaluate(self, model: nn.Module, inputs: Tensor, labels: Tensor) -> dict[str, float | None]:
        """Return `val_loss` and `val_accuracy` (None if the experiment does not return it)."""
        result = self.call("evaluate", model, inputs, labels)
        if not isinstance(result, dict) or "val_loss" not in result:
            raise self._wrong("evaluate", 'a dict with "val_loss" and, for classes, "val_accuracy"', result)
        metrics: dict[str, float | None] = {}
        for name in ("val_loss", "val_accuracy"):
            value = result.get(name)
            if isinstance(value, Tensor) and value.numel() == 1:
                value = value.item()
            if not isinstance(value, int | float) and not (value is None and name == "val_accuracy"):
                raise self._wrong("evaluate", f"a number as {name!r}", value)
            metrics[name] = None if value is None else float(value)
        return metrics

    def predict(self, model: nn.Module, raw: Tensor) -> Tensor:
        """Return the classes that the experiment predicts for raw examples, as int64 (B,)."""
        served = self._call_for("classes, a tensor (B,) of torch.int64", Tensor, "predict", model, raw)
        if served.shape != raw.shape[:1] or served.is_floating_point():
            raise self._wrong("predict", "classes, a tensor (B,) of torch.int64", served)
        return served

    def _call_for(self, expected: str, kind: type[T], name: str, *arguments: object) -> T:
        result = self.call(name, *arguments)
        if not isinstance(result, kind):
            raise self._wrong(name, expected, result)
        return result

    def _wrong(self, function: str, expected: str, found: object) -> UserError:
        # Unwrap decorators such as `torch.no_grad`, because the line number of a wrapper is in torch.
        code = getattr(inspect.unwrap(self._functions[function]), "__code__", None)
        line = code.co_firstlineno if code is not None else "?"
        return UserError(
            f"{self.path}, line {line}: {function} must return {expected}, but returned {_describe(found)}."
        )


def load_experiment(path: Path, source: str) -> Experiment:
    """Load the source of an experiment and check that it has every function and constant.

    path: the file that error messages name. Raises `UserError` if the source cannot be loaded or is incomplete.
    """
    code = compile_source(path, source)
    module = ModuleType(_MODULE_NAME)
    module.__file__ = str(path)
    # pickle, dataclasses and other libraries look up a module's classes in sys.modules.
    sys.modules[_MODULE_NAME] = module
    try:
        exec(code, module.__dict__)  # noqa: S102 - running the experiment is what this program is for
    except KeyboardInterrupt:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "track":  # only scripts have it
            main = 'if __name__ == "__main__":'
            raise UserError(f"{path} has no block `{main}`, without which a script cannot run: put it back.") from error
        raise UserError(
            f"{path} raised {_headline(error)} when it was loaded\n{_student_lines(error, path)}Fix that line."
        ) from error
    _check_parts(module, path)
    return Experiment(path, module)


def compile_source(path: Path, source: str) -> CodeType:
    """Return the code of a source. Raises `UserError` that names the file and the line if it is not valid Python."""
    # So tracebacks show the line that ran, even if the file does not exist or was edited later.
    lines = io.StringIO(source, newline=None).readlines()
    linecache.cache[str(path)] = (len(source), None, lines, str(path))
    try:
        return compile(source, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or "?"
        detail = getattr(error, "msg", None) or str(error) or type(error).__name__
        end = "" if detail.endswith(("?", ".", "!")) else "."
        text = (getattr(error, "text", None) or "").strip()
        shown = f"\n  line {line}: {printable(text)}\n" if text else " "
        raise UserError(f"{path}, line {line} is not valid Python: {detail}{end}{shown}Fix that line.") from None


def _check_parts(module: ModuleType, path: Path) -> None:
    own = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
    for name in FUNCTIONS:
        if not callable(getattr(module, name, None)) and not (name in DEFAULTS and not hasattr(module, name)):
            hint = suggestion(name, own) if own else "the file has no functions at all."
            raise UserError(f"{path} has no function {name}: put it back; {hint}")
    for name in CONSTANTS:
        value = getattr(module, name, None)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise UserError(f"{path}: {name} must be a whole number above 0, but is {_describe(value)}.")


def disable_dropout(model: nn.Module) -> None:
    """Set the probability of every dropout layer in `model` to 0. This does not affect calls of `F.dropout`."""
    for module in model.modules():
        if isinstance(module, _DropoutNd):
            module.p = 0.0
        elif isinstance(module, nn.RNNBase | nn.MultiheadAttention):
            module.dropout = 0.0


def _describe(value: object) -> str:
    """Return a short description of a value: its type, and the shape of tensors and sequences."""
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)} and {value.dtype}"
    if isinstance(value, list | tuple):
        return f"({', '.join(_describe(item) for item in value[:4])}{', ...' if len(value) > 4 else ''})"
    if value is None:
        return "None"
    return f"{type(value).__name__} {str(value)[:60]!r}"


def mistake(error: BaseException, path: Path, what: str) -> str:
    """Return the message about an exception in the student's file. what: the function, or the file, that raised it."""
    return (
        f"{path}: {what} raised {_headline(error)}\n"
        f"{_student_lines(error, path)}"
        f"Fix that line{' or its arguments' if _is_in_torch(error) else ''}, then run the same command again."
    )


def _student_lines(error: BaseException, path: Path) -> str:
    """Return the lines of a traceback in the student's file, outermost first, and the layer that raised the error."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    lines = [f"  line {frame.lineno}, in {frame.name}: {frame.line}\n" for frame in frames[-5:]]
    last = _last_frame(error)
    layer = last.f_locals.get("self")
    if isinstance(layer, nn.Module) and last.f_code.co_name.endswith("forward") and _is_in_torch(error):
        lines.append(f"  in the layer {printable(layer, 120)}\n")
    return "".join(lines)


def _last_frame(error: BaseException) -> FrameType:
    return [frame for frame, _ in traceback.walk_tb(error.__traceback__)][-1]


def _is_in_torch(error: BaseException) -> bool:
    """Return whether torch raised the error, perhaps because the student's line has wrong arguments."""
    return str(_last_frame(error).f_globals.get("__name__")).startswith("torch.")


def _headline(error: BaseException) -> str:
    """Return the type of an error and the first line of its message."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


def _is_pair(value: object) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2


def _is_tensor_pair(value: Any) -> bool:
    return _is_pair(value) and all(isinstance(item, Tensor) and item.dim() >= 1 for item in value)
