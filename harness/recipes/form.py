"""Tell scripts from experiments with functions. This module does not import torch."""

import ast

FUNCTIONS = (
    "load_data", "build_model", "build_optimizer", "build_scheduler", "prepare_batch", "compute_loss", "train_step",
    "evaluate",
)  # fmt: skip
"""The functions that an experiment with functions has. It may leave out those in `DEFAULTS`."""
DEFAULTS = ("build_scheduler", "prepare_batch")
"""Functions that may be missing: then the learning rate is constant, and a batch is used as it is."""
_FEW = 3  # a file with fewer of them is no experiment with a mistake, but another program


def has_functions(tree: ast.Module) -> bool:
    """Return whether this is an experiment with functions, perhaps without some of them."""
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return len(defined & {*FUNCTIONS}) >= _FEW


def is_script(source: str) -> bool:
    """Return whether this is the source of a script: it has a block `if __name__ == "__main__":` at the top level.

    In an experiment with functions, such a block never runs, because the harness imports the file.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    has_main = any(isinstance(node, ast.If) and "__name__" in ast.unparse(node.test) for node in tree.body)
    return has_main and not has_functions(tree)
