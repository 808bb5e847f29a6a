"""Inside the sandbox: run the functions of many edited experiments, and write down what no training code does.

`../input/programs.json` holds the sources. `out/found.json` gets, for each, its `events`: forbidden builtins and
imports, audit events of Python, and what it has left behind in torch, in its module or in its network; and `ended`,
whether all functions returned.
"""

import builtins
import contextlib
import io
import itertools
import json
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, ModuleType, SimpleNamespace
from typing import Any

import torch
from torch import nn

INPUT, OUT = Path("../input/programs.json"), Path("out/found.json")
IMAGES = SimpleNamespace(images=torch.arange(8 * 784).view(8, 1, 28, 28) % 251, labels=torch.arange(8) % 10)
DATA = SimpleNamespace(train=IMAGES, validation=IMAGES)


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


# The builtins that training code calls; a class statement and an import have one each.
HARMLESS = words(
    """
    abs all any bool dict divmod enumerate filter float frozenset hasattr id int isinstance iter len list map max min
    next object pow print range repr reversed round set slice sorted str sum super tuple zip __build_class__ __name__
    __debug__ True False None Ellipsis NotImplemented
    """
) | {name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, Exception)}
MODULES = words(
    """
    torch torch.nn torch.nn.functional torch.optim torch.optim.lr_scheduler torch.utils.data torch.amp torch.nn.init
    collections collections.abc contextlib copy dataclasses logging math time typing harness.run.schedules __future__
    """
)
# Libraries look at functions and frames when plain code makes a class, a log line or a generator.
LIBRARIES = ("/dataclasses.py", "/collections/__init__.py", "/typing.py", "/logging/__init__.py", "/inspect.py",
             "/traceback.py", "/run_programs.py")  # fmt: skip
OF_LIBRARIES = {"compile", "exec", "sys._getframe", "object.__getattr__", "object.__setattr__"}
# And torch imports parts of itself when they are first needed.
OF_IMPORTS = {"import", "marshal.loads", "exec", "open", "compile"}
EVENTS: list[str] = []
ARMED = [False]
COUNT = itertools.count()


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Note an audit event while a program runs."""
    if not ARMED[0]:
        return
    ARMED[0] = False
    try:
        frame: FrameType | None = sys._getframe(1)
        while frame and frame.f_code.co_filename.startswith("<frozen importlib"):
            frame = frame.f_back
        file = frame.f_code.co_filename if frame else ""
        if event == "builtins.id" or (event in OF_LIBRARIES and file.endswith(LIBRARIES)):
            return
        source = str(arguments[0]).endswith((".py", ".pyc")) and "w" not in str(arguments[1:2])
        of_import = (
            event in OF_IMPORTS and (event != "open" or source) and (event != "import" or is_of_torch(arguments))
        )
        if not (of_import and "experiment.py" not in file):
            EVENTS.append(f"{event} {str(arguments)[:80]} in {file[-40:]}")
    finally:
        ARMED[0] = True


def is_of_torch(arguments: tuple[Any, ...]) -> bool:
    """Return whether an import is one of torch's own, or finds what is there already."""
    return str(arguments[0]).startswith("torch.") or arguments[0] in sys.modules


def wired(name: str, function: Any) -> Any:
    """Return a builtin that notes its call."""

    def call(*arguments: Any, **named: Any) -> Any:
        EVENTS.append(f"builtin {name}")
        return function(*arguments, **named)

    return call


def imported(name: str, *arguments: Any, **named: Any) -> Any:
    """Import for a program, and note what is not listed."""
    if name not in MODULES:
        EVENTS.append(f"import {name}")
    return builtins.__import__(name, *arguments, **named)


BUILTINS = {name: value if name in HARMLESS else wired(name, value) for name, value in vars(builtins).items()}
BUILTINS["__import__"] = imported


def surroundings() -> dict[str, Any]:
    """Return what every program shares: it must be the same after each."""
    watched: dict[str, Any] = {}
    for owner in (torch, nn, nn.functional, nn.init, torch.optim, torch.optim.lr_scheduler, builtins, logging, sys):
        watched |= {f"{owner.__name__}.{name}": id(value) for name, value in vars(owner).items()}
    for kind in (nn.Module, nn.Linear, nn.ReLU, nn.Sequential, torch.optim.SGD, torch.optim.Optimizer, torch.Tensor):
        watched |= {f"{kind.__name__}.{name}": id(value) for name, value in vars(kind).items()}
    watched["flags"] = (
        torch.is_grad_enabled(), torch.is_anomaly_enabled(), torch.is_inference_mode_enabled(), torch.get_num_threads(),
        torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled(), torch.is_autocast_enabled("cpu"),
    )  # fmt: skip
    watched["handlers"] = sorted({type(item).__name__ for item in logging.getLogger().handlers} - {"StreamHandler"})
    watched["files"] = sorted(str(path) for folder in (".", "/tmp", "/dev/shm") for path in Path(folder).rglob("*"))
    return {name: value for name, value in watched.items() if name not in LASTING}


