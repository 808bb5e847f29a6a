"""An experiment that is an ordinary training script with its own loop.

A script keeps seven rules, and everything else is its own:

1. `python script.py --data FILE --out FOLDER --seed SEED` trains. Importing the script only defines names.
2. The training batches come from a `DataLoader`, and the updates go through `torch.optim`.
3. Validation figures go to `track.log({"val_loss": ...}, step=...)`. Their names start with `val_`.
4. `torch.save({"model": ...}, out / "ckpt.pt")` writes the checkpoint; what else is in it is the script's own.
5. With `--resume`, a script that can resume continues from its checkpoint.
6. With `--evaluate`, the script does not train: it loads `ckpt.pt`, and logs the validation figures.
7. It reads no other files than `--data` and its checkpoints.
"""

import ast
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from harness.run.experiment import compile_source
from harness.run.settings import RunSettings

CHECKPOINT = "ckpt.pt"
RANKS = 2  # processes of a distributed script


@dataclass(frozen=True)
class Script:
    """A script. path: the file that error messages name."""

    path: Path
    source: str

    @property
    def can_resume(self) -> bool:
        """Whether the script has an option `--resume`."""
        return "--resume" in _texts(self.source)

    @property
    def ranks(self) -> int:
        """The number of processes that run the script together: 2 if it calls `init_process_group`, otherwise 1."""
        try:
            nodes = ast.walk(ast.parse(self.source))
        except SyntaxError:  # running the script says so
            return 1
        names = {getattr(node, "attr", getattr(node, "id", "")) for node in nodes}
        return RANKS if "init_process_group" in names else 1

    def run(self, arguments: list[str]) -> None:
        """Run the script as the main program of this process. Raises what the script raises, or `UserError`."""
        code = compile_source(self.path, self.source)
        module = ModuleType("__main__")
        module.__file__ = str(self.path)
        # pickle and DataLoader workers look up the script's classes in the main module.
        sys.modules["__main__"] = module
        sys.argv = [str(self.path), *arguments]
        exec(code, vars(module))  # noqa: S102 - running the script is what this program is for


@dataclass(frozen=True)
class ScriptSubject:
    """The source of a script, its settings, and the folder with its data; error messages name the file `path`."""

    path: Path
    source: str
    settings: RunSettings
    data: Path

    @property
    def script(self) -> Script:
        """The script."""
        return Script(self.path, self.source)


def _texts(source: str) -> frozenset[str]:
    """Return all string constants in a source."""
    nodes = ast.walk(ast.parse(source))
    return frozenset(node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
