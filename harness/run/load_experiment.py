"""Loads an `experiment.py` and checks that it has every function and constant."""

import inspect
import sys
from pathlib import Path
from types import ModuleType

from harness.errors import UserError
from harness.recipe import suggestion
from harness.run.experiment import FUNCTIONS, Experiment, describe, headline, student_frames

CONSTANTS = ("EPOCHS", "BATCH_SIZE")
_MODULE_NAME = "experiment"


def load_experiment(path: Path, source: str) -> Experiment:
    """Load the source of an experiment and check that it has every function and constant.

    `path` is the file that errors name. Raises `UserError` for a source that does not parse, raises when
    loaded, or lacks a part.
    """
    try:
        code = compile(source, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        detail = getattr(error, "msg", None) or str(error) or type(error).__name__
        raise UserError(
            f"{path}, line {line or '?'}: the file does not parse: {detail}. Mend that line."
        ) from None
    module = ModuleType(_MODULE_NAME)
    module.__file__ = str(path)
    # Classes defined in the file are looked up through here, by pickle and dataclasses among others.
    sys.modules[_MODULE_NAME] = module
    try:
        exec(code, module.__dict__)  # noqa: S102 - running the experiment is what this program is for
    except KeyboardInterrupt:
        raise
    except (Exception, SystemExit) as error:
        raise UserError(
            f"{path} raised {headline(error)} when it was loaded\n{student_frames(error, path)}Mend that line."
        ) from error
    _check_shape(module, path)
    return Experiment(path, module)


def _check_shape(module: ModuleType, path: Path) -> None:
    own = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
    for name, arguments in FUNCTIONS.items():
        function = getattr(module, name, None)
        if not callable(function):
            raise UserError(
                f"{path} has no function {name}: put it back; {suggestion(name, own) if own else 'it has none at all.'}"
            )
        try:
            inspect.signature(function).bind(*range(arguments))
        except TypeError:
            raise UserError(
                f"{path}: {name} must take {arguments} arguments: give it the parameters it had."
            ) from None
        except ValueError:
            pass  # a builtin without a signature: the call itself will tell
    for name in CONSTANTS:
        value = getattr(module, name, None)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise UserError(f"{path}: {name} must be a whole number above 0, but is {describe(value)}.")