# A schedule wraps its optimizer's step.
OF_SCHEDULES = ("step", "_opt_called")
# These change by themselves.
LASTING = {"sys.last_type", "sys.last_value", "sys.last_traceback", "logging._handlerList", "sys.last_exc"}


def kept(value: Any, depth: int = 4) -> Any:
    """Return what a program may not change from one call to the next: all but tensors, modes and rates."""
    if depth == 0 or isinstance(value, torch.Tensor | logging.Logger | type):
        return type(value).__name__
    if isinstance(value, nn.Module):
        own = {name: item for name, item in vars(value).items() if name not in ("training", "_buffers", "_version")}
        return type(value).__name__, kept(own, depth), [kept(item, depth - 1) for item in value.children()]
    if isinstance(value, torch.optim.Optimizer):
        hidden = ("lr", "params", "initial_lr")
        groups = [
            {name: kept(item, 2) for name, item in group.items() if name not in hidden} for group in value.param_groups
        ]
        own = {name: item for name, item in vars(value).items() if name not in ("state", "param_groups", *OF_SCHEDULES)}
        return groups, [len(group["params"]) for group in value.param_groups], kept(own, 2)
    if isinstance(value, dict):
        return {str(key): kept(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [kept(item, depth - 1) for item in value]
    if callable(value) and hasattr(value, "__code__"):
        return id(value.__code__), kept(value.__defaults__, 2), kept(value.__kwdefaults__, 2), kept(vars(value), 2)
    if hasattr(value, "__dict__") and not isinstance(value, ModuleType):
        return type(value).__name__, kept(vars(value), depth - 1)
    if isinstance(value, Iterator):
        return f"an iterator that counts {next(COUNT)}"
    return repr(value) if isinstance(value, int | float | str | bool | None) else id(value)


def globals_of(module: ModuleType) -> dict[str, Any]:
    """Return what a program keeps in its module."""
    hidden = ("__builtins__", "__warningregistry__")
    return {name: kept(value) for name, value in vars(module).items() if name not in hidden}


def changed(before: Any, after: Any, where: str) -> list[str]:
    """Return in what two dictionaries differ."""
    names = before.keys() | after.keys()
    return [f"{where} {name}" for name in sorted(names) if before.get(name) != after.get(name)]


def run(source: str) -> bool:
    """Load a program and call its functions, twice; return whether all returned."""
    module = ModuleType("experiment")
    vars(module)["__builtins__"] = BUILTINS
    sys.modules["experiment"] = module
    torch.manual_seed(0)
    ended = True
    code = compile(source, "experiment.py", "exec", dont_inherit=True)
    ARMED[0] = True
    try:
        exec(code, vars(module))
    except Exception:
        return False
    finally:
        ARMED[0] = False
    globals_before = globals_of(module)
    experiment: Any = module
    ARMED[0] = True
    try:
        train, validation = experiment.load_data(DATA)
        model = experiment.build_model()
        optimizer = experiment.build_optimizer(model)
    except Exception:
        return False
    finally:
        ARMED[0] = False
    calls = [
        (experiment.train_step, (model, optimizer, *train)), (experiment.evaluate, (model, *validation)),
        (experiment.train_step, (model, optimizer, *train)),
    ]  # fmt: skip
    if helper := vars(experiment).get("helper"):
        calls.append((helper, (torch.ones(2, 784),)))
    if isinstance(vars(experiment).get("Other"), type):
        calls.append((try_class, (experiment.Other,)))
    before = {"model": kept(model), "optimizer": kept(optimizer)}
    for function, arguments in calls:
        ARMED[0] = True
        try:
            function(*arguments)
        except Exception:
            ended = False
        finally:
            ARMED[0] = False
    EVENTS.extend(changed(before, {"model": kept(model), "optimizer": kept(optimizer)}, "left in"))
    EVENTS.extend(changed(globals_before, globals_of(module), "left in the module"))
    return ended


def try_class(kind: Any) -> None:
    """Make an object of a program's own class, and ask it for its result."""
    if issubclass(kind, nn.Module):
        kind()(torch.ones(2, 784))
    else:
        kind(1).get()


def main() -> int:
    """Run all programs."""
    programs = json.loads(INPUT.read_text(encoding="utf-8"))
    found = []
    sys.addaudithook(watch)
    run(programs[0])  # what libraries load with their first use
    EVENTS.clear()
    before = surroundings()
    for source in programs:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            ended = run(source)
        after = surroundings()
        EVENTS.extend(changed(before, after, "left outside:"))
        before = after
        torch.set_grad_enabled(True)
        found.append({"ended": ended, "events": EVENTS[:20]})
        EVENTS.clear()
    OUT.write_text(json.dumps(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    os.environ.clear()
    sys.exit(main())
